//! No pod is evicted without need.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use jiff::{SignedDuration, Timestamp};
use poolwright_api::parse_duration;
use poolwright_terms::InterruptionKind;
use poolwright_terms::keys::DO_NOT_DISRUPT_ANNOTATION;
use serde_json::Value;

use super::Violation;
use crate::api::ApiServer;
use crate::time::Time;
use crate::wire::{Process, Witness};

pub(super) const RULE: &str = "no pod is evicted if its node stays or the pod is protected, and none is deleted before the deadline of its node";

/// The largest clock error of a controller, plus the time of a request.
const SLACK: SignedDuration = SignedDuration::from_mins(11);

/// Checks each eviction and deletion of a pod before it is carried out.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    found: Arc<Mutex<Option<Violation>>>,
}

impl Departures {
    /// Returns the first violation.
    pub fn violation(&self) -> Option<Violation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a witness that reads the objects of this server.
    pub fn witness(&self, server: ApiServer, time: Time) -> Witness {
        let found = self.found.clone();
        Arc::new(move |_: &Process, method: &Method, path: &str| {
            let get = |path: &str| {
                let (code, object) = server.ask(&Method::GET, path, "", &Value::Null);
                (code == 200).then_some(object)
            };
            if let Some(seen) = wrong(&get, method, path, time.now()) {
                let violation = Violation { rule: RULE, seen, at: time.elapsed() };
                found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(violation);
            }
        })
    }
}

/// Returns the violation of a request. A node has the name of its claim.
fn wrong(get: &dyn Fn(&str) -> Option<Value>, method: &Method, path: &str, now: Timestamp) -> Option<String> {
    let asked = path.strip_suffix("/eviction").filter(|_| method == Method::POST);
    let told = Some(path).filter(|path| method == Method::DELETE && path.contains("/pods/"));
    let pod = get(asked.or(told)?)?;
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let Some(node) = pod["spec"]["nodeName"].as_str() else {
        return Some(format!("{name} is evicted, and is on no node"));
    };
    let claim = get(&format!("/apis/poolwright.dev/v1alpha1/nodeclaims/{node}"))?;
    let Some(deleted) = time(&claim["metadata"]["deletionTimestamp"]) else {
        return Some(format!("{name} is evicted, and its node {node} stays"));
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
        wrong(&get, method, path, start + SignedDuration::from_mins(minutes))
    }

    #[test]
    fn a_pod_is_asked_to_go_when_its_node_goes_unless_it_is_protected() {
        let eviction = format!("{POD}/eviction");
        assert!(seen(false, false, &Method::POST, &eviction, 0).unwrap().ends_with("its node n stays"));
        assert_eq!(seen(true, false, &Method::POST, &eviction, 0), None);
        assert!(seen(true, true, &Method::POST, &eviction, 0).unwrap().ends_with("is protected"));
    }

    #[test]
    fn a_pod_is_told_to_go_when_the_time_of_its_node_is_up() {
        assert!(seen(true, true, &Method::DELETE, POD, 15).unwrap().ends_with("before its node n is due"));
        assert_eq!(seen(true, true, &Method::DELETE, POD, 29), None);
        assert!(seen(false, false, &Method::DELETE, POD, 29).is_some());
        assert_eq!(seen(false, false, &Method::GET, POD, 0), None);
    }
}
