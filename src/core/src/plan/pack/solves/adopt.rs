//! Plans of several solver calls that cost more than a simpler way to buy, although this keeps all rules and serves as many pods in each
//! step. They buy the nodes of the simpler way.
//!
//! The plan of one solver call never costs more than such a way. But a call does not know the calls after it. It may take more of a
//! limit than a dearer node would, and a later call pays for that.

use std::collections::BTreeSet;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::baseline::{Bought, Simple};
use poolwright_solver::{Problem, Proof, Solution, StopSignal};

use crate::model::PodKey;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::naive::Way;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::{Tiers, WayNode};
use crate::supply::limits::Limits;

impl<'a> Run<'_, '_, 'a, '_> {
    /// Buys the nodes of the cheapest simpler way that keeps all rules, if that costs less than the plan. `limits` are those before the
    /// plan.
    pub(crate) fn adopt_simpler(
        &mut self,
        tiers: &Tiers<'_>,
        unpriced: Option<&Tiers<'_>>,
        limits: &Limits,
        stop: &mut dyn StopSignal,
    ) {
        let is_single = self.outcome.calls <= 1 && self.outcome.charged == UsdPerHour::ZERO;
        if is_single || self.has_too_many() {
            return;
        }
        let Some(ways) = self.ways(tiers, limits.clone()) else { return };
        let cheaper = ways.into_iter().filter(|way| self.is_beaten_by(way));
        let cost = |way: &Way| (way.baseline.over_time, way.baseline.cost + way.baseline.risk);
        let Some(way) = cheaper.min_by_key(cost) else { return };
        let (mut rooms, mut limits) = (self.rooms.clone(), limits.clone());
        let mut other = Run::new(self.inputs, &mut rooms, self.lives.clone(), &mut limits);
        other.begin_with_rooms_of(self);
        if !other.buy_as(way, self.in_rooms(), tiers, unpriced, stop) {
            return;
        }
        let serves_all =
            other.queues.iter().zip(&self.queues).all(|(left, before)| left.len() <= before.len());
        if !serves_all || (other.rank().0, other.cost()) >= (self.rank().0, self.cost()) {
            return;
        }
        // With one round, the bound is for all plans that serve these pods. With more, it is for the steps of this plan alone.
        let known = (self.outcome.bound, self.outcome.proof);
        let unknown = (UsdPerHour::ZERO, Some(Proof::Truncated));
        (other.outcome.bound, other.outcome.proof) = if tiers.rounds() == 1 { known } else { unknown };
        self.become_like(other);
    }

    /// Begins with the pods on existing nodes where another pass has them.
    fn begin_with_rooms_of(&mut self, other: &Run<'_, '_, 'a, '_>) {
        let placed: BTreeSet<&PodKey> = other.outcome.on_rooms.iter().map(|(_, pod)| &pod.key).collect();
        for queue in &mut self.queues {
            queue.retain(|pod| !placed.contains(&pod.key));
        }
        let (outcome, begun) = (&mut self.outcome, &other.outcome);
        outcome.on_rooms.clone_from(&begun.on_rooms);
        (outcome.room_cost, outcome.objective) = (begun.room_cost, begun.room_cost);
        (outcome.is_over_time, outcome.stopped_early) = (begun.is_over_time, begun.stopped_early);
    }
}

impl Run<'_, '_, '_, '_> {
    /// Buys the nodes of a simpler way round by round, then what other pods need. `in_rooms` are the pods on existing nodes, by class.
    /// Returns false if that breaks a rule.
    fn buy_as(
        &mut self,
        way: Way,
        in_rooms: Vec<usize>,
        tiers: &Tiers<'_>,
        unpriced: Option<&Tiers<'_>>,
        stop: &mut dyn StopSignal,
    ) -> bool {
        let later = self.left_to_later(in_rooms.clone(), &way.served);
        self.admit_rooms();
        for (round, (nodes, later)) in way.nodes.into_iter().zip(&later).enumerate() {
            let aside = self.set_aside(Some(later.clone()));
            self.given = Some(nodes);
            let takes_part = |class: usize| tiers.takes_part(class, round);
            let admitted = |class: usize| tiers.admitted(class, round);
            let is_kept = self.round(tiers.candidates, takes_part, admitted, true, true, stop);
            (self.given, self.floored) = (None, None);
            self.put_back(aside);
            if !is_kept {
                return false;
            }
        }
        self.note_limits(tiers, &later);
        let steps = self.outcome.steps;
        if !self.pass(tiers, unpriced, false, stop) {
            return false;
        }
        self.outcome.steps = steps;
        let more = std::mem::replace(&mut self.served, way.served);
        for (served, more) in self.served.iter_mut().zip(more) {
            add(served, &more);
        }
        if let Some(first) = self.served.first_mut() {
            add(first, &in_rooms);
        }
        true
    }

    /// Returns a solution with these nodes for all pods of a problem; `None` if it breaks a rule.
    pub(crate) fn solution_of(
        &self,
        nodes: &[WayNode],
        problem: &Problem,
        (classes, columns): (&[usize], &Columns),
    ) -> Option<Solution> {
        let mut simple = Simple::default();
        for WayNode { candidate, pods } in nodes {
            let lives = pods.iter().map(|(class, _)| self.inputs.classes.classes[*class].horizon);
            let column = Column { source: Source::New(*candidate), horizon: lives.max()? };
            let candidate = columns.all.binary_search(&column).ok()? as u32;
            let own = |(class, count): &(usize, u32)| {
                classes.binary_search(class).ok().map(|class| (class as u32, *count))
            };
            simple.nodes.push(Bought { candidate, pods: pods.iter().map(own).collect::<Option<_>>()? });
        }
        simple.plan(problem)
    }
}

/// Adds counts of pods, by class.
fn add(pods: &mut [usize], more: &[usize]) {
    for (pods, more) in pods.iter_mut().zip(more) {
        *pods += more;
    }
}
