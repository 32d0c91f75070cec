//! Tests that every command supports a cloud that is known only by its registration, and names a cloud that the build lacks
//! (`tests/third_cloud`).

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

const NODE_CLASS: &str = "apiVersion: poolwright.dev/v1alpha1
kind: HazeNodeClass
metadata: {name: gpu}
spec: {density: 3}
";
const POOL: &str = "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: poolwright.dev, kind: HazeNodeClass, name: gpu}}}}
";
const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 1}}}]}
";

/// Runs `poolwright` with the third cloud. The argument `FILE` becomes the path of a file with these documents.
fn poolwright(args: &[&str], documents: &[&str]) -> Output {
    run(args, documents, &[])
}

/// Runs `poolwright` as a build that has only the first cloud of the registry, with one more variable.
fn without_aws(args: &[&str], documents: &[&str], variable: &str) -> Output {
    run(args, documents, &["POOLWRIGHT_TEST_ONLY_FIRST_CLOUD", variable])
}

fn run(args: &[&str], documents: &[&str], variables: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_poolwright")).with_file_name("examples").join("third_cloud");
    let file = tempfile(&documents.join("---\n"));
    let args = args.iter().map(|arg| if *arg == "FILE" { file.as_os_str() } else { arg.as_ref() });
    let output = Command::new(&program).args(args).envs(variables.iter().map(|name| (name, "on"))).output();
    std::fs::remove_file(&file).expect("it can be removed");
    output.unwrap_or_else(|error| {
        panic!("{}: {error}; build it with `cargo build -p poolwright-cli --examples`", program.display())
    })
}

fn tempfile(text: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("poolwright-haze-{}-{number}.yaml", std::process::id()));
    std::fs::write(&file, text).expect("it can be written");
    file
}

fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{out}{err}")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

fn catalogue() -> String {
    format!("{}/tests/third_cloud/haze.csv", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn gpus_and_prices_ask_it() {
    let gpus = json_of(&poolwright(&["gpus", "--provider", "haze", "--haze-sky", "low", "-o", "json"], &[]));
    assert_eq!(
        (&gpus["types"][0]["instanceType"], &gpus["types"][0]["provider"]),
        (&json!("haze-1"), &json!("haze"))
    );
    assert_eq!(gpus["notes"], json!(["the sky: low"]));
    let prices = json_of(&poolwright(&["prices", "--provider", "haze", "-o", "json"], &[]));
    assert_eq!(prices["offerings"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_catalogue_sells_for_it_and_plan_buys_for_its_node_class() {
    let catalogue = catalogue();
    let args = ["plan", "--catalogue", "builtin", "--catalogue", &catalogue, "-o", "json", "-f", "FILE"];
    let plan = json_of(&poolwright(&args, &[NODE_CLASS, POOL, POD]));
    assert_eq!(
        plan["nodes"][0]["instanceType"], "haze-1",
        "the part of the catalogue that is its own: {plan}"
    );
}

#[test]
fn a_mistake_in_its_node_class_is_named_by_file_object_and_field() {
    let wrong = NODE_CLASS.replace("density", "densty");
    let output = poolwright(&["plan", "-f", "FILE"], &[&wrong, POOL, POD]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(
        said.contains(".yaml: HazeNodeClass gpu: spec.densty: unknown field; did you mean `density`?"),
        "{said}"
    );
}

#[test]
fn an_unknown_kind_of_node_class_is_refused_and_the_known_kinds_are_named() {
    let unknown = NODE_CLASS.replace("HazeNodeClass", "MistNodeClass");
    let said = said(&poolwright(&["plan", "-f", "FILE"], &[&unknown, POD]));
    assert!(said.contains("MistNodeClass gpu: poolwright.dev has no such kind"), "{said}");
    assert!(said.contains("KwokNodeClass, EC2NodeClass, HazeNodeClass"), "{said}");
}

#[test]
fn simulate_plays_its_pools() {
    let catalogue = catalogue();
    let pods = POD.replace(
        "metadata: {name: train}",
        "metadata: {name: train, annotations: {poolwright.dev/runs-for: 5m}}",
    );
    let snapshot = tempfile(&pods);
    let snapshot = snapshot.to_str().expect("a path");
    let args = [
        "simulate",
        "--snapshot",
        snapshot,
        "--pools",
        "FILE",
        "--prices",
        &catalogue,
        "--for",
        "1h",
        "-o",
        "json",
    ];
    let replay = json_of(&poolwright(&args, &[NODE_CLASS, POOL]));
    assert_eq!(replay["bought"][0]["nodes"], 1, "{replay}");
    let of_bought = |figure: &str| replay["bought"][0][figure].as_f64().expect("a number");
    let per_hour = of_bought("costUsd") / of_bought("nodeHours");
    assert!((per_hour - 0.5).abs() < 0.001, "at the price of haze-1: {replay}");
}

#[test]
fn its_definition_is_among_the_crds_and_its_flags_are_in_the_help() {
    assert!(said(&poolwright(&["crds"], &[])).contains("hazenodeclasses.poolwright.dev"));
    for command in ["controller", "check"] {
        let help = said(&poolwright(&[command, "--help"], &[]));
        assert!(help.contains("Nodes on Haze:") && help.contains("--haze-account <NAME>"), "{help}");
    }
}

#[test]
fn check_looks_at_its_account_with_its_node_classes() {
    let missing = poolwright(&["check", "--provider", "haze"], &[]);
    assert!(said(&missing).contains("--provider haze: give --haze-account"), "{}", said(&missing));
    let nowhere = "/nowhere/kubeconfig";
    let args = ["check", "--provider", "haze", "--haze-account", "a", "-f", "FILE", "--kubeconfig", nowhere];
    let looked = said(&poolwright(&args, &[NODE_CLASS]));
    assert!(looked.contains("Haze account\n") && looked.contains("1 node class"), "{looked}");
}

const OF_AWS: &str = "apiVersion: poolwright.dev/v1alpha1
kind: EC2NodeClass
metadata: {name: gpu}
spec: {role: nodes}
";

#[test]
fn a_build_without_a_cloud_says_so_wherever_the_user_names_the_cloud() {
    let pool = POOL.replace("HazeNodeClass", "EC2NodeClass");
    let pool = pool.as_str();
    let karpenters = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: gpu}\n";
    let why = "this build has no provider for EC2NodeClass; use a build with the feature `aws`";
    let usual = "SOME_VARIABLE";
    let cases: [(&[&str], &[&str], &str); 7] = [
        (&["plan", "-f", "FILE"], &[OF_AWS, pool, POD], usual),
        (&["simulate", "--snapshot", "FILE", "--pools", "FILE"], &[OF_AWS, pool], usual),
        (&["convert", "-f", "FILE"], &[karpenters], usual),
        (&["prices", "--provider", "aws"], &[], usual),
        (&["gpus", "--provider", "aws", "--aws-region", "eu-central-1"], &[], usual),
        (&["controller", "--aws-cluster", "gpu"], &[], usual),
        (&["check"], &[], "POOLWRIGHT_AWS_CLUSTER"),
    ];
    for (args, documents, variable) in cases {
        let output = without_aws(args, documents, variable);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(why), "{args:?}: {}", said(&output));
    }
}

#[test]
fn a_pool_of_a_cloud_that_the_build_lacks_buys_nothing_and_its_pods_say_why() {
    let pool = POOL.replace("HazeNodeClass", "EC2NodeClass");
    let plan = json_of(&without_aws(&["plan", "-o", "json", "-f", "FILE"], &[&pool, POD], "SOME_VARIABLE"));
    assert_eq!(plan["nodes"], json!([]));
    let why = "this build has no provider for EC2NodeClass; use a build with the feature `aws`";
    assert!(plan["unplaced"].to_string().contains(why), "{plan}");
}

#[test]
fn a_simulation_ignores_node_classes_of_its_snapshot_also_those_of_a_cloud_that_the_build_lacks() {
    let pools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests/pool.yaml");
    let args = ["simulate", "--snapshot", "FILE", "--pools", pools, "--for", "1h", "-o", "json"];
    let played = json_of(&without_aws(&args, &[OF_AWS, POD], "SOME_VARIABLE"));
    let note = "ignored pools, node classes and claims of the snapshot: 1";
    assert!(played["notes"].to_string().contains(note), "{played}");
}

#[test]
fn a_build_without_a_cloud_has_neither_its_flags_nor_its_resource() {
    let crds = without_aws(&["crds"], &[], "SOME_VARIABLE");
    assert!(said(&crds).contains("kwoknodeclasses.poolwright.dev"), "{}", said(&crds));
    assert!(!said(&crds).contains("ec2nodeclasses.poolwright.dev"));
    let help = without_aws(&["controller", "--help"], &[], "SOME_VARIABLE");
    assert!(help.status.success() && !said(&help).contains("--aws"), "{}", said(&help));
}
