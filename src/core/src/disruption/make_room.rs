//! Makes room for waiting pods: moves pods off nodes that stay, if that costs less than the nodes that a plan would buy.
//!
//! Consolidation empties whole nodes, so it cannot help if the only node with the right GPUs is full, and some of its pods would run
//! anywhere. Here such pods give way. Their successors get other places first, new nodes if needed. When these are open, the pods
//! are evicted, and the waiting pods take their room.
//!
//! The waiting pods may also be the successors of pods on a node that consolidation empties (`exchange`). That node is drained
//! when the pods that give way have open places.
//!
//! Nothing is stored in the cluster. Every plan that would buy a node repeats the search. It finds the same answer, because the places
//! of the successors are free by then. If the answer changes, for example because a budget closes, the node is bought. Evictions are
//! recorded in the [`MoveHistory`], in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_solver::StopSignal;
use poolwright_terms::{ConditionType, Reason, Taint};

use crate::action::{Action, Event, EventType, Subject};
use crate::disruption::consolidation::goes_down;
use crate::disruption::follow::is_open;
use crate::disruption::move_history::MoveHistory;
use crate::disruption::payback::{OVERLAP, during, lost_by};
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::PlanOptions;
use crate::model::idle::START;
use crate::model::plan::{Moved, MovedTo, Plan, PlannedClaim, Target};
use crate::model::{
    Cause, Claim, ClaimName, Ends, Life, Node, ObjectKey, Pod, PodKey, PodRole, PodSpec, PoolName, Snapshot, Uid,
};
use crate::plan::own_nodes;
use crate::plan::pack::horizon;
use crate::plan::plan;
use crate::rules;
use crate::supply::rooms::lasting_taints;

/// The most nodes to buy that one search tries to save.
const MOST_NODES: usize = 3;
/// The most plans for one of them.
const TRIES: usize = 3;
/// The least saving for each dollar that the restarts of pods cost. Consolidation moves a pod once and for good, but a pod that gave
/// way may soon move again.
const LEAST_TIMES: u64 = 10;
/// How long to wait for the room of a pod that should have ended.
const STUCK: SignedDuration = SignedDuration::from_mins(1);
/// The longest time that a pod may need to end. The waiting pod would wait longer for it than for a new node.
const LONGEST_END: SignedDuration = START;

/// A plan in which pods give way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomMade {
    /// The plan. It buys nodes for the successors of pods that give way, and for other waiting pods.
    pub plan: Plan,
    /// Evictions of the pods that give way, and nominations of the pods that take their room. Without evictions until the successors
    /// have places on open nodes.
    pub actions: Vec<Action>,
    /// The pods that the actions evict, with their UIDs.
    pub evicted: Vec<(PodKey, Uid)>,
    /// A sentence about each pod that gives way, and about each pod that takes its room.
    pub explanations: BTreeMap<PodKey, String>,
    /// The claims of nodes that are emptied and whose pods take the room.
    pub emptied: BTreeSet<ClaimName>,
}

/// A node that stays, and its pods that may give way.
struct Host<'a> {
    claim: &'a Claim,
    node: &'a Node,
    /// Its taints, without those that do not keep out pods that are planned for it.
    taints: Vec<Taint>,
    /// Its free capacity.
    free: ResourceList,
    /// Its pods that may give way, with the loss of moving each.
    movable: Vec<(u64, &'a Pod)>,
    payback: SignedDuration,
}

/// Pods that give way, and their loss.
pub(crate) struct Choice<'a> {
    /// The pods that take the room.
    takers: Vec<PodKey>,
    pub pods: Vec<(&'a Claim, &'a Pod)>,
    lost: u64,
    pub payback: SignedDuration,
}

impl Choice<'_> {
    /// Returns the choice that no pod gives way.
    pub(crate) fn nobody(payback: SignedDuration) -> Self {
        Self { takers: Vec::new(), pods: Vec::new(), lost: 0, payback }
    }
}

/// Searches for pods that give way to waiting pods, if that costs less than a node that `current` buys for these. `current` is a plan
/// for the same snapshot, and `move_history` holds earlier moves.
pub fn make_room(
    snapshot: &Snapshot,
    current: &Plan,
    move_history: &MoveHistory,
    now: Timestamp,
    options: &PlanOptions,
    stop: &mut dyn StopSignal,
) -> Option<RoomMade> {
    if current.claims.is_empty() || !current.refused.is_empty() {
        return None;
    }
    let search = RoomSearch::new(Facts::new(snapshot, now), current, move_history, options);
    let is_prepared = |from: &ClaimName| move_history.makes_room_for(from);
    let mut dear: Vec<&PlannedClaim> =
        current.claims.iter().filter(|claim| search.is_for_waiting(claim, is_prepared)).collect();
    dear.sort_by_key(|claim| (std::cmp::Reverse(claim.price()), &claim.name));
    dear.into_iter().take(MOST_NODES).find_map(|claim| {
        let (plan, choice) = search.instead_of(claim, |plan, choice| search.pays(plan, choice), stop)?;
        Some(search.made(plan, claim, &choice))
    })
}

/// Returns the nodes whose pods may give way.
fn hosts<'a>(facts: &Facts<'a>, current: &Plan, move_history: &MoveHistory) -> Vec<Host<'a>> {
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

/// One search.
pub(crate) struct RoomSearch<'a> {
    pub facts: Facts<'a>,
    current: &'a Plan,
    move_history: &'a MoveHistory,
    options: &'a PlanOptions,
    hosts: Vec<Host<'a>>,
    /// The lowest price of a node for one pod with each of these specs.
    own: BTreeMap<&'a PodSpec, UsdPerHour>,
}

impl<'a> RoomSearch<'a> {
    /// Creates a search for room that makes nodes of `current` needless.
    pub fn new(
        facts: Facts<'a>,
        current: &'a Plan,
        move_history: &'a MoveHistory,
        options: &'a PlanOptions,
    ) -> Self {
        let hosts = hosts(&facts, current, move_history);
        let mut search = Self { facts, current, move_history, options, hosts, own: BTreeMap::new() };
        if search.hosts.is_empty() {
            return search;
        }
        let waiting = current.claims.iter().flat_map(|claim| &claim.planned_pods);
        let waiting = waiting.filter_map(|key| search.asks(key));
        let movable = search.hosts.iter().flat_map(|host| &host.movable).map(|(_, pod)| *pod);
        let specs: BTreeSet<&PodSpec> = waiting.chain(movable).map(|pod| &pod.spec).collect();
        let specs: Vec<&PodSpec> = specs.into_iter().collect();
        let prices = own_nodes::cheapest(search.facts.snapshot, search.facts.now, options, &specs);
        search.own = specs.into_iter().zip(prices).filter_map(|(spec, price)| Some((spec, price?))).collect();
        // Small pods need the cheapest places.
        let (own, cpu) = (&search.own, |pod: &Pod| pod.spec.requests.get(ResourceName::CPU));
        for host in &mut search.hosts {
            host.movable.sort_by_key(|(lost, pod)| (*lost, own.get(&pod.spec), cpu(pod), &pod.key));
        }
        search
    }

    /// Returns whether a node is bought at a known price, and only for pods that belong to no gang and that wait or leave one of these
    /// nodes for consolidation.
    pub fn is_for_waiting(&self, claim: &PlannedClaim, is_emptied: impl Fn(&ClaimName) -> bool) -> bool {
        let waits = |key: &PodKey| {
            self.asks(key).is_some_and(|pod| pod.group_key().is_none())
                && self.moved(key).is_none_or(|moved| is_emptied(&moved.from))
        };
        claim.price().is_some() && !claim.planned_pods.is_empty() && claim.planned_pods.iter().all(waits)
    }

    /// Returns the move whose successor a planned pod is.
    fn moved(&self, key: &PodKey) -> Option<&'a Moved> {
        self.current.moved.iter().find(|moved| moved.successor.as_ref() == Some(key))
    }

    /// Returns the waiting pod with this key, or the pod whose successor it is.
    fn asks(&self, key: &PodKey) -> Option<&'a Pod> {
        let pods = &self.facts.snapshot.pods;
        let pod = pods.get(key).or_else(|| pods.get(&self.moved(key)?.pod))?;
        Some(pod.as_ref())
    }

    /// Returns a plan without this new node, and the pods that give way, if the plan pays.
    pub fn instead_of(
        &self,
        claim: &PlannedClaim,
        pays: impl Fn(&Plan, &Choice<'a>) -> bool,
        stop: &mut dyn StopSignal,
    ) -> Option<(Plan, Choice<'a>)> {
        let price = claim.price()?;
        // Pods that need such a dear node too do not help.
        let is_dear = |pod: &Pod| self.own.get(&pod.spec).is_none_or(|own| *own >= price);
        let movable = self.hosts.iter().flat_map(|host| &host.movable);
        let mut not_these: BTreeSet<&PodKey> =
            movable.filter(|(_, pod)| is_dear(pod)).map(|(_, pod)| &pod.key).collect();
        for _ in 0..TRIES {
            let choice = self.choose(claim, &not_these)?;
            let time = self.time(claim, self.current, choice.payback);
            if stop.should_stop() || during(price, time) <= choice.lost {
                return None;
            }
            let giving_way =
                choice.pods.iter().map(|(claim, pod)| (pod.key.clone(), claim.name.clone())).collect();
            let trial = Snapshot { giving_way: Arc::new(giving_way), ..self.facts.snapshot.clone() };
            let plan = plan(&trial, self.facts.now, self.options, stop);
            let moved = |pod: &Pod| plan.moved.iter().find(|moved| moved.pod == pod.key);
            // Pods whose successors need as much as the waiting pods do not help.
            let helps = |from: &Claim, pod: &Pod| match moved(pod).map(|moved| &moved.to) {
                Some(MovedTo::New(name)) => {
                    let new = plan.claims.iter().find(|new| new.name == *name);
                    new.and_then(PlannedClaim::price).is_some_and(|new| new < price)
                }
                Some(MovedTo::Existing(target)) => target.name() != from.name.0,
                Some(MovedTo::NoSuccessor) => true,
                Some(MovedTo::Unplaced(_)) | None => false,
            };
            let useless: Vec<&PodKey> =
                choice.pods.iter().filter(|(from, pod)| !helps(from, pod)).map(|(_, pod)| &pod.key).collect();
            if !useless.is_empty() {
                not_these.extend(useless);
                continue;
            }
            let is_better = self.is_sound(&plan, claim, &choice) && pays(&plan, &choice);
            return is_better.then_some((plan, choice));
        }
        None
    }

    /// Returns the pods of a node to buy that need it. The others share it, and would run on a node for at most half its price. If all
    /// would, all need it.
    fn takers(&self, claim: &PlannedClaim) -> Vec<PodKey> {
        let half = claim.price().unwrap_or_default().micros() / 2;
        let needs = |key: &&PodKey| {
            let own = self.asks(key).and_then(|pod| self.own.get(&pod.spec));
            own.is_none_or(|own| own.micros() > half)
        };
        let takers: Vec<PodKey> = claim.planned_pods.iter().filter(needs).cloned().collect();
        if takers.is_empty() { claim.planned_pods.clone() } else { takers }
    }

    /// Chooses the pods with the least loss that give way to the pods of a node to buy.
    fn choose(&self, claim: &PlannedClaim, not_these: &BTreeSet<&PodKey>) -> Option<Choice<'a>> {
        let takers = self.takers(claim);
        let mut choice = Choice { takers, ..Choice::nobody(SignedDuration::MAX) };
        let mut frees: Vec<ResourceList> = self.hosts.iter().map(|host| host.free.clone()).collect();
        let mut taken: BTreeSet<&PodKey> = not_these.clone();
        for key in &choice.takers {
            let waiting = self.asks(key)?;
            let mut best: Option<(u64, usize, Vec<&'a Pod>)> = None;
            for (at, host) in self.hosts.iter().enumerate() {
                if rules::admits(&waiting.spec, &host.node.labels, &host.taints).is_err() {
                    continue;
                }
                let Some((lost, pods)) = host.give_way(&frees[at], waiting, &taken) else { continue };
                if best.as_ref().is_none_or(|(least, ..)| lost < *least) {
                    best = Some((lost, at, pods));
                }
            }
            let (lost, at, pods) = best?;
            let host = &self.hosts[at];
            for pod in &pods {
                frees[at].add(&pod.spec.requests);
            }
            frees[at].saturating_sub(&waiting.spec.requests);
            taken.extend(pods.iter().map(|pod| &pod.key));
            choice.lost = choice.lost.saturating_add(lost);
            choice.payback = choice.payback.min(host.payback);
            choice.pods.extend(pods.into_iter().map(|pod| (host.claim, pod)));
        }
        (!choice.pods.is_empty() && self.are_allowed(&choice)).then_some(choice)
    }

    /// Returns whether each controller may have so many more moves, each PodDisruptionBudget allows so many evictions, and disruption
    /// budgets allow so many nodes. A node whose pods give way counts like one that is emptied.
    fn are_allowed(&self, choice: &Choice<'_>) -> bool {
        let (facts, snapshot) = (&self.facts, self.facts.snapshot);
        let mut moves: BTreeMap<&Uid, u64> = BTreeMap::new();
        let mut evictions: BTreeMap<&ObjectKey, u64> = BTreeMap::new();
        let mut nodes: BTreeSet<&ClaimName> = BTreeSet::new();
        for (claim, pod) in choice.pods.iter().filter(|(_, pod)| !self.leaves_already(pod)) {
            let Some(maker) = facts.maker(pod) else { return false };
            let count = moves.entry(&maker.uid).or_default();
            *count += 1;
            if *count > self.move_history.moves_left(facts, claim, maker) {
                return false;
            }
            for budget in facts.budgets_of(pod) {
                let count = evictions.entry(&budget.key).or_default();
                *count += 1;
                if *count > budget.allowed.unwrap_or(0) {
                    return false;
                }
            }
            nodes.insert(&claim.name);
        }
        if nodes.is_empty() {
            return true;
        }
        let begun = self
            .hosts
            .iter()
            .filter(|host| host.movable.iter().any(|(_, pod)| self.move_history.gave_way(pod, facts.now)));
        nodes.extend(begun.map(|host| &host.claim.name));
        let mut by_pool: BTreeMap<&PoolName, u64> = BTreeMap::new();
        for claim in nodes.iter().filter_map(|name| snapshot.claims.get(name)) {
            *by_pool.entry(&claim.pool).or_default() += 1;
        }
        let left_over_all = allowance::allowance_over_all(snapshot, Cause::Underutilized, facts.now).left;
        nodes.len() as u64 <= left_over_all
            && by_pool.into_iter().all(|(name, count)| {
                snapshot.pools.get(name).is_some_and(|pool| {
                    count <= allowance::allowance(snapshot, pool, Cause::Underutilized, facts.now).left
                })
            })
    }

    /// Returns whether a pod ends in any case, or was asked to give way before.
    fn leaves_already(&self, pod: &Pod) -> bool {
        pod.deleting_since.is_some() || self.move_history.gave_way(pod, self.facts.now)
    }

    /// Returns whether a plan places the pods that need the node on nodes that exist, and every other pod at least as well.
    fn is_sound(&self, plan: &Plan, claim: &PlannedClaim, choice: &Choice<'_>) -> bool {
        let unmet =
            |plan: &Plan| -> BTreeSet<PodKey> { plan.unplaced.iter().map(|left| left.pod.clone()).collect() };
        let placed: BTreeSet<&PodKey> = plan.placements.iter().map(|placed| &placed.pod).collect();
        let waiting: BTreeSet<&PodKey> =
            claim.planned_pods.iter().filter_map(|key| Some(&self.moved(key)?.pod)).collect();
        // Successors may have other keys in the other plan.
        let has_room = |key: &PodKey| match self.moved(key) {
            Some(Moved { pod, .. }) => {
                plan.moved.iter().any(|moved| moved.pod == *pod && matches!(moved.to, MovedTo::Existing(_)))
            }
            None => placed.contains(key),
        };
        let is_theirs = |moved: &&Moved| {
            waiting.contains(&moved.pod) || choice.pods.iter().any(|(_, pod)| pod.key == moved.pod)
        };
        let others = |plan: &Plan| -> Vec<(PodKey, bool)> {
            let others = plan.moved.iter().filter(|moved| !is_theirs(moved));
            others.map(|moved| (moved.pod.clone(), matches!(moved.to, MovedTo::Existing(_)))).collect()
        };
        plan.refused.is_empty()
            && plan.unknown_price_claims <= self.current.unknown_price_claims
            && choice.takers.iter().all(has_room)
            && unmet(plan).is_subset(&unmet(self.current))
            && others(plan) == others(self.current)
            && !goes_down(self.facts.snapshot, plan)
    }

    /// Returns whether a plan saves more than the loss of the pods that give way.
    fn pays(&self, plan: &Plan, choice: &Choice<'_>) -> bool {
        let successors: UsdPerHour = plan
            .claims
            .iter()
            .filter(|claim| claim.planned_pods.iter().any(|key| key.existing().is_none()))
            .filter_map(PlannedClaim::price)
            .sum();
        let none = Choice::nobody(choice.payback);
        let (before, after) = (self.cost(self.current, &none), self.cost(plan, choice));
        let loss = self.least_saving(plan, choice);
        before > after.saturating_add(loss).saturating_add(during(successors, OVERLAP))
    }

    /// Returns the saving that the loss of the pods that give way asks for.
    pub fn least_saving(&self, plan: &Plan, choice: &Choice<'_>) -> u64 {
        let losses = choice.pods.iter().map(|(from, pod)| self.loss(plan, from, pod));
        losses.fold(0, u64::saturating_add).saturating_mul(LEAST_TIMES)
    }

    /// Returns the loss of a pod that gives way. Its work is worth a part of the place that it gets, not of the place that it leaves,
    /// which may be much dearer than it needs.
    fn loss(&self, plan: &Plan, from: &Claim, pod: &Pod) -> u64 {
        if self.leaves_already(pod) {
            return 0;
        }
        let moved = plan.moved.iter().find(|moved| moved.pod == pod.key);
        let place = match moved.map(|moved| &moved.to) {
            Some(MovedTo::New(name)) => {
                plan.claims.iter().find(|claim| claim.name == *name).map(|claim| &claim.offerings[0])
            }
            Some(MovedTo::Existing(Target::Claim(name))) => {
                self.facts.snapshot.claims.get(name).map(|claim| claim.current_offering())
            }
            _ => None,
        };
        let place = place.unwrap_or_else(|| from.current_offering());
        lost_by(&self.facts, pod, place.price.unwrap_or_default(), &place.allocatable)
    }

    /// Returns the cost of a plan until its pods have ended, at most for the payback time, in micro-dollars: of new nodes, and of nodes
    /// that its pods keep longer.
    pub fn cost(&self, plan: &Plan, choice: &Choice<'_>) -> u64 {
        let snapshot = self.facts.snapshot;
        let payback = choice.payback;
        if snapshot.lives.is_blank() {
            return during(plan.cost + plan.risk, payback);
        }
        let of_new = plan.claims.iter().map(|claim| {
            let time = self.time(claim, plan, payback);
            during(claim.price().unwrap_or_default(), time)
        });
        let prices: UsdPerHour = plan.claims.iter().filter_map(PlannedClaim::price).sum();
        // Commitments pay a part of the prices.
        let paid = u128::from(of_new.sum::<u64>()) * u128::from(plan.cost.micros())
            / u128::from(prices.micros().max(1));
        let mut rooms: BTreeMap<&ClaimName, Vec<&PodKey>> = BTreeMap::new();
        for placed in &plan.placements {
            if let Target::Claim(name) = &placed.target {
                rooms.entry(name).or_default().push(&placed.pod);
            }
        }
        // Placements do not mention successors.
        for moved in &plan.moved {
            if let (MovedTo::Existing(Target::Claim(name)), Some(successor)) = (&moved.to, &moved.successor) {
                rooms.entry(name).or_default().push(successor);
            }
        }
        let of_rooms = rooms.into_iter().filter_map(|(name, more)| {
            let claim = snapshot.claims.get(name)?;
            let stays = |pod: &&Pod| {
                pod.role == PodRole::Workload
                    && pod.deleting_since.is_none()
                    && !choice.pods.iter().any(|(_, gone)| gone.key == pod.key)
            };
            let there: Vec<Life> = self.facts.work(claim).filter(stays).map(|pod| self.life(pod)).collect();
            let more = self.ends(more.into_iter(), plan);
            let longer = Ends::of(&there).extension_within(&more, payback);
            Some(during(claim.current_offering().price.unwrap_or_default(), longer))
        });
        u64::try_from(paid)
            .unwrap_or(u64::MAX)
            .saturating_add(of_rooms.sum())
            .saturating_add(during(plan.risk, payback))
    }

    /// Returns the time for which a new node is paid: its start, the time until its pods have ended, at most the payback time, and the
    /// time that it stays without work.
    fn time(&self, claim: &PlannedClaim, plan: &Plan, payback: SignedDuration) -> SignedDuration {
        let snapshot = self.facts.snapshot;
        if snapshot.lives.is_blank() {
            return payback;
        }
        let until_empty = self.ends(claim.planned_pods.iter(), plan).mean().min(payback);
        let idle = snapshot.pools.get(&claim.pool).map_or(SignedDuration::ZERO, |pool| horizon::idle(pool));
        START + until_empty + idle
    }

    /// Returns the time until these pods of a plan have ended. Successors live as long as the pods that they replace.
    fn ends<'k>(&self, keys: impl Iterator<Item = &'k PodKey>, plan: &Plan) -> Ends {
        let mut ends = Ends::default();
        let replaced = |key: &PodKey| {
            let moved = plan.moved.iter().find(|moved| moved.successor.as_ref() == Some(key))?;
            self.facts.snapshot.pods.get(&moved.pod)
        };
        for pod in keys.filter_map(|key| self.facts.snapshot.pods.get(key).or_else(|| replaced(key))) {
            ends.add(&self.life(pod));
        }
        ends
    }

    fn life(&self, pod: &Pod) -> Life {
        self.facts.snapshot.lives.of(pod, self.facts.now).life
    }

    /// Returns the result for a plan that pays.
    fn made(&self, mut plan: Plan, claim: &PlannedClaim, choice: &Choice<'_>) -> RoomMade {
        let snapshot = self.facts.snapshot;
        let to = |pod: &Pod| plan.moved.iter().find(|moved| moved.pod == pod.key).map(|moved| &moved.to);
        let stays: Vec<&(&Claim, &Pod)> =
            choice.pods.iter().filter(|(_, pod)| pod.deleting_since.is_none()).collect();
        let is_ready = stays.iter().all(|(_, pod)| match to(pod) {
            Some(MovedTo::Existing(target)) => is_open(snapshot, target),
            Some(MovedTo::NoSuccessor) => true,
            _ => false,
        });
        let (offering, price) = (claim.offering(), claim.price().unwrap_or_default());
        let instead = format!("instead of a new {offering} at {price} $/h");
        let waiting = choice.takers.iter().filter_map(|key| Some(self.asks(key)?.key.to_string()));
        let waiting: Vec<String> = waiting.collect();
        let waiting = rules::format::list(&waiting, 3);
        let mut explanations = BTreeMap::new();
        let leaving: Vec<String> = choice.pods.iter().map(|(_, pod)| pod.key.to_string()).collect();
        let leaving = rules::format::list(&leaving, 3);
        let until = if is_ready { "" } else { " It waits until the successors have places on open nodes." };
        let mut actions = Vec::new();
        for key in &choice.takers {
            let Some((pod, object)) = snapshot.pods.get(key).zip(key.existing()) else { continue };
            let target =
                plan.placements.iter().find(|placed| placed.pod == *key).map(|placed| &placed.target);
            let Some(Target::Claim(host)) = target else { continue };
            let node = snapshot.claims.get(host).and_then(|claim| claim.node_name.clone());
            let Some(node) = node else { continue };
            if choice.pods.iter().any(|(from, _)| from.name == *host) {
                // The room is not free yet. The next plan places it there.
                plan.nominations.remove(key);
            }
            explanations.insert(
                key.clone(),
                format!("It gets the room of {leaving} on node {node}, {instead}.{until}"),
            );
            let message = format!("it gets the room of other pods on node {node}, {instead}");
            actions.push(Action::RecordEvent(Event {
                subject: Subject::Pod(object.clone()),
                kind: EventType::Normal,
                reason: Reason::RoomMade,
                message,
            }));
            if is_ready && pod.nominated_node.as_ref() != Some(&node) {
                actions.push(Action::Nominate { pod: object.clone(), uid: pod.uid.clone(), node });
            }
        }
        for (from, pod) in &stays {
            let node = from.node_name.as_deref().unwrap_or_default();
            let place = match to(pod) {
                Some(MovedTo::Existing(target)) => format!("Its successor has room on {}", target.name()),
                Some(MovedTo::New(_)) => "Its successor gets a new node".to_owned(),
                _ => "It has no successor".to_owned(),
            };
            let text = format!("{place}. Its room on node {node} is for {waiting}, {instead}.");
            explanations.insert(pod.key.clone(), text);
        }
        // Pods on a node that is emptied wait only after it drains. Until then, other pods would take the room.
        let someone_waits = choice.takers.iter().any(|key| key.existing().is_some());
        let mut evicted = Vec::new();
        for (from, pod) in stays.into_iter().filter(|_| is_ready && someone_waits) {
            let Some(object) = pod.key.existing() else { continue };
            let place = match to(pod) {
                Some(MovedTo::Existing(target)) => format!("has room on {}", target.name()),
                _ => "needs no other place".to_owned(),
            };
            let node = from.node_name.as_deref().unwrap_or_default();
            let why =
                format!("its successor {place}, and its room on node {node} is for {waiting}, {instead}");
            actions.push(Action::Evict { pod: object.clone(), uid: pod.uid.clone(), why });
            evicted.push((pod.key.clone(), pod.uid.clone()));
        }
        let emptied = claim.planned_pods.iter().filter_map(|key| Some(self.moved(key)?.from.clone()));
        RoomMade { plan, actions, evicted, explanations, emptied: emptied.collect() }
    }
}

impl<'a> Host<'a> {
    /// Returns the pods with the least loss that give way to a waiting pod, and their loss; no pods if it fits without.
    fn give_way(
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
