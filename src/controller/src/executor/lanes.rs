//! Lanes: actions on one object run one after the other, and failed actions are retried with back-off.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poolwright_core::ObjectKey;

/// The first wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// The name of a lane: `nodeclaim/a`, `node/b`, `nodepool/c`, `instance/d`.
pub type Lane = String;

/// Returns the lane of the claim with this name.
pub fn lane_of_claim(name: &str) -> Lane {
    format!("nodeclaim/{name}")
}

/// What waits for a retry together: a kind of action, or that of one pod only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    kind: &'static str,
    pod: Option<ObjectKey>,
}

impl Step {
    /// A kind of action, for this pod if there is one.
    pub fn new(kind: &'static str, pod: Option<ObjectKey>) -> Self {
        Self { kind, pod }
    }
}

impl From<&'static str> for Step {
    fn from(kind: &'static str) -> Self {
        Self::new(kind, None)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Busy lanes, and whether more work was rejected meanwhile.
    busy: BTreeMap<Lane, bool>,
    waits: BTreeMap<(Lane, Step), Wait>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    failures: u32,
    until: Duration,
    /// Whether the other actions of the lane go on meanwhile.
    is_passed: bool,
}

impl State {
    /// Returns how often a step has failed in a row, and how long it waits after one more failure.
    fn next_failure(&mut self, key: &(Lane, Step), at_least: Duration, now: Duration) -> (u32, Duration) {
        // Old entries belong to deleted objects.
        self.waits.retain(|_, wait| now < wait.until.saturating_add(LONGEST_WAIT * 2));
        let failures = self.waits.get(key).map_or(0, |wait| wait.failures);
        let doubled = FIRST_WAIT.saturating_mul(1 << failures.min(16));
        (failures, doubled.max(at_least).min(LONGEST_WAIT))
    }
}

/// Whether an action may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It may.
    Now,
    /// It waits for a retry, and the next actions of its lane go on without it.
    Passed,
    /// It waits for a retry, and so do the next actions of its lane.
    Waits,
}

/// The busy lanes, and the steps that wait for a retry.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    state: Arc<Mutex<State>>,
}

/// The exclusive right to work in one lane. It ends when dropped.
#[derive(Debug)]
pub struct InLane {
    lane: Lane,
    lanes: Lanes,
}

impl Lanes {
    /// Enters a lane, unless it is busy.
    pub fn enter(&self, lane: &str) -> Option<InLane> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asked) = state.busy.get_mut(lane) {
            *asked = true;
            return None;
        }
        state.busy.insert(lane.to_owned(), false);
        Some(InLane { lane: lane.to_owned(), lanes: self.clone() })
    }

    /// Returns whether this step may run in this lane, or must still wait for a retry.
    pub fn turn(&self, lane: &str, step: impl Into<Step>, now: Duration) -> Turn {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.waits.get(&(lane.to_owned(), step.into())).filter(|wait| now < wait.until) {
            None => Turn::Now,
            Some(wait) if wait.is_passed => Turn::Passed,
            Some(_) => Turn::Waits,
        }
    }

    /// Returns when the next wait ends.
    pub fn next_end(&self, now: Duration) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waits.values().map(|wait| wait.until).filter(|until| *until > now).min()
    }

    /// Returns how long a step of this lane waits if it fails now: at least `at_least`.
    pub fn next_wait(
        &self,
        lane: &str,
        step: impl Into<Step>,
        at_least: Duration,
        now: Duration,
    ) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next_failure(&(lane.to_owned(), step.into()), at_least, now).1
    }

    /// Returns how many lanes are busy.
    pub fn busy(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).busy.len()
    }
}

impl InLane {
    /// Leaves the lane. Returns whether more work was rejected meanwhile.
    pub fn leave(mut self) -> bool {
        let lane = std::mem::take(&mut self.lane);
        let mut state = self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy.remove(&lane).unwrap_or_default()
    }

    /// Registers a success: earlier failures are forgotten.
    pub fn worked(&self, step: impl Into<Step>) {
        let mut state = self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waits.remove(&(self.lane.clone(), step.into()));
    }

    /// Registers a failure. Returns how long to wait: at least `at_least`, and twice as long as last time.
    pub fn failed(&self, step: impl Into<Step>, at_least: Duration, now: Duration) -> Duration {
        self.back_off(step.into(), at_least, now, false)
    }

    /// Registers a failure like [`Self::failed`], for which the next actions of the lane need not wait.
    pub fn passed(&self, step: impl Into<Step>, at_least: Duration, now: Duration) -> Duration {
        self.back_off(step.into(), at_least, now, true)
    }

    fn back_off(&self, step: Step, at_least: Duration, now: Duration, is_passed: bool) -> Duration {
        let mut state = self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self.lane.clone(), step);
        let (failures, pause) = state.next_failure(&key, at_least, now);
        let until = now.saturating_add(pause);
        state.waits.insert(key, Wait { failures: failures.saturating_add(1), until, is_passed });
        pause
    }

    /// Registers that the action must be repeated after `pause`.
    pub fn again(&self, step: impl Into<Step>, pause: Duration, now: Duration) {
        let mut state = self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = Wait { failures: 0, until: now.saturating_add(pause), is_passed: false };
        state.waits.insert((self.lane.clone(), step.into()), wait);
    }
}

impl Drop for InLane {
    fn drop(&mut self) {
        self.lanes.state.lock().unwrap_or_else(PoisonError::into_inner).busy.remove(&self.lane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_secs(100);

    #[test]
    fn a_lane_has_room_for_one() {
        let lanes = Lanes::default();
        let first = lanes.enter("nodeclaim/a").unwrap();
        assert!(lanes.enter("nodeclaim/a").is_none());
        assert!(lanes.enter("nodeclaim/b").is_some());
        drop(first);
        assert!(lanes.enter("nodeclaim/a").is_some());
    }

    #[test]
    fn leaving_a_lane_reports_whether_others_were_rejected() {
        let lanes = Lanes::default();
        assert!(!lanes.enter("nodeclaim/a").unwrap().leave());
        let first = lanes.enter("nodeclaim/a").unwrap();
        assert!(lanes.enter("nodeclaim/a").is_none());
        assert!(first.leave());
        let second = lanes.enter("nodeclaim/a").unwrap();
        assert!(lanes.enter("nodeclaim/a").is_none(), "nobody else ends it");
        drop(second);
        assert!(!lanes.enter("nodeclaim/a").unwrap().leave());
    }

    #[test]
    fn failures_wait_longer_each_time_and_success_forgets_them() {
        let lanes = Lanes::default();
        let lane = lanes.enter("nodeclaim/a").unwrap();
        let zero = Duration::ZERO;
        assert_eq!(lane.failed("launch", zero, T), Duration::from_millis(500));
        assert_eq!(lanes.turn("nodeclaim/a", "launch", T), Turn::Waits);
        assert_eq!(lanes.turn("nodeclaim/a", "delete", T), Turn::Now, "another kind of action need not wait");
        assert_eq!(lanes.next_end(T), Some(T + Duration::from_millis(500)));
        let foretold = lanes.next_wait("nodeclaim/a", "launch", zero, T);
        assert_eq!(lane.failed("launch", zero, T), Duration::from_secs(1));
        assert_eq!(foretold, Duration::from_secs(1), "it was known before");
        assert_eq!(lane.failed("launch", Duration::from_mins(1), T), Duration::from_mins(1));
        for _ in 0..40 {
            lane.failed("launch", zero, T);
        }
        assert_eq!(lane.failed("launch", zero, T), LONGEST_WAIT);
        assert_eq!(lane.passed("launch", zero, T), LONGEST_WAIT, "it waits as long");
        assert_eq!(lanes.turn("nodeclaim/a", "launch", T), Turn::Passed, "and the next actions do not");
        lane.worked("launch");
        assert_eq!(lanes.turn("nodeclaim/a", "launch", T), Turn::Now);
        assert_eq!(lane.failed("launch", zero, T), Duration::from_millis(500));
    }

    #[test]
    fn a_pod_whose_nomination_is_denied_does_not_hold_up_another_of_the_same_lane() {
        let lanes = Lanes::default();
        let lane = lanes.enter("nodeclaim/a").unwrap();
        let of = |name: &str| Step::new("nominate", Some(ObjectKey::new("ml", name)));
        lane.passed(of("a"), Duration::from_secs(30), T);
        lane.worked(of("b"));
        assert_eq!(lanes.turn("nodeclaim/a", of("a"), T), Turn::Passed);
        assert_eq!(lanes.turn("nodeclaim/a", of("b"), T), Turn::Now);
    }
}
