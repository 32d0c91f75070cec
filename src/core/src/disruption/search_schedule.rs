//! Decides when to search for nodes to empty.

use std::time::Duration;

use poolwright_terms::ConditionType;

use crate::model::Snapshot;

/// The pause between searches if nodes or their pods have changed since the last search.
const AFTER_CHANGE: Duration = Duration::from_secs(10);
/// The pause between searches without a change. Even then, nodes age, schedules of budgets begin and end, and prices move.
const WITHOUT_CHANGE: Duration = Duration::from_mins(1);
/// The least delay of a plan that is made only for an overdue search.
const LEAST_DELAY: Duration = Duration::from_secs(5);

/// Decides when to search for nodes to empty. It keeps the last search in memory, so the first search after a restart is due at
/// once. All times are on the monotonic clock.
#[derive(Debug, Default)]
pub struct SearchSchedule {
    last: Option<LastSearch>,
}

#[derive(Debug)]
struct LastSearch {
    at: Duration,
    seen: Snapshot,
    /// Whether there were more nodes than one search covers.
    has_more: bool,
}

impl SearchSchedule {
    /// Returns whether a search of this snapshot is due.
    pub fn is_due(&self, snapshot: &Snapshot, now: Duration) -> bool {
        self.last.as_ref().is_none_or(|last| now.saturating_sub(last.at) >= last.pause(snapshot))
    }

    /// Records that a search of this snapshot begins.
    pub fn begin(&mut self, snapshot: &Snapshot, now: Duration) {
        self.last = Some(LastSearch { at: now, seen: snapshot.clone(), has_more: false });
    }

    /// Records the end of the search, and whether there were more nodes than it covered.
    pub fn end(&mut self, has_more: bool) {
        if let Some(last) = &mut self.last {
            last.has_more = has_more;
        }
    }

    /// Returns the time until the next search is due; `None` while no node can become a candidate without a change.
    pub fn next_in(&self, snapshot: &Snapshot, now: Duration) -> Option<Duration> {
        if !self.has_candidates(snapshot) {
            return None;
        }
        let wait = self
            .last
            .as_ref()
            .map_or(AFTER_CHANGE, |last| last.pause(snapshot).saturating_sub(now.saturating_sub(last.at)));
        Some(wait.max(LEAST_DELAY))
    }

    /// Returns whether a node can become a candidate as time passes, because its pool consolidates or expires nodes or the node
    /// has drifted. After a change of the pools, any node may have drifted.
    fn has_candidates(&self, snapshot: &Snapshot) -> bool {
        let pools_changed =
            || self.last.as_ref().is_none_or(|last| !last.seen.pools.is_same(&snapshot.pools));
        let pool_disrupts = || {
            let mut pools = snapshot.pools.values();
            pools.any(|pool| pool.disruption.consolidates || pool.disruption.expire_after.is_some())
        };
        let has_drifted = || {
            let mut claims = snapshot.claims.values();
            claims.any(|claim| claim.since(ConditionType::Drifted).is_some())
        };
        !snapshot.claims.is_empty() && (pools_changed() || pool_disrupts() || has_drifted())
    }
}

impl LastSearch {
    fn pause(&self, snapshot: &Snapshot) -> Duration {
        let changed = !self.seen.has_same_nodes_and_work(snapshot);
        if changed || self.has_more { AFTER_CHANGE } else { WITHOUT_CHANGE }
    }
}
