//! A plan for all tiers together, if the tiers one by one leave out pods that it serves.
//!
//! Each tier takes what it can of a limit that several pools share, so that later tiers may serve fewer pods. A solver call that knows
//! all tiers serves as many pods as it can. A charge for each pod on a further choice makes it prefer the first ones. The pods that it
//! serves in each tier are then reserved: all tiers are solved once more, and each begins with its own.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::UsdPerHour;
use poolwright_solver::StopSignal;

use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::columns::{Columns, Source};
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;
use crate::supply::limits::Limits;
use crate::supply::rooms::Rooms;

impl<'n> Run<'_, '_, '_, 'n> {
    /// Serves more pods, if a plan for all tiers together does. `rooms`, `lives` and `limits` are those before the plan.
    pub(crate) fn serve_more(
        &mut self,
        (tiers, unpriced): (&Tiers<'_>, Option<&Tiers<'_>>),
        (rooms, lives, limits): (&Rooms<'n>, &[Option<RoomLife>], &Limits),
        stop: &mut dyn StopSignal,
    ) {
        if tiers.rounds() <= 1 || !self.waits_within(&[tiers], limits) {
            return;
        }
        let (mut rooms_left, mut limits_left) = (rooms.clone(), limits.clone());
        let mut other = Run::new(self.inputs, &mut rooms_left, lives.to_vec(), &mut limits_left);
        other.charges = self.charges_by_priority(tiers);
        if !other.pass(&tiers.together(), unpriced, false, stop) {
            return;
        }
        other.served = other.by_choice(tiers);
        if other.rank() >= self.rank() {
            return;
        }
        let later = other.left_to_later(vec![0; other.queues.len()], &other.served);
        other.note_limits(tiers, &later);
        self.become_like(other);
        if stop.should_stop() {
            return;
        }
        let (mut rooms_left, mut limits_left) = (rooms.clone(), limits.clone());
        let mut other = Run::new(self.inputs, &mut rooms_left, lives.to_vec(), &mut limits_left);
        other.later = later.into();
        if other.pass(tiers, unpriced, false, stop) && other.rank() < self.rank() {
            self.become_like(other);
        }
    }
}

impl Run<'_, '_, '_, '_> {
    /// Returns whether a pod waits that a node of these candidates within `limits` would hold.
    pub(crate) fn waits_within(&self, all: &[&Tiers<'_>], limits: &Limits) -> bool {
        let holds = |tiers: &Tiers<'_>, class: usize| {
            let mut homes = tiers.without_preferences(class).into_iter();
            homes.any(|at| limits.allow(&tiers.candidates[at].uses))
        };
        let mut waiting = (0..self.queues.len()).filter(|class| !self.queues[*class].is_empty());
        waiting.any(|class| all.iter().any(|&tiers| holds(tiers, class)))
    }

    /// Returns what pods are charged on their further choices, by class and candidate: more with a higher priority.
    fn charges_by_priority(&self, tiers: &Tiers<'_>) -> Vec<BTreeMap<usize, UsdPerHour>> {
        let classes = &self.inputs.classes.classes;
        let priorities: BTreeSet<i32> = classes.iter().map(|class| class.priority).collect();
        let mut all = tiers.charges();
        for (class, charges) in classes.iter().zip(&mut all) {
            let lower = priorities.range(..class.priority).count() as u64;
            for charge in charges.values_mut() {
                *charge = charge.times(1 + lower);
            }
        }
        all
    }

    /// Returns the pods with a place, by class, and by the first round in which they could have it.
    fn by_choice(&self, tiers: &Tiers<'_>) -> Vec<Vec<usize>> {
        let mut served = vec![vec![0; self.queues.len()]; tiers.rounds()];
        served[0] = self.in_rooms();
        let known = self.outcome.new.iter().filter(|node| node.offer.availability.price().is_some());
        for node in known {
            for (class, count) in &node.content {
                served[tiers.first(*class, node.candidate)][*class] += *count as usize;
            }
        }
        served
    }

    /// Notes the limits that keep pods out of a tier. `later` are the pods that each round leaves to later ones, by class.
    pub(crate) fn note_limits(&mut self, tiers: &Tiers<'_>, later: &[Vec<usize>]) {
        for (round, later) in later.iter().enumerate() {
            let left = (0..later.len()).filter(|class| later[*class] > 0 && tiers.has(*class, round));
            for class in left {
                let beyond = |at: &usize| self.limits.first_beyond(&tiers.candidates[*at].uses);
                let limit = tiers.admitted(class, round).iter().find_map(beyond);
                self.outcome.limits_reached.extend(limit);
            }
        }
    }

    /// Returns what a pod of a class is charged on each column, as pairs (index of the column, charge above zero).
    pub(crate) fn charges_of(
        &self,
        class: usize,
        columns: &Columns,
        homes: &[u32],
    ) -> Vec<(u32, UsdPerHour)> {
        let Some(charges) = self.charges.get(class) else { return Vec::new() };
        let on = |home: &u32| {
            let Source::New(at) = columns.all[*home as usize].source else { return None };
            let charge = *charges.get(&at)?;
            (charge > UsdPerHour::ZERO).then_some((*home, charge))
        };
        homes.iter().filter_map(on).collect()
    }
}
