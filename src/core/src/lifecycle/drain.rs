//! Drain: evicts the pods on a deleted claim's node, tier by tier, and deletes the remaining pods when a deadline is near.
//!
//! Pods are evicted with the Eviction API, so that PodDisruptionBudgets hold. The tiers are: pods without a positive priority,
//! other pods, DaemonSet pods, system-critical pods. Protected pods are left alone. Two deadlines override this:
//! `deadlines.termination` of the pool, and the time at which the cloud reclaims the instance. Each remaining pod is deleted so
//! early that its grace period ends by the deadline.

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionType, Reason, Taint, TaintEffect};

use crate::action::Action;
use crate::lifecycle::context::{LifecycleContext, after, is, is_not, some_pods};
use crate::model::{BudgetLimit, Claim, CountOrPercent, Pod, PodPhase, PodRole};
use crate::rules;
use crate::rules::budget_index::of_pod;
use crate::rules::budgets::never_met_of;
use crate::rules::eviction::Eviction;

/// The lowest priority of system-critical pods (`system-cluster-critical`).
const CRITICAL: i32 = 2_000_000_000;
/// The time after which a pod that should have ended is ignored. Only its finalizers or its kubelet still keep the object.
const STUCK: SignedDuration = SignedDuration::from_mins(1);

/// Why a drain evicts pods.
pub const ENDS: &str = "its node will be terminated";

/// The state of a drain.
pub(crate) enum Drain {
    /// Pods are still running.
    Waiting,
    /// No pod is left to wait for.
    Done,
    /// The deadline has passed, so remaining pods are lost.
    TimeIsUp,
}

/// The order in which pods are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    Plain,
    Important,
    Daemon,
    Critical,
}

pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim, node: &str) -> Drain {
    let Some(begun) = claim.deleting_since else { return Drain::Waiting };
    let deadline = claim.ends_at();
    let there: Vec<&Pod> =
        on_node(context, node).filter(|pod| is_waited_for(pod, begun, context.now)).collect();
    if there.is_empty() {
        context
            .conditions(claim, [is(ConditionType::Drained, Reason::Drained, "no pod is left to wait for")]);
        return Drain::Done;
    }
    if deadline.is_some_and(|deadline| deadline <= context.now) {
        let message = format!(
            "the deadline has passed, and node {node} still runs {}; its instance is terminated with them",
            some_pods(&there)
        );
        context.conditions(claim, [is_not(ConditionType::Drained, Reason::TimeIsUp, message)]);
        return Drain::TimeIsUp;
    }
    let mut told: Vec<&Pod> = Vec::new();
    if let Some(deadline) = deadline {
        context.wake(deadline);
        told.extend(there.iter().filter(|pod| force(context, pod, deadline)));
    }
    let Some(turn) = there.iter().map(|pod| tier(pod)).min() else { return Drain::Done };
    let mut protected: Vec<&Pod> = Vec::new();
    let is_told = |pod: &Pod| told.iter().any(|one| one.key == pod.key);
    for pod in there.iter().filter(|pod| tier(pod) == turn && pod.deleting_since.is_none() && !is_told(pod)) {
        match pod.ending.protection.as_ref().filter(|one| one.until.is_none_or(|until| until > context.now)) {
            None => evict(context, pod),
            Some(protection) => {
                protected.push(pod);
                if let Some(until) = protection.until {
                    context.wake(until);
                }
            }
        }
    }
    let mut in_turn = there.iter().filter(|pod| tier(pod) == turn && !is_told(pod));
    let blocked = in_turn.find_map(|pod| never_evicted(context, pod));
    let update = match protected.first() {
        None => {
            let (reason, state) = match blocked {
                Some(why) => (Reason::BudgetNeverMet, why),
                None => (Reason::Draining, "eviction is under way".to_owned()),
            };
            let message = format!("node {node} still runs {}; {state}", some_pods(&there));
            is_not(ConditionType::Drained, reason, message)
        }
        Some(first) => {
            let held = held_by(first);
            let end = deadline.map_or_else(
                || "wait, delete the pods, or remove the annotation".to_owned(),
                |deadline| format!("they are deleted in time to end by {deadline}"),
            );
            let blocked = blocked.map_or_else(String::new, |why| format!("; {why}"));
            let message = format!(
                "node {node} still runs {}, protected by {held}: {end}{blocked}",
                some_pods(&protected)
            );
            is_not(ConditionType::Drained, Reason::PodsProtected, message)
        }
    };
    context.conditions(claim, [update]);
    Drain::Waiting
}

/// Describes the budgets because of which the API server never evicts a pod, with the remedy; `None` if it may.
fn never_evicted(context: &mut LifecycleContext<'_>, pod: &Pod) -> Option<String> {
    let snapshot = context.snapshot;
    let eviction = Eviction::of(pod, of_pod(snapshot, pod));
    let Eviction::Takes(budget) = &eviction else { return eviction.never(pod) };
    if budget.allowed.is_some_and(|allowed| allowed > 0) {
        return None;
    }
    // Most budgets allow an eviction later whatever pods there are. Looking at all pods of the namespace takes long.
    let may_block = budget.failure.is_some()
        || matches!(
            budget.limit,
            Some(
                BudgetLimit::MinAvailable(_)
                    | BudgetLimit::MaxUnavailable(CountOrPercent::Count(0) | CountOrPercent::Percent(0))
            )
        );
    if !may_block {
        return None;
    }
    // The pod has no other budget, so the answer is the same for every such pod of this one.
    let why = || never_met_of(snapshot, pod).first().map(ToString::to_string);
    context.never_met.entry(budget.key.clone()).or_insert_with(why).clone()
}

/// Returns whether a drain waits for a pod on a node that was closed at `closed`. It does not wait for mirror pods, for pods that
/// should have ended long ago, for DaemonSet pods that tolerate the taint of a closed node, and for other pods that tolerate it
/// and were created after the node was closed.
pub fn is_waited_for(pod: &Pod, closed: Timestamp, now: Timestamp) -> bool {
    let stuck = pod.deleting_since.is_some_and(|until| after(until, STUCK) <= now);
    let bound = matches!(pod.phase, PodPhase::Bound { .. });
    bound && !stuck && pod.role != PodRole::Mirror && !comes_back(pod, closed)
}

/// Returns whether the successor of an evicted pod could be scheduled to the closed node again.
fn comes_back(pod: &Pod, closed: Timestamp) -> bool {
    let taint =
        Taint { key: DISRUPTED_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule };
    let tolerates = rules::check_taints(&pod.spec.tolerations, &[taint]).is_ok();
    tolerates && (pod.role == PodRole::DaemonSet || pod.created > closed)
}

fn on_node<'a>(context: &LifecycleContext<'a>, node: &str) -> impl Iterator<Item = &'a Pod> {
    let there = context.snapshot.pods.on_node(node);
    there.into_iter().flat_map(|there| &there.pods).map(AsRef::as_ref)
}

fn tier(pod: &Pod) -> Tier {
    match pod.role {
        _ if pod.priority >= CRITICAL => Tier::Critical,
        PodRole::DaemonSet | PodRole::Mirror => Tier::Daemon,
        PodRole::Workload if pod.priority > 0 => Tier::Important,
        PodRole::Workload => Tier::Plain,
    }
}

/// Deletes a pod, regardless of protection, when only its grace period is left before the deadline. A pod that is already
/// terminating gets a shorter grace period if needed. Returns whether the pod is deleted now.
fn force(context: &mut LifecycleContext<'_>, pod: &Pod, deadline: Timestamp) -> bool {
    let late = match pod.deleting_since {
        Some(until) => until > deadline,
        None => context.ended(before(deadline, pod.ending.grace)),
    };
    if late {
        let left = SignedDuration::from_secs(deadline.as_second().saturating_sub(context.now.as_second()));
        let grace = left.min(pod.ending.grace).max(SignedDuration::from_secs(1));
        end(context, pod, grace);
    }
    late
}

/// Deletes all pods on a node whose instance is ending, so that their controllers recreate them at once.
pub(crate) fn abandon(context: &mut LifecycleContext<'_>, claim: &Claim, node: &str) {
    let Some(begun) = claim.deleting_since else { return };
    let there: Vec<&Pod> =
        on_node(context, node).filter(|pod| is_waited_for(pod, begun, context.now)).collect();
    for pod in there.into_iter().filter(|pod| pod.deleting_since.is_none()) {
        let left = claim.ends_at().map(|deadline| deadline.duration_since(context.now));
        let grace = left.map_or(pod.ending.grace, |left| left.min(pod.ending.grace));
        let grace = SignedDuration::from_secs(grace.as_secs().max(1));
        end(context, pod, grace);
    }
}

fn evict(context: &mut LifecycleContext<'_>, pod: &Pod) {
    if let Some(key) = pod.key.existing() {
        context.act(Action::Evict { pod: key.clone(), uid: pod.uid.clone(), why: ENDS.to_owned() });
    }
}

fn end(context: &mut LifecycleContext<'_>, pod: &Pod, grace: SignedDuration) {
    if let Some(key) = pod.key.existing() {
        context.act(Action::EndPod { pod: key.clone(), uid: pod.uid.clone(), grace });
    }
}

fn held_by(pod: &Pod) -> String {
    let Some(protection) = &pod.ending.protection else { return String::new() };
    let until = protection.until.map(|until| format!(" until {until}")).unwrap_or_default();
    format!("{}{until}", protection.annotation)
}

fn before(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.checked_sub(duration).unwrap_or(Timestamp::MIN)
}
