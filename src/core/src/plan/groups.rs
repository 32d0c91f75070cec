//! PodGroups (gangs) in a plan: pods that the kube-scheduler holds until enough of them exist, and places together or not at
//! all (`plugins/gangscheduling`, `schedule_one_podgroup.go`).
//!
//! Nothing is bought for a gang without room for its minimum number of pods, and for that of each of its roles. Planning is repeated
//! without its pods. Nodes bought earlier stay planned for it, because the missing room may become available. A node that waits for
//! an incomplete gang counts as empty ([`crate::demand`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::demand::{GroupState, Members, group_state, is_there, pod_group};
use crate::model::plan::{Plan, PlannedClaim, UnplacedPod, UnplacedReason};
use crate::model::{GangScheduler, GroupRole, ObjectKey, Pod, PodKey, PodSpec, Snapshot};
use crate::plan::gang_limits;
use crate::plan::gang_nodes::Takes;
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
    /// The new nodes that its pods had.
    nodes: Vec<PlannedClaim>,
    /// The amount of the limit in `left` that its other pods take, each on the smallest node that fits it. `None` without such a limit,
    /// or if it is not the only reason.
    lacking: Option<u64>,
    /// The pods that need places, if a limit leaves one of them out.
    pods: Vec<PodSpec>,
    /// The limits that keep it out besides rules about other pods, with what its pods without a place take of each.
    beside: Takes,
}

impl IncompleteGang {
    /// Returns the message for its pods, with what the limits count now that nothing is bought for them. `known` has the limits that
    /// help, by the pods that need places: many gangs are alike.
    pub fn message<'g>(
        &'g self,
        limits: &Limits,
        supply: &Supply<'_>,
        known: &mut BTreeMap<&'g [PodSpec], Vec<Takes>>,
    ) -> String {
        let Some((pod, by)) = &self.left else { return self.words.clone() };
        let limit = by.reached().filter(|limit| !limits.is_stock(*limit));
        let pods = self.pods.as_slice();
        let helping: &[Takes] = if limit.is_some() {
            known.entry(pods).or_insert_with(|| gang_limits::helping(limits, supply, pods))
        } else {
            &[]
        };
        let is_alone = |takes: &Takes| takes.len() == 1 && takes.first().map(|(of, _)| *of) == limit;
        let is_known = helping.is_empty() || by.is_single() && helping.iter().any(is_alone);
        // One more node is not enough for a gang.
        let takes = |limit: u32, lacking: u64| {
            (limit, limits.taken_by(limit, supply, &self.nodes).saturating_add(lacking))
        };
        let others = self.beside.iter().filter(|(of, _)| Some(*of) != limit);
        let others = others.map(|(of, lacking)| takes(*of, *lacking));
        let of_limit = || self.beside.iter().find(|(of, _)| Some(*of) == limit).map(|(_, lacking)| *lacking);
        let why = match limit.zip(self.lacking.or_else(of_limit)) {
            _ if !is_known => by.first() + &gang_limits::sentence(helping, limits, supply),
            Some((limit, lacking)) => {
                let all: Takes = [takes(limit, lacking)].into_iter().chain(others).collect();
                by.sentence_of_gang(limits, supply, &all)
            }
            None if self.beside.is_empty() => by.sentence(limits, supply),
            None => {
                let beside = gang_limits::all_in_words(&others.collect::<Takes>(), limits, supply);
                let said = [by.sentence(limits, supply), beside].into_iter().filter(|one| !one.is_empty());
                said.collect::<Vec<String>>().join("; besides, ")
            }
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

    /// Returns the reason why the pod is not planned, if there is one: the scheduler or a queue holds it, or its PodGroup has
    /// unmodelled rules.
    pub fn hold(&self, pod: &Pod) -> Option<(UnplacedReason, String)> {
        let key = pod.group_key()?;
        let state = self.by_key.get(&key)?;
        let Some(group) = state.group else {
            let (by, version) = match GangScheduler::of(&key.name) {
                None => ("`spec.schedulingGroup.podGroupName`", "scheduling.k8s.io/v1alpha2"),
                Some(scheduler) => ("by a mark of its metadata", scheduler.api_version()),
            };
            let message = format!(
                "belongs to PodGroup {key} ({by}), which does not exist, so the scheduler does not try the pod; create the PodGroup. If it exists, allow Poolwright to list podgroups of {version}, or add it to the files of the plan"
            );
            return Some((UnplacedReason::PodGroupMissing, message));
        };
        if let Some(why) = &group.held {
            return Some((UnplacedReason::PodGroupPending, format!("its {} {why}", group.name())));
        }
        if let Some(rule) = group.unmodelled.first() {
            let message = format!(
                "its {} uses {} (`{}`), which Poolwright does not model, so it buys no node for the pod; remove the rule, or add nodes by hand",
                group.name(),
                rule.rule,
                rule.field
            );
            return Some((UnplacedReason::UnmodelledRule, message));
        }
        let (least, there) = (state.least()?, state.there.all);
        let shortage = state.shortage(&state.there);
        if shortage.all == 0 {
            return None;
        }
        if let Some((role, has)) = state.lacking_role(&shortage) {
            let (name, needed, has) = (group.name(), role.needed(), so_few(has));
            let message =
                format!("its {name} needs {needed}, but has {has}, so its other pods would do nothing");
            return Some((UnplacedReason::PodGroupPending, message));
        }
        let (are, they_start) = if there == 1 { ("is", "it starts") } else { ("are", "they start") };
        let why = match &group.stands_for {
            Some(_) => format!("{they_start} only with the others"),
            None => format!("the scheduler tries none before all {least} are"),
        };
        let message = format!(
            "waits for {} of {least} pods of its {}: {there} {are} there, and {why}",
            shortage.all,
            group.name()
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
        let pending = by_group(snapshot, demand.pending.iter().map(|want| want.pod));
        let mut held: BTreeMap<ObjectKey, (UnplacedReason, String)> = BTreeMap::new();
        for (key, state) in &self.by_key {
            let (Some(least), Some(can)) = (state.least(), pending.get(key)) else { continue };
            let shortage = state.shortage(&state.room(Some(can)));
            if shortage.all == 0 {
                continue;
            }
            let role = state.lacking_role(&shortage);
            let other = left_of(snapshot, &demand.unplaced, key, role.map(|(role, _)| role));
            let unmet = other.is_some_and(|left| left.reason.is_unmet_demand());
            let reason = if unmet { UnplacedReason::GangIncomplete } else { UnplacedReason::PodGroupPending };
            let why = other.map_or_else(String::new, |left| format!("; pod {}: {}", left.pod, left.message));
            let (name, lacking) = (state.name(key), shortage.all);
            let message = match role {
                Some((role, has)) => {
                    let (needed, has) = (role.needed(), so_few(has));
                    format!("its {name} needs {needed}, but {has} can be planned yet{why}")
                }
                None => format!(
                    "waits for {lacking} of {least} pods of its {name} that cannot be planned yet{why}"
                ),
            };
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
    /// in `known` are left out. `left` has the reasons of unplaced pods of gangs, and `beside` the limits that keep gangs out besides
    /// rules about other pods.
    pub fn incomplete(
        &self,
        snapshot: &Snapshot,
        plan: &Plan,
        (left, beside): (&BTreeMap<PodKey, LeftBy>, &BTreeMap<ObjectKey, Takes>),
        known: &BTreeMap<ObjectKey, IncompleteGang>,
    ) -> Vec<(ObjectKey, IncompleteGang)> {
        if self.by_key.is_empty() {
            return Vec::new();
        }
        let placed = placed(snapshot, plan);
        let with_places: BTreeSet<&PodKey> = plan.placements.iter().map(|placement| &placement.pod).collect();
        let mut found: Vec<(&ObjectKey, &GroupState<'_>, IncompleteGang)> = Vec::new();
        for (key, state) in &self.by_key {
            let (Some(least), Some(have)) = (state.least(), placed.get(key)) else { continue };
            let room = state.room(Some(have));
            let shortage = state.shortage(&room);
            if shortage.all == 0 || known.contains_key(key) {
                continue;
            }
            let role = state.lacking_role(&shortage);
            let other = left_of(snapshot, &plan.unplaced, key, role.map(|(role, _)| role));
            let reason = |of: &UnplacedPod| {
                let by = left.get(&of.pod).cloned();
                (of.pod.clone(), by.unwrap_or_else(|| LeftBy::other(of.message.clone())))
            };
            let name = state.name(key);
            let words = match role {
                Some((role, has)) => format!(
                    "its {name} needs {}, but a plan has room for {}, so Poolwright buys nothing for any of its pods",
                    role.needed(),
                    so_few(has)
                ),
                None => format!(
                    "{least} pods of its {name} start together, but a plan with them has room for only {}, so Poolwright buys nothing for any",
                    room.all
                ),
            };
            let reason = other.map(reason);
            let limit = reason.as_ref().and_then(|(_, by)| by.reached());
            let lacking = limit.and_then(|limit| {
                let of_gang = left.iter().filter(|(pod, _)| belongs(snapshot, pod, key));
                let mut each: Vec<(u64, &PodKey)> =
                    of_gang.filter_map(|(pod, by)| Some((by.least_of(limit)?, pod))).collect();
                each.sort_unstable();
                let (mut open, mut takes) = (shortage.clone(), 0_u64);
                for (amount, pod) in each {
                    if snapshot.pods.get(pod).is_some_and(|pod| open.meet(state.group, pod)) {
                        takes = takes.saturating_add(amount);
                    }
                }
                (open.all == 0).then_some(takes)
            });
            let nodes = nodes_of(snapshot, plan, key);
            let pods =
                limit.map_or_else(Vec::new, |_| gang_limits::needed(snapshot, key, state, &with_places));
            let beside = beside.get(key).cloned().unwrap_or_default();
            found.push((key, state, IncompleteGang { words, left: reason, nodes, lacking, pods, beside }));
        }
        found.sort_by_key(|(key, state, _)| (state.priority, Reverse(state.created), Reverse(*key)));
        found.into_iter().map(|(key, _, gang)| (key.clone(), gang)).collect()
    }

    /// Returns how many more pods of each PodGroup must have a place before any of them is placed. It is zero for a gang that a plan
    /// gives enough places, and for a group whose pods are placed one by one.
    pub fn missing(&self, snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ObjectKey, Members> {
        if self.by_key.is_empty() {
            return BTreeMap::new();
        }
        let placed = placed(snapshot, plan);
        let missing = |(key, state): (&ObjectKey, &GroupState<'_>)| {
            (key.clone(), state.shortage(&state.room(placed.get(key))))
        };
        self.by_key.iter().map(missing).collect()
    }

    /// Returns how many pods of each gang a plan places beyond its minimum. Without a plan, all pods that wait count as placed.
    pub fn beyond_minimum(
        &self,
        snapshot: &Snapshot,
        pending: &[PendingPod<'_>],
        plan: Option<&Plan>,
    ) -> BTreeMap<ObjectKey, Members> {
        let placed = match plan {
            Some(plan) => placed(snapshot, plan),
            None => by_group(snapshot, pending.iter().map(|want| want.pod)),
        };
        let beyond = |(key, state): (&ObjectKey, &GroupState<'_>)| {
            Some((key.clone(), state.beyond(&state.room(placed.get(key)))?))
        };
        self.by_key.iter().filter_map(beyond).collect()
    }

    /// Returns the pods without a place that the roles of their gangs need, the most important and oldest of each role. If a limit
    /// leaves some pods out, these come before others of their priority: without them, their gang gets nothing.
    pub fn needed_by_roles(&self, snapshot: &Snapshot, settled: &Settled<'a>) -> BTreeSet<&'a PodKey> {
        let mut needed = BTreeSet::new();
        if !self.by_key.values().any(|state| state.group.is_some_and(|group| !group.roles.is_empty())) {
            return needed;
        }
        let placed = by_group(snapshot, settled.placed.iter().map(|(_, pod)| *pod));
        let mut open: Vec<&'a Pod> =
            settled.open.iter().map(|want| want.pod).filter(|pod| is_there(pod)).collect();
        open.sort_by_key(|pod| (Reverse(pod.priority), pod.created, &pod.key));
        let mut lacking: BTreeMap<ObjectKey, Members> = BTreeMap::new();
        for pod in open {
            let Some((key, state)) = pod.group_key().and_then(|key| self.by_key.get_key_value(&key)) else {
                continue;
            };
            let shortage = || state.shortage(&state.room(placed.get(key)));
            if lacking.entry(key.clone()).or_insert_with(shortage).meet_role(state.group, pod) {
                needed.insert(&pod.key);
            }
        }
        needed
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
        let (name, room) = (state.name(&key), state.room(placed.get(&key)));
        let shortage = state.shortage(&room);
        if let Some((role, has)) = state.lacking_role(&shortage) {
            problems.push(format!("{name} needs {}, and {} have room", role.needed(), so_few(has)));
        } else if let Some(least) = state.least().filter(|_| shortage.all > 0) {
            problems.push(format!("{name}: {least} pods start together, and {} have room", room.all));
        }
    }
    problems
}

/// Returns the new nodes of a plan that have pods of a gang.
fn nodes_of(snapshot: &Snapshot, plan: &Plan, gang: &ObjectKey) -> Vec<PlannedClaim> {
    let of_gang = |pod: &PodKey| {
        let pod = snapshot.pods.get(pod);
        pod.and_then(|pod| pod.group_key()).as_ref() == Some(gang)
    };
    plan.claims.iter().filter(|claim| claim.planned_pods.iter().any(of_gang)).cloned().collect()
}

/// Returns the pods of each PodGroup that a plan places, counting existing pods and their successors.
fn placed(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<ObjectKey, Members> {
    let on_rooms = plan.placements.iter().map(|placement| &placement.pod);
    let on_new = plan.claims.iter().flat_map(|claim| &claim.planned_pods);
    by_group(snapshot, on_rooms.chain(on_new).filter_map(|key| Some(snapshot.pods.get(key)?.as_ref())))
}

/// Counts existing pods and their successors by PodGroup.
fn by_group<'p>(snapshot: &Snapshot, pods: impl Iterator<Item = &'p Pod>) -> BTreeMap<ObjectKey, Members> {
    let mut count: BTreeMap<ObjectKey, Members> = BTreeMap::new();
    for pod in pods.filter(|pod| is_there(pod)) {
        if let Some(key) = pod.group_key() {
            let group = pod_group(snapshot, &key);
            count.entry(key).or_default().add(group, pod);
        }
    }
    count
}

/// Returns the pod without a place that explains best what a gang lacks: one of this role, if a role lacks pods.
fn left_of<'p>(
    snapshot: &Snapshot,
    unplaced: &'p [UnplacedPod],
    gang: &ObjectKey,
    role: Option<&GroupRole>,
) -> Option<&'p UnplacedPod> {
    let is_lacking = |left: &UnplacedPod| {
        role.is_none_or(|role| snapshot.pods.get(&left.pod).is_some_and(|pod| role.has(pod)))
    };
    let of_gang = unplaced.iter().filter(|left| belongs(snapshot, &left.pod, gang));
    // What a rule keeps out is told with the limits, which do not tell of the rule.
    let is_by_rule = |left: &UnplacedPod| left.reason == UnplacedReason::NoOfferingFits;
    of_gang.max_by_key(|left| (is_lacking(left), left.reason.is_unmet_demand(), is_by_rule(left)))
}

/// Says that there are too few pods.
fn so_few(pods: usize) -> String {
    if pods == 0 { "none".to_owned() } else { format!("only {pods}") }
}

fn group_of(want: &PendingPod<'_>) -> Option<ObjectKey> {
    want.pod.group_key()
}

fn belongs(snapshot: &Snapshot, pod: &PodKey, group: &ObjectKey) -> bool {
    pod.existing().is_some() && snapshot.pods.get(pod).and_then(|pod| pod.group_key()).as_ref() == Some(group)
}
