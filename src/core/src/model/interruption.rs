//! Interruptions of instances that a cloud has announced: spot reclaims, maintenance, terminations.

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::InterruptionKind;
use serde::{Deserialize, Serialize};

/// The time between the end of a drain and the deadline, or a sixth of the notice if that is less. In this time, the kubelet
/// unmounts volumes and the instance is terminated.
const MARGIN: SignedDuration = SignedDuration::from_secs(10);
/// Maintenance that begins within this time is imminent.
const NEAR: SignedDuration = SignedDuration::from_hours(1);

/// The interruption of one instance, merged from all notices about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// The kind of interruption.
    pub kind: InterruptionKind,
    /// The time at which the cloud first announced it, by the cloud's clock.
    pub noticed: Timestamp,
    /// The time at which it happens; `None` if the cloud does not say.
    pub deadline: Option<Timestamp>,
    /// The cloud's message.
    pub message: String,
}

impl Interruption {
    /// Merges two notices, in any order. The result has the earliest times, the most certain kind, and the message of that kind.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        // The choice between two messages of the same kind must not depend on the order of the notices.
        let rank = |one: &Self| (one.kind, std::cmp::Reverse((one.message.is_empty(), one.message.clone())));
        let told = if rank(other) > rank(self) { other } else { self };
        Self {
            kind: told.kind,
            noticed: self.noticed.min(other.noticed),
            deadline: [self.deadline, other.deadline].into_iter().flatten().min(),
            message: told.message.clone(),
        }
    }

    /// Returns whether the node's pods must move now, regardless of budgets.
    pub fn is_imminent(&self, now: Timestamp) -> bool {
        match self.kind {
            InterruptionKind::Rebalance => false,
            InterruptionKind::Maintenance => self.imminent_from().is_some_and(|from| from <= now),
            _ => true,
        }
    }

    /// Returns the time at which the interruption becomes imminent; `None` if that is now or never.
    pub fn imminent_from(&self) -> Option<Timestamp> {
        let start = self.deadline.filter(|_| self.kind == InterruptionKind::Maintenance)?;
        Some(start.checked_sub(NEAR).unwrap_or(Timestamp::MIN))
    }

    /// Returns the time until which pods can use the instance; `None` if it is unknown or the interruption is not certain.
    pub fn usable_until(&self) -> Option<Timestamp> {
        let deadline = self.deadline.filter(|_| self.kind.is_certain())?;
        let notice = deadline.duration_since(self.noticed).max(SignedDuration::ZERO);
        let margin = MARGIN.min(notice / 6);
        Some(deadline.checked_sub(margin).unwrap_or(Timestamp::MIN))
    }

    /// Describes what happens and when, as a sentence without a full stop: `spot capacity is taken back at 2026-01-01T00:02:00Z`.
    pub fn words(&self) -> String {
        let what = self.kind.words();
        let at = self.deadline.map(|at| format!(" at {at}")).unwrap_or_default();
        let said = if self.message.is_empty() { String::new() } else { format!(" ({})", self.message) };
        format!("{what}{at}{said}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn one(kind: InterruptionKind, noticed: i64, deadline: Option<i64>) -> Interruption {
        Interruption { kind, noticed: at(noticed), deadline: deadline.map(at), message: format!("{kind}") }
    }

    #[test]
    fn certainty_only_goes_up_and_the_earliest_deadline_stays() {
        let warning = one(InterruptionKind::Reclaim, 10, Some(130));
        let hint = one(InterruptionKind::Rebalance, 5, None);
        let expected = Interruption { noticed: at(5), ..warning.clone() };
        assert_eq!(hint.merged(&warning), expected);
        assert_eq!(warning.merged(&hint), expected, "a hint that comes after the warning changes nothing");
        let later = one(InterruptionKind::Reclaim, 11, Some(200));
        assert_eq!(warning.merged(&later).deadline, Some(at(130)));
        assert_eq!(later.merged(&warning).deadline, Some(at(130)));
    }

    #[test]
    fn a_short_notice_keeps_a_sixth_of_it_and_a_long_one_ten_seconds() {
        assert_eq!(one(InterruptionKind::Reclaim, 0, Some(120)).usable_until(), Some(at(110)));
        assert_eq!(one(InterruptionKind::Reclaim, 0, Some(30)).usable_until(), Some(at(25)));
        assert_eq!(one(InterruptionKind::Reclaim, 60, Some(30)).usable_until(), Some(at(30)));
        assert_eq!(one(InterruptionKind::Unhealthy, 0, None).usable_until(), None);
        assert_eq!(one(InterruptionKind::Rebalance, 0, Some(30)).usable_until(), None);
    }

    #[test]
    fn maintenance_presses_in_its_last_hour() {
        let maintenance = one(InterruptionKind::Maintenance, 0, Some(7_200));
        assert!(!maintenance.is_imminent(at(3_599)));
        assert!(maintenance.is_imminent(at(3_600)));
        assert!(!one(InterruptionKind::Maintenance, 0, None).is_imminent(at(0)));
        assert!(!one(InterruptionKind::Rebalance, 0, Some(1)).is_imminent(at(60)));
        assert!(one(InterruptionKind::Ending, 0, None).is_imminent(at(0)));
    }
}
