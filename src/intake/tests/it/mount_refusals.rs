//! Tests that mounts and devices of written pods which an API server refuses are errors, each with its path and the next step.

use serde_json::{Value, json};

use crate::json_kit::{apps, ending, object, read, refused, stored};

/// A pod with these volumes, whose only container has these fields.
fn pod(volumes: Value, mut container: Value) -> Value {
    container["name"] = json!("c");
    container["image"] = json!("x");
    object("v1", "Pod", "a", json!({"volumes": volumes, "containers": [container]}))
}

/// Checks that these are the problems of an object, below its container, and that a stored one is read as it is.
pub fn has_problems(object: &Value, problems: &[&str]) {
    let found = refused(object);
    assert_eq!(found.len(), problems.len(), "{found:#?}");
    for problem in problems {
        let end = format!("spec.containers[0].{problem}");
        assert!(found.iter().any(|one| one.ends_with(&end)), "{end} is not in {found:#?}");
    }
    read(&[stored(object.clone(), None)]);
}

fn empty(name: &str) -> Value {
    json!({"name": name, "emptyDir": {}})
}

#[test]
fn a_mount_or_device_of_a_volume_that_the_pod_does_not_have_is_refused() {
    let mounts = json!([{"name": "dat", "mountPath": "/d"}, {"name": "logs", "mountPath": "/l"}]);
    has_problems(
        &pod(json!([empty("data")]), json!({"volumeMounts": mounts})),
        &[
            "volumeMounts[0].name: the pod has no volume `dat`; did you mean `data`?",
            "volumeMounts[1].name: the pod has no volume `logs`; add it to the volumes of the pod, or remove this",
        ],
    );
    has_problems(
        &pod(Value::Null, json!({"volumeDevices": [{"name": "disk", "devicePath": "/dev/xvda"}]})),
        &[
            "volumeDevices[0].name: the pod has no volume `disk`; add it to the volumes of the pod, or remove this",
        ],
    );
    read(&[pod(json!([empty("data")]), json!({"volumeMounts": [{"name": "data", "mountPath": "/d"}]}))]);
}

#[test]
fn mounts_of_init_containers_in_templates_are_judged_in_the_same_round_as_amounts() {
    let mut web = apps("Deployment", "web", 1);
    let spec = &mut web["spec"]["template"]["spec"];
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": "many"}});
    spec["initContainers"] =
        json!([{"image": "x", "name": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}]);
    let found = refused(&web);
    let paths = [
        "spec.template.spec.containers[0].resources.requests.cpu: ",
        "initContainers[0].volumeMounts[0].name: ",
    ];
    assert_eq!(found.len(), paths.len(), "{found:#?}");
    for path in paths {
        assert!(found.iter().any(|one| one.contains(path)), "{path} is not in {found:#?}");
    }
}

#[test]
fn a_misspelt_list_of_volumes_is_the_only_problem_of_its_mounts() {
    let mut typo = pod(Value::Null, json!({"volumeMounts": [{"name": "data", "mountPath": "/d"}]}));
    typo["spec"]["volume"] = json!([empty("data")]);
    let found = refused(&typo);
    assert!(
        found.len() == 1 && found[0].contains("spec.volume: unknown field; did you mean `volumes`?"),
        "{found:#?}"
    );
}

#[test]
fn claims_that_a_controller_makes_for_each_pod_are_volumes_of_its_pods() {
    let mounting = |mut template: Value| {
        template["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/d"}]);
        template
    };
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}]);
    let set = |claims: &Value| {
        let mut set = apps("StatefulSet", "s", 1);
        set["spec"]["template"] = mounting(set["spec"]["template"].take());
        set["spec"]["volumeClaimTemplates"] = claims.clone();
        set
    };
    let group = |claims: &Value| {
        let template = mounting(crate::json_kit::template());
        let template = json!({"size": 1, "workerTemplate": template, "volumeClaimTemplates": claims});
        object(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            "g",
            json!({"leaderWorkerTemplate": template}),
        )
    };
    let jobs = |claims: &Value| {
        let job = json!({"name": "w", "template": {"spec": {"template": mounting(ending())}}});
        let spec = json!({"volumeClaimPolicies": [{"templates": claims}], "replicatedJobs": [job]});
        object("jobset.x-k8s.io/v1alpha2", "JobSet", "j", spec)
    };
    for of in [&set as &dyn Fn(&Value) -> Value, &group, &jobs] {
        let without = refused(&of(&json!([])));
        assert!(
            without.len() == 1 && without[0].contains("volumeMounts[0].name: the pod has no volume `data`"),
            "{without:#?}"
        );
        assert_eq!(read(&[of(&claims)]).pods.len(), 1);
    }
}

#[test]
fn each_mount_of_a_container_has_its_own_path_and_stays_in_its_volume() {
    let mounts = json!([
        {"name": "v"}, {"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"},
        {"name": "v", "mountPath": "/b", "subPath": "/x"},
        {"name": "v", "mountPath": "/c", "subPath": "x/../y", "subPathExpr": "z"},
        {"mountPath": "/e"},
        {"name": "v", "mountPath": "/f", "mountPropagation": "Bidirectional"},
        {"name": "v", "mountPath": "/g", "mountPropagation": "Both"},
    ]);
    has_problems(
        &pod(json!([empty("v")]), json!({"volumeMounts": mounts})),
        &[
            "volumeMounts[0].mountPath: missing; write the path in the container",
            "volumeMounts[2].mountPath: another mount of the container is at `/a`; change one of them",
            "volumeMounts[3].subPath: it is a path from the root of the volume; remove the `/` at its beginning",
            "volumeMounts[4].subPath: it has `..` in it; write the path without it",
            "volumeMounts[4].subPathExpr: the mount also has subPath; remove one of them",
            "volumeMounts[5].name: missing; name a volume of the pod",
            "volumeMounts[6].mountPropagation: only a privileged container may have `Bidirectional`; write HostToContainer, or \
             `privileged: true` in its securityContext",
            "volumeMounts[7].mountPropagation: `Both` does not exist; write one of None, HostToContainer, Bidirectional",
        ],
    );
    let host =
        json!({"name": "v", "mountPath": "/f", "mountPropagation": "Bidirectional", "subPath": "x/..y"});
    read(&[pod(
        json!([empty("v")]),
        json!({"volumeMounts": [host], "securityContext": {"privileged": true}}),
    )]);
}

#[test]
fn a_device_is_a_claim_that_the_container_uses_once() {
    let claim = json!({"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}});
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let own = json!({"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}});
    let volumes = json!([claim, own, empty("dir"), empty("both")]);
    let devices = json!([
        {"name": "disk", "devicePath": "/dev/a"}, {"name": "disk", "devicePath": "/dev/b"},
        {"name": "own", "devicePath": "/dev/a"}, {"name": "dir", "devicePath": "/dev/../c"}, {"name": "gone"},
    ]);
    let mounts = json!([{"name": "disk", "mountPath": "/m"}, {"name": "both", "mountPath": "/dev/b"}]);
    has_problems(
        &pod(volumes.clone(), json!({"volumeDevices": devices, "volumeMounts": mounts})),
        &[
            "volumeDevices[1].name: another device of the container is the volume `disk`; remove one of them",
            "volumeDevices[2].devicePath: another device of the container is at `/dev/a`; change one of them",
            "volumeDevices[3].name: the volume `dir` is not a PersistentVolumeClaim, as a device must be; use a PersistentVolumeClaim \
             with `volumeMode: Block`, or volumeMounts",
            "volumeDevices[3].devicePath: it has `..` in it; write the whole path",
            "volumeDevices[4].name: the pod has no volume `gone`; add it to the volumes of the pod, or remove this",
            "volumeDevices[4].devicePath: missing; write the path in the container",
            "volumeMounts[0].name: `disk` is also in volumeDevices of the container; remove one of them",
            "volumeMounts[1].mountPath: `/dev/b` is also in volumeDevices of the container; remove one of them",
        ],
    );
    let devices = json!([{"name": "disk", "devicePath": "/dev/a"}, {"name": "own", "devicePath": "/dev/b"}]);
    read(&[pod(volumes, json!({"volumeDevices": devices}))]);
}
