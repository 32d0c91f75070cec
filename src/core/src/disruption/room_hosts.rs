//! Nodes that stay, and their pods that may give way to others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use poolwright_catalog::ResourceList;
use poolwright_terms::{ConditionType, Taint};

use crate::disruption::move_history::MoveHistory;
use crate::disruption::payback::lost_by;
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::idle::START;
use crate::model::plan::Plan;
use crate::model::{Cause, Claim, Node, Pod, PodKey, PoolName};
use crate::rules::claim_node::lasting_taints;

/// How long to wait for the room of a pod that should have ended.
const STUCK: SignedDuration = SignedDuration::from_mins(1);
/// The longest time that a pod may need to end. The waiting pod would wait longer for it than for a new node.
const LONGEST_END: SignedDuration = START;

/// A node that stays, and its pods that may give way.
pub(crate) struct Host<'a> {
    pub claim: &'a Claim,
    pub node: &'a Node,
    /// Its taints, without those that do not keep out pods that are planned for it.
    pub taints: Vec<Taint>,
    /// Its free capacity.
    pub free: ResourceList,
    /// Its pods that may give way, with the loss of moving each.
    pub movable: Vec<(u64, &'a Pod)>,
    pub payback: SignedDuration,
}

/// Returns the nodes whose pods may give way.
pub(crate) fn hosts<'a>(facts: &Facts<'a>, current: &Plan, move_history: &MoveHistory) -> Vec<Host<'a>> {
    let snapshot = facts.snapshot;
    let allowed_over_all = allowance::allowance_over_all(snapshot, Cause::Underutilized, facts.now).left > 0;
    let allowed: BTreeMap<&PoolName, bool> = snapshot
        .pools
        .iter()
        .map(|(name, pool)| {
            let left = allowance::allowance(snapshot, pool, Cause::Underutilized, facts.now).left;
            (name, allowed_over_all && left > 0)
        })
        .collect();
    let mut hosts = Vec::new();
    for claim in snapshot.claims.values() {
        let is_settled = claim.deleting_since.is_none()
            && claim.since(ConditionType::Initialized).is_some()
            && claim.since(ConditionType::Disrupting).is_none();
        let Some((node, pool)) = facts.node(claim).zip(facts.pool(claim)).filter(|_| is_settled) else {
            continue;
        };
        let Some(quiet) = pool.disruption.consolidate_after.filter(|_| !pool.deleting) else { continue };
        if !node.ready || node.cordoned || facts.node_obstacle(claim, Cause::Underutilized).is_some() {
            continue;
        }
        let price = claim.current_offering().price.unwrap_or_default();
        let loss = |pod: &Pod| lost_by(facts, pod, price, &claim.current_offering().allocatable);
        let is_allowed = allowed.get(&claim.pool).is_some_and(|allowed| *allowed);
        let is_target = current.moved.iter().any(|moved| {
            let from = snapshot.claims.get(&moved.from).and_then(|from| from.leaving());
            moved.goes_to(&claim.name.0) && from != Some(Cause::Underutilized)
        });
        let movable: Vec<(u64, &Pod)> = facts
            .work(claim)
            .filter_map(|pod| match pod.deleting_since {
                // It leaves in any case.
                Some(by) => {
                    let left = by.duration_since(facts.now);
                    (left > -STUCK && left <= LONGEST_END).then_some((0, pod))
                }
                // Its budgets may allow no further eviction because of its own.
                None if move_history.gave_way(pod, facts.now) => {
                    facts.pod_obstacle(pod, Cause::Underutilized).is_none().then_some((0, pod))
                }
                None => {
                    let is_quiet = pod.created.checked_add(quiet).is_ok_and(|until| until <= facts.now);
                    let may = is_quiet
                        && is_allowed
                        && !is_target
                        && pod.ending.grace <= LONGEST_END
                        && facts.pod_obstacle(pod, Cause::Underutilized).is_none()
                        && facts.budget_of(pod).is_none()
                        && facts
                            .maker(pod)
                            .is_some_and(|maker| move_history.moves_left(facts, claim, maker) > 0)
                        && !pod
                            .owner
                            .as_ref()
                            .is_some_and(|owner| move_history.is_refused(snapshot, owner, facts.now));
                    may.then(|| (loss(pod), pod))
                }
            })
            .collect();
        if movable.is_empty() {
            continue;
        }
        let mut free = node.allocatable.clone();
        if let Some(there) = snapshot.pods.on_node(&node.name) {
            free.saturating_sub(&there.requests);
        }
        hosts.push(Host {
            claim,
            node,
            taints: lasting_taints(node),
            free,
            movable,
            payback: pool.disruption.payback,
        });
    }
    hosts
}

impl<'a> Host<'a> {
    /// Returns the pods with the least loss that give way to a waiting pod, and their loss; no pods if it fits without.
    pub fn give_way(
        &self,
        free: &ResourceList,
        waiting: &Pod,
        not_these: &BTreeSet<&PodKey>,
    ) -> Option<(u64, Vec<&'a Pod>)> {
        let asked = &waiting.spec.requests;
        let mut free = free.clone();
        let mut chosen: Vec<(u64, &Pod)> = Vec::new();
        // The scheduler keeps no room for a waiting pod from the successors of pods with higher priorities.
        let may = |pod: &Pod| pod.deleting_since.is_some() || pod.priority <= waiting.priority;
        let others = self.movable.iter().filter(|(_, pod)| !not_these.contains(&pod.key) && may(pod));
        for (lost, pod) in others {
            if asked.fits(&free) {
                break;
            }
            let is_short = |name: &str| asked.get(name) > free.get(name);
            if pod.spec.requests.iter().any(|(name, amount)| amount > 0 && is_short(name.as_str())) {
                free.add(&pod.spec.requests);
                chosen.push((*lost, pod));
            }
        }
        if !asked.fits(&free) {
            return None;
        }
        // Some may be superfluous.
        for at in (0..chosen.len()).rev() {
            let mut without = free.clone();
            without.saturating_sub(&chosen[at].1.spec.requests);
            if asked.fits(&without) {
                free = without;
                chosen.remove(at);
            }
        }
        let lost = chosen.iter().map(|(lost, _)| *lost).fold(0, u64::saturating_add);
        Some((lost, chosen.into_iter().map(|(_, pod)| pod).collect()))
    }
}
