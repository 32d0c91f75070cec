//! No pod is evicted without need.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use jiff::{SignedDuration, Timestamp};
use poolwright_api::parse_duration;
use poolwright_terms::InterruptionKind;
use poolwright_terms::keys::{DO_NOT_DISRUPT_ANNOTATION, NODEPOOL_LABEL};
use serde_json::Value;

use super::Violation;
use crate::api::ApiServer;
use crate::time::Time;
use crate::wire::{Process, Witness};

pub(super) const RULE: &str = "no pod is evicted if it is protected, or if its node stays and the pod does not give way to a waiting one, and none is deleted before the deadline of its node";

/// The largest clock error of a controller, plus the time of a request.
const SLACK: SignedDuration = SignedDuration::from_mins(11);
/// The time within which an eviction that makes room follows the nomination of a waiting pod.
const NOMINATED: SignedDuration = SignedDuration::from_mins(1);

/// Checks each eviction and deletion of a pod before it is carried out.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    found: Arc<Mutex<Option<Violation>>>,
    /// When a controller last nominated a pod. It writes no other status of pods.
    nominated: Arc<Mutex<Option<Timestamp>>>,
}

impl Departures {
    /// Returns the first violation.
    pub fn violation(&self) -> Option<Violation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a witness that reads the objects of this server.
    pub fn witness(&self, server: ApiServer, time: Time) -> Witness {
        let (found, nominated) = (self.found.clone(), self.nominated.clone());
        Arc::new(move |_: &Process, method: &Method, path: &str| {
            let get = |path: &str| {
                let (code, object) = server.ask(&Method::GET, path, "", &Value::Null);
                (code == 200).then_some(object)
            };
            let mut nominated = nominated.lock().unwrap_or_else(PoisonError::into_inner);
            if method == Method::PATCH && path.contains("/pods/") && path.ends_with("/status") {
                *nominated = Some(time.now());
            }
            if let Some(seen) = wrong(&get, method, path, time.now(), *nominated) {
                let violation = Violation { rule: RULE, seen, at: time.elapsed() };
                found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
            }
        })
    }
}

/// Returns the violation of a request, if a pod was last nominated at this time. A node has the name of its claim.
fn wrong(
    get: &dyn Fn(&str) -> Option<Value>,
    method: &Method,
    path: &str,
    now: Timestamp,
    nominated: Option<Timestamp>,
) -> Option<String> {
    let asked = path.strip_suffix("/eviction").filter(|_| method == Method::POST);
    let told = Some(path).filter(|path| method == Method::DELETE && path.contains("/pods/"));
    let pod = get(asked.or(told)?)?;
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let Some(node) = pod["spec"]["nodeName"].as_str() else {
        return Some(format!("{name} is evicted, and is on no node"));
    };
    let claim = get(&format!("/apis/poolwright.dev/v1alpha1/nodeclaims/{node}"))?;
    let Some(deleted) = time(&claim["metadata"]["deletionTimestamp"]) else {
        let why = stays(get, asked.is_some(), &pod, &claim, now, nominated)?;
        return Some(format!("{name} is evicted, its node {node} stays, and {why}"));
    };
    let protection = &pod["metadata"]["annotations"][DO_NOT_DISRUPT_ANNOTATION];
    if asked.is_some() {
        return (protection == "true").then(|| format!("{name} is evicted, and is protected"));
    }
    let length =
        claim["spec"]["deadlines"]["termination"].as_str().and_then(|text| parse_duration(text).ok());
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let own = length.map(|length| deleted + length);
    let interruption = &claim["status"]["interruption"];
    if interruption["kind"] == "Ending" {
        return None;
    }
    let cloud = time(&interruption["deadline"]).filter(|_| interruption["kind"] != "Rebalance");
    let end = [own, cloud].into_iter().flatten().min();
    let due = end.map(|end| end - SignedDuration::from_secs(grace) - SLACK);
    due.is_none_or(|due| now < due).then(|| format!("{name} is deleted before its node {node} is due"))
}

/// Returns why a pod may not give way to a waiting one; `None` if it may.
fn stays(
    get: &dyn Fn(&str) -> Option<Value>,
    is_eviction: bool,
    pod: &Value,
    claim: &Value,
    now: Timestamp,
    nominated: Option<Timestamp>,
) -> Option<&'static str> {
    let metadata = &pod["metadata"];
    let pool = claim["metadata"]["labels"][NODEPOOL_LABEL].as_str().unwrap_or_default();
    let pool = get(&format!("/apis/poolwright.dev/v1alpha1/nodepools/{pool}")).unwrap_or_default();
    let is_recent = |condition: &Value| {
        let scheduled = condition["type"] == "PodScheduled" && condition["status"] == "True";
        scheduled && time(&condition["lastTransitionTime"]).is_some_and(|at| now.duration_since(at) < SLACK)
    };
    let waits = |pod: &Value| {
        pod["spec"]["nodeName"].is_null()
            || pod["status"]["conditions"].as_array().into_iter().flatten().any(is_recent)
    };
    let all = get("/api/v1/pods").unwrap_or_default();
    if !is_eviction {
        Some("it is deleted, not evicted")
    } else if metadata["annotations"][DO_NOT_DISRUPT_ANNOTATION] == "true" {
        Some("it is protected")
    } else if metadata["ownerReferences"].as_array().is_none_or(Vec::is_empty) {
        Some("it has no controller")
    } else if pool["spec"]["disruption"]["consolidationPolicy"] == "WhenEmpty" {
        Some("its pool moves no pods")
    } else if !all["items"].as_array().into_iter().flatten().any(waits) {
        Some("no pod waits")
    } else if nominated.is_none_or(|at| now.duration_since(at) > NOMINATED) {
        // The scheduler would give its room to its own successor.
        Some("no pod was nominated in the last minute")
    } else {
        None
    }
}

/// Returns whether the termination deadline of a deleted claim may have passed.
pub(super) fn is_due(claim: &poolwright_api::NodeClaim, now: Timestamp) -> bool {
    let deleted = claim.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let length = claim.spec.deadlines.termination.as_ref().and_then(|text| text.parse().ok());
    let own = deleted.zip(length).map(|(deleted, length): (_, SignedDuration)| deleted + length);
    let interruption = claim.status.as_ref().and_then(|status| status.interruption.as_ref());
    let certain = interruption.filter(|one| one.kind != InterruptionKind::Rebalance);
    let cloud = certain.and_then(|one| one.deadline.as_ref()).map(|time| time.0);
    let ending = certain.is_some_and(|one| one.kind == InterruptionKind::Ending);
    let due = [own, cloud].into_iter().flatten().min().map(|end| end - SLACK);
    ending || due.is_some_and(|due| due <= now)
}

fn time(text: &Value) -> Option<Timestamp> {
    text.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: &str = "/api/v1/namespaces/default/pods/p";

    /// Returns the violation this many minutes after the claim's deletion (if it is deleted), with a termination deadline of 30
    /// minutes.
    fn seen(deleted: bool, protected: bool, method: &Method, path: &str, minutes: i64) -> Option<String> {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut claim = json!({"spec": {"deadlines": {"termination": "30m"}}});
        if deleted {
            claim["metadata"]["deletionTimestamp"] = json!(start.to_string());
        }
        let mut pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}});
        if protected {
            pod["metadata"]["annotations"][DO_NOT_DISRUPT_ANNOTATION] = json!("true");
        }
        let get = |path: &str| match path {
            POD => Some(pod.clone()),
            "/apis/poolwright.dev/v1alpha1/nodeclaims/n" => Some(claim.clone()),
            _ => None,
        };
        wrong(&get, method, path, start + SignedDuration::from_mins(minutes), None)
    }

    #[test]
    fn a_pod_is_asked_to_go_when_its_node_goes_unless_it_is_protected() {
        let eviction = format!("{POD}/eviction");
        let stays = "its node n stays, and it has no controller";
        assert!(seen(false, false, &Method::POST, &eviction, 0).unwrap().ends_with(stays));
        assert_eq!(seen(true, false, &Method::POST, &eviction, 0), None);
        assert!(seen(true, true, &Method::POST, &eviction, 0).unwrap().ends_with("is protected"));
    }

    #[test]
    fn a_pod_of_a_node_that_stays_is_asked_to_go_only_if_its_pool_moves_pods_and_a_nominated_pod_waits() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let seen_after = |nominated: Option<i64>, policy: Value, protection: &str, node: Value| {
            let controller = json!([{"kind": "ReplicaSet", "name": "r"}]);
            let annotations = json!({DO_NOT_DISRUPT_ANNOTATION: protection});
            let pod = json!({"metadata": {"name": "p", "annotations": annotations, "ownerReferences": controller},
                "spec": {"nodeName": "n"}});
            let get = |path: &str| match path {
                POD => Some(pod.clone()),
                "/apis/poolwright.dev/v1alpha1/nodeclaims/n" => {
                    Some(json!({"metadata": {"labels": {NODEPOOL_LABEL: "gpu"}}}))
                }
                "/apis/poolwright.dev/v1alpha1/nodepools/gpu" => {
                    Some(json!({"spec": {"disruption": {"consolidationPolicy": policy}}}))
                }
                "/api/v1/pods" => Some(json!({"items": [pod, {"spec": {"nodeName": node}}]})),
                _ => None,
            };
            let nominated = nominated.map(|seconds| now - SignedDuration::from_secs(seconds));
            wrong(&get, &Method::POST, &format!("{POD}/eviction"), now, nominated)
        };
        let seen =
            |policy: Value, protection: &str, node: Value| seen_after(Some(60), policy, protection, node);
        // A pool without a policy has the default.
        for moves in [json!("WhenEmptyOrUnderutilized"), Value::Null] {
            assert_eq!(seen(moves.clone(), "false", Value::Null), None);
            assert!(seen(moves.clone(), "true", Value::Null).unwrap().ends_with("it is protected"));
            assert!(seen(moves, "false", json!("m")).unwrap().ends_with("no pod waits"));
        }
        for nominated in [None, Some(61)] {
            let why = seen_after(nominated, Value::Null, "false", Value::Null).unwrap();
            assert!(why.ends_with("no pod was nominated in the last minute"), "{why}");
        }
        let no_moves = json!("WhenEmpty");
        assert!(seen(no_moves, "false", Value::Null).unwrap().ends_with("its pool moves no pods"));
    }

    #[test]
    fn a_pod_is_told_to_go_when_the_time_of_its_node_is_up() {
        assert!(seen(true, true, &Method::DELETE, POD, 15).unwrap().ends_with("before its node n is due"));
        assert_eq!(seen(true, true, &Method::DELETE, POD, 29), None);
        assert!(seen(false, false, &Method::DELETE, POD, 29).is_some());
        assert_eq!(seen(false, false, &Method::GET, POD, 0), None);
    }
}
