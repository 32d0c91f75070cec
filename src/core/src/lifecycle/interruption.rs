//! Reactions to interruptions of instances.
//!
//! An imminent interruption is handled at once: the node is closed, and its claim is marked as disrupted, so that the successors
//! of its pods are demand in the next plan. After that plan has launched replacements, the claim is deleted
//! ([`crate::disruption::follow`]). If no plan is made in time, the claim is deleted anyway. For an interruption that is only
//! likely, an event is recorded, and no pod is moved.

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::{ConditionStatus, ConditionType, InterruptionKind, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::lifecycle::context::{LifecycleContext, after, is};
use crate::lifecycle::empty;
use crate::model::{Cause, Claim, Interruption};

/// The time to wait for the plan that launches replacements. The wait is at most an eighth of the remaining time.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// Returns the conditions of a claim with an interruption: `Interrupted`, and `Disrupting` if it is imminent.
pub fn interruption_conditions(interruption: &Interruption, now: Timestamp) -> Vec<ConditionUpdate> {
    let likely = interruption.kind == InterruptionKind::Rebalance;
    let status = if likely { ConditionStatus::Unknown } else { ConditionStatus::True };
    let (reason, message) = (interruption.kind.reason(), told(interruption, now));
    let mut all = vec![ConditionUpdate { kind: ConditionType::Interrupted, status, reason, message }];
    if interruption.is_imminent(now) {
        let message = format!("{}: its pods move to other nodes", interruption.words());
        all.push(is(ConditionType::Disrupting, Cause::Interrupted.reason(), message));
    }
    all
}

/// Describes the interruption and what Poolwright does about it.
fn told(interruption: &Interruption, now: Timestamp) -> String {
    let what = interruption.words();
    let done = match (interruption.kind, interruption.usable_until()) {
        (InterruptionKind::Rebalance, _) => {
            "Poolwright avoids its offering for a while, and moves no pods".to_owned()
        }
        (InterruptionKind::Ending, _) => {
            "its pods are deleted and planned again, and the instance is terminated".to_owned()
        }
        (InterruptionKind::Maintenance, _) if !interruption.is_imminent(now) => {
            let from = interruption
                .imminent_from()
                .map(|from| format!("; from {from} on, disruption budgets no longer delay that"));
            format!("its pods are moved as from a drifted node{}", from.unwrap_or_default())
        }
        (_, Some(until)) => format!(
            "its node is closed, room for its pods is bought elsewhere, and they are evicted; pods that remain are deleted in time to end by {until}"
        ),
        (_, None) => {
            "its node is closed, room for its pods is bought elsewhere, and they are evicted".to_owned()
        }
    };
    format!("{what}: {done}")
}

/// Handles a claim with an interruption. Returns whether the interruption is imminent, so that the node is closed.
pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim) -> bool {
    let Some(interruption) = &claim.interruption else { return false };
    context.conditions(claim, interruption_conditions(interruption, context.now));
    record_event(context, claim, interruption);
    if !interruption.is_imminent(context.now) {
        if let Some(from) = interruption.imminent_from() {
            context.wake(from);
        }
        return false;
    }
    if let Some(node) = context.node(claim).filter(|node| !empty::is_closed(node)) {
        empty::close(context, node);
    }
    let since = claim
        .conditions
        .get(&ConditionType::Interrupted)
        .filter(|known| known.reason == Some(interruption.kind.reason()))
        .map_or(context.now, |known| known.since);
    let left = interruption.usable_until().map(|until| until.duration_since(since).max(SignedDuration::ZERO));
    let patience = left.map_or(PATIENCE, |left| PATIENCE.min(left / 8));
    if context.ended(after(since, patience)) {
        context.act(Action::Drain { claim: claim.name.clone(), uid: claim.uid.clone() });
    }
    true
}

/// Records events on the claim and its node.
pub(crate) fn record_event(context: &mut LifecycleContext<'_>, claim: &Claim, interruption: &Interruption) {
    let likely = interruption.kind == InterruptionKind::Rebalance;
    let kind = if likely { EventType::Normal } else { EventType::Warning };
    let reason = if likely { Reason::RebalanceRecommended } else { Reason::Interrupted };
    let message = told(interruption, context.now);
    let node = context.node(claim).map(|node| Subject::Node(node.name.clone()));
    for subject in [Some(Subject::Claim(claim.name.clone())), node].into_iter().flatten() {
        let (reason, message) = (reason, message.clone());
        context.act(Action::RecordEvent(Event { subject, kind, reason, message }));
    }
}
