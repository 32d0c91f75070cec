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
use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, ResourceName, UsdPerHour};
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
use crate::model::plan::{Moved, MovedTo, Plan, PlannedClaim, Target, UnplacedReason};
use crate::model::{
    Cause, Claim, ClaimName, Ends, Life, Node, ObjectKey, Pod, PodKey, PodRole, PodSpec, PoolName, Snapshot,
    Uid,
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
pub(crate) const LONGEST_END: SignedDuration = START;

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
    /// The controllers of the pods that take the room, or these pods.
    pub takers: Vec<Uid>,
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

/// A node that is not bought if pods give way.
pub(crate) struct Wanted {
    /// The pods that it would be for.
    pods: Vec<PodKey>,
    pub price: UsdPerHour,
    pool: PoolName,
    offering: OfferingId,
    /// Whether the plan buys it. If not, its cost is not part of the plan's.
    is_bought: bool,
}

/// Pods that give way, and their loss.
#[derive(Clone)]
pub(crate) struct Choice<'a> {
    /// The pods that take the room.
    takers: Vec<PodKey>,
    pub pods: Vec<GivesWay<'a>>,
    lost: u64,
    pub payback: SignedDuration,
}

/// A pod that gives way.
#[derive(Clone)]
pub(crate) struct GivesWay<'a> {
    /// The claim of its node.
    pub from: &'a Claim,
    pub pod: &'a Pod,
    /// The pod that takes its room.
    to: PodKey,
}

impl Choice<'_> {
    /// Returns the choice with at most this payback time.
    pub(crate) fn within(&self, payback: SignedDuration) -> Self {
        Self { payback: payback.min(self.payback), ..self.clone() }
    }

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
    let is_idle = current.claims.is_empty() && current.unplaced.is_empty() && current.moved.is_empty();
    if is_idle || !current.refused.is_empty() {
        return None;
    }
    let mut search = RoomSearch::new(Facts::new(snapshot, now), current, move_history, options);
    let is_emptied = |from: &ClaimName| {
        let leaves =
            |claim: &Arc<Claim>| claim.leaving() == Some(Cause::Underutilized) && !claim.ends_soon(now);
        move_history.makes_room_for(from) && snapshot.claims.get(from).is_some_and(leaves)
    };
    let mut wanted: Vec<Wanted> =
        current.claims.iter().filter_map(|claim| search.wanted(claim, is_emptied)).collect();
    let prepared = search.prepared(is_emptied);
    if (wanted.is_empty() && prepared.is_empty()) || !search.find_hosts() {
        return None;
    }
    wanted.extend(prepared.into_iter().filter_map(|key| search.wanted_again(key)));
    wanted.sort_by(|a, b| (b.price, &a.pods).cmp(&(a.price, &b.pods)));
    wanted.into_iter().take(MOST_NODES).find_map(|wanted| {
        let pays = |plan: &Plan, choice: &Choice<'_>| search.pays(plan, choice, &wanted);
        let (plan, choice) = search.instead_of(&wanted, pays, stop)?;
        Some(search.made(plan, &wanted, &choice))
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
    /// Creates a search for room that makes nodes of `current` needless. Without hosts, it finds none.
    pub fn new(
        facts: Facts<'a>,
        current: &'a Plan,
        move_history: &'a MoveHistory,
        options: &'a PlanOptions,
    ) -> Self {
        Self { facts, current, move_history, options, hosts: Vec::new(), own: BTreeMap::new() }
    }

    /// Finds the nodes whose pods may give way. Returns whether there are any.
    pub fn find_hosts(&mut self) -> bool {
        let search = self;
        search.hosts = hosts(&search.facts, search.current, search.move_history);
        if search.hosts.is_empty() {
            return false;
        }
        let waiting = search.current.claims.iter().flat_map(|claim| &claim.planned_pods);
        let waiting = waiting.filter_map(|key| search.asks(key));
        let movable = search.hosts.iter().flat_map(|host| &host.movable).map(|(_, pod)| *pod);
        let specs: BTreeSet<&PodSpec> = waiting.chain(movable).map(|pod| &pod.spec).collect();
        let specs: Vec<&PodSpec> = specs.into_iter().collect();
        let prices = own_nodes::cheapest(search.facts.snapshot, search.facts.now, search.options, &specs);
        search.own = specs.into_iter().zip(prices).filter_map(|(spec, price)| Some((spec, price?))).collect();
        // Small pods need the cheapest places.
        let (own, cpu) = (&search.own, |pod: &Pod| pod.spec.requests.get(ResourceName::CPU));
        for host in &mut search.hosts {
            host.movable.sort_by_key(|(lost, pod)| (*lost, own.get(&pod.spec), cpu(pod), &pod.key));
        }
        true
    }

    /// Returns a node that is bought at a known price, and only for pods that belong to no gang and that wait or leave one of these
    /// nodes for consolidation.
    pub fn wanted(&self, claim: &PlannedClaim, is_emptied: impl Fn(&ClaimName) -> bool) -> Option<Wanted> {
        let waits = |key: &PodKey| {
            self.asks(key).is_some_and(|pod| pod.group_key().is_none())
                && self.moved(key).is_none_or(|moved| is_emptied(&moved.from))
        };
        let pods = Some(&claim.planned_pods).filter(|pods| !pods.is_empty() && pods.iter().all(waits))?;
        Some(Wanted {
            pods: pods.clone(),
            price: claim.price()?,
            pool: claim.pool.clone(),
            offering: claim.offering().clone(),
            is_bought: true,
        })
    }

    /// Returns the pods for which room is being made, and for which no node can be bought now.
    fn prepared(&self, is_emptied: impl Fn(&ClaimName) -> bool) -> Vec<&'a PodKey> {
        let is_short =
            |reason| matches!(reason, UnplacedReason::LimitReached | UnplacedReason::OfferingsHeldBack);
        let waiting = self.current.unplaced.iter().filter(|left| is_short(left.reason));
        let waiting = waiting.map(|left| &left.pod).filter(|key| {
            let pod = self.facts.snapshot.pods.get(key).filter(|pod| pod.group_key().is_none());
            pod.is_some_and(|pod| self.move_history.makes_room_for_pod(pod, self.facts.now))
        });
        let emptied = self.current.moved.iter().filter_map(|moved| {
            let is_unplaced = matches!(moved.to, MovedTo::Unplaced(_)) && is_emptied(&moved.from);
            moved.successor.as_ref().filter(|_| is_unplaced)
        });
        waiting.chain(emptied).collect()
    }

    /// Returns a node like the dearest one that such a pod could run on.
    fn wanted_again(&self, key: &PodKey) -> Option<Wanted> {
        let pod = self.asks(key)?;
        let admits = |host: &&Host<'_>| rules::admits(&pod.spec, &host.node.labels, &host.taints).is_ok();
        let hosts = self.hosts.iter().filter(admits).map(|host| host.claim);
        let like = hosts.max_by_key(|claim| (claim.current_offering().price, &claim.name))?;
        let RankedOffering { offering, price, .. } = like.current_offering();
        let (pool, offering) = (like.pool.clone(), offering.clone());
        Some(Wanted { pods: vec![key.clone()], price: (*price)?, pool, offering, is_bought: false })
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
        wanted: &Wanted,
        pays: impl Fn(&Plan, &Choice<'a>) -> bool,
        stop: &mut dyn StopSignal,
    ) -> Option<(Plan, Choice<'a>)> {
        let price = wanted.price;
        // Pods that need such a dear node too do not help, unless they end anyway.
        let is_dear =
            |pod: &Pod| !self.leaves_already(pod) && self.own.get(&pod.spec).is_some_and(|own| *own >= price);
        let movable = self.hosts.iter().flat_map(|host| &host.movable);
        let mut not_these: BTreeSet<&PodKey> =
            movable.filter(|(_, pod)| is_dear(pod)).map(|(_, pod)| &pod.key).collect();
        for _ in 0..TRIES {
            let choice = self.choose(wanted, &not_these)?;
            let time = self.time(wanted, self.current, choice.payback);
            if stop.should_stop() || during(price, time) <= choice.lost {
                return None;
            }
            let giving_way =
                choice.pods.iter().map(|gives| (gives.pod.key.clone(), gives.from.name.clone())).collect();
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
            let useless: Vec<&PodKey> = choice
                .pods
                .iter()
                .filter(|gives| !helps(gives.from, gives.pod))
                .map(|gives| &gives.pod.key)
                .collect();
            if !useless.is_empty() {
                not_these.extend(useless);
                continue;
            }
            let is_better = self.is_sound(&plan, wanted, &choice) && pays(&plan, &choice);
            return is_better.then_some((plan, choice));
        }
        None
    }

    /// Returns the pods of a node to buy that need it. The others share it, and would run on a node for at most half its price. If all
    /// would, all need it.
    fn takers(&self, wanted: &Wanted) -> Vec<PodKey> {
        let half = wanted.price.micros() / 2;
        let needs = |key: &&PodKey| {
            let own = self.asks(key).and_then(|pod| self.own.get(&pod.spec));
            own.is_none_or(|own| own.micros() > half)
        };
        let takers: Vec<PodKey> = wanted.pods.iter().filter(needs).cloned().collect();
        if takers.is_empty() { wanted.pods.clone() } else { takers }
    }

    /// Chooses the pods with the least loss that give way to the pods of a node to buy.
    fn choose(&self, wanted: &Wanted, not_these: &BTreeSet<&PodKey>) -> Option<Choice<'a>> {
        let takers = self.takers(wanted);
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
            let gives = pods.into_iter().map(|pod| GivesWay { from: host.claim, pod, to: key.clone() });
            choice.pods.extend(gives);
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
        let stay = choice.pods.iter().filter(|gives| !self.leaves_already(gives.pod));
        for GivesWay { from: claim, pod, .. } in stay {
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
    fn is_sound(&self, plan: &Plan, wanted: &Wanted, choice: &Choice<'_>) -> bool {
        let unmet =
            |plan: &Plan| -> BTreeSet<PodKey> { plan.unplaced.iter().map(|left| left.pod.clone()).collect() };
        let placed: BTreeSet<&PodKey> = plan.placements.iter().map(|placed| &placed.pod).collect();
        let waiting: BTreeSet<&PodKey> =
            wanted.pods.iter().filter_map(|key| Some(&self.moved(key)?.pod)).collect();
        let stranded = |plan: &Plan| -> BTreeSet<PodKey> {
            let moved = plan.moved.iter().filter(|moved| matches!(moved.to, MovedTo::Unplaced(_)));
            moved.map(|moved| moved.pod.clone()).collect()
        };
        // Successors may have other keys in the other plan.
        let has_room = |key: &PodKey| match self.moved(key) {
            Some(Moved { pod, .. }) => {
                plan.moved.iter().any(|moved| moved.pod == *pod && matches!(moved.to, MovedTo::Existing(_)))
            }
            None => placed.contains(key),
        };
        let is_theirs = |moved: &&Moved| {
            waiting.contains(&moved.pod) || choice.pods.iter().any(|gives| gives.pod.key == moved.pod)
        };
        let others = |plan: &Plan| -> Vec<(PodKey, bool)> {
            let others = plan.moved.iter().filter(|moved| !is_theirs(moved));
            others.map(|moved| (moved.pod.clone(), matches!(moved.to, MovedTo::Existing(_)))).collect()
        };
        plan.refused.is_empty()
            && plan.unknown_price_claims <= self.current.unknown_price_claims
            && choice.takers.iter().all(has_room)
            && unmet(plan).is_subset(&unmet(self.current))
            && stranded(plan).is_subset(&stranded(self.current))
            && others(plan) == others(self.current)
            && !goes_down(self.facts.snapshot, plan)
    }

    /// Returns whether a plan saves more than the loss of the pods that give way.
    fn pays(&self, plan: &Plan, choice: &Choice<'_>, wanted: &Wanted) -> bool {
        let successors: UsdPerHour = plan
            .claims
            .iter()
            .filter(|claim| claim.planned_pods.iter().any(|key| key.existing().is_none()))
            .filter_map(PlannedClaim::price)
            .sum();
        let none = Choice::nobody(choice.payback);
        let (mut before, after) = (self.cost(self.current, &none), self.cost(plan, choice));
        if !wanted.is_bought {
            let time = self.time(wanted, self.current, choice.payback);
            before = before.saturating_add(during(wanted.price, time));
        }
        let loss = self.least_saving(plan, choice);
        before > after.saturating_add(loss).saturating_add(during(successors, OVERLAP))
    }

    /// Returns the saving that the loss of the pods that give way asks for.
    pub fn least_saving(&self, plan: &Plan, choice: &Choice<'_>) -> u64 {
        let losses = choice.pods.iter().map(|gives| self.loss(plan, gives.from, gives.pod));
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
            let time = self.paid(&claim.planned_pods, &claim.pool, plan, payback);
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
                    && !choice.pods.iter().any(|gone| gone.pod.key == pod.key)
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
    fn time(&self, wanted: &Wanted, plan: &Plan, payback: SignedDuration) -> SignedDuration {
        self.paid(&wanted.pods, &wanted.pool, plan, payback)
    }

    fn paid(&self, pods: &[PodKey], pool: &PoolName, plan: &Plan, payback: SignedDuration) -> SignedDuration {
        let snapshot = self.facts.snapshot;
        if snapshot.lives.is_blank() {
            return payback;
        }
        let until_empty = self.ends(pods.iter(), plan).mean().min(payback);
        let idle = snapshot.pools.get(pool).map_or(SignedDuration::ZERO, |pool| horizon::idle(pool));
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
    fn made(&self, mut plan: Plan, wanted: &Wanted, choice: &Choice<'_>) -> RoomMade {
        let snapshot = self.facts.snapshot;
        let to = |pod: &Pod| plan.moved.iter().find(|moved| moved.pod == pod.key).map(|moved| &moved.to);
        let stays: Vec<&GivesWay<'_>> =
            choice.pods.iter().filter(|gives| gives.pod.deleting_since.is_none()).collect();
        let is_ready = stays.iter().all(|gives| match to(gives.pod) {
            Some(MovedTo::Existing(target)) => is_open(snapshot, target),
            Some(MovedTo::NoSuccessor) => true,
            _ => false,
        });
        let Wanted { offering, price, .. } = wanted;
        let instead = format!("instead of a new {offering} at {price} $/h");
        let waiting = choice.takers.iter().filter_map(|key| Some(self.asks(key)?.key.to_string()));
        let waiting: Vec<String> = waiting.collect();
        let waiting = rules::format::list(&waiting, 3);
        let mut explanations = BTreeMap::new();
        let leaving: Vec<String> = choice.pods.iter().map(|gives| gives.pod.key.to_string()).collect();
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
            if choice.pods.iter().any(|gives| gives.from.name == *host) {
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
        for GivesWay { from, pod, .. } in stays.iter().copied() {
            let node = from.node_name.as_deref().unwrap_or_default();
            let place = match to(pod) {
                Some(MovedTo::Existing(target)) => format!("Its successor has room on {}", target.name()),
                Some(MovedTo::New(_)) => "Its successor gets a new node".to_owned(),
                _ => "It has no successor".to_owned(),
            };
            let text = format!("{place}. Its room on node {node} is for {waiting}, {instead}.");
            explanations.insert(pod.key.clone(), text);
        }
        let mut evicted = Vec::new();
        // Pods on a node that is emptied wait only after it drains. Until then, other pods would take the room.
        for GivesWay { from, pod, .. } in
            stays.into_iter().filter(|gives| is_ready && gives.to.existing().is_some())
        {
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
        let emptied = wanted.pods.iter().filter_map(|key| Some(self.moved(key)?.from.clone())).collect();
        let takers =
            choice.takers.iter().filter_map(|key| self.asks(key)).map(MoveHistory::identity).collect();
        RoomMade { plan, actions, evicted, explanations, emptied, takers }
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
