//! Tests of sticky places: whatever the order of events, and even after a restart, nothing is bought twice.

use poolwright_core::plan::{PlacedPod, Target};
use poolwright_core::{Claim, ClaimName, Node, Pod, PodPhase, Uid};

use crate::kit::*;

#[test]
fn planning_again_while_claims_are_in_flight_buys_nothing() {
    let pods = [pod("a", requests(2, 8, 1)), pod("b", requests(2, 8, 1))];
    let before = with(cluster(aws(), [pool("gpu")]), pods);
    let first = planned(&before);
    let second = planned_at(&carried_out(&before, &first, 10), 20);
    assert!(second.claims.is_empty() && second.unplaced.is_empty());
    assert_eq!(second.nominations, first.nominations);
}

#[test]
fn claims_name_their_pods_after_a_restart() {
    let before =
        with(cluster(aws(), [pool("gpu")]), [pod("a", requests(2, 8, 1)), pod("b", requests(2, 8, 1))]);
    let first = planned(&before);
    let mut restarted = carried_out(&before, &first, 10);
    restarted.nominations.clear();
    let second = planned_at(&restarted, 20);
    assert!(second.claims.is_empty());
    assert_eq!(second.nominations, first.nominations);
}

#[test]
fn a_newcomer_does_not_take_the_place_of_a_pod_that_was_planned() {
    let mut large = pod("p", requests(2, 8, 1));
    large.created = at(5);
    let newcomer = pod("a-new", requests(2, 8, 1));
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [large, newcomer]), [claim()]);
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["g5.xlarge: a-new"]);
    assert_eq!(plan.nominations[&key("p")], (Uid("pod-p".into()), "c".into()));
}

#[test]
fn a_planned_pod_stays_planned_while_the_scheduler_tries_it_again() {
    let retried = Pod { phase: PodPhase::Waiting, ..pod("p", requests(2, 8, 1)) };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [retried]), [claim()]);
    let plan = planned(&snapshot);
    assert_eq!(plan.placements, [PlacedPod { pod: key("p"), target: Target::Claim(ClaimName("c".into())) }]);
}

#[test]
fn a_pod_that_no_longer_fits_where_it_was_planned_is_planned_anew() {
    let small = Claim { offerings: claim().offerings, ..claim() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [pod("p", requests(40, 8, 1))]), [small]);
    assert_eq!(bought(&planned(&snapshot)), ["g5.12xlarge: p"]);
}

#[test]
fn pods_of_a_claim_that_is_being_deleted_are_demand_again() {
    let leaving = Claim { deleting_since: Some(at(1)), ..claim() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [pod("p", requests(1, 1, 1))]), [leaving]);
    assert_eq!(bought(&planned(&snapshot)), ["g5.xlarge: p"]);
}

#[test]
fn a_pod_nominated_to_our_node_by_a_forgotten_plan_stays_there() {
    let nominated = Pod { nominated_node: Some("n".into()), ..pod("late", requests(1, 1, 1)) };
    let cordoned = Node { cordoned: true, cordoned_until_initialized: true, ..claimed_node() };
    let claim = Claim { planned_pods: vec![], ..registered() };
    let snapshot = with(with(with(cluster(aws(), [pool("gpu")]), [nominated]), [cordoned]), [claim]);
    let plan = planned(&snapshot);
    assert!(plan.claims.is_empty() && plan.unplaced.is_empty());
}

#[test]
fn a_nomination_of_ours_that_came_to_nothing_does_not_keep_a_pod_waiting() {
    let nominated = Pod { nominated_node: Some("n".into()), ..pod("late", requests(1, 1, 1)) };
    let other = bound(pod("other", requests(1, 1, 1)), "n");
    let claim = Claim { planned_pods: vec![], ..initialized() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [nominated, other.clone()]), [claimed_node()]);
    let snapshot = with(snapshot, [claim]);
    assert_eq!(bought(&planned(&snapshot)), ["g5.xlarge: late"]);
    // If the other pod is being deleted, the scheduler is preempting it, so nothing is bought.
    let leaving = Pod { deleting_since: Some(at(5)), ..other };
    let plan = planned(&with(snapshot, [leaving]));
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason.as_str(), "PreemptionInProgress");
}
