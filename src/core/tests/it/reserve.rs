//! Tests of reservations.

use poolwright_core::lifecycle::{self, PlacementMode};
use poolwright_core::*;
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{DISRUPTED_TAINT, RESERVED_TAINT};

use crate::kit::*;

fn cordoned() -> Node {
    Node { cordoned: true, cordoned_until_initialized: true, ..claimed_node() }
}

fn reserved() -> Node {
    Node { taints: vec![taint(RESERVED_TAINT, "c")], ..claimed_node() }
}

fn c() -> ClaimName {
    ClaimName("c".into())
}

fn let_in(pod: Pod) -> Pod {
    Pod { reserved_for: vec![c()], ..pod }
}

fn waiting(name: &str) -> Pod {
    pod(name, requests(1, 1, 1))
}

fn scene(claim: Claim, node: Node, pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    with(with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]), pods)
}

/// Returns the actions about reservations in order, as short texts.
fn done(snapshot: &Snapshot, now: i64) -> Vec<String> {
    let word = |action| match action {
        Action::Tolerate { pod, uid, claim } => Some(format!("tolerate {} {} {claim}", pod.name, uid.0)),
        Action::Nominate { pod, node, .. } => Some(format!("nominate {} {node}", pod.name)),
        Action::Open { node, reserve_for: Some(claim) } => Some(format!("open {node} for {claim}")),
        Action::Open { node, reserve_for: None } => Some(format!("open {node}")),
        Action::SetTaints { node, taints } => Some(format!("taints of {node}: {}", taints.len())),
        _ => None,
    };
    decide(snapshot, at(now)).actions.into_iter().filter_map(word).collect()
}

#[test]
fn pods_are_let_in_while_their_node_starts_and_it_opens_for_them_alone() {
    let starting = Node { ready: false, ..cordoned() };
    let pods = || [waiting("p"), waiting("other")];
    assert_eq!(done(&scene(registered(), starting, pods()), 21), ["tolerate p pod-p c"]);
    assert_eq!(done(&scene(registered(), cordoned(), pods()), 21), ["tolerate p pod-p c"]);
    let prepared = scene(registered(), cordoned(), [let_in(waiting("p")), waiting("other")]);
    assert_eq!(done(&prepared, 21), ["open n for c"]);
    assert!(decide(&prepared, at(21)).actions.iter().any(|action| matches!(action,
        Action::SetConditions { conditions, .. } if conditions[0].kind == ConditionType::Initialized)));
}

#[test]
fn all_nodes_open_at_once_when_they_are_reserved() {
    let mut snapshot = cluster(aws(), [pool("gpu")]);
    for number in 0..100 {
        let (name, node) = (format!("c{number}"), format!("n{number}"));
        let provider_id = format!("kwok://{name}");
        let claim = Claim {
            name: ClaimName(name.clone()),
            node_name: Some(node.clone()),
            launched: registered().launched.map(|l| Launched { provider_id: provider_id.clone(), ..l }),
            planned_pods: vec![key(&format!("p{number}"))],
            ..registered()
        };
        let node = Node { name: node, provider_id: Some(provider_id), ..cordoned() };
        let pod = Pod { reserved_for: vec![ClaimName(name)], ..waiting(&format!("p{number}")) };
        snapshot = with(with(with(snapshot, [claim]), [node]), [pod]);
    }
    assert_eq!(done(&snapshot, 21).len(), 100);
}

#[test]
fn a_node_opens_in_time_even_if_a_pod_cannot_be_let_in_and_stays_reserved() {
    let snapshot = scene(registered(), cordoned(), [waiting("p")]);
    assert_eq!(done(&snapshot, 24), ["tolerate p pod-p c"]);
    assert_eq!(decide(&snapshot, at(24)).wake_at, Some(at(25)));
    assert_eq!(done(&snapshot, 25), ["tolerate p pod-p c", "open n for c"]);
}

#[test]
fn a_crash_after_any_write_loses_no_reservation() {
    // The first scene is recorded as initialized but not opened. The second is opened, but the pod lacks the toleration.
    assert_eq!(
        done(&scene(initialized(), cordoned(), [let_in(waiting("p"))]), 40),
        ["open n for c"],
        "the node is opened as it was to be"
    );
    assert_eq!(done(&scene(initialized(), reserved(), [waiting("p")]), 40), ["tolerate p pod-p c"]);
    assert_eq!(done(&scene(initialized(), reserved(), [let_in(waiting("p"))]), 40), [] as [&str; 0]);
}

#[test]
fn a_reservation_ends_when_its_pods_are_there_or_gone() {
    let there = scene(initialized(), reserved(), [bound(let_in(waiting("p")), "n")]);
    assert_eq!(done(&there, 31), ["taints of n: 0"]);
    assert_eq!(done(&scene(initialized(), reserved(), []), 31), ["taints of n: 0"]);
    let leaving = Pod { deleting_since: Some(at(31)), ..let_in(waiting("p")) };
    assert_eq!(done(&scene(initialized(), reserved(), [leaving]), 31), ["taints of n: 0"]);
}

#[test]
fn free_room_on_a_reserved_node_stays_reserved_until_the_scale_up_ends() {
    let there = || bound(let_in(waiting("p")), "n");
    let tried_at = |since| {
        let phase = PodPhase::Unschedulable { since: at(since), message: "no room".into() };
        Pod { phase, ..waiting("next") }
    };
    // A plan for the pod may be in progress, and it may count on the remaining room on this node.
    let snapshot = scene(initialized(), reserved(), [there(), tried_at(35)]);
    assert_eq!(done(&snapshot, 49), [] as [&str; 0]);
    assert_eq!(decide(&snapshot, at(49)).wake_at, Some(at(50)));
    assert_eq!(done(&snapshot, 50), ["taints of n: 0"], "no plan has a place for it");
    // The pod is planned for another node and waits for it.
    let mut snapshot = scene(initialized(), reserved(), [there(), tried_at(35)]);
    let other = Claim { name: ClaimName("other".into()), planned_pods: vec![key("next")], ..claim() };
    snapshot = with(snapshot, [other]);
    assert_eq!(done(&snapshot, 89), [] as [&str; 0]);
    assert_eq!(done(&snapshot, 90), ["taints of n: 0"], "a minute after the opening at the latest");
}

#[test]
fn a_reservation_ends_a_minute_after_the_opening_whoever_waits_and_other_taints_stay() {
    let node = Node { taints: vec![taint("team", "a"), taint(RESERVED_TAINT, "c")], ..claimed_node() };
    let snapshot = scene(initialized(), node, [let_in(waiting("p"))]);
    assert_eq!(done(&snapshot, 89), [] as [&str; 0]);
    assert_eq!(decide(&snapshot, at(89)).wake_at, Some(at(90)));
    let actions = decide(&snapshot, at(90)).actions;
    let lifted = Action::SetTaints { node: "n".into(), taints: vec![taint("team", "a")] };
    assert!(actions.contains(&lifted), "{actions:?}");
}

#[test]
fn a_node_that_opens_late_again_is_not_reserved_anew() {
    let snapshot = scene(initialized(), cordoned(), [let_in(waiting("p"))]);
    assert_eq!(done(&snapshot, 90), ["nominate p n", "open n"]);
}

#[test]
fn a_pod_that_a_later_plan_puts_on_a_reserved_node_is_let_in_too() {
    let mut snapshot = scene(initialized(), reserved(), [let_in(waiting("p")), waiting("late")]);
    snapshot.nominations = [(key("late"), (Uid("pod-late".into()), "c".into()))].into();
    assert_eq!(done(&snapshot, 40), ["tolerate late pod-late c"]);
    let another = Pod { uid: Uid("pod-late-2".into()), ..waiting("late") };
    assert_eq!(
        done(&with(snapshot, [another]), 40),
        [] as [&str; 0],
        "a later pod of that name was not planned"
    );
}

#[test]
fn a_pod_that_tolerates_everything_is_nominated_instead_of_changed() {
    let all = Toleration { key: None, matches: TolerationMatch::Exists, effect: None };
    let mut careless = waiting("p");
    careless.spec.tolerations = vec![all];
    let starting = Node { ready: false, ..cordoned() };
    assert_eq!(done(&scene(registered(), starting, [careless.clone()]), 21), [] as [&str; 0]);
    assert_eq!(done(&scene(registered(), cordoned(), [careless.clone()]), 21), ["nominate p n"]);
    let nominated = Pod { nominated_node: Some("n".into()), ..careless };
    assert_eq!(done(&scene(registered(), cordoned(), [nominated]), 21), ["open n for c"]);
}

#[test]
fn pods_are_nominated_if_they_may_not_be_patched() {
    let mut snapshot = scene(registered(), cordoned(), [waiting("p")]);
    snapshot.unpatchable = ["default".to_owned()].into();
    assert_eq!(done(&snapshot, 21), ["nominate p n"]);
    snapshot = with(snapshot, [Pod { nominated_node: Some("n".into()), ..waiting("p") }]);
    assert_eq!(done(&snapshot, 21), ["nominate p n", "open n"]);
    let mut open = scene(initialized(), reserved(), [waiting("p")]);
    open.unpatchable = ["default".to_owned()].into();
    assert_eq!(
        done(&open, 40),
        ["nominate p n", "taints of n: 0"],
        "a reservation keeps nobody out for nothing"
    );
}

#[test]
fn a_reservation_of_an_earlier_setting_is_lifted() {
    let snapshot = scene(initialized(), reserved(), [let_in(waiting("p"))]);
    let actions = lifecycle::decide(&snapshot, at(40), PlacementMode::Nominate).actions;
    assert!(actions.contains(&Action::SetTaints { node: "n".into(), taints: vec![] }), "{actions:?}");
}

#[test]
fn a_node_that_is_given_back_is_closed_and_not_reserved() {
    let deleted = Claim { deleting_since: Some(at(50)), ..initialized() };
    let actions = decide(&scene(deleted, reserved(), [let_in(waiting("p"))]), at(51)).actions;
    let closed = Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] };
    assert!(actions.contains(&closed), "{actions:?}");
}

#[test]
fn the_next_plan_uses_free_room_on_a_reserved_node() {
    let small = pod("small", requests(1, 1, 0));
    let snapshot = scene(initialized(), reserved(), [let_in(waiting("p")), small]);
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), [] as [&str; 0]);
    assert_eq!(plan.nominations[&key("small")].1, "c");
}

#[test]
fn the_toleration_of_a_pod_survives_a_restart() {
    // No plan is in memory, and the claim was bought for another pod.
    let late = let_in(waiting("late"));
    let snapshot = scene(Claim { planned_pods: vec![], ..initialized() }, reserved(), [late]);
    assert_eq!(done(&snapshot, 40), [] as [&str; 0], "it is waited for");
    let plan = planned(&snapshot);
    assert_eq!((bought(&plan), plan.nominations[&key("late")].1.as_str()), (vec![], "c"));
}

#[test]
fn a_claim_says_which_of_its_pods_had_a_place_before() {
    let taken = bound(waiting("thief"), "n");
    let snapshot = scene(initialized(), claimed_node(), [taken, waiting("p"), waiting("q")]);
    let plan = planned(&snapshot);
    let again: Vec<_> = plan.claims.iter().filter(|claim| !claim.bought_again.is_empty()).collect();
    assert_eq!((plan.claims.len(), again.len()), (2, 1));
    assert_eq!(again[0].bought_again, [key("p")]);
}

#[test]
fn a_pod_tolerates_the_second_node_after_its_first_claim_failed() {
    let planned_twice = Pod { reserved_for: vec![ClaimName("failed".into())], ..waiting("p") };
    let snapshot = scene(registered(), cordoned(), [planned_twice.clone()]);
    assert_eq!(done(&snapshot, 21), ["tolerate p pod-p c"]);
    let both = Pod { reserved_for: vec![ClaimName("failed".into()), c()], ..planned_twice };
    assert_eq!(done(&with(snapshot, [both]), 21), ["open n for c"]);
}

#[test]
fn a_pod_that_is_open_to_any_reservation_keeps_its_own_place_in_the_next_plan() {
    let mut careless = waiting("p");
    careless.spec.tolerations = vec![tolerate(RESERVED_TAINT)];
    let plan = planned(&scene(initialized(), reserved(), [careless]));
    assert_eq!((bought(&plan), plan.nominations[&key("p")].1.as_str()), (vec![], "c"));
}
