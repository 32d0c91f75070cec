//! Tests of moves by remaining life: a saving lasts only until the moved pods have ended.

use std::sync::Arc;

use super::*;

/// A large node with one small pod, which runs for about this long, and perhaps longer.
fn scene(minutes: Option<i64>) -> Snapshot {
    let duration = PodDuration {
        started: Some(at(NOW - 60)),
        deadline: minutes.map(SignedDuration::from_mins),
        is_service: minutes.is_none(),
        ..PodDuration::default()
    };
    let mut snapshot = cluster_of(moving_pool(), vec![large("big")], &[]);
    let there = bound(Pod { duration, ..replica("web-1") }, "big");
    snapshot = with(with(snapshot, [there]), [web(1)]);
    snapshot.lives = Arc::new(Lives::prior());
    snapshot
}

#[test]
fn a_service_moves_to_a_cheaper_node() {
    let proposal = proposed(&scene(None)).expect("it saves $4.67/h for as long as anybody can say");
    assert_eq!(leaving(&proposal), [("big", "Underutilized")]);
}

#[test]
fn a_node_whose_pod_ends_soon_is_left_alone() {
    assert_eq!(proposed(&scene(Some(12))), None, "both nodes together for ten minutes cost more");
    assert!(proposed(&scene(Some(600))).is_some(), "an hour on the cheaper node pays for the move");
}

#[test]
fn a_move_that_keeps_another_node_longer_pays_for_that_time() {
    // The other node would end in two minutes, costs more, and has room for the service.
    let mut snapshot = scene(None);
    let (claim, node) = running("other", "g5.48xlarge", "16.288", capacity(192, 768, 8));
    let soon = PodDuration {
        started: Some(at(NOW - 60)),
        deadline: Some(SignedDuration::from_mins(3)),
        ..PodDuration::default()
    };
    let last = bound(Pod { duration: soon, ..pod("last", requests(2, 4, 1)) }, "other");
    snapshot = with(with(with(snapshot, [claim]), [node]), [last]);
    let proposal = proposed(&snapshot);
    let emptied = proposal.as_ref().map(leaving).unwrap_or_default();
    assert!(!emptied.contains(&("big", "Underutilized")), "its room is not free: {proposal:?}");
}

#[test]
fn pods_that_move_for_another_reason_do_not_count_as_a_cost_of_this_move() {
    // A drifted node's service is about to keep a third node, whose own pod ends soon. It does so in any case.
    let mut snapshot = scene(None);
    let of = |name| running(name, "g5.48xlarge", "16.288", capacity(192, 768, 8));
    let (drifted, its_node) = of("drifted");
    let condition = Condition {
        status: ConditionStatus::True,
        since: at(NOW - 30),
        reason: Some(Reason::Drifted),
        message: String::new(),
    };
    let mut drifted = drifted;
    drifted.conditions.insert(ConditionType::Disrupting, condition);
    let (spare, spare_node) = of("spare");
    let service = PodDuration { started: Some(at(NOW - 60)), is_service: true, ..PodDuration::default() };
    let db = Workload { key: object_key("db"), uid: Uid("db".into()), ..web(1) };
    let large = Pod { duration: service, owner: Some(Uid("db".into())), ..pod("db-1", requests(8, 32, 7)) };
    let soon = PodDuration {
        started: Some(at(NOW - 60)),
        deadline: Some(SignedDuration::from_mins(3)),
        ..PodDuration::default()
    };
    let last = Pod { duration: soon, ..pod("last", requests(2, 4, 1)) };
    snapshot = with(with(snapshot, [drifted, spare]), [its_node, spare_node]);
    snapshot = with(with(snapshot, [bound(large, "drifted"), bound(last, "spare")]), [db]);
    let moved = planned_at(&snapshot, NOW).moved;
    assert!(moved.iter().any(|moved| moved.from.0 == "drifted" && moved.goes_to("spare")), "{moved:?}");
    assert_eq!(leaving(&proposed(&snapshot).unwrap()), [("big", "Underutilized")]);
}

#[test]
fn of_two_nodes_with_equal_savings_that_of_a_service_leaves_before_that_of_a_job() {
    // A job repeats its work. The order of the names decides nothing.
    let leaves_first = |job_on: &str, service_on: &str| {
        let mut pool = moving_pool();
        pool.disruption.budgets = vec![budget(CountOrPercent::Count(1))];
        let nodes = vec![large(job_on), large(service_on)];
        let snapshot = cluster_of(pool, nodes, &[("web-1", service_on)]);
        let job = Workload { kind: "Job".into(), key: object_key("job"), uid: Uid("job".into()), ..web(1) };
        let work = Pod { owner: Some(Uid("job".into())), created: at(NOW - 600), ..replica("job-1") };
        let proposal = proposed(&with(with(snapshot, [bound(work, job_on)]), [job])).expect("a move pays");
        leaving(&proposal).iter().map(|(node, _)| (*node).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(leaves_first("a", "b"), ["b"]);
    assert_eq!(leaves_first("b", "a"), ["a"]);
}
