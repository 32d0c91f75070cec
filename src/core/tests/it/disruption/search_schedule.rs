//! Tests of the times of searches for nodes to empty.

use std::time::Duration;

use jiff::SignedDuration;
use poolwright_core::disruption::SearchSchedule;
use poolwright_core::*;

use super::{cluster_of, large, moving_pool, small};
use crate::kit::{pool, with};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a schedule whose last search began at zero.
fn searched(snapshot: &Snapshot, has_more: bool) -> SearchSchedule {
    let mut schedule = SearchSchedule::default();
    schedule.begin(snapshot, Duration::ZERO);
    schedule.end(has_more);
    schedule
}

/// Returns the first second in which a search is due.
fn first_due(schedule: &SearchSchedule, snapshot: &Snapshot) -> Option<u64> {
    (0..=120).find(|at| schedule.is_due(snapshot, seconds(*at)))
}

#[test]
fn the_first_search_is_due_at_once() {
    let snapshot = cluster_of(moving_pool(), vec![], &[]);
    assert_eq!(first_due(&SearchSchedule::default(), &snapshot), Some(0));
}

#[test]
fn a_cluster_without_changes_is_searched_once_a_minute() {
    let snapshot = cluster_of(moving_pool(), vec![large("a")], &[]);
    let schedule = searched(&snapshot, false);
    assert_eq!(first_due(&schedule, &snapshot), Some(60));
    assert_eq!(schedule.next_in(&snapshot, seconds(20)), Some(seconds(40)));
}

#[test]
fn a_changed_cluster_is_searched_again_after_ten_seconds() {
    let before = cluster_of(moving_pool(), vec![large("a")], &[]);
    let schedule = searched(&before, false);
    let (claim, node) = small("b");
    let after = with(with(before, [claim]), [node]);
    assert_eq!(first_due(&schedule, &after), Some(10));
    assert_eq!(schedule.next_in(&after, seconds(2)), Some(seconds(8)));
}

#[test]
fn nodes_that_a_search_did_not_cover_are_searched_after_ten_seconds() {
    let snapshot = cluster_of(moving_pool(), vec![large("a")], &[]);
    assert_eq!(first_due(&searched(&snapshot, true), &snapshot), Some(10));
}

#[test]
fn an_overdue_search_waits_five_seconds_for_a_plan_of_another_cause() {
    let snapshot = cluster_of(moving_pool(), vec![large("a")], &[]);
    assert_eq!(searched(&snapshot, false).next_in(&snapshot, seconds(300)), Some(seconds(5)));
}

#[test]
fn no_search_is_scheduled_where_only_a_change_can_make_a_node_a_candidate() {
    let quiet = cluster_of(pool("gpu"), vec![large("a")], &[]);
    assert_eq!(searched(&quiet, false).next_in(&quiet, seconds(20)), None);
    let empty = cluster_of(moving_pool(), vec![], &[]);
    assert_eq!(searched(&empty, false).next_in(&empty, seconds(20)), None);
    let disruption =
        Disruption { expire_after: Some(SignedDuration::from_hours(1)), ..Disruption::default() };
    let expiring = cluster_of(Pool { disruption, ..pool("gpu") }, vec![large("a")], &[]);
    assert_eq!(searched(&expiring, false).next_in(&expiring, seconds(20)), Some(seconds(40)));
}

#[test]
fn changed_pools_are_searched_because_their_nodes_may_have_drifted() {
    let mut snapshot = cluster_of(pool("gpu"), vec![large("a")], &[]);
    let schedule = searched(&snapshot, false);
    let changed = Pool { weight: 7, ..pool("gpu") };
    snapshot.pools.insert(changed.name.clone(), changed.into());
    assert_eq!(schedule.next_in(&snapshot, seconds(0)), Some(seconds(10)));
}
