//! Tests of free room on existing nodes and claims, which is used before anything is bought.

use poolwright_core::plan::{PlacedPod, Target};
use poolwright_core::{ClaimName, Node, Snapshot};
use poolwright_terms::ConditionType;

use crate::kit::*;

fn one_pod() -> Snapshot {
    with(cluster(aws(), [pool("gpu")]), [pod("p2", requests(2, 8, 0))])
}

fn free_claim() -> poolwright_core::Claim {
    poolwright_core::Claim { planned_pods: vec![], ..initialized() }
}

fn goes_to(snapshot: &Snapshot) -> Option<Target> {
    let plan = planned(snapshot);
    assert_eq!(plan.claims.len() + plan.placements.len(), 1);
    plan.placements.first().map(|PlacedPod { target, .. }| target.clone())
}

#[test]
fn a_pod_that_fits_on_an_open_node_buys_nothing() {
    let snapshot = with(one_pod(), [node("n", capacity(4, 16, 0))]);
    assert_eq!(goes_to(&snapshot), Some(Target::Node("n".into())));
}

#[test]
fn pods_on_the_node_take_room_until_they_have_ended() {
    let taken = bound(pod("x", requests(3, 8, 0)), "n");
    let snapshot = with(with(one_pod(), [node("n", capacity(4, 16, 0))]), [taken.clone()]);
    assert_eq!(goes_to(&snapshot), None);
    let ended = poolwright_core::Pod { phase: poolwright_core::PodPhase::Finished, ..taken };
    assert_eq!(goes_to(&with(snapshot, [ended])), Some(Target::Node("n".into())));
}

#[test]
fn nodes_that_take_no_pods_are_no_room() {
    let open = node("n", capacity(4, 16, 0));
    for closed in [
        Node { ready: false, ..open.clone() },
        Node { cordoned: true, ..open.clone() },
        Node { deleting_since: Some(at(1)), ..open.clone() },
        Node { taints: vec![taint("x", "")], ..open.clone() },
        Node { taints: vec![taint("poolwright.dev/unregistered", "")], ..open.clone() },
        Node { labels: [("poolwright.dev/nodeclaim".to_owned(), "gone".to_owned())].into(), ..open },
    ] {
        assert_eq!(goes_to(&with(one_pod(), [closed.clone()])), None, "{closed:?}");
    }
}

#[test]
fn a_cordoned_node_is_room_for_pods_that_tolerate_the_cordon() {
    let mut tolerant = one_pod();
    let mut pod = pod("p2", requests(2, 8, 0));
    pod.spec.tolerations = vec![tolerate("node.kubernetes.io/unschedulable")];
    tolerant = with(tolerant, [pod]);
    let cordoned = |node: Node| Node { cordoned: true, ..node };
    let foreign = cordoned(node("n", capacity(4, 16, 0)));
    assert_eq!(goes_to(&with(tolerant.clone(), [foreign.clone()])), Some(Target::Node("n".into())));
    let claimed = with(with(tolerant.clone(), [free_claim()]), [cordoned(claimed_node())]);
    assert_eq!(goes_to(&claimed), Some(Target::Claim(ClaimName("c".into()))));
    let starting = poolwright_core::Claim { planned_pods: vec![], ..registered() };
    let starting = |snapshot| with(with(snapshot, [starting.clone()]), [cordoned(claimed_node())]);
    assert_eq!(goes_to(&starting(tolerant.clone())), Some(Target::Claim(ClaimName("c".into()))));
    assert_eq!(goes_to(&starting(one_pod())), None);
    // Poolwright will terminate these.
    let disrupted = Node { taints: vec![taint("poolwright.dev/disrupted", "")], ..foreign };
    assert_eq!(goes_to(&with(tolerant.clone(), [disrupted])), None);
    let disrupting = true_since(free_claim(), ConditionType::Disrupting, 40);
    assert_eq!(goes_to(&with(with(tolerant, [disrupting]), [cordoned(claimed_node())])), None);
}

#[test]
fn a_claim_in_flight_is_the_room_that_it_promises() {
    let in_flight = poolwright_core::Claim { planned_pods: vec![], ..claim() };
    let target = Some(Target::Claim(ClaimName("c".into())));
    assert_eq!(goes_to(&with(one_pod(), [in_flight.clone()])), target);
    // Its node has joined, but it shows no GPU yet, is cordoned and is not ready. The promised resources still count.
    let joining = Node {
        ready: false,
        cordoned: true,
        cordoned_until_initialized: true,
        allocatable: capacity(1, 1, 0),
        ..claimed_node()
    };
    let registered = poolwright_core::Claim { planned_pods: vec![], ..registered() };
    assert_eq!(goes_to(&with(with(one_pod(), [registered]), [joining])), target);
}

#[test]
fn an_initialized_claim_is_the_room_its_node_really_has() {
    let target = Some(Target::Claim(ClaimName("c".into())));
    let snapshot = with(with(one_pod(), [free_claim()]), [claimed_node()]);
    assert_eq!(goes_to(&snapshot), target);
    let lost = Node { allocatable: capacity(1, 16, 1), ..claimed_node() };
    assert_eq!(goes_to(&with(snapshot.clone(), [lost])), None);
    let cordoned = Node { cordoned: true, ..claimed_node() };
    assert_eq!(goes_to(&with(snapshot, [cordoned])), None);
}

#[test]
fn a_node_that_has_just_opened_is_room_although_the_node_controller_has_not_lifted_its_taints() {
    let late = ["unschedulable", "not-ready", "unreachable"]
        .map(|key| taint(&format!("node.kubernetes.io/{key}"), ""));
    let opened = Node { taints: late.to_vec(), ..claimed_node() };
    let planned = poolwright_core::Claim { planned_pods: vec![key("p2")], ..initialized() };
    let target = Some(Target::Claim(ClaimName("c".into())));
    assert_eq!(
        goes_to(&with(with(one_pod(), [planned]), [opened])),
        target,
        "no second node for the same pod"
    );
    let foreign = Node { taints: late.to_vec(), ..node("n", capacity(4, 16, 0)) };
    assert_eq!(goes_to(&with(one_pod(), [foreign])), Some(Target::Node("n".into())));
}

#[test]
fn a_claim_on_its_way_out_is_no_room() {
    let leaving = poolwright_core::Claim { deleting_since: Some(at(1)), ..free_claim() };
    assert_eq!(goes_to(&with(with(one_pod(), [leaving]), [claimed_node()])), None);
    let disrupting = true_since(free_claim(), ConditionType::Disrupting, 40);
    assert_eq!(goes_to(&with(with(one_pod(), [disrupting]), [claimed_node()])), None);
    // The node of the claim has joined and then vanished.
    assert_eq!(goes_to(&with(one_pod(), [free_claim()])), None);
}

#[test]
fn future_labels_of_a_starting_claim_decide_which_pods_fit() {
    let mut wants = pod("p2", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "a10g".into());
    wants.spec.node_selector.insert("poolwright.dev/nodepool".into(), "gpu".into());
    let in_flight = poolwright_core::Claim { planned_pods: vec![], ..claim() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [wants.clone()]), [in_flight]);
    assert!(goes_to(&snapshot).is_some());
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "l4".into());
    assert_eq!(goes_to(&with(snapshot, [wants])), None);
}
