//! Tests of plans for what `kubectl get -o yaml` prints, complete or not.

use serde_json::{Value, json};

use crate::support::{notes, plan, poolwright};

const OURS: &str = "poolwright.dev/v1alpha1";

/// Marks an object as one that an API server printed.
fn stored(mut object: Value) -> Value {
    let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
    object["metadata"]["uid"] = json!(format!("u-{}-{name}", object["kind"].as_str().expect("a kind")));
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

fn class() -> Value {
    json!({"apiVersion": OURS, "kind": "KwokNodeClass", "metadata": {"name": "aws"}, "spec": {"provider": "aws"}})
}

fn pool() -> Value {
    let requirements = json!([{"key": "poolwright.dev/gpu-model", "operator": "In", "values": ["l4"]},
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]}]);
    let reference = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
    let template = json!({"spec": {"nodeClassRef": reference, "requirements": requirements}});
    stored(
        json!({"apiVersion": OURS, "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": template}}),
    )
}

/// A claim for a node with four GPUs, which is open.
fn claim() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "X", "message": "ok", "lastTransitionTime": "2026-03-01T12:00:00Z"});
    let allocatable = json!({"cpu": "47", "memory": "180Gi", "pods": "58", "nvidia.com/gpu": "4"});
    let offering = json!({"instanceType": "g6.12xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
        "usdPerHour": "4.6016", "allocatable": allocatable});
    let reference = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
    stored(json!({"apiVersion": OURS, "kind": "NodeClaim",
        "metadata": {"name": "gpu-a", "labels": {"poolwright.dev/nodepool": "gpu"}, "creationTimestamp": "2026-03-01T11:00:00Z"},
        "spec": {"nodeClassRef": reference, "offerings": [offering], "pods": []},
        "status": {"nodeName": "gpu-a", "providerID": "kwok://gpu-a",
            "conditions": [condition("Launched"), condition("Registered"), condition("Initialized")]}}))
}

fn node() -> Value {
    let allocatable = json!({"cpu": "47", "memory": "180Gi", "pods": "58", "nvidia.com/gpu": "4"});
    stored(
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-a"}, "spec": {"providerID": "kwok://gpu-a"},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}}),
    )
}

/// A pod with a GPU, on a node if one is named.
fn pod(name: &str, node: Option<&str>) -> Value {
    let resources = json!({"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": "1"}});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}, "status": {"phase": "Pending"}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
        pod["status"]["phase"] = json!("Running");
    }
    stored(pod)
}

fn list(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

fn planned(objects: &[Value]) -> (Value, String) {
    let plan = plan(&["-f", "-"], &list(objects));
    let notes = notes(&plan);
    (plan, notes)
}

#[test]
fn a_claim_whose_node_the_files_lack_is_named_because_its_room_is_bought_again() {
    let all = [class(), pool(), claim(), pod("runs", Some("gpu-a")), pod("waits", None)];
    let (lacks, told) = planned(&all);
    assert_eq!(lacks["nodes"].as_array().map(Vec::len), Some(1), "{lacks}");
    assert!(told.contains("NodeClaim gpu-a: the files lack its node"), "{told}");
    assert!(told.contains("1 pod runs on a node that is not in the files: ml/runs on `gpu-a`"), "{told}");
    let explained = poolwright(&["explain", "claim", "gpu-a", "-f", "-"], &list(&all));
    let explained =
        String::from_utf8_lossy(&explained.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(explained.contains("Its node gpu-a does not exist here"), "{explained}");
    assert!(!explained.contains("It is open to pods"), "{explained}");

    let (whole, told) = planned(&[&all[..], &[node()]].concat());
    assert_eq!(whole["nodes"].as_array().map(Vec::len), Some(0), "{whole}");
    assert!(!told.contains("the files lack"), "{told}");
}

#[test]
fn a_node_without_a_status_is_named_because_its_room_does_not_count() {
    let mut bare = node();
    bare.as_object_mut().expect("an object").remove("status");
    let (plan, told) = planned(&[class(), pool(), bare, pod("waits", None)]);
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(1), "{plan}");
    assert!(told.contains("Node gpu-a: its status has no allocatable resources"), "{told}");
    let (_, told) = planned(&[class(), pool(), node(), pod("waits", None)]);
    assert!(!told.contains("its status has no"), "{told}");
}

#[test]
fn a_printed_pool_or_claim_with_a_new_field_counts_and_a_broken_one_is_left_out_with_what_follows() {
    let (mut newer, mut broken) = (pool(), pool());
    newer["spec"]["futureField"] = json!(1);
    broken["spec"]["disruption"] = json!({"consolidationPolicy": "WhenMoon"});
    let (plan, told) = planned(&[class(), newer, pod("waits", None)]);
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(1), "{plan}");
    assert!(told.contains("NodePool gpu: spec.futureField: this version does not know the field"), "{told}");

    let (plan, told) = planned(&[class(), broken, pod("waits", None)]);
    assert_eq!(
        (plan["nodes"].as_array().map(Vec::len), &plan["pods"]["unplaced"]),
        (Some(0), &json!(1)),
        "{plan}"
    );
    assert!(told.contains("the object is left out, so nothing is bought in this pool"), "{told}");
    let why = plan["unplaced"][0]["message"].as_str().expect("a message");
    assert!(
        why.starts_with("every NodePool of the files is left out, because it cannot be read: gpu;"),
        "{why}"
    );

    let mut claim = claim();
    claim["status"]["interruption"] =
        json!({"kind": "Spot", "noticed": "2026-03-01T12:00:00Z", "message": "x"});
    let (_, told) = planned(&[class(), pool(), claim, pod("waits", None)]);
    assert!(told.contains("NodeClaim gpu-a: status.interruption.kind"), "{told}");
    assert!(told.contains("the object is left out, so the plan may buy its node again"), "{told}");
}

#[test]
fn a_plan_that_buys_in_a_pool_which_the_controller_does_not_find_ready_says_so_first() {
    let mut pool = pool();
    pool["status"] = json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotReady",
        "message": "AccessDenied", "lastTransitionTime": "2026-03-01T12:00:00Z"}]});
    let (_, told) = planned(&[class(), pool, pod("waits", None)]);
    assert!(told.starts_with("NodePool gpu: the plan buys there, but the controller may not. "), "{told}");
    assert!(told.contains("(NodeClassNotReady): AccessDenied"), "{told}");
}

#[test]
fn a_commitment_that_existing_nodes_use_up_is_not_said_to_be_of_nothing() {
    let file = std::env::temp_dir().join(format!("poolwright-dump-{}.yaml", std::process::id()));
    let savings = "commitments: [{name: sp, usdPerHour: 1, discountPercent: 30, covers: {families: [g6]}}]\n";
    std::fs::write(&file, savings).expect("a temporary file");
    let mut large = pod("waits", None);
    large["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("8");
    let args = ["plan", "-f", "-", "--commitments", file.to_str().expect("UTF-8")];
    let output = poolwright(&args, &list(&[class(), pool(), claim(), node(), large]));
    std::fs::remove_file(&file).expect("it is ours");
    let told = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("used by these nodes; existing nodes use $1.00/h"), "{told}");
}

#[test]
fn units_that_a_limit_leaves_without_room_name_it_beside_those_that_fit_no_offering() {
    let mut pool = pool();
    pool["spec"]["limits"] = json!({"nvidia.com/gpu": 1});
    pool["spec"]["buffer"] = json!([{"units": 2, "requests": {"nvidia.com/gpu": "1", "cpu": "1"}},
        {"units": 1, "requests": {"nvidia.com/mig-1g.10gb": "1"}}]);
    let (_, told) = planned(&[class(), pool]);
    assert!(told.contains("no room is kept for 1 unit: "), "{told}");
    let by_limit = "pool gpu: spec.buffer[0]: no room is kept for 1 unit: limit nvidia.com/gpu = 1 of pool `gpu` is reached";
    assert!(told.contains(by_limit), "{told}");
}

/// Plans with these objects as those of `--existing`, in a file of this name.
fn plan_beside(name: &str, existing: &[Value], args: &[&str], input: &str) -> Value {
    let file = std::env::temp_dir().join(format!("poolwright-{name}-{}.json", std::process::id()));
    std::fs::write(&file, list(existing)).expect("a temporary file");
    let args = [args, &["--existing", file.to_str().expect("UTF-8")]].concat();
    let plan = plan(&args, input);
    std::fs::remove_file(&file).expect("it is ours");
    plan
}

/// Plans as [`plan_beside`] does, and returns the notes.
fn told_beside(name: &str, existing: &[Value], args: &[&str], input: &str) -> String {
    notes(&plan_beside(name, existing, args, input))
}

#[test]
fn existing_pods_of_a_training_job_do_not_stand_in_for_those_that_it_lacks() {
    let container =
        json!({"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}});
    let workers = json!({"replicas": 3, "template": {"spec": {"containers": [container]}}});
    let job = stored(json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "metadata": {"name": "train", "namespace": "ml"}, "spec": {"pytorchReplicaSpecs": {"Worker": workers}}}));
    let mut runs = pod("train-worker-0", Some("there"));
    runs["metadata"]["labels"] = json!({"training.kubeflow.org/replica-type": "worker"});
    runs["metadata"]["ownerReferences"] = json!([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
        "name": "train", "uid": "u-PyTorchJob-train", "controller": true}]);
    let status = json!({"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "9", "nvidia.com/gpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}]});
    let full =
        stored(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "there"}, "status": status}));
    let nodes = |most: u32| {
        let mut pool = pool();
        pool["spec"]["limits"] = json!({"nvidia.com/gpu": most});
        let input = list(&[class(), pool, job.clone()]);
        let plan = plan_beside("train", &[full.clone(), runs.clone()], &["-f", "-"], &input);
        plan["nodes"].as_array().map(Vec::len)
    };
    assert_eq!(nodes(1), Some(0), "it lacks two workers");
    assert!(nodes(2) > Some(0));
}

#[test]
fn existing_nodes_that_cannot_be_read_are_not_said_to_be_missing() {
    let mut broken = node();
    broken["spec"]["providerID"] = json!(7);
    let args = ["plan", "-f", "fixtures/manifests/two-gpu-pods.yaml", "--existing", "-"];
    let output = poolwright(&args, &list(&[broken]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no Node in the files can be read") && said.contains("spec.providerID"), "{said}");
    assert!(!said.contains("the files have no Node"), "{said}");
}

#[test]
fn an_existing_node_without_a_status_is_named_beside_a_trace_too() {
    let mut bare = node();
    bare.as_object_mut().expect("an object").remove("status");
    let trace = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
                 one,4000,16384,0,0,,LS,Running,0,100,0\n";
    let told = told_beside("trace", &[bare], &["--trace", "-"], trace);
    assert!(told.contains("Node gpu-a: its status has no allocatable resources"), "{told}");
}

#[test]
fn a_zone_of_an_existing_node_is_not_said_to_be_misspelt() {
    const UNKNOWN: &str =
        "no offering in the catalogue has these values of `topology.kubernetes.io/zone`: cellar";
    let (mut wants, mut there) = (pod("waits", None), node());
    wants["spec"]["nodeSelector"] = json!({"topology.kubernetes.io/zone": "cellar"});
    there["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "cellar"});
    let input = list(&[class(), pool(), wants]);
    let elsewhere = told_beside("no-zone", &[node()], &["-f", "-"], &input);
    assert!(elsewhere.contains(UNKNOWN), "{elsewhere}");
    let told = told_beside("zone", &[there], &["-f", "-"], &input);
    assert!(!told.contains(UNKNOWN), "{told}");
}

#[test]
fn many_existing_pods_that_cannot_be_read_share_a_note_which_says_that_their_room_counts_as_free() {
    let mut all = vec![node()];
    for name in ["a", "b", "c", "d", "e"] {
        let mut broken = pod(name, Some("gpu-a"));
        broken["spec"]["containers"] = json!([]);
        all.push(broken);
    }
    let told = told_beside("pods", &all, &["-f", "fixtures/manifests/two-gpu-pods.yaml"], "");
    assert!(told.contains("--existing: each of 5 Pod objects (ml/a, ml/b, ml/c and 2 more): "), "{told}");
    assert!(told.contains("the object is left out, so a plan counts its room as free"), "{told}");
}

#[test]
fn existing_pods_with_a_node_count_as_those_of_the_controllers_of_the_files() {
    let written = |kind: &str, name: &str, replicas: u32| {
        let labels = json!({"app": name});
        let template =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
        let spec = json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": spec})
    };
    let child = |name: &str, [kind, owner]: [&str; 2], node: Option<&str>| {
        let mut pod = pod(name, node);
        pod["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": format!("u-{owner}"), "controller": true}]);
        pod
    };
    let (web, db) = (["ReplicaSet", "web-7d9"], ["StatefulSet", "db"]);
    let there = [
        node(),
        child("web-7d9-a", web, Some("gpu-a")),
        child("web-7d9-b", web, Some("gpu-a")),
        child("db-0", db, Some("gpu-a")),
        child("db-1", db, None),
    ];
    let input = list(&[class(), pool(), written("Deployment", "web", 2), written("StatefulSet", "db", 2)]);
    let told = told_beside("owned", &there, &["-f", "-"], &input);
    assert!(told.contains("Deployment ml/web: its pods in the manifest count instead"), "{told}");
    let one = "StatefulSet ml/db: pods in the manifest: 1; pods that it lacks, planned too: 1";
    assert!(told.contains(one), "{told}");
    assert!(!told.contains("ignored pods without a node"), "`db-1` is planned from its set: {told}");
}

#[test]
fn a_broken_item_of_a_dump_is_left_out_and_no_success_if_the_exit_code_matters() {
    let junk = json!({"metadata": {"name": "gone"}});
    let all = [class(), pool(), pod("waits", None), junk];
    let (plan, told) = planned(&all);
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(1), "{plan}");
    let note = "document 1, item 4 of stdin: apiVersion or kind is missing; it is left out";
    assert!(told.contains(note), "{told}");
    let everywhere: &[&str] = &[];
    for more in [everywhere, &["-n", "ml"]] {
        let args = [&["plan", "-f", "-", "--fail-on-unplaced"][..], more].concat();
        let output = poolwright(&args, &list(&all));
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn what_a_pod_needs_of_an_object_that_is_left_out_is_not_called_missing() {
    let mut waits = pod("waits", None);
    waits["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    let claim = |modes: Value| {
        stored(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "ml", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"accessModes": modes, "volumeName": "disk", "resources": {"requests": {"storage": "1Gi"}}}}))
    };
    let (_, told) = planned(&[class(), pool(), claim(json!("ReadWriteOnce")), waits.clone()]);
    let note =
        "PersistentVolumeClaim ml/data is left out, because it cannot be read; it counts as one whose volume";
    assert!(told.contains(note), "{told}");

    let broken = json!({"accessModes": "ReadWriteOnce"});
    let broken =
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": broken});
    let message = |objects: &[Value]| {
        let (plan, _) = planned(objects);
        plan["unplaced"][0]["message"].as_str().unwrap_or_else(|| panic!("{plan}")).to_owned()
    };
    let all = [class(), pool(), claim(json!(["ReadWriteOnce"])), waits];
    assert!(message(&all).contains("its PersistentVolume `disk` does not exist"), "{}", message(&all));
    let with_broken = [&all[..], &[stored(broken)]].concat();
    let end =
        "its PersistentVolume `disk` is left out, because it cannot be read; correct what the notes name";
    assert!(message(&with_broken).ends_with(end), "{}", message(&with_broken));
}

#[test]
fn a_namespace_that_a_rule_chooses_by_labels_is_named_if_no_file_has_it() {
    let mut runs = pod("runs", Some("gpu-a"));
    runs["metadata"]["labels"] = json!({"app": "web"});
    let mut waits = pod("waits", None);
    waits["metadata"]["namespace"] = json!("web");
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": "red"}}});
    waits["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let note = "Namespace ml: it is not among the files, so its labels are unknown";
    let there = [node(), runs];
    let all = [&there[..], &[class(), pool(), waits.clone()]].concat();
    assert!(planned(&all).1.contains(note), "{}", planned(&all).1);
    let known = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}});
    let with_known = [&there[..], &[stored(known)]].concat();
    let told = told_beside("namespaces", &with_known, &["-f", "-"], &list(&[class(), pool(), waits]));
    assert!(!told.contains(note), "{told}");
}
