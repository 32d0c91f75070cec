//! Verifies plans with only their JSON, the trace and the catalogue. None of Poolwright's own code reads or judges the plans.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::support::{micros, path, plan, poolwright};

const CATALOGUE: &str = "fixtures/catalogue/solver-bench-79-types.csv";
const TRACE: &str = "fixtures/traces/openb_pod_list_gpuspec33.csv";

type Row = BTreeMap<String, String>;

fn csv(text: &str) -> Vec<Row> {
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    lines.map(|cells| header.iter().cloned().zip(cells).collect()).collect()
}

fn number(row: &Row, column: &str) -> u64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?} is a number"))
}

/// Returns the models of a gpu_spec, from a second copy of the map; `None` for any model.
fn models(spec: &str) -> Option<BTreeSet<&'static str>> {
    if spec.is_empty() {
        return None;
    }
    let of = |one| match one {
        "T4" => &["t4"][..],
        "V100M16" | "V100M32" => &["v100"],
        "P100" => &["v100", "a10g", "l4"],
        "A10" => &["a10g"],
        "G2" => &["a10g", "l4", "l40s"],
        "G3" => &["a100", "h100", "rtx-pro-server-6000"],
        other => panic!("{other} is not in the trace"),
    };
    Some(spec.split('|').flat_map(|one| of(one).iter().copied()).collect())
}

/// Returns the first `count` pods of the trace, with its header.
fn head_of_trace(count: usize) -> String {
    let text = fs::read_to_string(path(TRACE)).expect("the trace");
    text.lines().take(count + 1).flat_map(|line| [line, "\n"]).collect()
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|one| one.as_str().expect("a string")).collect()
}

/// Asserts that the plan places each pod of `trace` exactly once, on nodes that hold them, at the cost it states.
fn verify(plan: &Value, trace: &str) {
    let pods: BTreeMap<String, Row> = csv(trace).into_iter().map(|row| (row["name"].clone(), row)).collect();
    let text = fs::read_to_string(path(CATALOGUE)).expect("the catalogue");
    let types: BTreeMap<String, Row> =
        csv(&text).into_iter().map(|row| (row["instance_type"].clone(), row)).collect();
    let mut placed = BTreeSet::new();
    let mut cost = 0;
    for node in plan["nodes"].as_array().expect("nodes") {
        let kind = &types[node["instanceType"].as_str().expect("a type")];
        let price = micros(&node["usdPerHour"]);
        let listed: f64 = kind["on_demand_usd_per_hour"].parse().expect("a price");
        assert_eq!(price, (listed * 1e6).round() as u64, "{node}");
        cost += price;
        let names = strings(&node["pods"]);
        let mut sums = [0; 4];
        for name in &names {
            assert!(placed.insert((*name).to_owned()), "{name} is placed twice");
            let pod = &pods[*name];
            let gpus = number(pod, "num_gpu");
            let wants = [number(pod, "cpu_milli"), number(pod, "memory_mib"), gpus, 1];
            for (sum, want) in sums.iter_mut().zip(wants) {
                *sum += want;
            }
            if let Some(models) = models(&pod["gpu_spec"]).filter(|_| gpus > 0) {
                assert!(models.contains(kind["gpu_model"].as_str()), "{name} may not run on {node}");
            }
        }
        let gpu_count = kind["gpu_count"].parse().unwrap_or(0);
        let has = [
            number(kind, "allocatable_cpu_milli"),
            number(kind, "allocatable_memory_mib"),
            gpu_count,
            number(kind, "allocatable_pods"),
        ];
        assert!(sums.iter().zip(has).all(|(sum, has)| *sum <= has), "{node} holds {has:?}, not {sums:?}");
    }
    assert_eq!(micros(&plan["costUsdPerHour"]), cost);
    assert!(micros(&plan["lowerBoundUsdPerHour"]) <= cost);
    let left_out: BTreeSet<_> = plan["unplaced"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|pod| pod["pod"].as_str().expect("a name"))
        .collect();
    assert_eq!(plan["pods"]["placed"], placed.len());
    assert_eq!(plan["pods"]["unplaced"], left_out.len());
    assert_eq!(placed.len() + left_out.len(), pods.len());
    assert!(left_out.iter().all(|name| pods.contains_key(*name) && !placed.contains(*name)));
}

pub fn assert_follows_schema(plan: &Value) {
    let schema = fs::read_to_string(path("docs/plan.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    let problems: Vec<_> =
        validator.iter_errors(plan).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

fn without_times(mut plan: Value) -> Value {
    for field in ["elapsedSeconds", "firstPlanSeconds"] {
        plan.as_object_mut().expect("an object").remove(field).expect("a time");
    }
    plan
}

#[test]
fn a_plan_for_the_trace_holds_up_to_an_independent_recount() {
    let trace = head_of_trace(600);
    let plan = plan(&["--trace", "-", "--catalogue", CATALOGUE, "--time-limit", "3s"], &trace);
    verify(&plan, &trace);
    assert_follows_schema(&plan);
    assert_eq!(plan["pods"]["placed"], 600);
    assert!(plan["gap"].as_f64().expect("a gap") <= 0.05, "{}", plan["gap"]);
    for baseline in ["onePodPerNodeUsdPerHour", "firstFitUsdPerHour"] {
        let baseline = &plan["baselines"][baseline];
        assert!(micros(baseline) >= micros(&plan["costUsdPerHour"]), "{baseline}");
    }
}

#[test]
fn the_same_input_gives_the_same_plan_but_for_the_times() {
    let trace = head_of_trace(60);
    let args = ["--trace", "-", "--catalogue", CATALOGUE, "--time-limit", "1m"];
    let [first, second] = [(); 2].map(|()| without_times(plan(&args, &trace)));
    assert_eq!(first, second);
}

#[test]
fn yaml_is_the_same_document_as_json() {
    let args = ["plan", "-f", "fixtures/manifests/two-gpu-pods.yaml", "-o", "yaml"];
    let output = poolwright(&args, "");
    let yaml: Value = serde_saphyr::from_slice(&output.stdout).expect("YAML");
    let json = plan(&["-f", "fixtures/manifests/two-gpu-pods.yaml"], "");
    assert_eq!(without_times(yaml), without_times(json));
}

#[test]
fn every_example_manifest_gives_a_plan_that_follows_the_schema() {
    let mut count = 0;
    for entry in fs::read_dir(path("fixtures/manifests")).expect("the examples") {
        let file = entry.expect("an example").path();
        let file = file.to_str().expect("a path");
        assert_follows_schema(&plan(&["-f", file], ""));
        if !file.ends_with("/pool.yaml") {
            assert_follows_schema(&plan(&["-f", file, "-f", "fixtures/manifests/pool.yaml"], ""));
        }
        count += 1;
    }
    assert!(count >= 6, "{count} examples");
}

#[test]
fn two_pods_of_one_gpu_each_get_two_small_nodes_and_not_a_large_one() {
    let plan =
        plan(&["-f", "fixtures/manifests/pool.yaml", "-f", "fixtures/manifests/two-gpu-pods.yaml"], "");
    let types: Vec<_> =
        plan["nodes"].as_array().expect("nodes").iter().map(|node| &node["instanceType"]).collect();
    assert_eq!(types, ["g5.xlarge", "g5.xlarge"]);
    assert_eq!(micros(&plan["costUsdPerHour"]), 2_012_000);
    assert_eq!(plan["gap"], 0.0);
}

#[test]
fn no_pods_is_an_empty_plan_of_no_cost() {
    let header = head_of_trace(0);
    let plan = plan(&["--trace", "-", "--fail-on-unplaced"], &header);
    assert_follows_schema(&plan);
    assert_eq!(plan["costUsdPerHour"], 0.0);
    assert_eq!(plan["gap"], 0.0);
    assert_eq!(plan["pods"], serde_json::json!({"total": 0, "placed": 0, "unplaced": 0}));
    assert_eq!(plan["nodes"], serde_json::json!([]));
}

#[test]
fn a_pod_that_nothing_fits_is_listed_and_tells_by_exit_code_if_asked() {
    let args = ["plan", "-f", "fixtures/manifests/too-large.yaml", "-o", "json"];
    let told = poolwright(&args, "");
    assert_eq!(told.status.code(), Some(0));
    let plan: Value = serde_json::from_slice(&told.stdout).expect("a plan");
    assert_eq!(plan["unplaced"][0]["pod"], "default/too-large");
    assert_eq!(plan["unplaced"][0]["reason"], "NoOfferingFits");
    let asked = poolwright(&[&args[..], &["--fail-on-unplaced"]].concat(), "");
    assert_eq!(asked.status.code(), Some(3));
}

#[test]
fn the_pods_of_a_training_job_get_all_their_nodes_or_none_also_under_a_limit() {
    let job = "fixtures/manifests/pytorchjob.yaml";
    let whole = plan(&["-f", job], "");
    assert_eq!(whole["pods"], serde_json::json!({"total": 4, "placed": 4, "unplaced": 0}));
    let plan = plan(&["-f", job, "--limit", "nvidia.com/gpu=24"], "");
    assert_follows_schema(&plan);
    assert_eq!(plan["nodes"], serde_json::json!([]), "room for three of four pods is of no use");
    for left in plan["unplaced"].as_array().expect("a list") {
        assert_eq!(left["reason"], "GangIncomplete");
        let message = left["message"].as_str().expect("a sentence");
        assert!(message.contains("4 pods of its PyTorchJob research/pretrain start together"), "{message}");
    }
}

#[test]
fn an_object_that_makes_pods_and_is_not_read_is_no_success_if_the_exit_code_matters() {
    let unread = r#"{"apiVersion": "example.com/v1", "kind": "Trainer", "metadata": {"name": "a"},
        "spec": {"template": {"spec": {"containers": [{"image": "x", "name": "a"}]}}}}"#;
    let args = ["plan", "-f", "-", "--fail-on-unplaced"];
    let told = poolwright(&args, unread);
    assert_eq!(told.status.code(), Some(3));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(
        text.contains("1 object that makes pods is not read") && text.contains("Trainer default/a"),
        "{text}"
    );
    let told = poolwright(&[&args[..], &["-o", "json"]].concat(), unread);
    let plan: Value = serde_json::from_slice(&told.stdout).expect("a plan");
    assert_follows_schema(&plan);
    assert_eq!(plan["unread"], serde_json::json!(["Trainer default/a"]));
}

#[test]
fn a_pod_on_a_node_that_the_files_lack_was_read_and_is_no_success_if_the_exit_code_matters() {
    let bound = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: ghost, containers: [{image: x, name: a}]}}";
    let args = ["plan", "-f", "-", "--fail-on-unplaced"];
    let told = poolwright(&args, bound);
    assert_eq!(told.status.code(), Some(3));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(text.contains("1 object is bound to a node that was not read"), "{text}");
    assert!(!text.contains("is not read"), "{text}");
    let told = poolwright(&[&args[..], &["-o", "json"]].concat(), bound);
    let plan: Value = serde_json::from_slice(&told.stdout).expect("a plan");
    assert_follows_schema(&plan);
    assert_eq!(plan["onUnknownNodes"], serde_json::json!(["Pod default/a"]));
}

/// A pod that uses a claim that the files lack, beside a default StorageClass that binds at once.
const LACKS_CLAIM: &str = r#"
{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: ebs.csi.aws.com, volumeBindingMode: Immediate,
  metadata: {name: im, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}],
  containers: [{image: x, name: a, resources: {requests: {cpu: '1'}}}]}}
"#;

#[test]
fn a_claim_that_the_files_lack_can_be_anywhere_as_its_note_says() {
    let plan = plan(&["-f", "-"], LACKS_CLAIM);
    assert_eq!(plan["pods"]["unplaced"], 0, "{plan}");
    let told = "it counts as one whose volume can be created in any zone";
    assert!(strings(&plan["notes"]).iter().any(|note| note.contains(told)), "{plan}");
}

#[test]
fn a_node_class_of_any_kind_that_is_not_ready_sells_nothing() {
    let objects = |ready: &str| {
        format!(
            r"
{{apiVersion: poolwright.dev/v1alpha1, kind: KwokNodeClass, metadata: {{name: k, uid: k1, generation: 2}}, spec: {{provider: aws}},
  status: {{conditions: [{ready}]}}}}
---
{{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {{name: p}}, spec: {{template: {{spec: {{
  nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: k}},
  requirements: [{{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}}]}}}}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: a}}, spec: {{containers: [{{image: x, name: a, resources: {{requests: {{cpu: '1'}}}}}}]}}}}
"
        )
    };
    let condition = |status: &str, generation: u32| {
        format!(
            "{{type: Ready, status: '{status}', reason: Broken, message: no room, lastTransitionTime: '2026-01-01T00:00:00Z', \
             observedGeneration: {generation}}}"
        )
    };
    for (status, generation, left_out) in [("True", 2, 0), ("False", 2, 1), ("False", 1, 0)] {
        let plan = plan(&["-f", "-"], &objects(&condition(status, generation)));
        assert_eq!(plan["pods"]["unplaced"], left_out, "{status} {generation}: {plan}");
        let is_told = plan["unplaced"].to_string().contains("KwokNodeClass `k` is not ready: no room");
        assert_eq!(is_told, left_out == 1, "{plan}");
    }
}

#[test]
fn a_pod_of_a_file_that_would_preempt_others_gets_its_place_there() {
    let objects = |policy: &str| {
        format!(
            r"
{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: high}}, value: 1000, preemptionPolicy: {policy}}}
---
{{apiVersion: v1, kind: Node, metadata: {{name: n1, uid: n1, labels: {{kubernetes.io/hostname: n1}}}}, status: {{
  allocatable: {{cpu: '4', memory: 16Gi, pods: '110'}}, capacity: {{cpu: '4', memory: 16Gi, pods: '110'}},
  conditions: [{{type: Ready, status: 'True'}}]}}}}
---
{{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: low, uid: rs}}, spec: {{replicas: 1, selector: {{matchLabels: {{app: low}}}},
  template: {{metadata: {{labels: {{app: low}}}}, spec: {{containers: [{{image: x, name: a, resources: {{requests: {{cpu: '3'}}}}}}]}}}}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: low-a, uid: low-a, labels: {{app: low}}, ownerReferences: [
    {{apiVersion: apps/v1, kind: ReplicaSet, name: low, uid: rs, controller: true}}]}},
  spec: {{nodeName: n1, priority: 0, containers: [{{image: x, name: a, resources: {{requests: {{cpu: '3'}}}}}}]}}, status: {{phase: Running}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: urgent}}, spec: {{priorityClassName: high,
  containers: [{{image: x, name: a, resources: {{requests: {{cpu: '3'}}}}}}]}}}}
"
        )
    };
    let bought = |policy: &str| {
        let plan = plan(&["-f", "-"], &objects(policy));
        let pods = plan["nodes"]
            .as_array()
            .expect("nodes")
            .iter()
            .flat_map(|node| strings(&node["pods"]).into_iter().map(str::to_owned).collect::<Vec<_>>());
        (pods.collect::<Vec<_>>(), plan["notes"].to_string())
    };
    let (pods, notes) = bought("PreemptLowerPriority");
    assert_eq!(pods, ["default/low-a"], "{notes}");
    assert!(notes.contains(
        "Pod default/urgent: the scheduler gives it room on node n1, where it preempts default/low-a"
    ));
    assert_eq!(bought("Never").0, ["default/urgent"]);
    let explained = |pod: &str| {
        let told = poolwright(&["explain", "pod", pod, "-f", "-"], &objects("PreemptLowerPriority"));
        String::from_utf8(told.stdout).expect("text")
    };
    let [urgent, low] = ["default/urgent", "default/low-a"].map(explained);
    assert!(urgent.contains("where it preempts default/low-a") && !urgent.contains("It runs on"), "{urgent}");
    assert!(
        low.contains("; its controller makes it anew.") && low.contains("Planned on a new node"),
        "{low}"
    );
}

#[test]
fn a_saved_problem_is_solved_again_to_the_same_cost_and_the_same_bytes() {
    let file = std::env::temp_dir().join(format!("poolwright-problem-{}.json", std::process::id()));
    let file = file.to_str().expect("a path");
    let trace = head_of_trace(60);
    let args = ["--trace", "-", "--catalogue", CATALOGUE, "--work-limit", "300000", "--save-problem", file];
    let plan = plan(&args, &trace);
    let solve = || {
        let output = poolwright(&["solve", file, "--work-limit", "300000", "-o", "json"], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("solutions")
    };
    let [first, second] = [(); 2].map(|()| solve());
    std::fs::remove_file(file).expect("it is ours");
    let figures = &first["problems"][0];
    assert_eq!(figures["costUsdPerHour"], plan["costUsdPerHour"]);
    assert_eq!(figures["lowerBoundUsdPerHour"], plan["lowerBoundUsdPerHour"]);
    assert_eq!(figures["pods"], 60);
    assert_eq!(figures["solution"], second["problems"][0]["solution"]);
}

/// Asserts that every pod with a part of a GPU has its part on one GPU, and that no part is given to two pods.
fn verify_shares(plan: &Value, trace: &str) -> usize {
    let parts: BTreeMap<String, u64> = csv(trace)
        .iter()
        .filter(|row| row["num_gpu"] == "1" && number(row, "gpu_milli") < 1000)
        .map(|row| (row["name"].clone(), number(row, "gpu_milli")))
        .collect();
    let mut seen = BTreeSet::new();
    for node in plan["nodes"].as_array().expect("nodes") {
        let on_node = strings(&node["pods"]);
        for gpu in node["gpus"].as_array().into_iter().flatten() {
            let mut sum = 0;
            for share in gpu["pods"].as_array().into_iter().flatten() {
                let pod = share["pod"].as_str().expect("a name");
                assert_eq!(share["milli"], parts[pod], "{pod}");
                assert!(on_node.contains(&pod) && seen.insert(pod.to_owned()), "{pod}");
                sum += parts[pod];
            }
            assert!(sum <= 1000, "{gpu}");
        }
    }
    let left: BTreeSet<&str> =
        plan["unplaced"].as_array().expect("a list").iter().filter_map(|pod| pod["pod"].as_str()).collect();
    assert!(parts.keys().all(|pod| seen.contains(pod) || left.contains(pod.as_str())));
    seen.len()
}

#[test]
fn shared_gpus_hold_no_more_than_one_gpu_and_cost_less_than_whole_ones() {
    let trace = head_of_trace(300);
    let args = ["--trace", "-", "--catalogue", CATALOGUE, "--work-limit", "500000"];
    let whole = plan(&args, &trace);
    let shared = plan(&[&args[..], &["--sharing", "mps"]].concat(), &trace);
    assert_follows_schema(&shared);
    assert!(verify_shares(&shared, &trace) > 50);
    assert!(micros(&shared["costUsdPerHour"]) < micros(&whole["costUsdPerHour"]));
}

#[test]
fn cut_gpus_are_laid_out_with_instances_that_have_enough_compute() {
    let trace = head_of_trace(120);
    let args = ["--trace", "-", "--catalogue", CATALOGUE, "--work-limit", "500000", "--sharing", "mig"];
    let plan = plan(&args, &trace);
    assert_follows_schema(&plan);
    let parts: BTreeMap<String, u64> =
        csv(&trace).iter().map(|row| (row["name"].clone(), number(row, "gpu_milli"))).collect();
    let instances = plan["nodes"].as_array().expect("nodes").iter().flat_map(|node| {
        let gpus = node["gpus"].as_array().into_iter().flatten();
        gpus.flat_map(|gpu| gpu["instances"].as_array().into_iter().flatten())
    });
    let mut count = 0;
    for instance in instances {
        let profile = instance["profile"].as_str().expect("a profile");
        let slices: u64 =
            profile.split_once('g').and_then(|(digits, _)| digits.parse().ok()).expect("slices");
        let milli = parts[instance["pod"].as_str().expect("a pod")];
        // GPUs have seven compute slices on most models and four on others.
        assert!(slices * 1000 >= milli * 4, "{instance} for {milli}");
        count += 1;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn an_explanation_is_part_of_the_document_when_it_is_asked_for() {
    let args = ["-f", "fixtures/manifests/two-gpu-pods.yaml", "--explain", "default/render-a"];
    let plan = plan(&args, "");
    assert_follows_schema(&plan);
    let text = plan["explanation"]["text"].as_str().expect("a text");
    assert!(text.contains("g5.xlarge"), "{text}");
}

#[test]
fn commitments_are_used_first_and_reported() {
    let file = std::env::temp_dir().join(format!("poolwright-commitments-{}.yaml", std::process::id()));
    let text =
        "commitments:\n- {name: plan, usdPerHour: 0.7042, discountPercent: 30, covers: {families: [g5]}}\n";
    fs::write(&file, text).expect("a file");
    let args =
        ["-f", "fixtures/manifests/two-gpu-pods.yaml", "--commitments", file.to_str().expect("a path")];
    let plan = plan(&args, "");
    fs::remove_file(&file).expect("it is ours");
    assert_follows_schema(&plan);
    assert!(micros(&plan["costUsdPerHour"]) <= 1_006_000, "{}", plan["costUsdPerHour"]);
    assert_eq!(plan["commitments"][0]["usedUsdPerHour"], 0.7042);
}

#[test]
fn free_room_of_nodes_that_are_there_is_used_before_anything_is_bought() {
    let args = ["-f", "fixtures/manifests/two-gpu-pods.yaml", "--existing", "src/cli/tests/existing.yaml"];
    let plan = plan(&args, "");
    assert_follows_schema(&plan);
    assert_eq!(plan["existingNodes"][0]["name"], "there");
    assert_eq!(strings(&plan["existingNodes"][0]["pods"]).len(), 1, "one of its two GPUs is taken");
    assert_eq!(plan["nodes"].as_array().map(Vec::len), Some(1));
    assert_eq!(plan["pods"]["total"], 2);
}

#[test]
fn pods_that_a_quota_refuses_are_no_success_if_the_exit_code_matters() {
    let objects = |allowed: u32| {
        format!(
            r"
{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: team, namespace: ml}}, spec: {{hard: {{pods: '{allowed}'}}}}}}
---
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: ml}}, spec: {{replicas: 3, selector: {{matchLabels: {{app: web}}}},
  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{image: x, name: a, resources: {{requests: {{cpu: '1'}}}}}}]}}}}}}}}
"
        )
    };
    let args = ["plan", "-f", "-"];
    let strict = [&args[..], &["--fail-on-unplaced"]].concat();
    assert_eq!(poolwright(&args, &objects(1)).status.code(), Some(0));
    let told = poolwright(&strict, &objects(1));
    assert_eq!(told.status.code(), Some(3));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(text.contains("; the API server refuses 2 pods."), "{text}");
    let narrowed = poolwright(&[&strict[..], &["-n", "ml"]].concat(), &objects(1));
    assert_eq!(narrowed.status.code(), Some(3));
    assert_eq!(poolwright(&strict, &objects(3)).status.code(), Some(0));
    let plan = plan(&["-f", "-"], &objects(1));
    assert_follows_schema(&plan);
    assert_eq!(plan["refused"], serde_json::json!([{"object": "Deployment ml/web", "pods": 2}]));
    assert!(plan["notes"].to_string().contains("ResourceQuota `team`"), "{}", plan["notes"]);
}

#[test]
fn an_object_with_pods_that_a_quota_refuses_is_no_success_if_the_exit_code_matters() {
    let objects = |allowed: u32| {
        format!(
            r"
{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: team, namespace: ml}}, spec: {{hard: {{count/daemonsets.apps: '{allowed}'}}}}}}
---
{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: agent, namespace: ml}}, spec: {{selector: {{matchLabels: {{app: agent}}}},
  template: {{metadata: {{labels: {{app: agent}}}}, spec: {{containers: [{{image: x, name: a, resources: {{requests: {{cpu: '1'}}}}}}]}}}}}}}}
"
        )
    };
    let strict = ["plan", "-f", "-", "--fail-on-unplaced"];
    let told = poolwright(&strict, &objects(0));
    assert_eq!(told.status.code(), Some(3));
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(text.contains("; the API server refuses 1 object that makes pods."), "{text}");
    assert_eq!(poolwright(&strict, &objects(1)).status.code(), Some(0));
    let plan = plan(&["-f", "-"], &objects(0));
    assert_follows_schema(&plan);
    assert_eq!(plan["refused"], serde_json::json!([{"object": "DaemonSet ml/agent", "pods": 0}]));
}

#[test]
fn a_plan_without_a_pool_tells_nobody_to_change_one() {
    let pod = |spec: &str| {
        format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: ml}}, spec: {spec}}}")
    };
    let load = "{initContainers: [{image: x, name: load, resources: {limits: {nvidia.com/gpu: '64'}}}], containers: [{image: x, name: a}]}";
    let left = plan(&["-f", "-"], &pod(load))["unplaced"][0]["message"].to_string();
    assert!(
        left.contains("needs 64 nvidia.com/gpu (init container `load` asks for 64 nvidia.com/gpu) in one node; the largest offering of the catalogue"),
        "{left}"
    );
    let labelled = pod("{nodeSelector: {team: ml}, containers: [{image: x, name: a}]}");
    let told = poolwright(&["explain", "pod", "ml/a", "-f", "-"], &labelled);
    let text = String::from_utf8_lossy(&told.stdout);
    assert!(text.contains("write a NodePool whose spec.template.metadata.labels has it"), "{text}");
    assert!(!text.contains("pool any") && !text.contains("`any`") && !text.contains("by pool"), "{text}");
    let pool = poolwright(&["explain", "pool", "any", "-f", "-"], &labelled);
    assert_eq!(pool.status.code(), Some(2), "nobody wrote it");
}

#[test]
fn a_choice_for_the_cloud_is_asked_of_all_pools_and_refused_without_a_pool() {
    let pods = "fixtures/manifests/two-gpu-pods.yaml";
    let choice = "node.kubernetes.io/instance-type=3";
    let asked = plan(&["-f", "fixtures/manifests/pool.yaml", "-f", pods, "--min-values", choice], "");
    let notes = asked["notes"].to_string();
    for note in [
        "--min-values node.kubernetes.io/instance-type=3: counts instead of minValues of this label in the pools",
        "values of `node.kubernetes.io/instance-type`, as minValues 3 asks",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    let floor_and_share = [["--on-demand-floor", "20%"], ["--max-spot-share", "40%"]];
    for flags in [["--min-values", choice], ["--consolidation", "Never"]].into_iter().chain(floor_and_share) {
        let refused = poolwright(&["plan", "-f", pods, flags[0], flags[1]], "");
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("{}: counts instead of a field of NodePools", flags[0])), "{said}");
    }
}

#[test]
fn a_floor_of_on_demand_nodes_counts_instead_of_that_of_the_pools() {
    let pool = fs::read_to_string(path("fixtures/manifests/pool.yaml")).expect("the pool can be read");
    let pool = pool.replace("values: [on-demand]", "values: [on-demand, spot]");
    let with = |flags: &[&str]| {
        let pods = ["-f", "-", "-f", "fixtures/manifests/two-gpu-pods.yaml"];
        let made = plan(&[&pods[..], flags].concat(), &pool);
        let nodes = made["nodes"].as_array().expect("nodes").iter();
        let on_demand = nodes.clone().filter(|node| node["capacityType"] == "on-demand").count();
        (nodes.count(), on_demand, made["notes"].to_string())
    };
    let (nodes, on_demand, _) = with(&[]);
    assert_eq!((nodes, on_demand), (2, 0));
    for floor in ["1", "50%"] {
        let (nodes, on_demand, notes) = with(&["--on-demand-floor", floor]);
        assert_eq!((nodes, on_demand), (2, 1), "{floor}");
        let note = format!("--on-demand-floor {floor}: counts instead of spot.onDemandFloor of the pools");
        assert!(notes.contains(&note), "{notes}");
    }
}

#[test]
fn one_pod_whose_place_other_pods_decide_is_counted_as_one() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: q, labels: {app: q}}, spec: {containers: [{image: x, name: c}], affinity: {podAntiAffinity: \
               {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: \
               q}}}]}}}}";
    let notes = plan(&["-f", "-"], pod)["notes"].to_string();
    assert!(notes.contains("decided the places of 1 pod (zones"), "{notes}");
}

#[test]
fn a_rule_of_empty_terms_about_nodes_is_told_as_such() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{image: x, name: c}], affinity: {nodeAffinity: \
               {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}}}";
    let plan = plan(&["-f", "-", "-f", "fixtures/manifests/pool.yaml"], pod);
    let message = plan["unplaced"][0]["message"].as_str().expect("a message");
    assert!(message.contains("has a required node affinity with nothing but empty terms"), "{message}");
}
