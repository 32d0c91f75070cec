//! What the controller wrote into the cluster: why a pool may not buy what a plan buys, which launches failed lately, and whether a
//! controller leads. Its flags, rights and memory are unknown here, so a plan may come to another result.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use poolwright_api::NodePool;
use poolwright_controller::causes;
use poolwright_core::PoolName;
use poolwright_terms::keys::{LEASE, REPORTING_CONTROLLER};
use poolwright_terms::{ConditionType, Reason};

use crate::lease;
use crate::top::words::age;

/// The longest time for which the controller avoids an offering after a failed launch.
const AVOIDED: SignedDuration = SignedDuration::from_hours(1);

/// Lists the events about launches for which no offering was available.
///
/// # Errors
///
/// A sentence that says why they cannot be listed. A plan is possible without them.
pub async fn failed_launches(client: &Client) -> Result<Vec<Event>, String> {
    let reason = Reason::StockOut.as_str();
    let which = format!("reportingController={REPORTING_CONTROLLER},reason={reason}");
    match Api::<Event>::all(client.clone()).list(&ListParams::default().fields(&which)).await {
        Ok(listed) => Ok(listed.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(causes(&error)),
    }
}

/// Returns what the controller says about a pool that it does not find ready, or that something keeps from buying.
pub fn of_pool(pool: &NodePool) -> Option<(PoolName, String)> {
    let limit = condition(pool, ConditionType::LimitReached).filter(|limit| limit.status == "True");
    let told = match (condition(pool, ConditionType::Ready), limit) {
        (None, _) => {
            "No controller has looked at it yet; `poolwright check` says whether one runs.".to_owned()
        }
        (Some(ready), _) if ready.status != "True" => {
            format!("The controller says that it is not ready ({}): {}.", ready.reason, message(ready))
        }
        (Some(_), Some(limit)) => {
            format!("The controller says that a limit leaves pods waiting: {}.", message(limit))
        }
        (Some(ready), None) if ready.reason == Reason::OfferingsHeldBack.as_str() => {
            format!("The controller says that it buys nothing now: {}.", message(ready))
        }
        (Some(_), None) => return None,
    };
    Some((PoolName(pool.name_any()), told))
}

fn condition(pool: &NodePool, kind: ConditionType) -> Option<&Condition> {
    pool.status.as_ref()?.conditions.iter().find(|one| one.type_ == kind.as_str())
}

fn message(condition: &Condition) -> &str {
    condition.message.trim_end_matches('.')
}

/// Adds to what is told of pools their latest failed launch, if the controller may still avoid its offerings.
pub fn add_failed_launches(
    told: &mut BTreeMap<PoolName, String>,
    pools: &[NodePool],
    events: &[Event],
    now: Timestamp,
) {
    for pool in pools {
        let Some(failed) = failed_lately(pool, events, now) else { continue };
        told.entry(PoolName(pool.name_any()))
            .and_modify(|told| *told = format!("{told} {failed}"))
            .or_insert(failed);
    }
}

fn failed_lately(pool: &NodePool, events: &[Event], now: Timestamp) -> Option<String> {
    let name = pool.name_any();
    let is_about = |event: &&Event| {
        let about = event.regarding.as_ref();
        about.is_some_and(|about| {
            about.kind.as_deref() == Some("NodePool") && about.name.as_deref() == Some(name.as_str())
        })
    };
    let failed = events.iter().filter(|event| event.reason.as_deref() == Some(Reason::StockOut.as_str()));
    let dated = failed.filter(is_about).filter_map(|event| Some((time(event)?, event)));
    let (at, last) = dated.max_by_key(|(at, _)| *at)?;
    if now.duration_since(at) > AVOIDED {
        return None;
    }
    let note = last.note.as_deref().and_then(|note| note.lines().next()).unwrap_or_default();
    let ready = condition(pool, ConditionType::Ready).filter(|ready| ready.reason == Reason::Ready.as_str());
    let counts = ready.map_or_else(String::new, |ready| format!(", and says: {}", message(ready)));
    Some(format!(
        "A launch failed {} ago: {}. The controller avoids these offerings, at first for --stock-out-backoff (1m), after failures in a row for up to an hour{counts}.",
        age(at, now),
        note.trim_end_matches('.')
    ))
}

fn time(event: &Event) -> Option<Timestamp> {
    let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
    event.event_time.as_ref().map(|time| time.0).or(created)
}

/// Says that no controller leads, or that this cannot be known; `None` if one leads, or if none has run.
pub fn of_leases(leases: &Result<Vec<Lease>, String>, now: Timestamp) -> Option<String> {
    match leases {
        Ok(leases) => {
            let why = lease::why_nobody_leads(lease::newest(leases)?, now)?;
            Some(format!("No controller leads: {why}. Nothing is bought or terminated until one does."))
        }
        Err(why) => {
            let why = why.trim_end_matches('.');
            Some(format!(
                "It is not known whether a controller leads: the Lease {LEASE} cannot be read: {why}."
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::top::testing::{event, lease, now, objects, pool};

    fn told(conditions: Value) -> Option<String> {
        let mut object = pool("gpu", json!({}), &[]);
        object["status"]["conditions"] = conditions;
        of_pool(&objects::<NodePool>(vec![object])[0]).map(|(_, told)| told)
    }

    fn one(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-03-01T11:59:00Z"})
    }

    #[test]
    fn a_pool_that_a_limit_or_failed_launches_hold_up_is_told_in_the_words_of_the_controller() {
        let sold = || one("Ready", "True", "Ready", "6 offerings may be bought now");
        assert_eq!(told(json!([sold(), one("LimitReached", "False", "WithinLimits", "")])), None);
        let full = one("LimitReached", "True", "LimitReached", "limit usdPerHour = 20.00 is reached");
        let words =
            "The controller says that a limit leaves pods waiting: limit usdPerHour = 20.00 is reached.";
        assert_eq!(told(json!([sold(), full])).as_deref(), Some(words));
        let held = one("Ready", "True", "OfferingsHeldBack", "its 6 offerings failed recently");
        let words = "The controller says that it buys nothing now: its 6 offerings failed recently.";
        assert_eq!(told(json!([held])).as_deref(), Some(words));
        let unready = one("Ready", "False", "NodeClassNotReady", "no subnet");
        let words = "The controller says that it is not ready (NodeClassNotReady): no subnet.";
        assert_eq!(told(json!([unready])).as_deref(), Some(words));
        assert!(told(json!([])).is_some_and(|told| told.starts_with("No controller has looked at it yet")));
    }

    #[test]
    fn the_latest_failed_launch_of_the_last_hour_is_told_of_its_pool() {
        let mut object = pool("gpu", json!({}), &[]);
        object["status"]["conditions"] =
            json!([one("Ready", "True", "Ready", "6 offerings may be bought now")]);
        let pools: Vec<NodePool> = objects(vec![object]);
        let failed = |time: &str, name: &str, note: &str| {
            let mut failed = event(time, "NodePool", name, note);
            failed["reason"] = json!("StockOut");
            failed
        };
        let told = |events: Vec<Value>, before: Option<&str>| {
            let name = PoolName("gpu".to_owned());
            let mut told: BTreeMap<PoolName, String> =
                before.map(|before| (name.clone(), before.to_owned())).into_iter().collect();
            add_failed_launches(&mut told, &pools, &objects::<Event>(events), now());
            told.remove(&name)
        };
        let recent =
            failed("2026-03-01T11:58:00.000000Z", "gpu", "none of its offerings is available now: b");
        let older = failed("2026-03-01T11:50:00.000000Z", "gpu", "none of its offerings is available now: a");
        let words = "A launch failed 2m00s ago: none of its offerings is available now: b. The controller avoids these \
                     offerings, at first for --stock-out-backoff (1m), after failures in a row for up to an hour, and says: 6 offerings may be bought now.";
        assert_eq!(told(vec![recent.clone(), older], None).as_deref(), Some(words));
        assert_eq!(told(vec![recent], Some("A limit.")), Some(format!("A limit. {words}")));
        let past = failed("2026-03-01T10:50:00.000000Z", "gpu", "long ago");
        let others = failed("2026-03-01T11:58:00.000000Z", "cpu", "not its own");
        let said = event("2026-03-01T11:58:00.000000Z", "NodePool", "gpu", "something else");
        assert_eq!(told(vec![past, others, said], None), None);
    }

    #[test]
    fn a_lease_that_was_released_or_has_ended_means_that_nothing_is_bought() {
        let told = |leases: Vec<Value>| of_leases(&Ok(objects(leases)), now());
        assert_eq!(told(vec![lease("a", "2026-03-01T11:59:57.000000Z")]), None);
        assert_eq!(told(vec![]), None, "before the installation");
        let released = "No controller leads: the last leader stopped and released the Lease \
                        poolwright/poolwright-controller 3s ago. Nothing is bought or terminated until one does.";
        assert_eq!(told(vec![lease("", "2026-03-01T11:59:57.000000Z")]).as_deref(), Some(released));
        let ended = told(vec![lease("a", "2026-03-01T11:58:00.000000Z")]).unwrap_or_default();
        let start = "No controller leads: a last renewed the Lease poolwright/poolwright-controller 2m00s ago, and it lasts 15 s.";
        assert!(ended.starts_with(start), "{ended}");
        let unread = of_leases(&Err("forbidden".to_owned()), now()).unwrap_or_default();
        assert!(unread.starts_with("It is not known whether a controller leads"), "{unread}");
    }
}
