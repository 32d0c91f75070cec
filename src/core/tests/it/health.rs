//! Tests of what explanations say about nodes that are unhealthy or lack what their claims promise.

use jiff::SignedDuration;
use poolwright_core::plan::Plan;
use poolwright_core::*;

use crate::kit::*;

const LOST: &str = "it terminates the instance at once, because a node that is not ready cannot be drained; their controllers create its \
                    pods again";
const DRAINED: &str = "it drains the node, with budgets and protected pods, and then terminates the instance";

fn has(kind: &str, status: &str, since: i64) -> Node {
    let (kind, status) = (kind.to_owned(), status.to_owned());
    let condition = NodeCondition { kind, status, since: at(since), cause: "Why: it stopped.".to_owned() };
    Node { ready: condition.kind != "Ready", unhealthy_conditions: vec![condition], ..claimed_node() }
}

fn cluster_of(claim: Claim, node: Node) -> Snapshot {
    let rule = |condition: &str, status: &str, minutes| RepairRule {
        condition: condition.to_owned(),
        status: status.to_owned(),
        after: SignedDuration::from_mins(minutes),
    };
    let repair = vec![rule("Ready", "Unknown", 30), rule("GpuHealthy", "False", 10)];
    let pool = Pool { disruption: Disruption { repair, ..Disruption::default() }, ..pool("gpu") };
    let claim = Claim { planned_pods: vec![], ..claim };
    let work = Pod { owner: Some(Uid("web".to_owned())), ..bound(pod("p", requests(1, 1, 0)), "n") };
    with(with(with(cluster(aws(), [pool]), [claim]), [node]), [work])
}

/// Returns the lines after those about the node's size and its purchase.
fn told(claim: Claim, node: Node, seconds: i64) -> Vec<String> {
    let snapshot = cluster_of(claim, node);
    why::node(&snapshot, at(seconds), &Plan::default(), "n").expect("the node exists").split_off(3)
}

#[test]
fn a_node_whose_repair_is_due_is_said_to_be_replaced_now_and_not_to_be_kept() {
    assert_eq!(
        told(initialized(), has("Ready", "Unknown", 100), 1_960),
        [
            format!(
                "It has had the condition Ready=Unknown since {}, for 31m (Why: it stopped). Its pool's disruption.repair allows 30m, so \
                 Poolwright replaces the node now: {LOST}.",
                at(100)
            ),
            "It runs 1 pod: default/p.".to_owned()
        ]
    );
    let gpu = told(initialized(), has("GpuHealthy", "False", 100), 700);
    assert!(gpu[0].ends_with(&format!("Poolwright replaces the node now: {DRAINED}.")), "{gpu:#?}");
}

#[test]
fn a_pod_without_a_controller_is_named_as_lost_with_its_node() {
    let bare = |name: &str| bound(pod(name, requests(1, 1, 0)), "n");
    let of = |node: Node, pods: Vec<Pod>| {
        let snapshot = with(cluster_of(initialized(), node), pods);
        let lines = why::claim(&snapshot, at(1_960), &Plan::default(), &ClaimName("c".into()));
        lines.expect("the claim exists").remove(2)
    };
    let lost = of(has("Ready", "Unknown", 100), vec![bare("b"), bare("a")]);
    let both = "their controllers create its other pods again, but 2 pods have no controller and are lost: default/a, default/b.";
    assert!(lost.ends_with(both), "{lost}");
    let alone = of(has("Ready", "Unknown", 100), vec![bare("p")]);
    assert!(
        alone.ends_with("cannot be drained; pod default/p has no controller and is lost."),
        "it replaces the one with a controller: {alone}"
    );
    let drained = of(has("GpuHealthy", "False", 100), vec![bare("a")]);
    let again = format!("{DRAINED}; pod default/a has no controller and is not created again.");
    assert!(drained.ends_with(&again), "{drained}");
}

#[test]
fn a_node_whose_repair_is_not_due_yet_says_when_it_is() {
    let lines = told(initialized(), has("Ready", "Unknown", 100), 160);
    assert_eq!(lines[0], "Its node is not ready, so no new pod goes there.");
    assert!(
        lines[1].ends_with(&format!(
            "Its pool's disruption.repair allows 30m: Poolwright replaces the node at {}, in 29m, unless it recovers; {LOST}.",
            at(1_900)
        )),
        "{lines:#?}"
    );
    assert_eq!(lines[2..], ["It runs 1 pod: default/p."]);
}

#[test]
fn a_node_that_repair_leaves_says_why_and_is_kept() {
    let lines = told(Claim { do_not_disrupt: true, ..initialized() }, has("Ready", "Unknown", 100), 10_000);
    let held = "Its pool's disruption.repair allows 30m, but the annotation poolwright.dev/do-not-disrupt of its NodeClaim keeps it.";
    assert!(lines[1].ends_with(held), "{lines:#?}");
    assert_eq!(lines[2], "Kept because it runs 1 pod: default/p.");
    let unnamed = told(initialized(), has("DiskPressure", "True", 100), 10_000);
    let no_rule = "No rule of its pool's disruption.repair names this, so Poolwright does not replace it.";
    assert!(unnamed[1].starts_with("It has had the condition DiskPressure=True since "), "{unnamed:#?}");
    assert!(unnamed[1].ends_with(no_rule), "{unnamed:#?}");
    let other = told(initialized(), has("Frequent", "True", 100), 10_000);
    assert!(!other.iter().any(|line| line.contains("Frequent")), "it may be healthy: {other:#?}");
}

#[test]
fn a_node_that_nobody_bought_says_what_is_wrong_with_it_and_nothing_about_repair() {
    let sick = Node { provider_id: None, ..has("Ready", "False", 100) };
    let snapshot = with(cluster(aws(), [pool("gpu")]), [sick]);
    let lines = why::node(&snapshot, at(160), &Plan::default(), "n").expect("the node exists");
    let last = format!("It has had the condition Ready=False since {}, for 1m (Why: it stopped).", at(100));
    assert_eq!(lines[1], "It has no claim: Poolwright did not buy it and never removes it.");
    assert_eq!(lines.last(), Some(&last));
}

#[test]
fn an_open_node_that_has_lost_its_gpu_names_what_its_claim_promises_and_the_next_step() {
    let without = Node { allocatable: capacity(4, 16, 0), ..claimed_node() };
    let lines = told(initialized(), without.clone(), 100);
    assert_eq!(lines[0], "It is open to pods.");
    let lacks = "It lacks what its claim promises: nvidia.com/gpu: 1 promised, 0 advertised. ";
    assert!(lines[1].starts_with(lacks), "{lines:#?}");
    assert!(lines[1].contains("`kubectl delete nodeclaim c`"), "{lines:#?}");
    let whole = told(initialized(), claimed_node(), 100);
    assert!(!whole.iter().any(|line| line.contains("It lacks")), "{whole:#?}");
    let starting = told(registered(), without, 100);
    assert!(!starting.iter().any(|line| line.contains("It lacks")), "it advertises it later: {starting:#?}");
}

#[test]
fn words_of_a_condition_that_change_are_no_news_of_the_node() {
    let mut other = has("Ready", "False", 100);
    other.unhealthy_conditions[0].cause = "PLEG is not healthy: 4m".to_owned();
    assert_eq!(other, has("Ready", "False", 100));
    other.unhealthy_conditions[0].since = at(101);
    assert_ne!(other, has("Ready", "False", 100));
}
