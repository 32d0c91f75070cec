//! Recomputes the figures of replays from their record alone.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::support::{micros, path, poolwright};

const ARGS: [&str; 7] = [
    "simulate",
    "--trace",
    "fixtures/traces/two-hours.csv",
    "--pools",
    "fixtures/manifests/pool.yaml",
    "--for",
    "3h",
];

/// Runs a replay, and returns its standard output and its record.
fn replay(name: &str, more: &[&str]) -> (String, String) {
    let record = std::env::temp_dir().join(format!("poolwright-replay-{}-{name}.jsonl", std::process::id()));
    let path = record.to_str().expect("a path");
    let args: Vec<&str> = ARGS.iter().chain(more).copied().chain(["--record", path]).collect();
    let output = poolwright(&args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = fs::read_to_string(&record).expect("a record");
    fs::remove_file(&record).expect("it is ours");
    (String::from_utf8(output.stdout).expect("text"), events)
}

/// Parses a decimal number such as `1.006` into micro-dollars.
fn price(text: &str) -> u128 {
    let (whole, decimals) = text.split_once('.').expect("a decimal number");
    format!("{whole}{decimals:0<6}").parse().expect("digits")
}

#[test]
fn the_cost_of_a_replay_can_be_recomputed_from_its_record() {
    let (report, record) = replay("cost", &["-o", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let mut running: BTreeMap<String, (u128, u128)> = BTreeMap::new();
    let mut cost = 0;
    let mut last = 0;
    for line in record.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let at = u128::from(event["atMillis"].as_u64().expect("a time"));
        assert!(at >= last, "{line} comes after a later one");
        last = at;
        let machine = || event["machine"].as_str().expect("a machine").to_owned();
        match event["event"].as_str().expect("an event") {
            "MachineLaunched" => {
                let price = price(event["usdPerHour"].as_str().expect("a price"));
                assert!(running.insert(machine(), (at, price)).is_none(), "{line} is told twice");
            }
            "MachineGone" | "MachineStillThere" => {
                let (since, price) = running.remove(&machine()).expect("it was launched");
                cost += ((at - since) * price).div_ceil(3_600_000);
            }
            _ => {}
        }
    }
    assert!(running.is_empty() && cost > 0);
    assert_eq!(u128::from(micros(&report["costUsd"])), cost);
    let by_pool: u64 =
        report["bought"].as_array().expect("a list").iter().map(|line| micros(&line["costUsd"])).sum();
    assert_eq!(u128::from(by_pool), cost);
    assert!(micros(&report["lowerLimitUsd"]) <= micros(&report["costUsd"]));
    for point in report["series"].as_array().expect("a list") {
        let (cost, limit) = (&point["costUsdPerHour"], &point["lowerLimitUsdPerHour"]);
        assert!(micros(cost) >= micros(limit), "{point}");
    }
}

#[test]
fn the_same_command_prints_and_records_the_same_byte_for_byte() {
    for format in ["text", "csv", "json", "html"] {
        let play = |name: &str| replay(&format!("{format}-{name}"), &["-o", format]);
        assert_eq!(play("one"), play("two"));
    }
}

#[test]
fn a_node_class_that_the_files_lack_counts_in_a_replay_as_in_a_plan() {
    let pool = fs::read_to_string(path("fixtures/manifests/pool.yaml")).expect("the fixture");
    let documents = pool.split("\n---\n").filter(|document| document.contains("kind: NodePool"));
    let alone = documents.collect::<Vec<_>>().join("\n---\n").replace("KwokNodeClass", "EC2NodeClass");
    let file = std::env::temp_dir().join(format!("poolwright-no-class-{}.yaml", std::process::id()));
    fs::write(&file, alone).expect("a temporary file");
    let file_name = file.to_str().expect("UTF-8");
    let args: Vec<&str> =
        ARGS.into_iter().map(|arg| if arg.ends_with("pool.yaml") { file_name } else { arg }).collect();
    let simulated = poolwright(&args, "");
    let planned = poolwright(&["plan", "-f", file_name], "");
    fs::remove_file(&file).expect("it is ours");
    let text = String::from_utf8_lossy(&simulated.stdout);
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    assert!(text.contains("8 finished"), "{text}");
    let note = "is not in the files; its pools may buy everything that";
    assert!(text.contains(note), "{text}");
    let plan = String::from_utf8_lossy(&planned.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains(note), "{plan}");
}

/// A node class that sells everything, and a pool of it with further metadata and further fields of its spec.
fn class_and_pools(pools: &[(&str, Value, Value)]) -> String {
    let class = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "KwokNodeClass", "metadata": {"name": "default"}, "spec": {}});
    let pool = |(name, meta, spec): &(&str, Value, Value)| {
        let reference = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"});
        let mut pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
            "spec": {"template": {"spec": {"nodeClassRef": reference}}}});
        for (part, more) in [("metadata", meta), ("spec", spec)] {
            let fields = pool[part].as_object_mut().expect("a map");
            fields.extend(more.as_object().expect("a map").clone());
        }
        pool
    };
    let items: Vec<Value> = std::iter::once(class).chain(pools.iter().map(pool)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Plays the trace for a few minutes with these pools. Returns whether it was played, and what was said.
fn with_pools(pools: &[(&str, Value, Value)]) -> (bool, String) {
    let args = ["simulate", "--trace", ARGS[2], "--pools", "-", "--for", "5m"];
    let output = poolwright(&args, &class_and_pools(pools));
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text")).concat();
    (output.status.success(), said.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn a_field_that_this_version_does_not_know_is_a_note_of_a_stored_pool_and_a_problem_of_a_written_one() {
    let stored = || json!({"uid": "u", "resourceVersion": "7"});
    let future = || json!({"futureField": 1});
    let (is_played, said) = with_pools(&[("gpu", stored(), future())]);
    assert!(is_played, "{said}");
    let note = "NodePool gpu: spec.futureField: this version does not know the field, and ignores it";
    assert!(said.contains(note), "{said}");
    let (is_played, said) = with_pools(&[("gpu", json!({}), future())]);
    assert!(!is_played && said.contains("NodePool gpu: spec.futureField: unknown field"), "{said}");
}

#[test]
fn a_stored_pool_that_cannot_be_read_is_left_out_of_a_replay_as_of_a_plan() {
    let lost = || ("lost", json!({"uid": "u", "resourceVersion": "7"}), json!({"weight": "heavy"}));
    let note = "the object is left out, so nothing is bought in this pool";
    let (is_played, said) = with_pools(&[lost(), ("gpu", json!({}), json!({}))]);
    assert!(is_played && said.contains(note), "{said}");
    let (is_played, said) = with_pools(&[lost()]);
    assert!(!is_played && said.contains("NodePool lost: spec.weight: ") && said.contains(note), "{said}");
}

/// Plays these objects with a pool of four GPUs, and returns the report.
fn with_four_gpus(name: &str, objects: &[Value]) -> Value {
    let file = std::env::temp_dir().join(format!("poolwright-four-gpus-{}-{name}.json", std::process::id()));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    fs::write(&file, list).expect("a temporary file");
    let snapshot = file.to_str().expect("UTF-8");
    let args = ["simulate", "--snapshot", snapshot, "--pools", "-", "--for", "15m", "-o", "json"];
    let pools = class_and_pools(&[("gpu", json!({}), json!({"limits": {"nvidia.com/gpu": 4}}))]);
    let output = poolwright(&args, &pools);
    fs::remove_file(&file).expect("it is ours");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_baselines_buy_nothing_for_pods_that_no_plan_starts() {
    let spec = |gpus: u32| {
        let resources = json!({"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": gpus}});
        json!({"restartPolicy": "Never", "containers": [{"name": "pytorch", "image": "x", "resources": resources}]})
    };
    let template = |gpus: u32| json!({"spec": spec(gpus)});
    let object = |version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "ml"}, "spec": spec});
    let small = || object("v1", "Pod", "small", spec(1));
    let large = object("v1", "Pod", "large", spec(8));
    let job = json!({"parallelism": 2, "completions": 2, "template": template(4)});
    let jobs = json!({"replicatedJobs": [{"name": "w", "template": {"spec": job}}]});
    let gang = object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", jobs);
    // The quota has room for all but the master, without which the workers do nothing.
    let quota = object("v1", "ResourceQuota", "team", json!({"hard": {"requests.nvidia.com/gpu": "20"}}));
    let roles =
        json!({"Master": {"template": template(8)}, "Worker": {"replicas": 2, "template": template(1)}});
    let elastic = json!({"elasticPolicy": {"minReplicas": 1}, "pytorchReplicaSpecs": roles});
    let elastic = object("kubeflow.org/v1", "PyTorchJob", "elastic", elastic);

    let alone = with_four_gpus("alone", &[small()]);
    let all = with_four_gpus("all", &[quota, small(), large, gang, elastic]);
    assert_eq!((&all["pods"]["running"], &all["pods"]["waiting"]), (&json!(1), &json!(5)), "{all}");
    assert!(!alone["baselines"].as_array().expect("a list").is_empty());
    assert_eq!(all["baselines"], alone["baselines"], "the same demand, the same cost");
    let notes = all["notes"].as_array().expect("notes");
    let told =
        |note: &Value| note.as_str().is_some_and(|note| note.contains("the baselines leave out 5 pods"));
    assert!(notes.iter().any(told), "{notes:?}");
}
