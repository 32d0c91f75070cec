//! The search for pods that give way: which pods, and whether a plan without them is sound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::{OfferingId, RankedOffering, ResourceList, ResourceName, UsdPerHour};
use poolwright_solver::StopSignal;

use crate::disruption::consolidation::goes_down;
use crate::disruption::move_history::MoveHistory;
use crate::disruption::payback::during;
use crate::disruption::room_hosts::{Host, hosts};
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::PlanOptions;
use crate::model::plan::{Moved, MovedTo, Plan, PlannedClaim, UnplacedReason};
use crate::model::{Cause, Claim, ClaimName, ObjectKey, Pod, PodKey, PodSpec, PoolName, Snapshot, Uid};
use crate::plan::own_nodes;
use crate::plan::plan;
use crate::rules;
use crate::rules::eviction::Eviction;

/// The most plans for one node.
const TRIES: usize = 3;

/// Returns whether a pod waits because nodes that fit it cannot be bought now.
pub(crate) fn is_short(reason: UnplacedReason) -> bool {
    matches!(reason, UnplacedReason::LimitReached | UnplacedReason::OfferingsHeldBack)
}

/// A node that is not bought if pods give way.
pub(crate) struct Wanted {
    /// The pods that it would be for.
    pub pods: Vec<PodKey>,
    pub price: UsdPerHour,
    pub pool: PoolName,
    pub offering: OfferingId,
    /// Whether the plan buys it. If not, its cost is not part of the plan's.
    pub is_bought: bool,
}

/// Pods that give way, and their loss.
#[derive(Clone)]
pub(crate) struct Choice<'a> {
    /// The pods that take the room.
    pub takers: Vec<PodKey>,
    pub pods: Vec<GivesWay<'a>>,
    pub lost: u64,
    pub payback: SignedDuration,
}

/// A pod that gives way.
#[derive(Clone)]
pub(crate) struct GivesWay<'a> {
    /// The claim of its node.
    pub from: &'a Claim,
    pub pod: &'a Pod,
    /// The pod that takes its room.
    pub to: PodKey,
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

/// One search.
pub(crate) struct RoomSearch<'a> {
    pub facts: Facts<'a>,
    pub current: &'a Plan,
    pub move_history: &'a MoveHistory,
    pub options: &'a PlanOptions,
    pub hosts: Vec<Host<'a>>,
    /// The lowest price of a node for one pod with each of these specs.
    pub own: BTreeMap<&'a PodSpec, UsdPerHour>,
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
        let specs: BTreeSet<&PodSpec> = waiting.chain(movable).map(|pod| &*pod.spec).collect();
        let specs: Vec<&PodSpec> = specs.into_iter().collect();
        let prices = own_nodes::cheapest(search.facts.snapshot, search.facts.now, search.options, &specs);
        search.own = specs.into_iter().zip(prices).filter_map(|(spec, price)| Some((spec, price?))).collect();
        // Small pods need the cheapest places.
        let (own, cpu) = (&search.own, |pod: &Pod| pod.spec.requests.get(ResourceName::CPU));
        for host in &mut search.hosts {
            host.movable.sort_by_key(|(lost, pod)| (*lost, own.get(&*pod.spec), cpu(pod), &pod.key));
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
    pub fn prepared(&self, is_emptied: impl Fn(&ClaimName) -> bool) -> Vec<&'a PodKey> {
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
    pub fn wanted_again(&self, key: &PodKey) -> Option<Wanted> {
        let pod = self.asks(key)?;
        let admits = |host: &&Host<'_>| rules::admits(&pod.spec, &host.node.labels, &host.taints).is_ok();
        let hosts = self.hosts.iter().filter(admits).map(|host| host.claim);
        let like = hosts.max_by_key(|claim| (claim.current_offering().price, &claim.name))?;
        let RankedOffering { offering, price, .. } = like.current_offering();
        let (pool, offering) = (like.pool.clone(), offering.clone());
        Some(Wanted { pods: vec![key.clone()], price: (*price)?, pool, offering, is_bought: false })
    }

    /// Returns the move whose successor a planned pod is.
    pub fn moved(&self, key: &PodKey) -> Option<&'a Moved> {
        self.current.moved.iter().find(|moved| moved.successor.as_ref() == Some(key))
    }

    /// Returns the waiting pod with this key, or the pod whose successor it is.
    pub fn asks(&self, key: &PodKey) -> Option<&'a Pod> {
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
        let is_dear = |pod: &Pod| {
            !self.leaves_already(pod) && self.own.get(&*pod.spec).is_some_and(|own| *own >= price)
        };
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
    pub fn takers(&self, wanted: &Wanted) -> Vec<PodKey> {
        let half = wanted.price.micros() / 2;
        let needs = |key: &&PodKey| {
            let own = self.asks(key).and_then(|pod| self.own.get(&*pod.spec));
            own.is_none_or(|own| own.micros() > half)
        };
        let takers: Vec<PodKey> = wanted.pods.iter().filter(needs).cloned().collect();
        if takers.is_empty() { wanted.pods.clone() } else { takers }
    }

    /// Chooses the pods with the least loss that give way to the pods of a node to buy.
    pub fn choose(&self, wanted: &Wanted, not_these: &BTreeSet<&PodKey>) -> Option<Choice<'a>> {
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

    /// Returns whether further pods may give way to each waiting pod, each controller may have so many more moves, each
    /// PodDisruptionBudget allows so many evictions, and disruption budgets allow so many nodes. A node whose pods give way counts like
    /// one that is emptied.
    pub fn are_allowed(&self, choice: &Choice<'_>) -> bool {
        let (facts, snapshot) = (&self.facts, self.facts.snapshot);
        let mut moves: BTreeMap<&Uid, u64> = BTreeMap::new();
        let mut evictions: BTreeMap<&ObjectKey, u64> = BTreeMap::new();
        let mut nodes: BTreeSet<&ClaimName> = BTreeSet::new();
        let stay = choice.pods.iter().filter(|gives| !self.leaves_already(gives.pod));
        for GivesWay { from: claim, pod, to } in stay {
            let waiting = snapshot.pods.get(to);
            if waiting.is_some_and(|waiting| !self.move_history.may_get_room(snapshot, waiting, facts.now)) {
                return false;
            }
            let Some(maker) = facts.maker(pod) else { return false };
            let count = moves.entry(&maker.uid).or_default();
            *count += 1;
            if *count > self.move_history.moves_left(facts, claim, maker) {
                return false;
            }
            match facts.eviction(pod) {
                Eviction::Free => {}
                Eviction::Takes(budget) => {
                    let count = evictions.entry(&budget.key).or_default();
                    *count += 1;
                    if *count > budget.allowed.unwrap_or(0) {
                        return false;
                    }
                }
                Eviction::Never(_) => return false,
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
    pub fn leaves_already(&self, pod: &Pod) -> bool {
        pod.deleting_since.is_some() || self.move_history.gave_way(pod, self.facts.now)
    }

    /// Returns whether a plan places the pods that need the node on nodes that exist, and every other pod at least as well.
    pub fn is_sound(&self, plan: &Plan, wanted: &Wanted, choice: &Choice<'_>) -> bool {
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
            && goes_down(self.facts.snapshot, plan).is_none()
    }
}
