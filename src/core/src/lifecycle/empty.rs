//! Empty nodes: closes them, checks again that they are empty, and deletes their claims.

use crate::lifecycle::gang::{PATIENCE, lacking};
use crate::lifecycle::waiting::{UNPLANNED, waits_since};
use jiff::SignedDuration;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionType, Reason, Taint, TaintEffect};

use crate::action::{Action, EventType};
use crate::demand::kept_until;
use crate::lifecycle::allowance::{allowance, allowance_over_all};
use crate::lifecycle::context::{LifecycleContext, after, is, is_not, some_pods, words};
use crate::lifecycle::gang;
use crate::lifecycle::protection::kept_by;
use crate::lifecycle::reserve::unreserved;
use crate::model::{Cause, Claim, Node, Pod};
use crate::rules;

/// The time between closing a node and deleting its claim. By then, watches show pods that the scheduler bound in the meantime.
const SETTLE: SignedDuration = SignedDuration::from_secs(5);

/// The time until the next check whether a disruption budget allows more.
const BUDGET: SignedDuration = SignedDuration::from_secs(15);

pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim, node: &Node) {
    let work = context.work(claim);
    let busy = if work.is_empty() {
        needed(context, claim, &format!("node {}", node.name))
    } else {
        Some((Reason::HasPods, format!("node {} runs {}", node.name, some_pods(&work))))
    };
    let disrupting = claim.since(ConditionType::Disrupting);
    if let Some((reason, message)) = busy {
        if disrupting.is_some() || node.taints.iter().any(is_disrupted) {
            let taints = unreserved(node).into_iter().filter(|taint| !is_disrupted(taint)).collect();
            if node.taints.iter().any(is_disrupted) {
                context.act(Action::SetTaints { node: node.name.clone(), taints });
            }
            if disrupting.is_some() {
                let message = format!("the node stays: {message}");
                context.conditions(claim, [is_not(ConditionType::Disrupting, reason, message)]);
            }
        }
        // Only the change of the condition matters, not which pods it names.
        if claim.since(ConditionType::Empty).is_some() {
            context.conditions(claim, [is_not(ConditionType::Empty, reason, message)]);
        }
        return;
    }
    let Some(empty_since) = claim.since(ConditionType::Empty) else {
        let message = format!("no workload pod is on node {} or planned for it", node.name);
        context.conditions(claim, [is(ConditionType::Empty, Reason::NoWorkload, message)]);
        return;
    };
    let Some(kept) = context.snapshot.keeps(claim) else { return };
    let keep =
        if gang::lacking(context, claim).is_some() { kept.time.min(gang::PATIENCE) } else { kept.time };
    let why = kept.reason().filter(|_| keep == kept.time).map_or_else(String::new, |why| format!(" ({why})"));
    if let Some(since) = disrupting {
        if !node.taints.iter().any(is_disrupted) {
            close(context, node);
            context.wake(after(context.now, SETTLE));
        } else if context.ended(after(since, SETTLE)) {
            let message = format!("node {} had no work for {}, so it is terminated", node.name, words(keep));
            context.record_event(&claim.name, EventType::Normal, Reason::ScaledDown, message);
            context.delete(claim, true);
        }
        return;
    }
    if !context.ended(after(empty_since, keep)) {
        return;
    }
    let fresh = context.unplanned.iter().filter_map(|pod| waits_since(pod).filter(|_| may_use(pod, node)));
    if let Some(since) = fresh.max()
        && !context.ended(after(since, UNPLANNED))
    {
        return;
    }
    if let Some(pool) = context.snapshot.pools.get(&claim.pool) {
        if kept_by(claim, node, pool).is_some() {
            return;
        }
        // Nodes that this decision closes are not in the snapshot yet.
        let chosen = context.closing.get(&claim.pool).copied().unwrap_or(0);
        let over_all = allowance_over_all(context.snapshot, Cause::Empty, context.now).left;
        if allowance(context.snapshot, pool, Cause::Empty, context.now).left <= chosen
            || over_all <= context.closing.values().fold(0, |sum, closing| sum.saturating_add(*closing))
        {
            context.wake(after(context.now, BUDGET));
            return;
        }
        *context.closing.entry(claim.pool.clone()).or_default() += 1;
    }
    close(context, node);
    let message = format!(
        "no work for {}{why}: its node is closed, and terminated unless a pod was bound to it before",
        words(keep)
    );
    context.conditions(claim, [is(ConditionType::Disrupting, Reason::Empty, message)]);
    context.wake(after(context.now, SETTLE));
}

/// Returns the reason why an empty node is kept, and a message; `None` if it is not kept.
pub(crate) fn needed(
    context: &mut LifecycleContext<'_>,
    claim: &Claim,
    node: &str,
) -> Option<(Reason, String)> {
    if let Some(until) = kept_until(claim, &context.coming) {
        context.wake(until);
        return Some((Reason::PodsExpected, format!("{node} is kept for pods that do not exist yet")));
    }
    let expected = context.expected(claim);
    if !expected.is_empty() {
        Some((Reason::PodsExpected, format!("{node} is kept for {}", some_pods(expected))))
    } else if context.awaits_successors(claim) {
        Some((Reason::PodsExpected, format!("{node} is kept for the pods of a node that is being emptied")))
    } else if context.buffered.contains(&claim.name) {
        Some((Reason::BufferKept, format!("{node} is kept as free room for its pool's buffer")))
    } else if is_static(context, claim) {
        Some((Reason::Replica, format!("{node} is one of the replicas of its pool")))
    } else {
        None
    }
}

/// Returns whether the claim's pool is static.
fn is_static(context: &LifecycleContext<'_>, claim: &Claim) -> bool {
    context.snapshot.pools.get(&claim.pool).is_some_and(|pool| pool.replicas.is_some())
}

fn is_disrupted(taint: &Taint) -> bool {
    taint.key == DISRUPTED_TAINT
}

/// Closes a node to pods.
pub(crate) fn close(context: &mut LifecycleContext<'_>, node: &Node) {
    // A reservation that was just removed must not come back.
    let mut taints = unreserved(node);
    taints.push(Taint {
        key: DISRUPTED_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    context.act(Action::SetTaints { node: node.name.clone(), taints });
}

/// Returns whether a node is closed.
pub(crate) fn is_closed(node: &Node) -> bool {
    node.taints.iter().any(is_disrupted)
}

fn may_use(pod: &Pod, node: &Node) -> bool {
    pod.spec.requests.fits(&node.allocatable) && rules::admits(&pod.spec, &node.labels, &node.taints).is_ok()
}

/// Deletes a claim whose node is not open yet, if it has been kept for some time only for a gang that cannot start. Returns
/// whether it does so.
pub(crate) fn release(context: &mut LifecycleContext<'_>, claim: &Claim) -> bool {
    let needed = needed(context, claim, "its node");
    let held = lacking(context, claim).cloned().filter(|_| needed.is_none());
    let Some(gang) = held else {
        if let Some((reason, message)) = needed
            && claim.since(ConditionType::Empty).is_some()
        {
            context.conditions(claim, [is_not(ConditionType::Empty, reason, message)]);
        }
        return false;
    };
    let Some(since) = claim.since(ConditionType::Empty) else {
        if context.ended(after(claim.created, PATIENCE)) {
            let message = format!("not all pods of PodGroup {gang} that must start together find room");
            context.conditions(claim, [is(ConditionType::Empty, Reason::GangIncomplete, message)]);
            context.wake(after(context.now, PATIENCE));
        }
        return false;
    };
    if !context.ended(after(since, PATIENCE)) {
        return false;
    }
    let message = format!(
        "not all pods of PodGroup {gang} that must start together found room within {}, so this claim is deleted",
        words(PATIENCE)
    );
    context.record_event(&claim.name, EventType::Normal, Reason::GangReleased, message);
    context.delete(claim, true);
    true
}
