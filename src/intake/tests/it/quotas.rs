//! Tests ResourceQuotas: which objects of files an API server would not create, and what that means for their pods.

use poolwright_core::VolumeClaim;
use poolwright_intake::Manifest;
use poolwright_intake::manifest::read_files;
use serde_json::{Value, json};

use crate::json_kit::{apps, ending, has, names, object, pod, read, refused as problems, stored};

fn quota(hard: Value) -> Value {
    object("v1", "ResourceQuota", "team", json!({"hard": hard}))
}

/// The quota as an API server prints it.
fn counted(hard: &Value, used: Value) -> Value {
    let mut quota = stored(quota(hard.clone()), None);
    quota["status"] = json!({"hard": hard, "used": used});
    quota
}

fn claim(name: &str, class: Option<&str>, size: &str) -> Value {
    let resources = json!({"requests": {"storage": size}});
    let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"], "resources": resources});
    object("v1", "PersistentVolumeClaim", name, spec)
}

/// A StatefulSet whose pods get a claim of 10Gi each.
fn database(replicas: u32) -> Value {
    let mut set = apps("StatefulSet", "db", replicas);
    let spec = claim("data", Some("gold"), "10Gi")["spec"].clone();
    set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": spec}]);
    set
}

fn refused(manifest: &Manifest) -> Vec<&str> {
    let over = manifest.volume_claims.iter().chain(&manifest.made_claims);
    over.filter(|claim| claim.over_quota.is_some()).map(|claim| claim.key.name.as_str()).collect()
}

#[test]
fn a_controller_that_a_count_does_not_allow_makes_no_pods() {
    let web = || apps("Deployment", "web", 3);
    let manifest =
        read(&[quota(json!({"count/deployments.apps": "1"})), web(), apps("Deployment", "api", 2)]);
    assert_eq!(names(&manifest), ["web-0", "web-1", "web-2"]);
    let note = "Deployment default/api: it cannot be created and its 2 pods are not planned, because ResourceQuota `team` allows no more \
                count/deployments.apps: it limits them to 1, 1 is in use, and this asks for 1; raise the quota to plan them";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
    // Another namespace has its own quotas, and what an API server has needs no room.
    let mut other = web();
    other["metadata"]["namespace"] = json!("other");
    let none = || quota(json!({"count/deployments.apps": "0"}));
    assert_eq!(read(&[none(), other]).pods.len(), 3);
    assert_eq!(read(&[none(), stored(web(), None)]).pods.len(), 3);
    assert_eq!(read(&[none(), stored(web(), None), apps("Deployment", "web", 5)]).pods.len(), 5, "a change");
}

#[test]
fn a_count_of_what_controllers_make_on_the_way_counts_too() {
    let pods = |hard: Value, object: Value| read(&[quota(hard), object]).pods.len();
    assert_eq!(pods(json!({"count/replicasets.apps": "0"}), apps("Deployment", "web", 3)), 0);
    assert_eq!(pods(json!({"count/controllerrevisions.apps": "0"}), apps("StatefulSet", "db", 3)), 0);
    let jobs = json!([{"name": "w", "replicas": 3, "template": {"spec": {"template": ending()}}}]);
    let set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", json!({"replicatedJobs": jobs}));
    let manifest = read(&[quota(json!({"count/jobs.batch": "2"})), set]);
    assert_eq!(names(&manifest), ["train-w-0-0", "train-w-1-0"]);
    let note = "JobSet default/train: 1 of its 3 pods cannot be created and is not planned, because ResourceQuota `team` allows no more \
                count/jobs.batch: it limits them to 2, 2 are in use, and this asks for 1; raise the quota to plan it";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
}

#[test]
fn a_status_says_what_is_in_use_and_otherwise_the_stored_objects_of_the_files_count() {
    let hard = json!({"count/jobs.batch": "3"});
    let job = |name: &str| object("batch/v1", "Job", name, json!({"template": ending()}));
    let there = || stored(job("old"), None);
    let new = || [job("a"), job("b"), job("c")];
    let count = |quota: Value| {
        let objects: Vec<Value> = [quota, there()].into_iter().chain(new()).collect();
        read(&objects).pods.len() - 1
    };
    assert_eq!(count(quota(hard.clone())), 2);
    assert_eq!(count(counted(&hard, json!({"count/jobs.batch": "3"}))), 0);
    // A quota that is changed keeps what is in use.
    let objects = [counted(&hard, json!({"count/jobs.batch": "3"})), quota(json!({"count/jobs.batch": "4"}))];
    let objects: Vec<Value> = objects.into_iter().chain(new()).collect();
    assert_eq!(read(&objects).pods.len(), 1);
}

#[test]
fn a_refusal_says_what_the_status_counts_and_what_earlier_objects_of_the_plan_take() {
    let hard = json!({"requests.cpu": "4"});
    let pod = |name: &str, cpu: &str| {
        let container = json!({"image": "x", "name": "a", "resources": {"requests": {"cpu": cpu}}});
        object("v1", "Pod", name, json!({"containers": [container]}))
    };
    let quota = || counted(&hard, json!({"requests.cpu": "1500m"}));
    let manifest = read(&[quota(), pod("first", "1"), pod("second", "2")]);
    assert_eq!(names(&manifest), ["first"]);
    let note = "Pod default/second: it cannot be created and is not planned, because ResourceQuota `team` allows no more requests.cpu: it \
                limits them to 4, 2500m are in use, and this asks for 2; raise the quota to plan it";
    assert_eq!(manifest.notes, [note]);
}

#[test]
fn a_refusal_names_all_entries_of_all_quotas_that_allow_no_more() {
    let container =
        json!({"image": "x", "name": "a", "resources": {"requests": {"cpu": "2", "memory": "2Gi"}}});
    let pod = object("v1", "Pod", "p", json!({"containers": [container]}));
    let team = quota(json!({"requests.cpu": "1", "requests.memory": "1Gi", "pods": "1"}));
    let mut other = quota(json!({"pods": "0"}));
    other["metadata"]["name"] = json!("whole");
    let note = "Pod default/p: it cannot be created and is not planned, because ResourceQuota `team` allows no more requests.cpu \
                (limit 1, 0 in use, 2 asked for) and no more requests.memory (limit 1Gi, 0 in use, 2Gi asked for), and \
                ResourceQuota `whole` allows no more pods (limit 0, 0 in use, 1 asked for); raise the quota to plan it";
    assert_eq!(read(&[team, other, pod]).notes, [note]);
}

#[test]
fn names_and_parts_of_units_that_an_api_server_refuses_in_a_quota_are_told_at_once() {
    let found = problems(&quota(json!({
        "gpus": "2", "storage": "10Gi", "requests.cpus": "1", "pods": "1500m", "nvidia.com/gpu": "500m",
        "requests.nvidia.com/gpu": "500m", "requests.cpu": "1500m", "count/jobs.batch": "1", "hugepages-2Mi": "4Mi"})));
    let of =
        |path: &str, rest: &str| format!("all.json: ResourceQuota default/team: spec.hard{path}: {rest}");
    let is_no_resource = "is not a resource of a quota";
    assert_eq!(found.len(), 5, "{found:?}");
    for expected in [
        of(".gpus", &format!("`gpus` {is_no_resource}; did you mean `requests.nvidia.com/gpu`?")),
        of(".storage", &format!("`storage` {is_no_resource}; ")),
        of("[\"requests.cpus\"]", &format!("`requests.cpus` {is_no_resource}; did you mean `requests.cpu`?")),
        of(".pods", "`1500m` is not a whole number; write a whole number"),
        of("[\"nvidia.com/gpu\"]", "`500m` is not a whole number; write a whole number"),
    ] {
        assert!(found.iter().any(|one| one.starts_with(&expected)), "{expected}: {found:?}");
    }
}

#[test]
fn scopes_that_an_api_server_refuses_are_told_with_their_place() {
    let told = |hard: Value, field: &str, scopes: Value| {
        let mut quota = quota(hard);
        quota["spec"][field] = scopes;
        let found = problems(&quota);
        let [only] = &found[..] else { panic!("{found:?}") };
        only.strip_prefix("all.json: ResourceQuota default/team: spec.").expect("a field").to_owned()
    };
    let pods = || json!({"pods": "1"});
    let found = told(json!({"requests.cpu": "1", "pods": "1"}), "scopes", json!(["BestEffort"]));
    assert!(found.starts_with("scopes[0]: an API server refuses this scope with requests.cpu; "), "{found}");
    let found = told(pods(), "scopes", json!(["Terminating", "NotTerminating"]));
    assert!(found.starts_with("scopes: no pod meets both Terminating and NotTerminating"), "{found}");
    let expression = |one: Value| told(pods(), "scopeSelector", json!({"matchExpressions": [one]}));
    for (one, expected) in [
        (
            json!({"scopeName": "PriorityClass", "operator": "In"}),
            "values: missing, and the operator In needs",
        ),
        (
            json!({"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]}),
            "values: the operator Exists takes no values",
        ),
        (
            json!({"scopeName": "Terminating", "operator": "In", "values": ["a"]}),
            "operator: the scope Terminating takes only the operator Exists",
        ),
        (
            json!({"scopeName": "PriorityClass", "operator": "Inn", "values": ["a"]}),
            "operator: `Inn` is not an operator of a scope selector; use one of In, NotIn, Exists, DoesNotExist",
        ),
    ] {
        let found = expression(one);
        assert!(found.starts_with(&format!("scopeSelector.matchExpressions[0].{expected}")), "{found}");
    }
}

#[test]
fn pods_that_have_ended_count_as_objects_and_use_nothing() {
    let ended = |name: &str| {
        let container = json!({"image": "x", "name": "a", "resources": {"requests": {"cpu": "2"}}});
        let mut pod = stored(object("v1", "Pod", name, json!({"containers": [container]})), None);
        pod["status"] = json!({"phase": "Succeeded"});
        pod
    };
    let new = |hard: Value| {
        let pod = object(
            "v1",
            "Pod",
            "new",
            json!({"containers": [{"image": "x", "name": "a", "resources": {"requests": {"cpu": "1"}}}]}),
        );
        names(&read(&[quota(hard), ended("x"), ended("y"), pod])).contains(&"new".to_owned())
    };
    assert!(new(json!({"pods": "1", "requests.cpu": "1"})));
    assert!(!new(json!({"count/pods": "2"})));
}

#[test]
fn a_pod_that_a_quota_does_not_allow_says_so_itself() {
    let manifest = read(&[quota(json!({"pods": "0"})), object("v1", "Pod", "p", ending()["spec"].clone())]);
    let note = "Pod default/p: it cannot be created and is not planned, because ResourceQuota `team` allows no more pods: it limits them \
                to 0, 0 are in use, and this asks for 1; raise the quota to plan it";
    assert_eq!(manifest.notes, [note]);
}

#[test]
fn a_claim_that_a_quota_does_not_allow_is_there_for_no_pod() {
    let hard =
        json!({"requests.storage": "15Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"});
    let manifest = read(&[
        quota(hard),
        claim("large", Some("silver"), "20Gi"),
        claim("first", Some("gold"), "10Gi"),
        claim("second", Some("gold"), "1Gi"),
        claim("third", Some("silver"), "5Gi"),
    ]);
    assert_eq!(refused(&manifest), ["large", "second"]);
    let why = |claim: &VolumeClaim| claim.over_quota.clone();
    let causes: Vec<String> = manifest.volume_claims.iter().filter_map(why).collect();
    assert_eq!(
        causes,
        [
            "ResourceQuota `team` allows no more requests.storage: it limits them to 15Gi, 0 are in use, and this asks for 20Gi",
            "ResourceQuota `team` allows no more gold.storageclass.storage.k8s.io/persistentvolumeclaims: it limits them to 1, 1 is in \
             use, and this asks for 1",
        ]
    );
    let note = "PersistentVolumeClaim default/large: it cannot be created, because ResourceQuota `team` allows no more requests.storage: \
                it limits them to 15Gi, 0 are in use, and this asks for 20Gi; raise the quota to plan the pods that use it";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
}

#[test]
fn a_claim_that_names_no_class_counts_to_the_default_class_of_the_files() {
    let hard = || json!({"gold.storageclass.storage.k8s.io/requests.storage": "5Gi"});
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "ebs.csi.aws.com",
        "metadata": {"name": "gold", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
    let manifest = read(&[quota(hard()), claim("data", None, "10Gi"), class]);
    assert_eq!(refused(&manifest), ["data"]);
    let manifest = read(&[quota(hard()), claim("data", None, "10Gi")]);
    assert_eq!(refused(&manifest), [""; 0]);
    let note = "PersistentVolumeClaim default/data: quotas for one StorageClass do not count a PersistentVolumeClaim that names none; \
                add the default StorageClass to the files";
    assert_eq!(manifest.notes, [note]);
}

#[test]
fn a_stateful_set_makes_no_pod_without_its_claim_and_one_that_is_there_needs_no_room() {
    let hard = || json!({"requests.storage": "25Gi"});
    let manifest = read(&[quota(hard()), database(3)]);
    assert_eq!(names(&manifest), ["db-0", "db-1"]);
    let end = "allows no more requests.storage: it limits them to 25Gi, 20Gi are in use, and this asks for 10Gi; raise the quota to plan it";
    assert!(manifest.notes[0].ends_with(end), "{:?}", manifest.notes);
    let there = stored(claim("data-db-1", Some("gold"), "10Gi"), None);
    let used = json!({"requests.storage": "10Gi"});
    assert_eq!(names(&read(&[counted(&hard(), used), database(3), there])), ["db-0", "db-1"]);
}

#[test]
fn a_pod_with_an_ephemeral_volume_that_a_quota_does_not_allow_waits_for_it() {
    let mut web = apps("Deployment", "web", 3);
    let template = json!({"spec": claim("", Some("gold"), "10Gi")["spec"]});
    web["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
    let manifest = read(&[quota(json!({"persistentvolumeclaims": "2"})), web]);
    assert_eq!(manifest.pods.len(), 3, "the pods are there before their claims");
    assert_eq!(refused(&manifest), ["web-2-scratch"]);
    let note = "Deployment default/web: a PersistentVolumeClaim of its pods cannot be created, because ResourceQuota `team` allows no more \
                persistentvolumeclaims: it limits them to 2, 2 are in use, and this asks for 1; raise the quota to plan the pods that wait";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
}

#[test]
fn a_quota_of_a_volume_attributes_class_counts_only_its_claims() {
    let mut fast = claim("fast", Some("gold"), "1Gi");
    fast["spec"]["volumeAttributesClassName"] = json!("fast");
    let mut quota = quota(json!({"persistentvolumeclaims": "0"}));
    let expression = json!({"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["fast"]});
    quota["spec"]["scopeSelector"] = json!({"matchExpressions": [expression]});
    let manifest = read(&[quota, fast, claim("plain", Some("gold"), "1Gi")]);
    assert_eq!(refused(&manifest), ["fast"]);
}

#[test]
fn a_quota_with_scopes_of_pods_counts_no_other_objects() {
    let mut quota = quota(json!({"count/deployments.apps": "0", "pods": "1"}));
    quota["spec"]["scopes"] = json!(["BestEffort"]);
    assert_eq!(names(&read(&[quota, apps("Deployment", "web", 3)])), ["web-0"]);
}

#[test]
fn objects_of_kinds_that_are_not_read_are_counted_and_named() {
    let widget = |name: &str| object("example.com/v1", "Widget", name, json!({"image": "x"}));
    let manifest = read(&[
        quota(json!({"count/widgets.example.com": "1", "configmaps": "0"})),
        widget("a"),
        widget("b"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}),
    ]);
    for (name, entry, amounts) in [
        ("Widget default/b", "count/widgets.example.com", "1, 1 is in use"),
        ("ConfigMap default/settings", "configmaps", "0, 0 are in use"),
    ] {
        let note = format!(
            "{name}: it cannot be created, because ResourceQuota `team` allows no more {entry}: it limits them to {amounts}, and this \
             asks for 1; raise the quota to create it"
        );
        assert!(has(&manifest, &note), "{:?}", manifest.notes);
    }
}

#[test]
fn extended_resources_are_limited_by_their_requests_alone() {
    let mut web = apps("Deployment", "web", 3);
    let gpu = json!({"limits": {"nvidia.com/gpu": "2"}});
    web["spec"]["template"]["spec"]["containers"][0]["resources"] = gpu;
    let manifest = read(&[quota(json!({"requests.nvidia.com/gpu": "5"})), web.clone()]);
    assert_eq!(manifest.pods.len(), 2);
    let manifest = read(&[quota(json!({"limits.nvidia.com/gpu": "1", "nvidia.com/gpu": "1"})), web]);
    assert_eq!((manifest.pods.len(), manifest.notes.len()), (3, 2), "an API server enforces neither");
    assert!(manifest.notes[0].ends_with("limits nothing in an API server; write `requests.nvidia.com/gpu`"));
}

#[test]
fn pods_that_a_stored_controller_has_count_once_and_a_quota_with_a_status_counts_them_already() {
    let mut web = stored(apps("Deployment", "web", 3), None);
    web["status"] = json!({"replicas": 3});
    let hard = json!({"pods": "3"});
    let manifest = read(&[counted(&hard, json!({"pods": "3"})), web.clone()]);
    assert_eq!(names(&manifest), ["web-0", "web-1", "web-2"]);
    assert_eq!(manifest.refused, []);
    // It wants one more than it has.
    web["spec"]["replicas"] = json!(4);
    let manifest = read(&[counted(&hard, json!({"pods": "3"})), web]);
    assert_eq!((manifest.pods.len(), manifest.refused.len()), (3, 1));
}

#[test]
fn a_quota_asks_no_container_for_requests_if_the_whole_pod_states_some() {
    let mut pod = object("v1", "Pod", "p", json!({"containers": [{"name": "c", "image": "i"}]}));
    pod["spec"]["resources"] = json!({"requests": {"cpu": "1"}});
    let manifest = read(&[quota(json!({"requests.cpu": "4", "requests.memory": "8Gi"})), pod]);
    assert_eq!(names(&manifest), ["p"]);
}

#[test]
fn what_a_cluster_has_besides_the_files_counts_to_their_quotas_and_nothing_counts_twice() {
    let pods_of = |hard: Value, used: Option<Value>, more: &[Value], there: &[Value]| {
        let quota = used.map_or_else(|| quota(hard.clone()), |used| counted(&hard, used));
        let objects: Vec<Value> =
            [quota, apps("Deployment", "web", 3)].into_iter().chain(more.iter().cloned()).collect();
        let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let (manifest, errors) = read_files([("all.json", text.as_str())], there);
        assert!(errors.is_empty(), "{errors:?}");
        manifest
    };
    let hard = || json!({"pods": "3"});
    let other = |name: &str| pod(name, ["apps/v1", "ReplicaSet", "other-7c9"]);
    let there = [
        other("other-7c9-a"),
        object("v1", "Pod", "by-hand", json!({"nodeName": "n", "containers": [{"image": "x", "name": "a"}]})),
    ];
    let manifest = pods_of(hard(), None, &[], &there);
    assert_eq!(names(&manifest), ["web-0"], "pods of the cluster are no pods of the manifest");
    let note = "Deployment default/web: 2 of its 3 pods cannot be created and are not planned, because ResourceQuota `team` allows no more \
                pods: it limits them to 3, 3 are in use, and this asks for 1; raise the quota to plan them";
    assert!(has(&manifest, note), "{:?}", manifest.notes);

    let listed = json!({"apiVersion": "v1", "kind": "List", "items": there});
    assert_eq!(pods_of(hard(), None, &[], &[listed]).pods.len(), 1, "in a list");
    let both = pods_of(hard(), None, &there[..1], &there[..1]);
    assert_eq!(both.pods.len(), 3, "one that is there and two more: {:?}", names(&both));
    let used = Some(json!({"pods": "0"}));
    assert_eq!(pods_of(hard(), used, &[], &there).pods.len(), 3, "the quota itself says what is in use");
}
