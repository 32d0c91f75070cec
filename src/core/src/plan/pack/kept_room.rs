//! Kept room: places on expensive nodes that stay free for pods without a cheaper home.
//!
//! Suppose that two pods need an expensive node with eight GPUs, and nothing cheaper holds them. The other six GPUs are paid for. So
//! pods that run on any GPU look free there. But they fill the node, and the next pod that needs such a node buys another one.
//!
//! So a plan counts what room is worth. The pods that need such a node now say how many will later: if they come and end steadily,
//! `n` of them are there on average. Room for as many again is kept free. If it were taken, another node would run for at least
//! `n / (1 + n)` of the time. A pod that takes a part of the node's room is charged this part of that cost, while others keep the node.
//! It is kept off only if its own node costs less than that. Equal pods get the room beside the kept one together or not at all. If it
//! does not hold all of them, what is left of it helps none of them: each takes kept room or its own node, whichever costs less.
//!
//! The regret is bounded. If no such pod comes again, the pods that are kept off have paid for their own nodes, and nothing else: the
//! expensive node is paid for anyway. Each of them pays less than its part of the expensive node costs while it would be there. A pod
//! whose cheaper home cannot be bought now is never kept off. No pod waits because of kept room: if pods are left out that a node could
//! hold, the plan is made again without it. And no room is kept while a namespace with limits waits, because limits hold pods back after
//! a plan is made.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::SignedDuration;
use poolwright_catalog::{ResourceList, Usd, UsdPerHour};
use poolwright_solver::StopSignal;

use crate::model::{Ends, Life, Pod, PodSpec};
use crate::plan::context::PlanContext;
use crate::plan::own_nodes;
use crate::plan::pack::horizon;
use crate::plan::pack::room_lives::{self, RoomLife};
use crate::plan::pack::solves::candidates::{Homes, NodeCandidate};
use crate::plan::pack::solves::{self, Packing, SolveInputs};
use crate::plan::place::preferences::estimates::share;
use crate::rules;
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;
use crate::supply::rooms::{Room, Rooms};

/// The number of kinds of pods on existing nodes whose own nodes are priced: those on the dearest nodes.
const KINDS: usize = 32;
/// The unit of shares of a node.
const MILLION: u128 = 1_000_000;
/// The most pods of a class that count for the end of a node. More make no difference.
const PODS: u32 = 64;

/// The pods on an existing node that have no much cheaper home.
#[derive(Clone, Debug)]
pub(crate) struct Captives {
    /// The room of the whole node.
    capacity: ResourceList,
    /// What each of them requests.
    requests: Vec<ResourceList>,
}

impl Captives {
    /// Keeps room for such pods on their node, which has this price and this free room.
    pub fn kept(&self, price: UsdPerHour, free: &ResourceList) -> Option<Kept<'_>> {
        Kept::new(price, &self.capacity, free, self.requests.iter().map(|requests| (requests, 1)))
    }
}

/// A node on which room is kept.
pub(crate) struct Kept<'n> {
    price: UsdPerHour,
    capacity: &'n ResourceList,
    /// The free room beside the kept one.
    left: ResourceList,
    /// The number of pods that need such a node.
    needing: u64,
}

impl<'n> Kept<'n> {
    /// Keeps room for as many pods as need such a node now, as far as there is any; `None` if there is none. `needing` are their
    /// requests, each with the number of pods.
    fn new<'c>(
        price: UsdPerHour,
        capacity: &'n ResourceList,
        free: &ResourceList,
        needing: impl Iterator<Item = (&'c ResourceList, u64)>,
    ) -> Option<Self> {
        let (mut left, mut number, mut is_any) = (free.clone(), 0, false);
        for (requests, count) in needing {
            number += count;
            for _ in 0..count {
                if !requests.fits(&left) {
                    break;
                }
                left.saturating_sub(requests);
                is_any = true;
            }
        }
        is_any.then_some(Self { price, capacity, left, needing: number })
    }

    /// Returns whether these requests leave the kept room free.
    pub fn spares(&self, requests: &ResourceList) -> bool {
        requests.fits(&self.left)
    }

    /// Returns what it is expected to cost that a pod takes its room on the node for this time.
    pub fn worth(&self, requests: &ResourceList, time: SignedDuration) -> Usd {
        let needing = u128::from(self.needing);
        let part = share(requests, self.capacity).min(MILLION);
        let micros = u128::from(self.price.micros()) * part * needing / ((1 + needing) * MILLION);
        horizon::cost(UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)), time)
    }
}

/// Returns whether a node of this price is about the cheapest one for a pod whose own node costs `own`; `None` if no node can be
/// bought for it.
pub(crate) fn needs(own: Option<UsdPerHour>, price: UsdPerHour) -> bool {
    own.is_none_or(|own| own.times(2) >= price)
}

/// Returns the time for which a pod takes room of a node that others keep.
pub(crate) fn taken(ends: &Ends, life: &Life) -> SignedDuration {
    life.mean() - ends.extension(life)
}

impl PlanContext<'_> {
    /// Packs pods, and keeps room free unless a pod waits because of that. `placed` are the pods that have a place in a room.
    pub(crate) fn pack_keeping_room<'a>(
        &self,
        inputs: &SolveInputs<'_, 'a>,
        (rooms, mut lives): (&mut Rooms<'_>, Vec<Option<RoomLife>>),
        placed: &[(usize, &Pod)],
        limits: &mut Limits,
        stop: &mut dyn StopSignal,
    ) -> Packing<'a> {
        if !inputs.keeps_room {
            return solves::run(inputs, rooms, lives, limits, stop);
        }
        let known = rooms.all.iter().zip(&mut lives).enumerate();
        let known = known.filter_map(|(at, (room, life))| Some((at, room.as_ref(), life.as_mut()?)));
        self.note_captives(inputs.supply, limits, known, placed);
        let (mut rooms_left, lives_left, mut limits_left) = (rooms.clone(), lives.clone(), limits.clone());
        let outcome = solves::run(inputs, rooms, lives, limits, stop);
        // Pods that no node holds would wait without kept room, too.
        let mut left = inputs.classes.classes.iter().zip(&outcome.left).filter(|(_, left)| !left.is_empty());
        if !outcome.by_kept_room
            || stop.is_abandoned()
            || !left.any(|(class, _)| inputs.has_home(class, &rooms_left))
        {
            return outcome;
        }
        let all_room = SolveInputs { keeps_room: false, ..*inputs };
        let other = solves::run(&all_room, &mut rooms_left, lives_left, &mut limits_left, stop);
        if !other.refused.is_empty() || other.left_by_priority(inputs) >= outcome.left_by_priority(inputs) {
            return outcome;
        }
        (*rooms, *limits) = (rooms_left, limits_left);
        other
    }

    /// Notes which pods on existing nodes have no much cheaper home. `rooms` are the nodes with their index; `placed` are pods that
    /// are planned for them, by this index.
    pub(crate) fn note_captives<'r, 'n: 'r, 'l>(
        &self,
        supply: &Supply<'_>,
        limits: &Limits,
        rooms: impl Iterator<Item = (usize, &'r Room<'n>, &'l mut RoomLife)>,
        placed: &[(usize, &Pod)],
    ) {
        let mut planned: BTreeMap<usize, Vec<&Pod>> = BTreeMap::new();
        for (at, pod) in placed {
            planned.entry(*at).or_default().push(pod);
        }
        let mut all: Vec<(Vec<&Pod>, &Room<'_>, &mut RoomLife)> = rooms
            .map(|(at, room, life)| {
                let mut pods: Vec<&Pod> = room_lives::staying(self.snapshot, room);
                pods.extend(planned.remove(&at).unwrap_or_default());
                (pods, room, life)
            })
            .collect();
        all.sort_by_key(|(_, _, life)| Reverse(life.price));
        let mut known: BTreeSet<&PodSpec> = BTreeSet::new();
        for pod in all.iter().flat_map(|(pods, ..)| pods) {
            if known.len() < KINDS {
                known.insert(&pod.spec);
            }
        }
        let specs: Vec<&PodSpec> = known.into_iter().collect();
        let prices = own_nodes::by_pool(supply, limits, &specs).into_iter();
        let prices = prices.map(|pools| pools.into_iter().map(|(_, price)| price).min());
        let own: BTreeMap<&PodSpec, Option<UsdPerHour>> = specs.iter().copied().zip(prices).collect();
        for (pods, room, life) in all {
            let is_captive = |pod: &&&Pod| own.get(&pod.spec).is_some_and(|own| needs(*own, life.price));
            let requests: Vec<ResourceList> =
                pods.iter().filter(is_captive).map(|pod| pod.spec.requests.clone()).collect();
            let claim = room.claim().and_then(|name| self.snapshot.claims.get(name));
            if let Some(claim) = claim
                && !requests.is_empty()
            {
                let capacity = claim.current_offering().allocatable.clone();
                life.captives = Some(Captives { capacity, requests });
            }
        }
    }
}

/// Keeps pods off nodes where they would take kept room. Returns the candidates that are left to each class, and whether any class is
/// kept off anything.
pub(crate) fn keep(
    inputs: &SolveInputs<'_, '_>,
    candidates: &[NodeCandidate],
    holding: Vec<Homes>,
    (rooms, lives): (&Rooms<'_>, &mut [Option<RoomLife>]),
    limits: &Limits,
) -> (Vec<Homes>, bool) {
    let mut rivals = Rivals { inputs, candidates, limits, first: Vec::new() };
    let first = |(class, asked): (usize, &Homes)| {
        // The room for parts of GPUs is counted in another way.
        let (_, homes) = asked.last().filter(|_| inputs.classes.classes[class].gpu_need.is_none())?;
        rivals.first_home(homes)
    };
    rivals.first = holding.iter().enumerate().map(first).collect();
    let off_rooms = rivals.keep_off_rooms(rooms, lives);
    let off_new = rivals.off_new(&holding);
    if off_new.is_empty() {
        return (holding, off_rooms);
    }
    (rivals.without(holding, &off_new), true)
}

/// The classes of a plan, and their own nodes.
struct Rivals<'r, 's, 'a> {
    inputs: &'r SolveInputs<'s, 'a>,
    candidates: &'r [NodeCandidate],
    limits: &'r Limits,
    /// The cheapest candidate of each class's first choice that can be bought now.
    first: Vec<Option<usize>>,
}

impl Rivals<'_, '_, '_> {
    /// Returns the cheapest of these candidates that can be bought now, of the pools with the highest weight.
    fn first_home(&self, homes: &[usize]) -> Option<usize> {
        let sold = || homes.iter().copied().filter(move |at| !self.candidates[*at].is_reclaimed);
        let weight = sold().map(|at| self.candidates[at].weight).max()?;
        let is_first = |at: &usize| {
            let candidate = &self.candidates[*at];
            candidate.weight == weight && self.limits.allow(&candidate.uses)
        };
        sold().filter(is_first).min_by_key(|at| self.candidates[*at].price)
    }

    /// Returns whether a class has a much cheaper home than a node of this price.
    fn is_rival(&self, class: usize, price: UsdPerHour) -> bool {
        self.first[class].is_some_and(|first| !needs(Some(self.candidates[first].price), price))
    }

    /// Returns which of these classes get none of the room: all pods of a class, or none. `ends` is when the node ends without them.
    /// `housed` are the classes for which other nodes have room beside the kept one.
    fn kept_off(
        &self,
        mut kept: Kept<'_>,
        ends: &Ends,
        mut classes: Vec<usize>,
        housed: &mut BTreeSet<usize>,
    ) -> Vec<usize> {
        // Those whose own nodes cost most come first.
        let price = |class: &usize| self.first[*class].map(|first| self.candidates[first].price);
        classes.sort_by_key(|class| Reverse(price(class)));
        classes.retain(|class| {
            let of = &self.inputs.classes.classes[*class];
            let all = times(&of.requests, of.pods.len() as u64);
            if !housed.contains(class) && kept.spares(&all) {
                kept.left.saturating_sub(&all);
                housed.insert(*class);
                return false;
            }
            self.is_cheaper_elsewhere(*class, &kept, ends)
        });
        classes
    }

    /// Returns whether a pod of a class costs less on its own node than what its room on a node is worth.
    fn is_cheaper_elsewhere(&self, class: usize, kept: &Kept<'_>, ends: &Ends) -> bool {
        let of = &self.inputs.classes.classes[class];
        let Some((first, life)) = self.first[class].zip(self.inputs.horizons.life(of.horizon)) else {
            return false;
        };
        let NodeCandidate { price, pool, .. } = &self.candidates[first];
        let own = horizon::cost(*price, horizon::paid(life, self.inputs.supply.pools[*pool].pool));
        own < kept.worth(&of.requests, taken(ends, life))
    }

    /// Keeps classes off existing nodes. Returns whether it does so with any.
    fn keep_off_rooms(&self, rooms: &Rooms<'_>, lives: &mut [Option<RoomLife>]) -> bool {
        let classes = &self.inputs.classes.classes;
        let (mut is_any, mut housed) = (false, BTreeSet::new());
        for (room, life) in rooms.all.iter().zip(lives) {
            let Some(life) = life else { continue };
            let kept = life.captives.as_ref().and_then(|captives| captives.kept(life.price, &room.free));
            let Some(kept) = kept else { continue };
            let mut admitted: BTreeMap<usize, bool> = BTreeMap::new();
            let may_join = |class: &usize| {
                let of = &classes[*class];
                let admits = || rules::admits(of.spec, &room.labels, &room.taints).is_ok();
                self.is_rival(*class, life.price)
                    && of.requests.fits(&room.free)
                    && *admitted.entry(of.signature).or_insert_with(admits)
            };
            let rivals = (0..classes.len()).filter(may_join).collect();
            let kept_off = self.kept_off(kept, &life.ends, rivals, &mut housed);
            is_any |= !kept_off.is_empty();
            life.kept_off.extend(kept_off);
        }
        is_any
    }

    /// Returns the new nodes that classes are kept off, as pairs (class, candidate).
    fn off_new(&self, holding: &[Homes]) -> BTreeSet<(usize, usize)> {
        let classes = &self.inputs.classes.classes;
        let own_homes =
            || holding.iter().enumerate().filter_map(|(class, asked)| Some((class, &asked.last()?.1)));
        let mut needing: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (class, homes) in own_homes().filter(|(class, _)| classes[*class].gpu_need.is_none()) {
            let own = homes.iter().map(|at| self.candidates[*at].price).min();
            for at in homes.iter().filter(|at| needs(own, self.candidates[**at].price)) {
                needing.entry(*at).or_default().push(class);
            }
        }
        let mut rivals: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (class, homes) in own_homes() {
            for at in homes.iter().filter(|at| self.is_rival(class, self.candidates[**at].price)) {
                rivals.entry(*at).or_default().push(class);
            }
        }
        let mut off = BTreeSet::new();
        // Most candidates are needed by the same classes.
        let mut known: BTreeMap<&[usize], (Ends, ResourceList)> = BTreeMap::new();
        for (at, rivals) in rivals {
            let Some(needing) = needing.get(&at) else { continue };
            let NodeCandidate { price, offer, .. } = &self.candidates[at];
            let capacity = &self.inputs.supply.capacities[offer.capacity];
            let (ends, all) = &*known.entry(needing.as_slice()).or_insert_with(|| self.together(needing));
            // As many nodes as these pods need at least.
            let nodes =
                all.iter().map(|(name, amount)| amount.div_ceil(capacity.get(name.as_str()).max(1))).max();
            let mut free = times(capacity, nodes.unwrap_or(1).max(1));
            free.saturating_sub(all);
            let needing = needing.iter().map(|class| &classes[*class]);
            let needing = needing.map(|of| (&of.requests, of.pods.len() as u64));
            if let Some(kept) = Kept::new(*price, capacity, &free, needing) {
                // Each candidate stands for all nodes that may be bought.
                let kept_off = self.kept_off(kept, ends, rivals, &mut BTreeSet::new());
                off.extend(kept_off.into_iter().map(|class| (class, at)));
            }
        }
        off
    }

    /// Returns when nodes with all pods of these classes end, and what the pods request together.
    fn together(&self, classes: &[usize]) -> (Ends, ResourceList) {
        let (mut ends, mut all) = (Ends::default(), ResourceList::new());
        for of in classes.iter().map(|class| &self.inputs.classes.classes[*class]) {
            self.inputs.horizons.add(&mut ends, of.horizon, PODS.min(of.pods.len() as u32));
            all.add(&times(&of.requests, of.pods.len() as u64));
        }
        (ends, all)
    }

    /// Returns the candidates of each class without those that it is kept off. Preferences come before kept room, so candidates stay
    /// if the class has no much cheaper one that meets the same preferences.
    fn without(&self, holding: Vec<Homes>, off: &BTreeSet<(usize, usize)>) -> Vec<Homes> {
        let of_class = |(class, asked): (usize, Homes)| -> Homes {
            let rest = asked.into_iter().map(|(signature, homes)| {
                let own = self.first_home(&homes).map(|at| self.candidates[at].price);
                let stays =
                    |at: &usize| !off.contains(&(class, *at)) || needs(own, self.candidates[*at].price);
                let left: Rc<[usize]> = homes.iter().copied().filter(stays).collect();
                (signature, left)
            });
            rest.collect()
        };
        holding.into_iter().enumerate().map(of_class).collect()
    }
}

/// Returns a list so many times.
fn times(list: &ResourceList, count: u64) -> ResourceList {
    list.iter().map(|(name, amount)| (name.clone(), amount.saturating_mul(count))).collect()
}
