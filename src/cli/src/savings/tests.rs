//! Tests of whole answers, for a cluster whose sums can be done in the head.

use std::fs;

use clap::Parser;
use poolwright_catalog::UsdPerHour;
use serde_json::{Value, json};

use super::answer::Answer;
use super::testing::{catalogue, cluster, node, usd};
use super::{answered, running, staying};
use crate::args::{Cli, Command};
use crate::exit::Failure;

const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/savings.yaml");
const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/savings.csv");
const POOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests/pool.yaml");
const KARPENTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/karpenter/karpenter.yaml");

fn answer(args: &[&str]) -> Result<Answer, Failure> {
    let typed = ["poolwright", "savings"].into_iter().chain(args.iter().copied());
    let Command::Savings(flags) = Cli::try_parse_from(typed).expect("flags").command else {
        panic!("it is savings")
    };
    answered(&flags)
}

fn found(args: &[&str]) -> Answer {
    answer(args).unwrap_or_else(|failure| panic!("{args:?}: {failure:?}"))
}

#[test]
fn pods_that_can_share_a_node_do_and_a_pod_without_a_controller_keeps_its_own() {
    let answer = found(&["-f", CLUSTER, "--catalogue", PRICES]);
    assert_eq!(answer.now.usd_per_hour, usd("4.5"), "three large nodes");
    assert_eq!(
        answer.best.usd_per_hour,
        usd("3"),
        "one that stays, one for 4 cores and half a core of the DaemonSet"
    );
    assert_eq!(answer.moves, 2);
    let fixed: Vec<_> = answer.fixed.iter().map(|one| (one.pod.as_str(), one.node.as_str())).collect();
    assert_eq!(fixed, [("ml/alone", "c")]);
    let left_out: Vec<_> = answer.left_out.iter().map(|one| (one.node.as_str(), one.pods)).collect();
    assert_eq!(left_out, [("d", 1)], "its price is unknown, so its pod counts nowhere");
    let limit = answer.limit.expect("the plan has a bound");
    assert!(limit > UsdPerHour::ZERO && limit <= usd("3"), "{limit}");
    assert!(
        answer.verdict.starts_with(
            "Now $3,285.00/month on 3 nodes; the best plan costs $2,190.00/month (-33.3 %); nobody "
        ),
        "{}",
        answer.verdict
    );
    assert!(answer.verdict.ends_with(" 1 node of unknown price is in none of these."), "{}", answer.verdict);
    assert!(
        answer.may_buy.ends_with(": large in z, on demand, because no spot node runs."),
        "{}",
        answer.may_buy
    );
    assert!(answer.notes.iter().any(|note| note.starts_with("1 pod without a node counts nowhere")));
    assert!(answer.convert.is_none());
}

#[test]
fn a_node_of_the_control_plane_stays() {
    let mut master = node("master", "small", 4);
    master.labels.insert("node-role.kubernetes.io/control-plane".to_owned(), String::new());
    let all = cluster(vec![master, node("a", "small", 4)], Vec::new());
    let (running, _) = running::of(&all, &catalogue());
    let stays: Vec<_> = staying(&running, &[]).into_iter().collect();
    assert_eq!(stays, [("master".to_owned(), "it is of the control plane".to_owned())]);
}

#[test]
fn a_pool_that_sells_nothing_of_the_catalogue_saves_nothing() {
    let answer = found(&["-f", CLUSTER, POOL, "--catalogue", PRICES]);
    assert_eq!(answer.best, answer.now);
    assert!(answer.verdict.contains("; no cheaper plan was found; "), "{}", answer.verdict);
    assert!(answer.may_buy.contains("1 NodePool of Poolwright"), "{}", answer.may_buy);
}

#[test]
fn a_pod_that_selects_a_label_of_karpenter_gets_free_room_of_a_node_that_stays() {
    let node = |name: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name, "labels": {
                "karpenter.k8s.aws/instance-gpu-name": "a10g",
                "karpenter.sh/capacity-type": "on-demand",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "g5.12xlarge",
                "topology.kubernetes.io/region": "us-east-1",
                "topology.kubernetes.io/zone": "us-east-1a",
            }},
            "status": {
                "allocatable": {"cpu": "47", "memory": "180Gi", "pods": "110", "nvidia.com/gpu": "4"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })
    };
    let pod = |name: &str, node: &str, owners: Value| {
        let one = json!({"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"});
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "ml", "uid": name, "ownerReferences": owners},
            "spec": {
                "nodeName": node,
                "nodeSelector": {"karpenter.k8s.aws/instance-gpu-name": "a10g"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "containers": [{"name": "work", "image": "work", "resources": {"limits": one, "requests": one}}],
            },
            "status": {"phase": "Running"},
        })
    };
    let owner = json!([
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": true},
    ]);
    let items = [node("a"), node("b"), pod("alone", "a", json!([])), pod("web-1", "b", owner)];
    let path = std::env::temp_dir().join(format!("poolwright-savings-{}.json", std::process::id()));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(&path, list.to_string()).expect("a file");
    let answer = found(&["-f", path.to_str().expect("UTF-8"), KARPENTER]);
    fs::remove_file(&path).expect("the file is there");
    assert_eq!(answer.now.usd_per_hour, usd("11.344"), "{}", answer.verdict);
    assert_eq!(answer.best.usd_per_hour, usd("5.672"), "no new node: {}", answer.verdict);
    assert_eq!(answer.moves, 1);
}

#[test]
fn without_prices_nothing_is_guessed() {
    let Err(Failure::BadInput(told)) = answer(&["-f", CLUSTER]) else { panic!("no price is known") };
    assert!(
        told.starts_with("no node has a known price, for instance because the catalogue has no type "),
        "{told}"
    );
}
