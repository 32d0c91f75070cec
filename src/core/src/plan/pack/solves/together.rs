//! A plan for all tiers together, if the tiers one by one leave out pods that it serves.
//!
//! Each tier takes what it can of a limit that several pools share, so that later tiers may serve fewer pods. A solver call that knows
//! all tiers serves as many pods as it can. A charge for each pod on a further choice makes it prefer the first ones. The pods that it
//! serves in each tier are then reserved: all tiers are solved once more, and each begins with its own.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Solution, StopSignal};

use crate::model::plan::Solve;
use crate::plan::pack::room_lives::RoomLife;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
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

    /// Returns what a pod of a class is charged on a column, if that is a further choice.
    pub(crate) fn charge(&self, class: usize, column: Column) -> UsdPerHour {
        let Source::New(at) = column.source else { return UsdPerHour::ZERO };
        let charges = self.charges.get(class);
        charges.and_then(|charges| charges.get(&at)).copied().unwrap_or_default()
    }

    /// Returns what a solution charges for pods on their further choices.
    pub(crate) fn charged(&self, classes: &[usize], columns: &Columns, solution: &Solution) -> UsdPerHour {
        let mut charged = UsdPerHour::ZERO;
        for group in &solution.new_nodes {
            let column = columns.all[group.candidate as usize];
            for (class, count) in &group.pods {
                let pods = u64::from(*count) * u64::from(group.count);
                charged += self.charge(classes[*class as usize], column).times(pods);
            }
        }
        charged
    }

    /// Returns a solver call without the charges, which are no money.
    pub(crate) fn uncharged(&self, mut solve: Solve, classes: &[usize], columns: &Columns) -> Solve {
        if self.charges.is_empty() || solve.problem.classes.iter().all(|class| class.preferences.is_empty()) {
            return solve;
        }
        for (of, class) in solve.problem.classes.iter_mut().zip(classes) {
            for (home, cost) in &mut of.preferences {
                *cost = cost.saturating_sub(self.charge(*class, columns.all[*home as usize]));
            }
            of.preferences.retain(|(_, cost)| *cost > UsdPerHour::ZERO);
        }
        if let Some(solution) = &mut solve.solution {
            let charged = self.charged(classes, columns, solution);
            solution.bound = solution.bound.saturating_sub(charged);
            solution.charges.preferences = solution.charges.preferences.saturating_sub(charged);
            solution.prices = None;
        }
        solve
    }
}
