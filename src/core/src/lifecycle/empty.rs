//! Nodes without work: noticed, closed, looked at once more, given back.

use crate::lifecycle::gang::{PATIENCE, lacking};
use crate::lifecycle::waiting::{UNPLANNED, waits_since};
use jiff::SignedDuration;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionType, Reason, Taint, TaintEffect};

use crate::action::{Action, EventType};
use crate::demand::kept_until;
use crate::lifecycle::allowance::{allowance, allowance_over_all};
use crate::lifecycle::gang;
use crate::lifecycle::protection::kept_by;
use crate::lifecycle::reserve::unreserved;
use crate::lifecycle::scene::{Scene, after, is, is_not, some_pods, words};
use crate::model::{Cause, Claim, Node, Pod};
use crate::rules;

/// Between closing a node and giving it back: what the scheduler bound meanwhile must have shown by then.
const SETTLE: SignedDuration = SignedDuration::from_secs(5);

/// How soon to look again whether a budget allows more nodes to go.
const BUDGET: SignedDuration = SignedDuration::from_secs(15);

pub(crate) fn decide(scene: &mut Scene<'_>, claim: &Claim, node: &Node) {
    let work = scene.work(claim);
    let busy = if work.is_empty() {
        needed(scene, claim, &format!("node {}", node.name))
    } else {
        Some((Reason::HasPods, format!("node {} runs {}", node.name, some_pods(&work))))
    };
    let disrupting = claim.since(ConditionType::Disrupting);
    if let Some((reason, message)) = busy {
        if disrupting.is_some() || node.taints.iter().any(is_disrupted) {
            let taints = unreserved(node).into_iter().filter(|taint| !is_disrupted(taint)).collect();
            if node.taints.iter().any(is_disrupted) {
                scene.act(Action::SetTaints { node: node.name.clone(), taints });
            }
            if disrupting.is_some() {
                let message = format!("it stays: {message}");
                scene.conditions(claim, [is_not(ConditionType::Disrupting, reason, message)]);
            }
        }
        // Pods come and go without anybody caring which: only the change matters.
        if claim.since(ConditionType::Empty).is_some() {
            scene.conditions(claim, [is_not(ConditionType::Empty, reason, message)]);
        }
        return;
    }
    let Some(empty_since) = claim.since(ConditionType::Empty) else {
        let message = format!("no workload pod is on node {} or planned for it", node.name);
        scene.conditions(claim, [is(ConditionType::Empty, Reason::NoWorkload, message)]);
        return;
    };
    let Some(keep) = scene.snapshot.pools.get(&claim.pool).and_then(|pool| pool.scale_to_zero_after) else {
        return;
    };
    let keep = if gang::lacking(scene, claim).is_some() { keep.min(gang::PATIENCE) } else { keep };
    if let Some(since) = disrupting {
        if !node.taints.iter().any(is_disrupted) {
            close(scene, node);
            scene.wake(after(scene.now, SETTLE));
        } else if scene.ended(after(since, SETTLE)) {
            let message = format!("node {} had no work for {}: it is given back", node.name, words(keep));
            scene.record_event(&claim.name, EventType::Normal, Reason::ScaledDown, message);
            scene.delete(claim, true);
        }
        return;
    }
    if !scene.ended(after(empty_since, keep)) {
        return;
    }
    let fresh = scene.unplanned.iter().filter_map(|pod| waits_since(pod).filter(|_| may_use(pod, node)));
    if let Some(since) = fresh.max()
        && !scene.ended(after(since, UNPLANNED))
    {
        return;
    }
    if let Some(pool) = scene.snapshot.pools.get(&claim.pool) {
        if kept_by(claim, node, pool).is_some() {
            return;
        }
        // Actions of this decision are not in the snapshot yet.
        let chosen = scene.closing.get(&claim.pool).copied().unwrap_or(0);
        let over_all = allowance_over_all(scene.snapshot, Cause::Empty, scene.now).left;
        if allowance(scene.snapshot, pool, Cause::Empty, scene.now).left <= chosen
            || over_all <= scene.closing.values().fold(0, |sum, closing| sum.saturating_add(*closing))
        {
            scene.wake(after(scene.now, BUDGET));
            return;
        }
        *scene.closing.entry(claim.pool.clone()).or_default() += 1;
    }
    close(scene, node);
    let message =
        format!("no work for {}: it is closed to pods and given back unless one got in", words(keep));
    scene.conditions(claim, [is(ConditionType::Disrupting, Reason::Empty, message)]);
    scene.wake(after(scene.now, SETTLE));
}

/// Why a node is kept that nothing runs on, if it is.
pub(crate) fn needed(scene: &mut Scene<'_>, claim: &Claim, node: &str) -> Option<(Reason, String)> {
    if let Some(until) = kept_until(claim, &scene.coming) {
        scene.wake(until);
        return Some((Reason::PodsExpected, format!("{node} is kept for pods that are still to come")));
    }
    let expected = scene.expected(claim);
    if !expected.is_empty() {
        Some((Reason::PodsExpected, format!("{} will come to {node}", some_pods(expected))))
    } else if scene.awaits_successors(claim) {
        Some((Reason::PodsExpected, format!("{node} is kept for pods of a node that is emptied")))
    } else if scene.buffered.contains(&claim.name) {
        Some((Reason::BufferKept, format!("{node} is kept as the room that its pool keeps free")))
    } else if is_static(scene, claim) {
        Some((Reason::Replica, format!("{node} is one of the replicas of its pool")))
    } else {
        None
    }
}

/// Whether its pool has nodes whoever waits.
fn is_static(scene: &Scene<'_>, claim: &Claim) -> bool {
    scene.snapshot.pools.get(&claim.pool).is_some_and(|pool| pool.replicas.is_some())
}

fn is_disrupted(taint: &Taint) -> bool {
    taint.key == DISRUPTED_TAINT
}

/// Closes a node to pods.
pub(crate) fn close(scene: &mut Scene<'_>, node: &Node) {
    // A reservation that has just been lifted must not come back.
    let mut taints = unreserved(node);
    taints.push(Taint {
        key: DISRUPTED_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    });
    scene.act(Action::SetTaints { node: node.name.clone(), taints });
}

/// Whether a node is closed.
pub(crate) fn is_closed(node: &Node) -> bool {
    node.taints.iter().any(is_disrupted)
}

fn may_use(pod: &Pod, node: &Node) -> bool {
    pod.spec.requests.fits(&node.allocatable) && rules::admits(&pod.spec, &node.labels, &node.taints).is_ok()
}

/// Gives a claim back whose node is not open yet, unless somebody else needs it. Whether it is so far.
pub(crate) fn release(scene: &mut Scene<'_>, claim: &Claim) -> bool {
    let held = lacking(scene, claim).cloned();
    let Some(gang) = held.filter(|_| needed(scene, claim, "its node").is_none()) else {
        if claim.since(ConditionType::Empty).is_some() {
            let message = "pods will come to its node";
            scene.conditions(claim, [is_not(ConditionType::Empty, Reason::PodsExpected, message)]);
        }
        return false;
    };
    let Some(since) = claim.since(ConditionType::Empty) else {
        if scene.ended(after(claim.created, PATIENCE)) {
            let message = format!("not all pods of PodGroup {gang} that start together can have room");
            scene.conditions(claim, [is(ConditionType::Empty, Reason::GangIncomplete, message)]);
            scene.wake(after(scene.now, PATIENCE));
        }
        return false;
    };
    if !scene.ended(after(since, PATIENCE)) {
        return false;
    }
    let message = format!(
        "not all pods of PodGroup {gang} that start together could have room for {}: what was bought for it is given back",
        words(PATIENCE)
    );
    scene.record_event(&claim.name, EventType::Normal, Reason::GangReleased, message);
    scene.delete(claim, true);
    true
}
