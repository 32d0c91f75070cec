//! What EC2 shows of instances to whoever looks: a backstop for events that were sent while nobody listened.
//!
//! Sources: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-request-status.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/monitoring-instances-status-check_sched.html>,
//! <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html>.

use jiff::{SignedDuration, Timestamp};

use crate::events::{Action, NOTICE};

/// What the status of a spot request says of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpotRequestState {
    /// It is taken back, two minutes after the status changed.
    Marked(Action),
    /// It was taken back, or somebody ended it.
    Ended,
}

impl SpotRequestState {
    /// What a status code means: `marked-for-termination`. None, where the instance goes on.
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

    /// When it happens, where that is to come.
    pub fn deadline(self, updated: Timestamp) -> Option<Timestamp> {
        match self {
            // Hibernation begins with the warning.
            Self::Marked(Action::Hibernate) => Some(updated),
            Self::Marked(Action::Terminate | Action::Stop) => updated.checked_add(NOTICE).ok(),
            Self::Ended => None,
        }
    }
}

/// Codes of scheduled events, after each of which an instance is away for a while or gone.
pub const SCHEDULED_EVENT_CODES: [&str; 5] =
    ["instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"];

/// Whether a scheduled event is still to come: EC2 shows those that are over for a week, and says so at the beginning of what it
/// says of them.
pub fn is_pending(description: &str) -> bool {
    !description.starts_with("[Completed]") && !description.starts_with("[Canceled]")
}

/// EC2 begins to terminate what runs in a capacity block half an hour before its end.
/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html>.
const BLOCK_ENDS_EARLY: SignedDuration = SignedDuration::from_mins(30);
/// So long before the end of a capacity block EC2 sends its warning.
const BLOCK_WARNED: SignedDuration = SignedDuration::from_mins(40);

/// When what runs in a capacity block with this end is terminated.
pub fn capacity_block_termination(end: Timestamp) -> Timestamp {
    end.checked_sub(BLOCK_ENDS_EARLY).unwrap_or(end)
}

/// When EC2 warns of this end.
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
