//! Tests of fields of kinds of other projects that are not listed, of parts with the same name, and that all mistakes are told.

use serde_json::{Value, json};

use crate::json_kit::{apps, ending, has, object, read, refused, stored};

const KUBEFLOW: &str = "kubeflow.org/v1";
const TRAINER: &str = "trainer.kubeflow.org/v1alpha1";

fn pytorch() -> Value {
    let mut template = ending();
    template["spec"]["containers"][0]["name"] = json!("pytorch");
    object(KUBEFLOW, "PyTorchJob", "a", json!({"pytorchReplicaSpecs": {"Worker": {"template": template}}}))
}

fn mpi() -> Value {
    let roles = json!({"Launcher": {"template": ending()}, "Worker": {"template": ending()}});
    object("kubeflow.org/v2beta1", "MPIJob", "a", json!({"mpiReplicaSpecs": roles}))
}

fn cluster() -> Value {
    json!({"headGroupSpec": {"template": ending()}, "workerGroupSpecs": [{"groupName": "w", "template": ending()}]})
}

fn ray(kind: &str, spec: Value) -> Value {
    object("ray.io/v1", kind, "a", spec)
}

fn volcano() -> Value {
    let tasks = json!([{"name": "w", "replicas": 2, "template": ending()}]);
    object("batch.volcano.sh/v1alpha1", "Job", "a", json!({"tasks": tasks}))
}

fn leaders() -> Value {
    let template = json!({"size": 2, "workerTemplate": ending()});
    object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "a", json!({"leaderWorkerTemplate": template}))
}

fn train_job() -> Value {
    object(TRAINER, "TrainJob", "a", json!({"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 3}}))
}

fn runtime() -> Value {
    let job = json!({"name": "node", "template": {"spec": {"template": ending()}}});
    let spec = json!({"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}});
    object(TRAINER, "ClusterTrainingRuntime", "torch", spec)
}

fn replicas(version: &str, kind: &str) -> Value {
    object(version, kind, "a", json!({"replicas": 1, "template": ending()}))
}

/// Adds a field, whose place is a JSON pointer.
fn with(mut object: Value, place: &str, field: &str, value: Value) -> Value {
    object.pointer_mut(place).unwrap_or_else(|| panic!("{place}"))[field] = value;
    object
}

/// Each object, a place in it, its path, a misspelt field, and the field that is meant.
fn misspelt() -> Vec<(Value, [&'static str; 4])> {
    let elastic = with(pytorch(), "/spec", "elasticPolicy", json!({"maxReplicas": 1}));
    let policy = with(mpi(), "/spec", "runPolicy", json!({"schedulingPolicy": {}}));
    let (job, service) = (json!({"rayClusterSpec": cluster()}), json!({"rayClusterConfig": cluster()}));
    vec![
        (pytorch(), ["/spec", "spec", "elasticPolcy", "elasticPolicy"]),
        (elastic, ["/spec/elasticPolicy", "spec.elasticPolicy", "minReplica", "minReplicas"]),
        (
            pytorch(),
            ["/spec/pytorchReplicaSpecs/Worker", "spec.pytorchReplicaSpecs.Worker", "replica", "replicas"],
        ),
        (policy.clone(), ["/spec/runPolicy", "spec.runPolicy", "suspended", "suspend"]),
        (
            policy,
            [
                "/spec/runPolicy/schedulingPolicy",
                "spec.runPolicy.schedulingPolicy",
                "minAvailabe",
                "minAvailable",
            ],
        ),
        (train_job(), ["/spec/trainer", "spec.trainer", "numNode", "numNodes"]),
        (train_job(), ["/spec/runtimeRef", "spec.runtimeRef", "knd", "kind"]),
        (runtime(), ["/spec/mlPolicy", "spec.mlPolicy", "numNode", "numNodes"]),
        (leaders(), ["/spec", "spec", "replica", "replicas"]),
        (leaders(), ["/spec/leaderWorkerTemplate", "spec.leaderWorkerTemplate", "sizes", "size"]),
        (
            ray("RayCluster", cluster()),
            ["/spec", "spec", "enableInTreeAutoScaling", "enableInTreeAutoscaling"],
        ),
        (
            ray("RayCluster", cluster()),
            ["/spec/workerGroupSpecs/0", "spec.workerGroupSpecs[0]", "minReplica", "minReplicas"],
        ),
        (
            ray("RayJob", job),
            [
                "/spec/rayClusterSpec/workerGroupSpecs/0",
                "spec.rayClusterSpec.workerGroupSpecs[0]",
                "numOfHost",
                "numOfHosts",
            ],
        ),
        (
            ray("RayService", service),
            [
                "/spec/rayClusterConfig/headGroupSpec",
                "spec.rayClusterConfig.headGroupSpec",
                "headServices",
                "headService",
            ],
        ),
        (volcano(), ["/spec", "spec", "minAvailabe", "minAvailable"]),
        (volcano(), ["/spec/tasks/0", "spec.tasks[0]", "minAvailble", "minAvailable"]),
        (replicas("apps.kruise.io/v1alpha1", "CloneSet"), ["/spec", "spec", "replica", "replicas"]),
        (replicas("argoproj.io/v1alpha1", "Rollout"), ["/spec", "spec", "replica", "replicas"]),
        (replicas("apps.openshift.io/v1", "DeploymentConfig"), ["/spec", "spec", "replica", "replicas"]),
    ]
}

#[test]
fn a_misspelt_field_of_a_kind_of_another_project_is_refused_with_the_one_that_is_meant() {
    for (sound, [place, path, field, meant]) in misspelt() {
        let found = refused(&with(sound, place, field, json!(1)));
        let [only] = found.as_slice() else { panic!("{path}.{field}: {found:?}") };
        let end = format!(": {path}.{field}: unknown field; did you mean `{meant}`?");
        assert!(only.ends_with(&end), "{only}");
    }
}

#[test]
fn an_unlisted_field_that_a_newer_version_may_have_is_a_note() {
    let objects = [pytorch(), mpi(), volcano(), leaders(), ray("RayCluster", cluster())];
    for object in objects {
        let usual = read(std::slice::from_ref(&object));
        let kind = object["kind"].as_str().expect("a kind");
        let told =
            format!("{kind} default/a: spec.foo: this version does not know the field, and ignores it");
        let manifest = read(&[with(object.clone(), "/spec", "foo", json!(1))]);
        assert_eq!((&manifest.pods, manifest.notes.len()), (&usual.pods, usual.notes.len() + 1));
        assert!(has(&manifest, &told), "{:?}", manifest.notes);
        let absent = read(&[with(object, "/spec", "foo", Value::Null)]);
        assert_eq!(absent.notes, usual.notes, "a null is no field");
    }
    let newer = with(runtime(), "/spec/mlPolicy", "foo", json!(1));
    let manifest = read(&[newer, train_job()]);
    let told = "ClusterTrainingRuntime torch: spec.mlPolicy.foo: this version does not know the field, and ignores it";
    assert!(has(&manifest, told), "{:?}", manifest.notes);
}

#[test]
fn a_misspelt_field_of_a_stored_object_is_a_note() {
    let mut job = stored(pytorch(), None);
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replica"] = json!(3);
    job["spec"]["foo"] = json!(1);
    let manifest = read(&[job]);
    let told = |path: &str| {
        let note =
            format!("PyTorchJob default/a: {path}: this version does not know the field, and ignores it");
        assert_eq!(manifest.notes.iter().filter(|one| **one == note).count(), 1, "{:?}", manifest.notes);
    };
    told("spec.pytorchReplicaSpecs.Worker.replica");
    told("spec.foo");
    assert_eq!(manifest.pods.len(), 1);
}

#[test]
fn the_patches_of_a_train_job_to_its_runtime_are_not_passed_over() {
    let patched = with(train_job(), "/spec", "runtimePatches", json!([{"manager": "a"}]));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [patched, runtime()]});
    let found = refused(&list);
    assert!(found[0].contains("spec.runtimePatches: changes to the pods"), "{found:?}");
}

#[test]
fn parts_of_an_object_with_the_same_name_are_told_with_their_place() {
    let job = json!({"name": "w", "template": {"spec": {"template": ending()}}});
    let jobs = json!({"replicatedJobs": [job, job]});
    let mut tasks = volcano();
    tasks["spec"]["tasks"] =
        json!([{"name": "w", "template": ending()}, {"name": "w", "template": ending()}]);
    let mut groups = ray("RayJob", json!({"rayClusterSpec": cluster()}));
    let group = groups["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].clone();
    groups["spec"]["rayClusterSpec"]["workerGroupSpecs"] = json!([group, group]);
    for (object, end) in [
        (
            object("jobset.x-k8s.io/v1alpha2", "JobSet", "a", jobs),
            "JobSet default/a: spec.replicatedJobs[1].name: another job has the name w; rename one",
        ),
        (tasks, "Job default/a: spec.tasks[1].name: another task has the name w; rename one"),
        (
            groups,
            "RayJob default/a: spec.rayClusterSpec.workerGroupSpecs[1].groupName: another worker group has the name w; rename one",
        ),
    ] {
        let found = refused(&object);
        assert!(found.len() == 1 && found[0].ends_with(end), "and not for each pod: {found:?}");
    }
}

#[test]
fn a_wrong_number_hides_neither_other_numbers_nor_what_is_wrong_with_the_templates() {
    let bad = json!({"spec": {"restartPolicy": "Never", "containers": [{"image": "x", "name": "pytorch", "resources": {"requests": {"cpu": "many"}}}]}});
    let cpu = "template.spec.containers[0].resources.requests.cpu";
    let group = |name: &str, least: i32, most: i32| json!({"groupName": name, "replicas": -1, "minReplicas": least, "maxReplicas": most, "template": bad});
    let spec = json!({"headGroupSpec": {"template": ending()}, "workerGroupSpecs": [group("a", 3, 2), group("b", -2, 5)]});
    let path = |rest: &str| format!("spec.workerGroupSpecs{rest}");
    let of_groups = vec![
        path("[0].maxReplicas"),
        path("[0].replicas"),
        path("[1].minReplicas"),
        path("[1].replicas"),
        path(&format!("[0].{cpu}")),
        path(&format!("[1].{cpu}")),
    ];
    let task = |name: &str| json!({"name": name, "replicas": -1, "minAvailable": -1, "template": bad});
    let tasks = json!({"minAvailable": -1, "tasks": [task("a"), task("b")]});
    let of_tasks: Vec<String> = ["[0].replicas", "[0].minAvailable", "[1].replicas", "[1].minAvailable"]
        .map(|rest| format!("spec.tasks{rest}"))
        .into_iter()
        .chain(["spec.minAvailable".to_owned()])
        .chain(["[0]", "[1]"].map(|at| format!("spec.tasks{at}.{cpu}")))
        .collect();
    let template = json!({"size": -1, "leaderTemplate": bad, "workerTemplate": bad});
    let inner = |rest: &str| format!("spec.leaderWorkerTemplate.{rest}");
    let of_leaders = vec![
        inner("size"),
        "spec.replicas".to_owned(),
        inner(&cpu.replace("template", "leaderTemplate")),
        inner(&cpu.replace("template", "workerTemplate")),
    ];
    let roles = json!({"Master": {"replicas": -1, "template": bad}});
    let of_roles = ["replicas", cpu].map(|rest| format!("spec.pytorchReplicaSpecs.Master.{rest}")).to_vec();
    for (object, paths) in [
        (ray("RayCluster", spec), of_groups),
        (object("batch.volcano.sh/v1alpha1", "Job", "a", tasks), of_tasks),
        (
            object(
                "leaderworkerset.x-k8s.io/v1",
                "LeaderWorkerSet",
                "a",
                json!({"replicas": -1, "leaderWorkerTemplate": template}),
            ),
            of_leaders,
        ),
        (object(KUBEFLOW, "PyTorchJob", "a", json!({"pytorchReplicaSpecs": roles})), of_roles),
        (
            object("apps.kruise.io/v1alpha1", "CloneSet", "a", json!({"replicas": -1, "template": bad})),
            vec!["spec.replicas".to_owned(), format!("spec.{cpu}")],
        ),
    ] {
        let found = refused(&object);
        let lacks = |path: &&String| !found.iter().any(|one| one.contains(&format!("/a: {path}: ")));
        let missing: Vec<&String> = paths.iter().filter(lacks).collect();
        assert!(missing.is_empty() && found.len() == paths.len(), "{missing:?}: {found:#?}");
    }
}

/// Objects of kinds that are read in different ways: by Kubernetes' own types, by their fields, and not at all.
fn of_all_kinds() -> Vec<Value> {
    let deployment = apps("Deployment", "a", 1);
    let cron = json!({"schedule": "@daily", "jobTemplate": {"spec": {"template": ending()}}});
    let model = json!({"predictor": {"model": {"storageUri": "s3://m"}}});
    vec![
        deployment,
        pytorch(),
        train_job(),
        runtime(),
        ray("RayCluster", cluster()),
        object("batch/v1", "CronJob", "a", cron),
        object("serving.kserve.io/v1beta1", "InferenceService", "a", model),
        object("example.com/v1", "Widget", "a", json!({"size": 1})),
    ]
}

/// Moves a field of an object to another name. An empty part is the object itself.
fn renamed(mut object: Value, part: &str, [from, to]: [&str; 2]) -> Value {
    let fields = object.pointer_mut(part).and_then(Value::as_object_mut).expect("a map");
    let value = fields.remove(from).unwrap_or_else(|| json!({"app": "web"}));
    fields.insert(to.to_owned(), value);
    object
}

#[test]
fn a_misspelt_part_of_an_object_or_of_its_metadata_is_refused_with_the_one_that_is_meant() {
    for object in of_all_kinds() {
        for (part, path, names) in [
            ("", "", ["spec", "Spec"]),
            ("", "", ["spec", "specs"]),
            ("/metadata", "metadata.", ["labels", "lables"]),
            ("/metadata", "metadata.", ["annotations", "annotation"]),
            ("/metadata", "metadata.", ["namespace", "namspace"]),
        ] {
            let [meant, written] = names;
            let changed = renamed(object.clone(), part, names);
            if object["kind"] == "Widget" {
                // Nothing is planned from it, whatever is meant.
                read(&[changed]);
                continue;
            }
            let found = refused(&changed);
            let end = format!(": {path}{written}: unknown field; did you mean `{meant}`?");
            assert!(found.iter().any(|one| one.ends_with(&end)), "{} {end}: {found:#?}", object["kind"]);
        }
        let is_planned = object["kind"] != "Widget";
        let stored = renamed(stored(object, None), "/metadata", ["labels", "lables"]);
        let manifest = read(std::slice::from_ref(&stored));
        let told = "metadata.lables: this version does not know the field, and ignores it";
        let count = manifest.notes.iter().filter(|note| note.ends_with(told)).count();
        assert_eq!(count, usize::from(is_planned), "{}: {:?}", stored["kind"], manifest.notes);
    }
}

#[test]
fn a_misspelt_metadata_or_kind_is_told_as_such() {
    for object in [pytorch(), train_job(), object("example.com/v1", "Widget", "a", json!({}))] {
        let found = refused(&renamed(object.clone(), "", ["metadata", "metdata"]));
        assert!(
            found.iter().any(|one| one.ends_with("metdata: unknown field; did you mean `metadata`?")),
            "{found:#?}"
        );
        let found = refused(&renamed(object, "", ["kind", "Kind"]));
        assert!(
            found[0].ends_with("apiVersion or kind is missing; write `kind` instead of `Kind`"),
            "{found:#?}"
        );
    }
}

#[test]
fn kinds_with_parts_of_their_own_keep_them_and_others_are_told_of_further_parts() {
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}, "immutable": true});
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {}, "specs": {}});
    let usual = read(&[object("example.com/v1", "Widget", "a", json!({}))]);
    assert_eq!(read(&[settings, widget]).notes, usual.notes);
    let mut job = pytorch();
    job["data"] = json!({});
    let manifest = read(&[job]);
    let told = "PyTorchJob default/a: data: this version does not know the field, and ignores it";
    assert!(has(&manifest, told), "{:?}", manifest.notes);
}
