//! Deadlines of interruptions on the monotonic clock, so that setting the wall clock back does not extend them.
//!
//! A deadline is a time on the wall clock, which may be set. If it is set back by ten minutes, a notice of two minutes would
//! seem to last twelve. So when a deadline is first seen, it is also kept on the monotonic clock, and the earlier of the two
//! counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::{Claim, Interruption, Snapshot, Uid};

use crate::edge::clock::Moment;

/// Smaller changes of the wall clock are ignored: clocks are slewed all the time, and the two clocks are not read at the same
/// instant. A deadline that changed each time would cause a new event each time.
const SET: SignedDuration = SignedDuration::from_secs(1);

/// The deadlines of all known interruptions on the monotonic clock.
#[derive(Debug, Default)]
pub struct MonotonicDeadlines {
    due: BTreeMap<Uid, Due>,
}

/// One deadline.
#[derive(Debug)]
struct Due {
    /// The deadline that the cloud announced.
    deadline: Timestamp,
    /// The same on the monotonic clock.
    monotonic: SignedDuration,
    /// The monotonic deadline converted to the wall clock as it is set now.
    wall: Timestamp,
}

impl Due {
    fn new(deadline: Timestamp, now: Moment) -> Self {
        let monotonic = since_start(now).saturating_add(deadline.duration_since(now.wall));
        Self { deadline, monotonic, wall: deadline }
    }

    /// Returns the deadline as a wall-clock time, by the clock on which it comes first.
    fn by_calendar(&mut self, now: Moment) -> Timestamp {
        let left = self.monotonic.saturating_sub(since_start(now));
        let wall = now.wall.checked_add(left).unwrap_or(self.deadline);
        if wall.duration_since(self.wall).abs() >= SET {
            let is_as_before = wall.duration_since(self.deadline).abs() < SET;
            self.wall = if is_as_before { self.deadline } else { wall };
        }
        if self.wall < self.deadline { whole_seconds(self.wall) } else { self.deadline }
    }
}

fn since_start(now: Moment) -> SignedDuration {
    SignedDuration::try_from(now.monotonic).unwrap_or(SignedDuration::MAX)
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

impl MonotonicDeadlines {
    /// Sets the deadlines in a snapshot to those of the clock on which they come first.
    pub fn hold(&mut self, snapshot: &mut Snapshot, now: Moment) {
        let interrupted: Vec<Arc<Claim>> = snapshot.claims.interrupted().cloned().collect();
        self.due.retain(|uid, _| interrupted.iter().any(|claim| claim.uid == *uid));
        for claim in interrupted {
            let Some(interruption) = &claim.interruption else { continue };
            let Some(deadline) = interruption.deadline else { continue };
            let due = self.due.entry(claim.uid.clone()).or_insert_with(|| Due::new(deadline, now));
            if due.deadline != deadline {
                let monotonic = due.monotonic;
                *due = Due::new(deadline, now);
                due.monotonic = due.monotonic.min(monotonic);
            }
            let held = due.by_calendar(now);
            if held != deadline {
                let interruption = Interruption { deadline: Some(held), ..interruption.clone() };
                let held = Claim { interruption: Some(interruption), ..(*claim).clone() };
                snapshot.claims.insert(held.name.clone(), Arc::new(held));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use poolwright_core::ClaimName;
    use poolwright_terms::InterruptionKind;
    use serde_json::json;

    use super::*;
    use crate::edge::clock::Clock;
    use crate::edge::clock::testing::TestClock;

    fn snapshot(deadline: Timestamp) -> Snapshot {
        let object = serde_json::from_value(json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "a", "uid": "uid-a", "labels": {"poolwright.dev/nodepool": "gpu"}},
            "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "offerings": [{"instanceType": "t",
                "zone": "z", "capacityType": "spot", "allocatable": {}}]},
        }));
        let claim = poolwright_intake::node_claim(&object.unwrap()).unwrap();
        let (kind, noticed, message) = (InterruptionKind::Reclaim, deadline, String::new());
        let interruption = Some(Interruption { kind, noticed, deadline: Some(deadline), message });
        let claim = Arc::new(Claim { interruption, ..claim });
        Snapshot { claims: [(claim.name.clone(), claim)].into(), ..Snapshot::default() }
    }

    fn held(deadlines: &mut MonotonicDeadlines, snapshot: &Snapshot, now: Moment) -> SignedDuration {
        let mut snapshot = snapshot.clone();
        deadlines.hold(&mut snapshot, now);
        let claim = &snapshot.claims[&ClaimName("a".into())];
        claim.interruption.as_ref().unwrap().deadline.unwrap().duration_since(now.wall)
    }

    #[test]
    fn a_calendar_that_is_set_back_extends_no_deadline_and_one_that_is_right_again_changes_none() {
        let (clock, mut deadlines) = (TestClock::new(), MonotonicDeadlines::default());
        let snapshot = snapshot(clock.now() + SignedDuration::from_secs(120));
        assert_eq!(held(&mut deadlines, &snapshot, clock.moment()), SignedDuration::from_secs(120));
        clock.advance(Duration::from_secs(20));
        clock.set_back(Duration::from_mins(10));
        assert_eq!(held(&mut deadlines, &snapshot, clock.moment()), SignedDuration::from_secs(100));
        clock.advance(Duration::from_secs(100));
        assert_eq!(held(&mut deadlines, &snapshot, clock.moment()), SignedDuration::ZERO);
        clock.advance(Duration::from_mins(10));
        assert!(held(&mut deadlines, &snapshot, clock.moment()) <= SignedDuration::ZERO);
    }

    #[test]
    fn an_earlier_deadline_counts_from_when_it_is_known() {
        let (clock, mut deadlines) = (TestClock::new(), MonotonicDeadlines::default());
        let begin = clock.now();
        held(&mut deadlines, &snapshot(begin + SignedDuration::from_secs(120)), clock.moment());
        let earlier = snapshot(begin + SignedDuration::from_secs(60));
        assert_eq!(held(&mut deadlines, &earlier, clock.moment()), SignedDuration::from_secs(60));
        clock.set_back(Duration::from_mins(10));
        assert_eq!(held(&mut deadlines, &earlier, clock.moment()), SignedDuration::from_secs(60));
    }

    #[test]
    fn a_deadline_is_the_same_at_each_look_also_when_it_is_over_and_the_calendar_is_slewed() {
        let (clock, mut deadlines) = (TestClock::new(), MonotonicDeadlines::default());
        let deadline = clock.now() + SignedDuration::from_secs(120);
        let snapshot = snapshot(deadline);
        let mut shown = |moment: Moment| moment.wall + held(&mut deadlines, &snapshot, moment);
        for (second, slewed) in [(0, 0), (1, 40), (30, -70), (119, 300), (121, -10), (300, 5), (900, -300)] {
            let moment = clock.moment().after(Duration::from_secs(second));
            let wall = moment.wall + SignedDuration::from_millis(slewed);
            assert_eq!(shown(Moment { wall, ..moment }), deadline, "after {second} s");
        }
        let set_back = |second, slewed| {
            let moment = clock.moment().after(Duration::from_secs(second));
            Moment {
                wall: moment.wall - SignedDuration::from_mins(10) + SignedDuration::from_millis(slewed),
                ..moment
            }
        };
        let first = shown(set_back(901, 0));
        let earlier = deadline - SignedDuration::from_mins(10);
        assert!(first.duration_since(earlier).abs() <= SignedDuration::from_secs(1));
        for (second, slewed) in [(902, 200), (1000, -200), (2000, 400)] {
            assert_eq!(shown(set_back(second, slewed)), first, "after {second} s");
        }
    }
}
