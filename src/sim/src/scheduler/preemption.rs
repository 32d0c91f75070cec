//! Preemption for a pod that fits no node (`DefaultPreemption`): evicts pods of lower priority from one node, as few and as
//! unimportant as possible, preferably none that a PodDisruptionBudget protects.
//!
//! Facts: defaultpreemption/default_preemption.go, framework/preemption/preemption.go. Differences: it tries all nodes, also in
//! large clusters. It orders pods by creation time, not start time. A terminating pod on the nominated node counts as evicted for
//! the new pod, whatever deleted it.

pub(super) mod budgets;

use std::cmp::Reverse;

use poolwright_core::{Pod, PodKey};

use super::cluster::{Cluster, Filed, NodeInfo};
use super::filters::State;
use super::message;
use super::reason::{Reason, Unfit};
use super::{Found, MayPreempt, Outcome, Pick, Preemption};
use budgets::Allowed;

/// The message of `DynamicResources` for a pod without resource claims and without a node.
const NO_CLAIMS: &str = "no new claims to deallocate";

/// The pods to evict from one node.
struct Candidate<'a> {
    at: &'a NodeInfo,
    /// The most important first.
    victims: Vec<&'a Filed>,
    /// The number of victims that a budget protects.
    violations: usize,
}

/// Returns the outcome for a pod that fits no node.
pub(super) fn after(cluster: &Cluster, found: Found<'_>, may: MayPreempt, pick: Pick<'_>) -> Outcome {
    let nodes = cluster.len();
    let first = found.message(nodes);
    let only = |preemption, second: &str| Outcome::Unschedulable {
        message: format!("{first} {NO_CLAIMS}, preemption: {second}"),
        preemption,
    };
    if may == MayPreempt::Disabled {
        let message = format!("{first} {NO_CLAIMS}");
        return Outcome::Unschedulable { message, preemption: Preemption::NotTried };
    }
    if may == MayPreempt::Never {
        return only(Preemption::NotTried, "not eligible due to preemptionPolicy=Never.");
    }
    let Some(state) = &found.state else {
        let second = message::no_node(nodes, &[], Some(Reason::PreemptionInVain));
        return only(Preemption::InVain, &second);
    };
    if has_room_coming(cluster, &found, state.attempt.pod) {
        return only(Preemption::NotTried, "not eligible due to a terminating pod on the nominated node.");
    }
    let allowed = Allowed::new(cluster, &found);
    let (mut candidates, mut failed) = (Vec::new(), Vec::new());
    for (at, _) in found.unfit.iter().filter(|(_, unfit)| unfit.resolvable) {
        match victims(state, at, &allowed) {
            Ok(candidate) => candidates.push(candidate),
            Err(unfit) => failed.push(unfit),
        }
    }
    let Some(chosen) = choose(candidates, pick) else {
        let second = message::no_node(nodes, &failed, Some(Reason::PreemptionInVain));
        return only(Preemption::InVain, &second);
    };
    let node = chosen.at.node.name.clone();
    let attempt = state.attempt.pod;
    let nominated = cluster.nominated(&node).iter();
    // If all victims are being deleted already, no nomination changes.
    let evicts = chosen.victims.iter().any(|victim| victim.pod.deleting_since.is_none());
    let behind = nominated.filter(|other| evicts && other.pod.priority < attempt.priority);
    let set_back = behind.map(|other| other.pod.key.clone()).collect();
    let victims = chosen.victims.iter().map(|victim| victim.pod.key.clone()).collect();
    Outcome::Unschedulable { message: first, preemption: Preemption::Evict { node, victims, set_back } }
}

/// Returns whether terminating pods will make room on the nominated node.
fn has_room_coming(cluster: &Cluster, found: &Found<'_>, pod: &Pod) -> bool {
    let Some(name) = &pod.nominated_node else { return false };
    let hopeless = |(at, unfit): &(&NodeInfo, Unfit)| at.node.name == *name && !unfit.resolvable;
    let known = found.unfit.iter().any(|(at, _)| at.node.name == *name);
    if !known || found.unfit.iter().any(hopeless) {
        return false;
    }
    let leaves = |other: &Filed| other.pod.deleting_since.is_some() && other.pod.priority < pod.priority;
    cluster.node(name).is_some_and(|at| at.pods.iter().any(leaves))
}

/// Returns the pods to evict from a node so that the pod fits, or the reason why evictions do not help.
fn victims<'a>(state: &State<'a>, at: &'a NodeInfo, allowed: &Allowed<'_>) -> Result<Candidate<'a>, Unfit> {
    let attempt = state.attempt.pod;
    let mut possible: Vec<&Filed> =
        at.pods.iter().filter(|other| other.pod.priority < attempt.priority).collect();
    if possible.is_empty() {
        return Err(Unfit::unresolvable(Reason::NoVictims));
    }
    let (mut without, mut state) = (at.clone(), State::clone(state));
    for victim in &possible {
        without.remove(&victim.pod.key);
        state.remove(&victim.pod, at);
    }
    state.check_with_nominated(at, &without)?;
    possible.sort_by_key(|victim| importance(&victim.pod));
    // Protected pods are reprieved first.
    let (protected, others) = allowed.split(&possible);
    let (mut victims, mut violations) = (Vec::new(), 0);
    let protected = protected.into_iter().map(|victim| (victim, true));
    for (victim, is_protected) in protected.chain(others.into_iter().map(|victim| (victim, false))) {
        without.add(victim);
        state.add(&victim.pod, at);
        if state.check_with_nominated(at, &without).is_err() {
            without.remove(&victim.pod.key);
            state.remove(&victim.pod, at);
            victims.push(victim);
            violations += usize::from(is_protected);
        }
    }
    if victims.is_empty() {
        return Err(Unfit::unresolvable(Reason::NoVictims));
    }
    victims.sort_by_key(|victim| importance(&victim.pod));
    Ok(Candidate { at, victims, violations })
}

/// Returns the order of importance: higher priority first, then older pods.
fn importance(pod: &Pod) -> (Reverse<i32>, jiff::Timestamp, &PodKey) {
    (Reverse(pod.priority), pod.created, &pod.key)
}

/// Returns the best candidate (`pickOneNodeForPreemption`).
fn choose<'a>(mut candidates: Vec<Candidate<'a>>, pick: Pick<'_>) -> Option<Candidate<'a>> {
    let harm = |one: &Candidate<'_>| {
        let victims = || one.victims.iter().map(|victim| &victim.pod);
        let highest = victims().next().map(|pod| pod.priority);
        let sum: i64 = victims().map(|pod| i64::from(pod.priority) + (1 << 31)).sum();
        let most_important = victims().filter(|pod| Some(pod.priority) == highest);
        let longest = most_important.map(|pod| pod.created).min();
        (one.violations, highest, sum, one.victims.len(), Reverse(longest))
    };
    let least = candidates.iter().map(harm).min()?;
    candidates.retain(|one| harm(one) == least);
    let at = if candidates.len() > 1 { pick(candidates.len()) } else { 0 };
    Some(candidates.swap_remove(at))
}
