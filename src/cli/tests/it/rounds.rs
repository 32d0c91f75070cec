//! Tests that all problems of the input come in one round: those of all objects and files, and of all kinds.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{plan, poolwright};

/// Objects that are right apart from the words in capitals.
const INPUT: &str = "apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 'CPU'}}}]}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gpu}
spec:
  weight: WEIGHT
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: EC2NodeClass, name: runners}
      requirements:
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodeClaim
metadata: {name: gpu-1, labels: {poolwright.dev/nodepool: gpu}}
spec:
  nodeClassRef: {group: poolwright.dev, kind: EC2NodeClass, name: runners}
  together: TOGETHER
  offerings:
    - {instanceType: m6i.large, zone: us-east-1a, capacityType: on-demand, usdPerHour: '0.096', allocatable: {cpu: '1930m'}}
  deadlines: {launch: LAUNCH}
---
apiVersion: poolwright.dev/v1alpha1
kind: EC2NodeClass
metadata: {name: runners}
spec:
  role: example-node
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{id: SUBNET}]
  securityGroupSelectorTerms: [{id: sg-1}]
  DETAIL: true
---
";

const RIGHT: [(&str, &str); 6] = [
    ("'CPU'", "'1'"),
    ("WEIGHT", "5"),
    ("TOGETHER", "1"),
    ("LAUNCH", "5m"),
    ("SUBNET", "subnet-1"),
    ("DETAIL", "detailedMonitoring"),
];

const WRONG: [(&str, &str); 6] = [
    ("'CPU'", "'1,5'"),
    ("WEIGHT", "500"),
    ("TOGETHER", "0"),
    ("LAUNCH", "soon"),
    ("SUBNET", "network-1"),
    ("DETAIL", "detailedMonitorin"),
];

fn written(values: &[(&str, &str)]) -> String {
    values.iter().fold(INPUT.to_owned(), |text, (word, value)| text.replace(word, value))
}

/// Runs the command, and returns the input errors that it prints.
fn refused(args: &[&str], stdin: &str) -> String {
    let output = poolwright(args, stdin);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    text
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("poolwright-rounds-{}-{name}", std::process::id()));
    fs::write(&path, text).expect("a file");
    path
}

#[test]
fn what_schemas_refuse_comes_with_all_other_problems_of_the_files() {
    let told = [
        "stdin: Pod default/train: spec.containers[0].resources.requests.cpu: `1,5` is no quantity",
        "stdin: NodePool gpu: spec.weight: 500 is greater than the maximum of 100",
        "stdin: NodeClaim gpu-1: spec.together: ",
        "stdin: NodeClaim gpu-1: spec.deadlines.launch: `soon` is not a duration",
        "stdin: EC2NodeClass runners: spec.subnetSelectorTerms[0].id: `network-1` is not the id of a subnet; write such as",
        "stdin: EC2NodeClass runners: spec.detailedMonitorin: unknown field; did you mean `detailedMonitoring`?",
    ];
    for command in [&["plan", "-f", "-"][..], &["explain", "pod", "default/train", "-f", "-"]] {
        let text = refused(command, &written(&WRONG));
        for problem in told {
            assert_eq!(text.matches(problem).count(), 1, "{command:?}: {problem}: {text}");
        }
        assert!(text.contains("the manifests cannot be used: 6 problems"), "{text}");
    }
    let mended = plan(&["-f", "-"], &written(&RIGHT));
    assert_eq!(mended["pods"]["unplaced"], 0, "nothing else was wrong: {mended}");
}

#[test]
fn the_problems_of_existing_nodes_come_with_those_of_the_work() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: there}\nstatus: {allocatable: {cpu: lots, memory: much}}\n";
    let there = file("existing.yaml", node);
    let there = there.to_str().expect("a path");
    let text = refused(&["plan", "-f", "src/cli/tests/bad/pod.yaml", "--existing", there], "");
    for problem in [
        "Node there: status.allocatable.cpu: ",
        "Node there: status.allocatable.memory: ",
        "Pod default/comma: ",
    ] {
        assert_eq!(text.matches(problem).count(), 1, "{problem}: {text}");
    }
    fs::remove_file(there).expect("it is ours");
}

#[test]
fn a_file_that_is_missing_hides_no_problem_of_the_others() {
    let bad = "src/cli/tests/bad/pod.yaml";
    let text = refused(&["plan", "-f", "nosuch.yaml", "-f", bad], "");
    for problem in ["nosuch.yaml: there is no such file", "Pod default/comma: "] {
        assert_eq!(text.matches(problem).count(), 1, "{problem}: {text}");
    }
    let text = refused(&["plan", "-f", bad, "--existing", "nosuch.yaml"], "");
    for problem in ["nosuch.yaml: there is no such file", "Pod default/comma: "] {
        assert_eq!(text.matches(problem).count(), 1, "{problem}: {text}");
    }
    let broken = file("broken.yaml", "apiVersion: [\n");
    let broken = broken.to_str().expect("a path");
    let text = refused(&["convert", "-f", "nosuch.yaml", "-f", broken], "");
    for problem in ["nosuch.yaml: there is no such file", "not readable as YAML or JSON"] {
        assert_eq!(text.matches(problem).count(), 1, "{problem}: {text}");
    }
    fs::remove_file(broken).expect("it is ours");
}

#[test]
fn a_simulation_tells_all_problems_of_its_pools_and_of_its_workload_at_once() {
    let args = ["simulate", "--pools", "-", "--snapshot", "src/cli/tests/bad/pod.yaml", "--for", "1h"];
    let text = refused(&args, &written(&WRONG));
    for problem in [
        "NodePool gpu: spec.weight: 500 is greater than the maximum of 100",
        "EC2NodeClass runners: spec.subnetSelectorTerms[0].id: `network-1` is not the id of a subnet",
        "EC2NodeClass runners: spec.detailedMonitorin: unknown field",
        "Pod default/comma: spec.containers[0].resources.requests.cpu: `1,5` is no quantity",
        "Pod default/typo: spec.containers[0].enviroment: unknown field",
    ] {
        assert_eq!(text.matches(problem).count(), 1, "{problem}: {text}");
    }
}

const QUOTA: &str = "apiVersion: v1
kind: ResourceQuota
metadata: {name: team, namespace: default}
spec: {hard: {pods: '3'}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 100m, memory: 64Mi}}}]}
";

#[test]
fn the_pods_of_existing_nodes_count_to_the_quotas_of_the_files() {
    let alone = plan(&["-f", "-"], QUOTA);
    assert_eq!(alone["pods"]["placed"], 3, "{alone}");
    let with_one = plan(&["-f", "-", "--existing", "src/cli/tests/existing.yaml"], QUOTA);
    assert_eq!(with_one["refused"], json!([{"object": "Deployment default/web", "pods": 1}]), "{with_one}");
    let notes = with_one["notes"].to_string();
    let why = "Deployment default/web: 1 of its 3 pods cannot be created and is not planned, because ResourceQuota `team` allows no more \
               pods: it limits them to 3, 3 are in use, and this asks for 1";
    assert!(notes.contains(why), "{notes}");
}
