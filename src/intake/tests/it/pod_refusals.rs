//! Tests that written objects which an API server refuses are errors, all of them at once, each with its path and the next step.

use serde_json::{Value, json};

use crate::json_kit::{apps, ending, has, object, read, refused, stored};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn pod(spec: Value) -> Value {
    let mut pod = object("v1", "Pod", "a", json!({"containers": [{"image": "x", "name": "c"}]}));
    for (field, value) in spec.as_object().expect("fields") {
        pod["spec"][field] = value.clone();
    }
    pod
}

/// Checks that these are the problems of an object, without its name.
fn has_problems(object: &Value, problems: &[&str]) {
    let found = refused(object);
    assert_eq!(found.len(), problems.len(), "{found:#?}");
    for problem in problems {
        assert!(found.iter().any(|one| one.ends_with(problem)), "{problem} is not in {found:#?}");
    }
    // What an API server has stored has passed its checks.
    read(&[stored(object.clone(), None)]);
}

#[test]
fn a_name_that_is_no_domain_name_is_refused() {
    let named = |version: &str, kind: &str, name: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    let kinds = [
        ("node.k8s.io/v1", "RuntimeClass", "handler", json!("kata")),
        ("scheduling.k8s.io/v1", "PriorityClass", "value", json!(1)),
    ];
    for (version, kind, field, value) in kinds {
        let mut object = named(version, kind, "Bad_Name");
        object[field] = value;
        let found = refused(&object);
        assert!(
            found.len() == 1
                && found[0].contains("metadata.name: an API server refuses the name `Bad_Name`; write"),
            "{found:?}"
        );
        object["metadata"]["name"] = json!("good.name-1");
        read(&[object]);
    }
    let mut begun = pod(json!({}));
    begun["metadata"] = json!({"generateName": "train-", "namespace": "ML"});
    let found = refused(&begun);
    assert!(found.len() == 1 && found[0].contains("metadata.namespace: "), "{found:?}");
    read(&[
        named("rbac.authorization.k8s.io/v1", "Role", "system:node"),
        named("v1", "ConfigMap", "Any_Name"),
    ]);
    let found = refused(&named("v1", "Namespace", "a.b"));
    assert!(found[0].contains("the name `a.b`"), "a namespace has no dots: {found:?}");
}

#[test]
fn two_containers_or_volumes_of_one_name_and_two_sources_of_a_volume_are_refused() {
    let twice = pod(
        json!({"initContainers": [{"image": "x", "name": "c"}], "containers": [{"image": "x", "name": "c"}, {"image": "x", "name": "d"}]}),
    );
    has_problems(
        &twice,
        &["spec.containers[0].name: another container has the name `c`; rename one of them"],
    );
    let volumes = json!([{"name": "v", "emptyDir": {}, "hostPath": {"path": "/v"}}, {"name": "v"}]);
    has_problems(
        &pod(json!({"volumes": volumes})),
        &[
            "spec.volumes[0]: a volume has one source, and this has emptyDir and hostPath; keep one of them",
            "spec.volumes[1].name: another volume has the name `v`; rename one of them",
        ],
    );
    // An API server makes an emptyDir of it.
    read(&[pod(json!({"volumes": [{"name": "v"}]}))]);
}

#[test]
fn missing_images_and_name_servers_and_parts_of_huge_pages_are_refused_at_once() {
    let resources = |pages: &str| {
        let amounts = json!({"cpu": "1", "hugepages-2Mi": pages});
        json!({"requests": amounts, "limits": amounts})
    };
    let bare = |pages: &str| json!([{"name": "c", "resources": resources(pages)}]);
    let pages = "spec.containers[0].resources.limits.hugepages-2Mi: `3Mi` is not a multiple of the page size `2Mi`; write whole \
                 pages of an existing size";
    let image = "image: missing; add it, such as registry.example.com/app:1.0";
    has_problems(
        &pod(
            json!({"dnsPolicy": "None", "initContainers": [{"name": "i", "image": ""}], "containers": bare("3Mi")}),
        ),
        &[
            pages,
            &pages.replace("limits", "requests"),
            &format!("spec.containers[0].{image}"),
            &format!("spec.initContainers[0].{image}"),
            "spec.dnsConfig.nameservers: missing; add one, because dnsPolicy is None, or change the policy",
        ],
    );
    let mut whole = bare("4Mi");
    whole[0]["image"] = json!("x");
    let servers = json!({"nameservers": ["192.0.2.1"]});
    read(&[pod(json!({"dnsPolicy": "None", "dnsConfig": servers, "containers": whole}))]);
    let mut web = apps("Deployment", "web", 1);
    web["spec"]["template"]["spec"]["containers"] = json!([{"name": "c"}]);
    has_problems(&web, &[&format!("spec.template.spec.containers[0].{image}")]);
}

#[test]
fn each_wrong_expression_about_nodes_is_named_instead_of_called_not_modelled() {
    let expressions = json!([{"key": "a", "operator": "in", "values": ["b"]}, {"key": "c", "operator": "Gt", "values": ["x"]},
        {"key": "d", "operator": "Exists", "values": ["y"]}, {"key": "e", "operator": "NotIn"}]);
    let affinity =
        json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}});
    has_problems(
        &pod(json!({"affinity": affinity})),
        &[
            "matchExpressions[0].operator: `in` does not exist; write `In`",
            "matchExpressions[1].values: `Gt` takes one whole number; write one, in quotes",
            "matchExpressions[2].values: `Exists` takes no values; remove them",
            "matchExpressions[3].values: `NotIn` needs at least one value; add one",
        ],
    );
    let preferred = json!([{"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "IsIn", "values": ["b"]}]}}]);
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}});
    has_problems(
        &pod(json!({"affinity": affinity})),
        &[
            "[0].weight: `0` is not from 1 to 100; write such a number",
            "[0].preference.matchExpressions[0].operator: `IsIn` does not exist; write one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ],
    );
}

#[test]
fn each_wrong_toleration_is_named() {
    let tolerations = json!([{"key": "a", "operator": "Exists", "value": "b"}, {"operator": "Equal", "value": "z"},
        {"key": "k", "effect": "NoScheduled"}, {"key": "t", "operator": "Exists", "tolerationSeconds": 3}]);
    has_problems(
        &pod(json!({"tolerations": tolerations})),
        &[
            "spec.tolerations[0].value: `Exists` takes no value; remove it, or write `operator: Equal`",
            "spec.tolerations[1].key: only `Exists` needs no key; add the key, or write `operator: Exists`",
            "spec.tolerations[2].effect: `NoScheduled` does not exist; write `NoSchedule`",
            "spec.tolerations[3].tolerationSeconds: an API server refuses it without the effect NoExecute; write `effect: NoExecute`, or \
             remove it",
        ],
    );
}

#[test]
fn a_rule_about_other_pods_needs_a_topology_key() {
    let term =
        json!({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Near", "values": ["b"]}]}});
    for field in ["podAffinity", "podAntiAffinity"] {
        let affinity = json!({field: {REQUIRED: [term],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"labelSelector": {}}}]}});
        has_problems(
            &pod(json!({"affinity": affinity})),
            &[
                &format!(
                    "{field}.{REQUIRED}[0].topologyKey: missing; add it, such as kubernetes.io/hostname"
                ),
                "matchExpressions[0].operator: `Near` does not exist; write one of In, NotIn, Exists, DoesNotExist",
                "podAffinityTerm.topologyKey: missing; add it, such as kubernetes.io/hostname",
            ],
        );
    }
}

#[test]
fn values_that_do_not_exist_and_negative_numbers_are_refused() {
    let job = json!({"completionMode": "Index", "completions": 1, "backoffLimit": -1, "template": ending()});
    has_problems(
        &object("batch/v1", "Job", "j", job),
        &[
            "spec.completionMode: `Index` does not exist; write `Indexed`",
            "spec.backoffLimit: `-1` is negative; write zero or more",
        ],
    );
    let mut set = apps("StatefulSet", "s", 1);
    set["spec"]["updateStrategy"] = json!({"type": "Rolling", "rollingUpdate": {"partition": -1}});
    has_problems(
        &set,
        &[
            "spec.updateStrategy.type: `Rolling` does not exist; write one of RollingUpdate, OnDelete",
            "spec.updateStrategy.rollingUpdate.partition: `-1` is negative; write zero or more",
        ],
    );
    let mut web = apps("Deployment", "web", 1);
    web["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    has_problems(
        &web,
        &["an API server refuses `Never` in a Deployment; write Always, or use a Job, whose pods end"],
    );
    has_problems(&pod(json!({"restartPolicy": "never"})), &["`never` does not exist; write `Never`"]);
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"},
        "provisioner": "x", "volumeBindingMode": "immediate"});
    has_problems(&class, &["volumeBindingMode: `immediate` does not exist; write `Immediate`"]);
}

#[test]
fn an_mpi_job_has_one_launcher() {
    let roles = json!({"Launcher": {"replicas": 2, "template": ending()}, "Worker": {"replicas": 2, "template": ending()}});
    has_problems(
        &object("kubeflow.org/v2beta1", "MPIJob", "m", json!({"mpiReplicaSpecs": roles})),
        &["Launcher.replicas: `2` is not the one launcher that an MPIJob has; write 1, and add workers"],
    );
}

#[test]
fn what_an_api_server_refuses_is_told_in_the_same_round_as_an_old_version_and_a_mistaken_kind() {
    let old = object("apps/v1beta1", "Deployment", "old", json!({"template": crate::json_kit::template()}));
    let small = object("v1", "pod", "small", json!({"containers": [{"image": "x", "name": "c"}]}));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [old, small]});
    let found = refused(&list);
    for part in [
        "Deployment default/old: apiVersion: version `apps/v1beta1` of this kind is not read; use `apps/v1`",
        "Deployment default/old: spec.selector: missing",
        "pod default/small: v1 pod is not read; did you mean Pod?",
    ] {
        assert!(found.iter().any(|one| one.contains(part)), "{part} is not in {found:#?}");
    }
}

#[test]
fn operators_that_ask_for_gpus_are_missing_and_rendered_kinds_say_how_to_render_them() {
    let services = json!({"services": {"Worker": {"replicas": 2, "resources": {"limits": {"gpu": "1"}}}}});
    let manifest = read(&[object("nvidia.com/v1alpha1", "DynamoGraphDeployment", "dyn", services)]);
    assert_eq!(manifest.unread, ["DynamoGraphDeployment default/dyn"]);
    assert!(manifest.notes[0].contains("give these pods too"), "{:?}", manifest.notes);
    let none = json!({"services": {"Worker": {"resources": {"limits": {"gpu": "0"}}}}});
    assert!(read(&[object("nvidia.com/v1alpha1", "DynamoGraphDeployment", "dyn", none)]).unread.is_empty());
    for (version, kind, command) in [
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "kubectl kustomize"),
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helm template"),
        ("argoproj.io/v1alpha1", "Application", "helm template"),
    ] {
        let manifest = read(&[json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}})]);
        assert!(manifest.notes[0].contains(&format!("render them with `{command}`")), "{:?}", manifest.notes);
    }
}

#[test]
fn a_runtime_without_a_train_job_is_named_without_a_namespace() {
    let spec = json!({"template": {"spec": {"replicatedJobs": []}}});
    let runtime = object("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "torch", spec);
    let told = "ClusterTrainingRuntime torch: trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime is not read; it is a template of other \
                objects, and makes no pods itself";
    let manifest = read(&[runtime]);
    assert!(has(&manifest, told), "{:?}", manifest.notes);
}
