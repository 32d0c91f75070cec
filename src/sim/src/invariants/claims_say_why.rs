//! Every claim records why it exists and what it waits for.

use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_terms::keys::REASON_ANNOTATION;

use super::{Memory, Scene};

pub(super) const BOUGHT: &str = "every claim records why it was bought";
pub(super) const STUCK: &str = "no claim is stuck without a condition that gives the reason";

/// A claim that is not open after this time is stuck: each of its three stages has five minutes here.
const OPEN_WITHIN: Duration = Duration::from_mins(15);
/// A claim that is deleting for this long is stuck. A new controller whose lists are never answered retries after five minutes.
const GONE_WITHIN: Duration = Duration::from_mins(12);

pub(super) fn bought(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let silent = scene.cluster.claims.iter().find(|(_, claim)| {
        let reason = claim.metadata.annotations.as_ref().and_then(|all| all.get(REASON_ANNOTATION));
        reason.is_none_or(|reason| reason.trim().is_empty())
    });
    silent.map(|(name, _)| format!("claim {name} has no annotation {REASON_ANNOTATION}"))
}

/// Checks that no claim is stuck. The time counts from the last trouble, because a controller that is cut off writes nothing.
pub(super) fn stuck(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let since = scene.cluster.time.at(scene.troubled);
    let now = scene.cluster.time.now();
    scene.cluster.claims.iter().find_map(|(name, claim)| {
        let what = silent(claim, since, now)?;
        Some(format!("claim {name} is {what}, and no condition gives the reason"))
    })
}

/// Returns the stage in which a claim is stuck without a reason in its conditions.
fn silent(claim: &NodeClaim, since: jiff::Timestamp, now: jiff::Timestamp) -> Option<&'static str> {
    let conditions = || claim.status.iter().flat_map(|status| &status.conditions);
    let of = |kind: &str| conditions().find(|one| one.type_ == kind);
    let says = |kind: &str| of(kind).is_some_and(|one| !one.reason.is_empty() && !one.message.is_empty());
    let longer = |from: jiff::Timestamp, than: Duration| {
        Duration::try_from(now.duration_since(from.max(since))).is_ok_and(|passed| passed > than)
    };
    if let Some(deleted) = &claim.metadata.deletion_timestamp {
        return (longer(deleted.0, GONE_WITHIN) && !says("InstanceTerminating") && !says("Drained"))
            .then_some("being deleted");
    }
    let created = claim.metadata.creation_timestamp.as_ref()?.0;
    let open = of("Initialized").is_some_and(|one| one.status == "True");
    if open || !longer(created, OPEN_WITHIN) {
        return None;
    }
    // A reason must be on the first stage that the claim has not reached. The cloud controls the second stage, Registered; there
    // the reason on Launched suffices.
    let told = match of("Registered") {
        Some(one) if one.status == "True" => says("Initialized"),
        _ => says("Launched"),
    };
    (!told).then_some("not open")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claim(metadata: serde_json::Value, conditions: serde_json::Value) -> NodeClaim {
        let spec = json!({"nodeClassRef": {"group": "poolwright.dev", "kind": "SimNodeClass", "name": "all"},
            "offerings": [{"instanceType": "a", "zone": "z", "capacityType": "spot", "allocatable": {}}]});
        let object = json!({"metadata": metadata, "spec": spec, "status": {"conditions": conditions}});
        serde_json::from_value(object).unwrap()
    }

    fn seen(claim: &NodeClaim, minutes: i64) -> Option<&'static str> {
        let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let now = start.checked_add(jiff::SignedDuration::from_mins(minutes)).unwrap();
        silent(claim, start, now)
    }

    fn said(kind: &str, status: &str) -> serde_json::Value {
        json!({"type": kind, "status": status, "reason": "Because", "message": "it is so",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn a_claim_that_is_not_open_in_time_must_say_why() {
        let new = json!({"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let silent = claim(new.clone(), json!([]));
        assert_eq!((seen(&silent, 14), seen(&silent, 16)), (None, Some("not open")));
        assert_eq!(seen(&claim(new.clone(), json!([said("Launched", "False")])), 16), None);
        let joined = [said("Launched", "True"), said("Registered", "True")];
        assert_eq!(seen(&claim(new.clone(), json!(joined)), 16), Some("not open"));
        let [launched, registered] = joined;
        let told = json!([launched, registered, said("Initialized", "False")]);
        assert_eq!(seen(&claim(new.clone(), told), 16), None);
        assert_eq!(seen(&claim(new, json!([said("Initialized", "True")])), 60), None);
    }

    #[test]
    fn a_claim_that_does_not_go_in_time_must_say_why() {
        let going = json!({"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:10:00Z"});
        let silent = claim(going.clone(), json!([said("Initialized", "True")]));
        assert_eq!((seen(&silent, 21), seen(&silent, 23)), (None, Some("being deleted")));
        for kind in ["InstanceTerminating", "Drained"] {
            assert_eq!(seen(&claim(going.clone(), json!([said(kind, "False")])), 23), None);
        }
    }
}
