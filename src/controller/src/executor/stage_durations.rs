//! Durations of the stages of claims ([`poolwright_core::Stage`]), for metrics. A stage begins with a condition, or with the
//! creation or deletion of the claim.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use poolwright_api::NodeClaim;
use poolwright_core::ConditionUpdate;
use poolwright_terms::{ConditionStatus, ConditionType};

/// Returns the stages that a claim reaches with these updates, and how long each took.
pub(super) fn reached(
    claim: &NodeClaim,
    updates: &[ConditionUpdate],
    now: Timestamp,
) -> Vec<(&'static str, SignedDuration)> {
    let new = |update: &&ConditionUpdate| {
        update.status == ConditionStatus::True && since(claim, update.kind).is_none()
    };
    let stage = |update: &ConditionUpdate| {
        let begun = match update.kind {
            ConditionType::Launched => created(claim),
            ConditionType::Registered => since(claim, ConditionType::Launched),
            ConditionType::Initialized => since(claim, ConditionType::Registered),
            ConditionType::Drained => deleted(claim),
            _ => return None,
        };
        Some((update.kind.as_str(), took(begun?, now)))
    };
    updates.iter().filter(new).filter_map(stage).collect()
}

/// Returns how long termination took: from the end of the drain, or from the deletion of a claim without a drain, until `now`.
pub(super) fn gone(claim: &NodeClaim, now: Timestamp) -> Option<SignedDuration> {
    let begun = since(claim, ConditionType::Drained).or_else(|| deleted(claim))?;
    Some(took(begun, now))
}

fn took(from: Timestamp, now: Timestamp) -> SignedDuration {
    // The wall clock may have been set back.
    now.duration_since(from).max(SignedDuration::ZERO)
}

fn created(claim: &NodeClaim) -> Option<Timestamp> {
    claim.metadata.creation_timestamp.as_ref().map(|time| time.0)
}

fn deleted(claim: &NodeClaim) -> Option<Timestamp> {
    claim.metadata.deletion_timestamp.as_ref().map(|time| time.0)
}

fn since(claim: &NodeClaim, kind: ConditionType) -> Option<Timestamp> {
    let conditions: &[Condition] = claim.status.as_ref().map(|status| status.conditions.as_slice())?;
    let is = |one: &&Condition| one.type_ == kind.as_str() && one.status == "True";
    conditions.iter().find(is).map(|one| one.last_transition_time.0)
}

#[cfg(test)]
mod tests {
    use poolwright_terms::Reason;
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn claim() -> NodeClaim {
        let condition = |kind: &str, seconds: i64| json!({"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": at(seconds)});
        serde_json::from_value(json!({
            "apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "c", "creationTimestamp": at(100), "deletionTimestamp": at(500)},
            "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "offerings": []},
            "status": {"conditions": [condition("Launched", 110), condition("Registered", 150)]},
        }))
        .unwrap()
    }

    fn update(kind: ConditionType, status: ConditionStatus) -> ConditionUpdate {
        ConditionUpdate { kind, status, reason: Reason::Launched, message: String::new() }
    }

    #[test]
    fn a_stage_takes_from_the_one_before_it_and_counts_when_it_is_reached() {
        let updates = [
            update(ConditionType::Registered, ConditionStatus::True),
            update(ConditionType::Initialized, ConditionStatus::True),
            update(ConditionType::Empty, ConditionStatus::True),
        ];
        assert_eq!(reached(&claim(), &updates, at(190)), [("Initialized", SignedDuration::from_secs(40))]);
        let not = [update(ConditionType::Initialized, ConditionStatus::False)];
        assert_eq!(reached(&claim(), &not, at(190)), []);
        let drained = [update(ConditionType::Drained, ConditionStatus::True)];
        assert_eq!(reached(&claim(), &drained, at(520)), [("Drained", SignedDuration::from_secs(20))]);
        assert_eq!(gone(&claim(), at(530)), Some(SignedDuration::from_secs(30)));
    }

    #[test]
    fn a_calendar_that_was_set_back_makes_no_negative_time() {
        let updates = [update(ConditionType::Initialized, ConditionStatus::True)];
        assert_eq!(reached(&claim(), &updates, at(10)), [("Initialized", SignedDuration::ZERO)]);
    }
}
