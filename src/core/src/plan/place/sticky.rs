//! Sticky places: pods keep the place of an earlier plan, a reservation or a nomination.

use crate::plan::pending::Settled;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::ConditionType;

use crate::model::plan::{Target, UnplacedPod, UnplacedReason};
use crate::model::{ClaimName, Pod, PodKey, PodPhase, Snapshot};
use crate::plan::pending::PendingPod;
use crate::plan::pending::collect::not_yet_tried;
use crate::plan::place::spread_hosts::Hosts;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::supply::rooms::{Room, Rooms};

/// The time to wait for a preemption after its victims must have ended.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The time within which a node that is bought usually starts, three times over. A pod that has waited longer is late.
const LATE: SignedDuration = SignedDuration::from_mins(6);

/// Keeps each pod at the place of an earlier plan if it still fits, higher priorities first. Pods for which the scheduler
/// preempts other pods are left alone. Pods in `unsettled` are planned again. Late pods get room on retiring nodes. `hosts` returns
/// the existing nodes and is called only if needed.
pub(crate) fn settle<'a, 'h>(
    mut pending: Vec<PendingPod<'a>>,
    snapshot: &Snapshot,
    rooms: &mut Rooms<'_>,
    colocation: &Colocation<'_>,
    now: Timestamp,
    unsettled: &BTreeSet<PodKey>,
    hosts: impl FnOnce() -> Hosts<'h>,
) -> Settled<'a> {
    pending.sort_by_key(|want| (Reverse(want.pod.priority), &want.pod.key));
    let mut settled = Settled::default();
    let mut open = Vec::new();
    // Room that preempted pods will free belongs to the pod that preempts them.
    for want in pending {
        match preempting(want, snapshot, rooms, colocation) {
            Some((_, until)) if until <= now => open.push(want),
            None => open.push(want),
            Some((node, until)) => {
                settled.again_at = Some(settled.again_at.map_or(until, |first| first.min(until)));
                if let Some(at) = rooms.of_node(&node) {
                    rooms.take(at, &want.pod.spec.requests, colocation.of(&want.pod.key));
                }
                settled.unplaced.push(UnplacedPod {
                    pod: want.pod.key.clone(),
                    reason: UnplacedReason::PreemptionInProgress,
                    message: format!("the scheduler makes room for it on node `{node}` by preemption"),
                });
            }
        }
    }
    let mut left = Vec::new();
    for want in open {
        let nominated = want.pod.nominated_node.as_deref().and_then(|node| rooms.of_node(node));
        let planned = want.planned_at.and_then(|target| rooms.of_target(target));
        let reserved = want.pod.reserved_for.iter().rev().map(|claim| rooms.of_target(&claim.0));
        let homes: Vec<usize> = [planned, nominated]
            .into_iter()
            .chain(reserved)
            .flatten()
            .filter(|_| !unsettled.contains(&want.pod.key))
            .collect();
        let home = homes.iter().copied().find(|at| holds(&rooms.all[*at], want.pod, colocation));
        let is_late = is_late(&want, now) && !unsettled.contains(&want.pod.key);
        let opened = |at: usize| rooms.all[at].claim().is_none_or(|claim| is_open(snapshot, claim));
        let home = if is_late && !home.is_some_and(opened) {
            retiring(snapshot, rooms, want.pod, colocation).or(home)
        } else {
            home
        };
        if let Some(at) = home {
            rooms.take(at, &want.pod.spec.requests, colocation.of(&want.pod.key));
            settled.placed.push((at, want.pod));
        } else {
            left.push((want, homes));
        }
    }
    for want in keep_on_full_hosts(left, &mut settled, rooms, colocation, hosts) {
        if want.sticky_only {
            settled.unplaced.push(UnplacedPod {
                pod: want.pod.key.clone(),
                reason: UnplacedReason::NotYetTried,
                message: not_yet_tried(),
            });
        } else {
            settled.open.push(want);
        }
    }
    settled
}

/// Keeps pods at an earlier place that their topology spread over nodes allows only because nothing more could be bought for them:
/// then the least count is that of the existing nodes. Returns the other pods.
fn keep_on_full_hosts<'a, 'h>(
    mut left: Vec<(PendingPod<'a>, Vec<usize>)>,
    settled: &mut Settled<'a>,
    rooms: &mut Rooms<'_>,
    colocation: &Colocation<'_>,
    hosts: impl FnOnce() -> Hosts<'h>,
) -> Vec<PendingPod<'a>> {
    let is_concerned =
        |(want, homes): &(PendingPod<'_>, Vec<usize>)| !homes.is_empty() && colocation.of(&want.pod.key) > 0;
    if !colocation.spreads.is_empty() && left.iter().any(is_concerned) {
        let mut hosts = hosts();
        let mut raised = Cow::Borrowed(colocation);
        while let Some(least) = hosts.raised(&raised, rooms, iter::empty(), &[]) {
            raised.to_mut().set_least(least);
            left.retain(|(want, homes)| {
                let home = homes.iter().copied().find(|at| holds(&rooms.all[*at], want.pod, &raised));
                let Some(at) = home else { return true };
                rooms.take(at, &want.pod.spec.requests, colocation.of(&want.pod.key));
                settled.placed.push((at, want.pod));
                false
            });
        }
    }
    left.into_iter().map(|(want, _)| want).collect()
}

/// Returns whether a pod has waited longer than buying a node for it usually takes. Pods of a PodGroup wait for each other; the
/// scheduler binds the pods of a gang that only its operator marked one by one.
fn is_late(want: &PendingPod<'_>, now: Timestamp) -> bool {
    let PodPhase::Unschedulable { since, .. } = &want.pod.phase else { return false };
    let waits_for_others = want.pod.group.is_some() && want.pod.gang.is_none();
    want.pod.key.existing().is_some() && !waits_for_others && now.duration_since(*since) > LATE
}

fn is_open(snapshot: &Snapshot, claim: &ClaimName) -> bool {
    snapshot.claims.get(claim).is_some_and(|claim| claim.since(ConditionType::Initialized).is_some())
}

/// Returns a retiring node with room for a pod.
fn retiring(snapshot: &Snapshot, rooms: &Rooms<'_>, pod: &Pod, colocation: &Colocation<'_>) -> Option<usize> {
    let retires = |claim: &ClaimName| {
        let claim = snapshot.claims.get(claim);
        claim.is_some_and(|claim| claim.since(ConditionType::Retiring).is_some())
    };
    (0..rooms.all.len())
        .find(|at| rooms.all[*at].claim().is_some_and(retires) && holds(&rooms.all[*at], pod, colocation))
}

fn holds(room: &Room<'_>, pod: &Pod, colocation: &Colocation<'_>) -> bool {
    pod.spec.requests.fits(&room.free)
        && rules::is_host(&pod.spec, &room.labels)
        && colocation.admits_one(colocation.of(&pod.key), &room.present)
        && rules::admits(&pod.spec, &room.labels, &room.taints).is_ok()
}

/// Returns the node where the scheduler preempts other pods for the pod, and the time until which to wait for it. Returns `None`
/// if the nomination is ours, or if the node is gone.
///
/// The scheduler writes the nomination together with the unschedulable condition, so a preemption is recognized as soon as the
/// pod is unschedulable.
fn preempting(
    want: PendingPod<'_>,
    snapshot: &Snapshot,
    rooms: &Rooms<'_>,
    colocation: &Colocation<'_>,
) -> Option<(String, Timestamp)> {
    let node = want.pod.nominated_node.as_deref()?;
    if snapshot.nodes.get(node)?.deleting_since.is_some() {
        return None;
    }
    let Some(at) = rooms.of_node(node) else {
        // A node of ours that is closed for good will not take the pod. On other nodes, the scheduler decides.
        let ours = snapshot.claims.named_node(node).is_some();
        return (!ours).then(|| (node.to_owned(), given_up(want.pod, None)));
    };
    let room = &rooms.all[at];
    if matches!(room.target, Target::Node(_)) {
        // We nominate pods only to nodes of claims.
        return Some((node.to_owned(), given_up(want.pod, room.left_by)));
    }
    if want.planned_at.is_some_and(|target| rooms.of_target(target) == Some(at))
        || holds(room, want.pod, colocation)
    {
        return None;
    }
    // The pod must fit into the room that its victims free. Otherwise the nomination is an old one of ours.
    let mut after = room.as_ref().clone();
    Arc::make_mut(&mut after.free).add(&room.leaving);
    after.present.clone_from(&room.staying);
    (!room.leaving.is_empty() && holds(&after, want.pod, colocation))
        .then(|| (node.to_owned(), given_up(want.pod, room.left_by)))
}

/// Returns the time until which to wait for a preemption. This is some time after the last victim must have ended and the
/// scheduler reported the pod as unschedulable. Both times are recorded in the cluster, so a restart does not extend the wait.
fn given_up(pod: &Pod, left_by: Option<Timestamp>) -> Timestamp {
    let since = match &pod.phase {
        PodPhase::Unschedulable { since, .. } => *since,
        _ => pod.created,
    };
    let last = left_by.map_or(since, |left_by| left_by.max(since));
    last.checked_add(PATIENCE).unwrap_or(Timestamp::MAX)
}
