//! Describes what is being done about a claim, and why.

use poolwright_core::{Claim, Node, Stage};
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

/// Returns what is being done about a claim with this node and this number of pods, and why, in the words of the current
/// conditions.
pub fn doing(claim: &Claim, node: Option<&Node>, pods: Option<usize>) -> (String, Option<String>) {
    match claim.stage() {
        Stage::Pending => {
            let refused = said(claim, ConditionType::Launched, ConditionStatus::False);
            (refused.unwrap_or_else(|| "launching an instance".to_owned()), bought(claim))
        }
        Stage::Launched => {
            ("the instance is launched; its node has not joined yet".to_owned(), bought(claim))
        }
        Stage::Registered => {
            let missing = said(claim, ConditionType::Initialized, ConditionStatus::False);
            let missing = missing.unwrap_or_else(|| "the node has joined; it admits no pods yet".to_owned());
            (missing, bought(claim))
        }
        Stage::Initialized => (at_work(claim, node, pods), None),
        Stage::Disrupting => {
            let closed = "cordoned: its instance will be terminated";
            let message = said(claim, ConditionType::Disrupting, ConditionStatus::True);
            (message.unwrap_or_else(|| closed.to_owned()), None)
        }
        Stage::Draining => {
            let held = said(claim, ConditionType::Drained, ConditionStatus::False);
            let held = held.or_else(|| said(claim, ConditionType::VolumesDetached, ConditionStatus::False));
            (held.unwrap_or_else(|| "draining, then its instance is terminated".to_owned()), goes(claim))
        }
        Stage::Terminating => {
            let message = said(claim, ConditionType::InstanceTerminating, ConditionStatus::True);
            (message.unwrap_or_else(|| "terminating the instance".to_owned()), goes(claim))
        }
    }
}

/// Describes an open node: its problem, or what runs on it.
fn at_work(claim: &Claim, node: Option<&Node>, pods: Option<usize>) -> String {
    if let Some(sick) = said(claim, ConditionType::Unhealthy, ConditionStatus::True) {
        return sick;
    }
    if let Some(unlisted) = said(claim, ConditionType::InstanceUnlisted, ConditionStatus::True) {
        return unlisted;
    }
    // A pool without a repair rule gives its claims no condition for this.
    if let Some(node) = node.filter(|node| !node.ready) {
        return format!("node {} is not ready", node.name);
    }
    if let Some(node) = node.filter(|node| node.cordoned && !node.cordoned_until_initialized) {
        return format!("node {} is cordoned, but not by Poolwright", node.name);
    }
    if let Some(drifted) = said(claim, ConditionType::Drifted, ConditionStatus::True) {
        return format!("drifted: {drifted}");
    }
    if let Some(empty) = said(claim, ConditionType::Empty, ConditionStatus::True) {
        return empty;
    }
    // A node that was opened by hand, or by a controller that stopped, keeps the condition until a controller decides.
    let retiring = said(claim, ConditionType::Retiring, ConditionStatus::True);
    if let Some(retiring) = retiring.filter(|_| node.is_some_and(Node::is_reserved)) {
        return format!("retiring: {retiring}");
    }
    match pods {
        None => "ready".to_owned(),
        Some(0) => "ready; runs no pods yet".to_owned(),
        Some(1) => "runs 1 pod".to_owned(),
        Some(count) => format!("runs {count} pods"),
    }
}

fn bought(claim: &Claim) -> Option<String> {
    let reason = claim.reason.trim_end_matches('.');
    (!reason.is_empty()).then(|| format!("bought because {reason}"))
}

/// Returns why a claim is removed, if that is recorded.
fn goes(claim: &Claim) -> Option<String> {
    let why = [ConditionType::Disrupting, ConditionType::Unhealthy];
    let why = why.into_iter().find_map(|kind| said(claim, kind, ConditionStatus::True))?;
    Some(format!("to be removed: {why}"))
}

/// Returns the message of a condition with this status.
fn said(claim: &Claim, kind: ConditionType, status: ConditionStatus) -> Option<String> {
    let condition = claim.conditions.get(&kind).filter(|condition| condition.status == status)?;
    let message = condition.message.trim_end_matches('.');
    Some(if message.is_empty() {
        condition.reason.map_or(kind.as_str(), Reason::as_str).to_owned()
    } else {
        message.to_owned()
    })
}
