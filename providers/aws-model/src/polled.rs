//! Interruptions that the provider finds by polling EC2. Polling covers events that were missed.
//!
//! Sources: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html>.

use jiff::{SignedDuration, Timestamp};

use crate::events::{Action, NOTICE};

/// The state of a spot request whose instance is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpotRequestState {
    /// EC2 reclaims the instance two minutes after the status changed.
    Marked(Action),
    /// EC2 has reclaimed the instance, or somebody has terminated it.
    Ended,
}

impl SpotRequestState {
    /// Parses a status code such as `marked-for-termination`. It returns `None` if the instance keeps running.
    pub fn of(code: &str) -> Option<Self> {
        match code {
            "marked-for-termination" => Some(Self::Marked(Action::Terminate)),
            "marked-for-stop" => Some(Self::Marked(Action::Stop)),
            "marked-for-hibernation" => Some(Self::Marked(Action::Hibernate)),
            _ => {
                let endings = ["instance-terminated-", "instance-stopped-", "instance-hibernated-"];
                endings.iter().any(|ending| code.starts_with(ending)).then_some(Self::Ended)
            }
        }
    }

    /// Returns the time of the interruption, if it is still to come.
    pub fn deadline(self, updated: Timestamp) -> Option<Timestamp> {
        match self {
            // Hibernation starts with the warning.
            Self::Marked(Action::Hibernate) => Some(updated),
            Self::Marked(Action::Terminate | Action::Stop) => updated.checked_add(NOTICE).ok(),
            Self::Ended => None,
        }
    }
}

/// The codes of scheduled events that interrupt an instance.
pub const SCHEDULED_EVENT_CODES: [&str; 5] =
    ["instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"];

/// Returns whether a scheduled event is still to come. EC2 shows completed events for a week and marks them at the start of the
/// description.
pub fn is_pending(description: &str) -> bool {
    !description.starts_with("[Completed]") && !description.starts_with("[Canceled]")
}

/// How long before the end of a capacity block EC2 starts to terminate its instances. Source:
/// <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html>.
const BLOCK_ENDS_EARLY: SignedDuration = SignedDuration::from_mins(30);
/// How long before the end of a capacity block EC2 sends its warning.
const BLOCK_WARNED: SignedDuration = SignedDuration::from_mins(40);

/// Returns the time at which EC2 terminates the instances of a capacity block with this end.
pub fn capacity_block_termination(end: Timestamp) -> Timestamp {
    end.checked_sub(BLOCK_ENDS_EARLY).unwrap_or(end)
}

/// Returns the time at which EC2 warns of this end.
pub fn capacity_block_warning(end: Timestamp) -> Timestamp {
    end.checked_sub(BLOCK_WARNED).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_code_of_a_spot_request_that_is_documented_means_what_is_documented() {
        let goes_on = [
            "az-group-constraint",
            "bad-parameters",
            "canceled-before-fulfillment",
            "capacity-not-available",
            "constraint-not-fulfillable",
            "fulfilled",
            "launch-group-constraint",
            "limit-exceeded",
            "not-scheduled-yet",
            "pending-evaluation",
            "pending-fulfillment",
            "placement-group-constraint",
            "price-too-low",
            "request-canceled-and-instance-running",
            "schedule-expired",
            "system-error",
        ];
        for code in goes_on {
            assert_eq!(SpotRequestState::of(code), None, "{code}");
        }
        let ended = [
            "instance-stopped-by-price",
            "instance-stopped-by-user",
            "instance-stopped-no-capacity",
            "instance-terminated-by-price",
            "instance-terminated-by-schedule",
            "instance-terminated-by-service",
            "instance-terminated-by-user",
            "instance-terminated-launch-group-constraint",
            "instance-terminated-no-capacity",
        ];
        for code in ended {
            assert_eq!(SpotRequestState::of(code), Some(SpotRequestState::Ended), "{code}");
        }
        let at: Timestamp = "2026-11-23T12:00:00Z".parse().expect("a time");
        let deadline =
            |code| SpotRequestState::of(code).and_then(|fate| fate.deadline(at)).map(|end| end.to_string());
        assert_eq!(deadline("marked-for-termination").as_deref(), Some("2026-11-23T12:02:00Z"));
        assert_eq!(deadline("marked-for-stop").as_deref(), Some("2026-11-23T12:02:00Z"));
        assert_eq!(deadline("instance-terminated-by-price"), None);
    }

    #[test]
    fn events_that_are_over_are_not_to_come() {
        assert!(is_pending("The instance is running on degraded hardware"));
        assert!(!is_pending("[Completed] The instance is running on degraded hardware"));
        assert!(!is_pending("[Canceled] scheduled reboot"));
    }
}
