//! PodGroups (gangs) in a plan: pods that the kube-scheduler holds until enough of them exist, and places together or not at
//! all (`plugins/gangscheduling`, `schedule_one_podgroup.go`).
//!
//! Nothing is bought for a gang without room for its minimum number of pods. Planning is repeated without its pods. Nodes bought
//! earlier stay planned for it, because the missing room may become available. A node that waits for an incomplete gang counts as
//! empty ([`crate::demand`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::RankedOffering;

use crate::demand::{GroupState, group_state, is_there};
use crate::model::plan::{Plan, UnplacedPod, UnplacedReason};
use crate::model::{ObjectKey, Pod, PodKey, PoolName, Snapshot};
use crate::plan::left_by::LeftBy;
use crate::plan::pending::{Demand, PendingPod, Settled};
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;

/// A gang for which an attempt had places, but too few.
#[derive(Clone, Debug)]
pub(crate) struct IncompleteGang {
    /// How many of its pods start together, and how many had room.
    words: String,
    /// One of its pods without a place, and the reason.
    left: Option<(PodKey, LeftBy)>,
    /// The new nodes that its pods had, each with its pool.
    nodes: Vec<(PoolName, RankedOffering)>,
    /// The amount of the limit in `left` that its other pods take, each on the smallest node that fits it. `None` without such a limit,
    /// or if it is not the only reason.
    lacking: Option<u64>,
}

impl IncompleteGang {
    /// Returns the message for its pods, with what the limits count now that nothing is bought for them.
    pub fn message(&self, limits: &Limits, supply: &Supply<'_>) -> String {
        let Some((pod, by)) = &self.left else { return self.words.clone() };
        let of_limit = by.reached().filter(|limit| !limits.is_stock(*limit)).zip(self.lacking);
        let why = match of_limit {
            // One more node is not enough for a gang.
            Some((limit, lacking)) => {
                let takes = limits.taken_by(limit, supply, &self.nodes).saturating_add(lacking);
                by.sentence_of_gang(limits, supply, takes)
            }
            None => by.sentence(limits, supply),
        };
        format!("{}; pod {pod}: {why}", self.words)
    }

    /// Returns the limit that leaves the gang out, if one does.
    pub fn limit_reached(&self) -> Option<u32> {
        self.left.as_ref()?.1.reached()
    }
}

/// The PodGroups of pods without a node, by key.
#[derive(Debug, Default)]
pub(crate) struct Groups<'a> {
    by_key: BTreeMap<ObjectKey, GroupState<'a>>,
}

impl<'a> Groups<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        let mut by_key = BTreeMap::new();
        for key in snapshot.pods.unbound().filter_map(Pod::group_key) {
            by_key.entry(key).or_insert_with_key(|key| group_state(snapshot, key));
        }
        Self { by_key }
    }

    /// Returns the reason why the pod is not planned, if there is one: the scheduler holds it, or its PodGroup has unmodelled
    /// rules.
    pub fn hold(&self, pod: &Pod) -> Option<(UnplacedReason, String)> {
        let key = pod.group_key()?;
        let state = self.by_key.get(&key)?;
        let Some(group) = state.group else {
            let message = format!(
                "belongs to PodGroup {key} (`spec.schedulingGroup.podGroupName`), which does not exist, so the scheduler does not try the pod; create the PodGroup. If it exists, allow Poolwright to list podgroups of scheduling.k8s.io/v1alpha2"
            );
            return Some((UnplacedReason::PodGroupMissing, message));
        };
        if let Some(rule) = group.unmodelled.first() {
            let message = format!(
                "its {} uses {} (`{}`), which Poolwright does not model, so it buys no node for the pod; remove the rule, or add nodes by hand",
                group.name(),
                rule.rule,
                rule.field
            );
            return Some((UnplacedReason::UnmodelledRule, message));
        }
        let least = state.least()?;
        let missing = least.checked_sub(state.there).filter(|missing| *missing > 0)?;
        let (are, they_start) = if state.there == 1 { ("is", "it starts") } else { ("are", "they start") };
        let why = match &group.stands_for {
            Some(_) => format!("{they_start} only with the others"),
            None => format!("the scheduler tries none before all {least} are"),
        };
        let message = format!(
            "waits for {missing} of {least} pods of its {}: {} {are} there, and {why}",
            group.name(),
            state.there
        );
        Some((UnplacedReason::PodGroupPending, message))
    }

    /// Returns the gang that a pod belongs to, if pods of it start together.
    pub fn gang_of(&self, pod: &Pod) -> Option<ObjectKey> {
        let key = pod.group_key()?;
        self.by_key.get(&key)?.least()?;
        Some(key)
    }

    /// Removes the pods of gangs that have too few pods that can be planned now from the demand. Pods with a place keep it.
    pub fn retain_startable(&self, snapshot: &Snapshot, demand: &mut Demand<'a>) {
        let mut pending: BTreeMap<ObjectKey, usize> = BTreeMap::new();
        for key in demand.pending.iter().filter(|want| is_there(want.pod)).filter_map(group_of) {
            *pending.entry(key).or_default() += 1;
        }
        let mut held: BTreeMap<ObjectKey, (UnplacedReason, String)> = BTreeMap::new();
        for (key, state) in &self.by_key {
            let can = pending.get(key).copied().unwrap_or_default();
            let Some(least) = state.least().filter(|least| can > 0 && state.bound + can < *least) else {
                continue;
            };
            let of = |left: &&UnplacedPod| belongs(snapshot, &left.pod, key);
            let other = demand.unplaced.iter().filter(of).max_by_key(|left| left.reason.is_unmet_demand());
            let unmet = other.is_some_and(|left| left.reason.is_unmet_demand());
            let reason = if unmet { UnplacedReason::GangIncomplete } else { UnplacedReason::PodGroupPending };
            let lacking = least - state.bound - can;
            let why = other.map_or_else(String::new, |left| format!("; pod {}: {}", left.pod, left.message));
            let message = format!(
                "waits for {lacking} of {least} pods of its {} that cannot be planned yet{why}",
                state.name(key)
            );
            held.insert(key.clone(), (reason, message));
        }
        if held.is_empty() {
            return;
        }
        let Demand { pending, unplaced } = demand;
        pending.retain(|want| {
            let Some((reason, message)) = group_of(want).and_then(|key| held.get(&key)) else { return true };
            let stays = want.planned_at.is_some();
            if !stays {
                let (pod, message) = (want.pod.key.clone(), message.clone());
                unplaced.push(UnplacedPod { pod, reason: *reason, message });
            }
            stays
        });
    }

    /// Returns the gangs for which the plan has places, but fewer than their minimum. The least important gangs come first. Gangs
    /// in `known` are left out. `left` has the reasons of unplaced pods of gangs.
    pub fn incomplete(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        left: &BTreeMap<PodKey, LeftBy>,
        known: &BTreeMap<ObjectKey, IncompleteGang>,
    ) -> Vec<(ObjectKey, IncompleteGang)> {
        if self.by_key.is_empty() {
            return Vec::new();
        }
        let placed = placed(snapshot, plan);
        let mut found: Vec<(&ObjectKey, &GroupState<'_>, IncompleteGang)> = Vec::new();
        for (key, state) in &self.by_key {
            let have = placed.get(key).copied().unwrap_or_default();
            let Some(least) = state.least() else { continue };
            if have == 0 || state.bound + have >= least || known.contains_key(key) {
                continue;
            }
            let of = |left: &&UnplacedPod| belongs(snapshot, &left.pod, key);
            let other = plan.unplaced.iter().filter(of).max_by_key(|left| left.reason.is_unmet_demand());
            let reason = |of: &UnplacedPod| {
                let by = left.get(&of.pod).cloned();
                (of.pod.clone(), by.unwrap_or_else(|| LeftBy::other(of.message.clone())))
            };
            let room = state.bound + have;
            let words = format!(
                "{least} pods of its {} start together, but a plan with them has room for only {room}, so Poolwright buys nothing for any",
                state.name(key)
            );
            let reason = other.map(reason);
            let limit = reason.as_ref().and_then(|(_, by)| by.reached());
            let lacking = limit.and_then(|limit| {
                let of_gang = left.iter().filter(|(pod, _)| belongs(snapshot, pod, key));
                let mut each: Vec<u64> = of_gang.filter_map(|(_, by)| by.least_of(limit)).collect();
                each.sort_unstable();
                let each = each.get(..least - room)?;
                Some(each.iter().copied().fold(0, u64::saturating_add))
            });
            let nodes = nodes_of(snapshot, plan, key);
            found.push((key, state, IncompleteGang { words, left: reason, nodes, lacking }));
        }
        found.sort_by_key(|(key, state, _)| (state.priority, Reverse(state.created), Reverse(*key)));
        found.into_iter().map(|(key, _, gang)| (key.clone(), gang)).collect()
    }

    /// Returns how many more pods of each PodGroup must have a place before any of them is placed. It is zero for a gang that a plan
    /// gives enough places, and for a group whose pods are placed one by one.
    pub fn missing(&self, snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ObjectKey, usize> {
        if self.by_key.is_empty() {
            return BTreeMap::new();
        }
        let placed = placed(snapshot, plan);
        let missing = |(key, state): (&ObjectKey, &GroupState<'_>)| {
            let room = state.bound + placed.get(key).copied().unwrap_or_default();
            (key.clone(), state.least().map_or(0, |least| least.saturating_sub(room)))
        };
        self.by_key.iter().map(missing).collect()
    }

    /// Returns how many pods of each gang a plan places beyond its minimum. Without a plan, all pods that wait count as placed.
    pub fn beyond_minimum(
        &self,
        snapshot: &Snapshot,
        pending: &[PendingPod<'_>],
        plan: Option<&Plan>,
    ) -> BTreeMap<ObjectKey, usize> {
        let placed = match plan {
            Some(plan) => placed(snapshot, plan),
            None => by_group(pending.iter().map(|want| want.pod)),
        };
        let beyond = |(key, state): (&ObjectKey, &GroupState<'_>)| {
            let room = state.bound + placed.get(key).copied().unwrap_or_default();
            Some((key.clone(), room.saturating_sub(state.least()?)))
        };
        self.by_key.iter().filter_map(beyond).collect()
    }

    /// Removes the pods of these gangs from the demand, and returns them with their gang.
    pub fn leave_out(
        gangs: &BTreeMap<ObjectKey, IncompleteGang>,
        settled: &mut Settled<'a>,
    ) -> Vec<(&'a Pod, ObjectKey)> {
        let mut out = Vec::new();
        if gangs.is_empty() {
            return out;
        }
        settled.open.retain(|want| {
            let gang = group_of(want).filter(|key| gangs.contains_key(key));
            let stays = gang.is_none();
            out.extend(gang.map(|key| (want.pod, key)));
            stays
        });
        out
    }
}

/// Returns the pods that a plan leaves out because the scheduler does not try their PodGroup, with the reason and the message.
pub fn held_by_groups(snapshot: &Snapshot) -> BTreeMap<PodKey, (UnplacedReason, String)> {
    let groups = Groups::new(snapshot);
    let held = |pod: &Pod| Some((pod.key.clone(), groups.hold(pod)?));
    snapshot.pods.unbound().filter_map(held).collect()
}

/// Audits gangs: a plan must not buy nodes for a gang without places for its minimum number of pods.
pub(crate) fn audit(snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
    let bought_for = plan.claims.iter().flat_map(|claim| &claim.planned_pods);
    let gangs: BTreeSet<ObjectKey> =
        bought_for.filter_map(|key| snapshot.pods.get(key)?.group_key()).collect();
    if gangs.is_empty() {
        return Vec::new();
    }
    let placed = placed(snapshot, plan);
    let mut problems = Vec::new();
    for key in gangs {
        let state = group_state(snapshot, &key);
        if state.group.is_none() {
            problems.push(format!("PodGroup {key} does not exist, but a node is bought for its pods"));
        }
        let room = state.bound + placed.get(&key).copied().unwrap_or_default();
        if let Some(least) = state.least().filter(|least| room < *least) {
            let name = state.name(&key);
            problems.push(format!("{name}: {least} pods start together, and {room} have room"));
        }
    }
    problems
}

/// Returns the new nodes of a plan that have pods of a gang, each with its pool.
fn nodes_of(snapshot: &Snapshot, plan: &Plan, gang: &ObjectKey) -> Vec<(PoolName, RankedOffering)> {
    let of_gang = |pod: &PodKey| {
        let pod = snapshot.pods.get(pod);
        pod.and_then(|pod| pod.group_key()).as_ref() == Some(gang)
    };
    let claims = plan.claims.iter().filter(|claim| claim.planned_pods.iter().any(of_gang));
    claims.map(|claim| (claim.pool.clone(), claim.offerings[0].clone())).collect()
}

/// Returns the number of pods of each PodGroup that a plan places, counting existing pods and their successors.
fn placed(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ObjectKey, usize> {
    let on_rooms = plan.placements.iter().map(|placement| &placement.pod);
    let on_new = plan.claims.iter().flat_map(|claim| &claim.planned_pods);
    by_group(on_rooms.chain(on_new).filter_map(|key| Some(snapshot.pods.get(key)?.as_ref())))
}

/// Counts existing pods and their successors by PodGroup.
fn by_group<'p>(pods: impl Iterator<Item = &'p Pod>) -> BTreeMap<ObjectKey, usize> {
    let mut count: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for group in pods.filter(|pod| is_there(pod)).filter_map(Pod::group_key) {
        *count.entry(group).or_default() += 1;
    }
    count
}

fn group_of(want: &PendingPod<'_>) -> Option<ObjectKey> {
    want.pod.group_key()
}

fn belongs(snapshot: &Snapshot, pod: &PodKey, group: &ObjectKey) -> bool {
    pod.existing().is_some() && snapshot.pods.get(pod).and_then(|pod| pod.group_key()).as_ref() == Some(group)
}
