//! Rivals: pods with a much cheaper home than an expensive node. They are kept off it where they would take kept room
//! ([`crate::plan::pack::kept_room`]), if their own nodes cost less than that room is worth.
//!
//! Equal pods get the room beside the kept one together or not at all. If it does not hold all of them, what is left of it helps none
//! of them: each takes kept room or its own node, whichever costs less. A pod whose cheaper home cannot be bought now is no rival.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::SignedDuration;
use poolwright_catalog::{ResourceList, Usd, UsdPerHour};

use crate::model::Ends;
use crate::plan::pack::classes::PodClass;
use crate::plan::pack::horizon;
use crate::plan::pack::kept_room::{Kept, needs, taken};
use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::candidates::{Homes, NodeCandidate};
use crate::plan::pack::solves::inputs::SolveInputs;
use crate::rules;
use crate::supply::limits::Limits;
use crate::supply::rooms::Rooms;

/// The most pods of a class that count for the end of a node. More make no difference.
const PODS: u32 = 64;

/// Keeps pods off nodes where they would take kept room. Returns the candidates that are left to each class, and whether any class is
/// kept off anything. If solver calls are kept for explanations, the candidates note the classes that are kept off them.
pub(crate) fn keep(
    inputs: &SolveInputs<'_, '_>,
    candidates: &mut [NodeCandidate],
    holding: Vec<Homes>,
    (rooms, lives): (&Rooms<'_>, &mut [Option<RoomLife>]),
    limits: &Limits,
) -> (Vec<Homes>, bool) {
    let of = |class: &PodClass<'_>| times(&class.requests, class.pods.len() as u64);
    let all = inputs.classes.classes.iter().map(of).collect();
    let mut rivals =
        Rivals { inputs, candidates: &*candidates, limits, first: Vec::new(), own: Vec::new(), all };
    let first = |(class, asked): (usize, &Homes)| {
        // The room for parts of GPUs is counted in another way.
        let (_, homes) = asked.last().filter(|_| inputs.classes.classes[class].gpu_need.is_none())?;
        rivals.first_home(homes)
    };
    rivals.first = holding.iter().enumerate().map(first).collect();
    rivals.own = (0..holding.len()).map(|class| rivals.own_cost(class)).collect();
    let off_rooms = rivals.keep_off_rooms(rooms, lives);
    let off_new = rivals.off_new(&holding);
    if off_new.is_empty() {
        return (holding, off_rooms);
    }
    let left = rivals.without(holding, &off_new);
    if inputs.options.keep_solves {
        for (class, at) in off_new {
            candidates[at].kept_off.insert(class);
        }
    }
    (left, true)
}

/// The classes of a plan, and their own nodes.
struct Rivals<'r, 's, 'a> {
    inputs: &'r SolveInputs<'s, 'a>,
    candidates: &'r [NodeCandidate],
    limits: &'r Limits,
    /// The cheapest candidate of each class's first choice that can be bought now.
    first: Vec<Option<usize>>,
    /// What a node of its own costs one pod of each class, until it has ended.
    own: Vec<Option<Usd>>,
    /// What all pods of each class request together. There may be millions of pairs of a class and a candidate.
    all: Vec<ResourceList>,
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

    /// Returns what the cheapest node that can be bought now for a class costs one pod of it, until it has ended.
    fn own_cost(&self, class: usize) -> Option<Usd> {
        let NodeCandidate { price, pool, .. } = &self.candidates[self.first[class]?];
        let life = self.inputs.horizons.life(self.inputs.classes.classes[class].horizon)?;
        Some(horizon::cost(*price, horizon::paid(life, self.inputs.supply.pools[*pool].pool)))
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
        // The time for which a pod takes room, by group of lives.
        let mut time_of: BTreeMap<usize, SignedDuration> = BTreeMap::new();
        classes.retain(|class| {
            let all = &self.all[*class];
            if !housed.contains(class) && kept.spares(all) {
                kept.take(all);
                housed.insert(*class);
                return false;
            }
            // A pod is kept off if it costs less on its own node than what its room here is worth.
            let of = &self.inputs.classes.classes[*class];
            let Some((own, life)) = self.own[*class].zip(self.inputs.horizons.life(of.horizon)) else {
                return false;
            };
            let time = *time_of.entry(of.horizon).or_insert_with(|| taken(ends, life));
            own < kept.worth(&of.requests, time)
        });
        classes
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
                let signature = of.signature;
                self.is_rival(*class, life.price)
                    && of.requests.fits(&room.free)
                    && *admitted.entry(signature).or_insert_with(|| self.inputs.admits(room, signature))
                    && rules::is_host(of.spec, &room.labels)
                    && self.inputs.colocation.admits(of.profile, &room.present)
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
        let mut needing: Vec<Vec<usize>> = vec![Vec::new(); self.candidates.len()];
        for (class, homes) in own_homes().filter(|(class, _)| classes[*class].gpu_need.is_none()) {
            let own = homes.iter().map(|at| self.candidates[*at].price).min();
            for at in homes.iter().filter(|at| needs(own, self.candidates[**at].price)) {
                needing[*at].push(class);
            }
        }
        let mut rivals: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (class, homes) in own_homes() {
            let is_needed = |at: &&usize| !needing[**at].is_empty();
            for at in homes.iter().filter(is_needed) {
                if self.is_rival(class, self.candidates[*at].price) {
                    rivals.entry(*at).or_default().push(class);
                }
            }
        }
        let mut off = BTreeSet::new();
        // Most candidates are needed by the same classes.
        let mut known: BTreeMap<&[usize], (Ends, ResourceList)> = BTreeMap::new();
        for (at, rivals) in rivals {
            let needing = &needing[at];
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
        for class in classes {
            let of = &self.inputs.classes.classes[*class];
            self.inputs.horizons.add(&mut ends, of.horizon, PODS.min(of.pods.len() as u32));
            all.add(&self.all[*class]);
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
