//! Deadlines of interruptions that no calendar extends.
//!
//! A deadline is a time of the calendar, and calendars are set: on one that goes back by ten minutes two minutes' notice would seem to
//! last for twelve. So how long is left when a deadline is first seen is kept on the monotonic clock beside it, and what comes first
//! counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::{Claim, Interruption, Snapshot, Uid};

use crate::clock::Moment;

/// When each interruption that is known is due on the monotonic clock.
#[derive(Debug, Default)]
pub struct Anchors {
    due: BTreeMap<Uid, (Timestamp, Duration)>,
}

impl Anchors {
    /// Puts the deadlines of a snapshot where they are by the clock on which they come first.
    pub fn hold(&mut self, snapshot: &mut Snapshot, now: Moment) {
        let interrupted: Vec<Arc<Claim>> = snapshot.claims.interrupted().cloned().collect();
        self.due.retain(|uid, _| interrupted.iter().any(|claim| claim.uid == *uid));
        for claim in interrupted {
            let Some(interruption) = &claim.interruption else { continue };
            let Some(deadline) = interruption.deadline else { continue };
            let left = Duration::try_from(deadline.duration_since(now.wall)).unwrap_or_default();
            let here = now.monotonic.saturating_add(left);
            let due = self.due.entry(claim.uid.clone()).or_insert((deadline, here));
            if due.0 != deadline {
                *due = (deadline, due.1.min(here));
            }
            if due.1 < here {
                let left = SignedDuration::try_from(due.1.saturating_sub(now.monotonic)).unwrap_or_default();
                let deadline = now.wall.checked_add(left).unwrap_or(deadline);
                let interruption = Interruption { deadline: Some(deadline), ..interruption.clone() };
                let held = Claim { interruption: Some(interruption), ..(*claim).clone() };
                snapshot.claims.insert(held.name.clone(), Arc::new(held));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use poolwright_core::{ClaimName, InterruptionKind};
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::clock::testing::TestClock;

    fn snapshot(deadline: Timestamp) -> Snapshot {
        let object = serde_json::from_value(json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "a", "uid": "uid-a", "labels": {"poolwright.dev/nodepool": "gpu"}},
            "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "offerings": [{"instanceType": "t",
                "zone": "z", "capacityType": "spot", "allocatable": {}}]},
        }));
        let claim = crate::convert::claim(&object.unwrap()).unwrap();
        let (kind, noticed, message) = (InterruptionKind::Reclaim, deadline, String::new());
        let interruption = Some(Interruption { kind, noticed, deadline: Some(deadline), message });
        let claim = Arc::new(Claim { interruption, ..claim });
        Snapshot { claims: [(claim.name.clone(), claim)].into(), ..Snapshot::default() }
    }

    fn held(anchors: &mut Anchors, snapshot: &Snapshot, now: Moment) -> SignedDuration {
        let mut snapshot = snapshot.clone();
        anchors.hold(&mut snapshot, now);
        let claim = &snapshot.claims[&ClaimName("a".into())];
        claim.interruption.as_ref().unwrap().deadline.unwrap().duration_since(now.wall)
    }

    #[test]
    fn a_calendar_that_is_set_back_extends_no_deadline_and_one_that_is_right_again_changes_none() {
        let (clock, mut anchors) = (TestClock::new(), Anchors::default());
        let snapshot = snapshot(clock.now() + SignedDuration::from_secs(120));
        assert_eq!(held(&mut anchors, &snapshot, clock.moment()), SignedDuration::from_secs(120));
        clock.advance(Duration::from_secs(20));
        clock.set_back(Duration::from_mins(10));
        assert_eq!(held(&mut anchors, &snapshot, clock.moment()), SignedDuration::from_secs(100));
        clock.advance(Duration::from_secs(100));
        assert_eq!(held(&mut anchors, &snapshot, clock.moment()), SignedDuration::ZERO);
        clock.advance(Duration::from_mins(10));
        assert!(held(&mut anchors, &snapshot, clock.moment()) <= SignedDuration::ZERO);
    }

    #[test]
    fn an_earlier_deadline_counts_from_when_it_is_known() {
        let (clock, mut anchors) = (TestClock::new(), Anchors::default());
        let begin = clock.now();
        held(&mut anchors, &snapshot(begin + SignedDuration::from_secs(120)), clock.moment());
        let earlier = snapshot(begin + SignedDuration::from_secs(60));
        assert_eq!(held(&mut anchors, &earlier, clock.moment()), SignedDuration::from_secs(60));
        clock.set_back(Duration::from_mins(10));
        assert_eq!(held(&mut anchors, &earlier, clock.moment()), SignedDuration::from_secs(60));
    }
}
