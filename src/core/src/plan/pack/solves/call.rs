//! One solver call: its problem, its verified solution, and what that places and buys.

use std::mem;

use poolwright_solver as solver;
use poolwright_solver::{Solution, StopSignal};

use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Columns, Source, Sources};
use crate::plan::pack::solves::floor::TooEarly;
use crate::plan::pack::solves::pass::{Floored, Run};

impl Run<'_, '_, '_, '_> {
    /// Makes one solver call. Returns false if its solution failed verification.
    pub(crate) fn round(
        &mut self,
        candidates: &[NodeCandidate],
        takes_part: impl Fn(usize) -> bool,
        admitted: impl Fn(usize) -> Vec<usize>,
        priced: bool,
        bound: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        let classes: Vec<usize> = (0..self.queues.len())
            .filter(|class| !self.queues[*class].is_empty() && takes_part(*class))
            .collect();
        if classes.is_empty() {
            return true;
        }
        let homes: Vec<Vec<usize>> = classes.iter().map(|class| admitted(*class)).collect();
        let there = self.there(candidates, &classes, &homes);
        let sources: Vec<Sources<'_>> = (classes.iter().zip(&homes).zip(&there.at_a_cost))
            .map(|((class, candidates), rooms)| {
                let horizon = self.inputs.classes.classes[*class].horizon;
                Sources { horizon, candidates, rooms }
            })
            .collect();
        let columns = Columns::new(candidates.len(), self.rooms.all.len(), &sources);
        let mut problem = self.problem(candidates, &classes, &columns, &there);
        let mut spot = self.spot_shares(candidates, &columns);
        problem.node_shares = mem::take(&mut spot.shares);
        let solved = match self.given.take() {
            Some(nodes) => {
                let Some(given) = self.solution_of(&nodes, &problem, (&classes, &columns)) else {
                    return false;
                };
                Ok(given)
            }
            None => solver::solve(&problem, &self.inputs.options.solver, stop),
        };
        if self.inputs.options.keep_solves {
            self.keep_solve((candidates, &classes, &columns), &problem, solved.as_ref().ok());
        }
        let Some(solution) = self.checked(&problem, solved) else { return false };
        let mut lacking = self.lacking_on_demand(candidates, &columns, &solution);
        if !lacking.is_empty() {
            // Without these pools' spot nodes, pods may get those of another pool that must wait.
            lacking.extend(self.waiting_for_on_demand(candidates, &columns));
        }
        let (columns, lacking) = (&columns, &lacking);
        let call = TooEarly { candidates, columns, problem: &problem, solution: &solution, lacking };
        let instead = if lacking.is_empty() {
            None
        } else {
            match self.on_demand_first(call, stop) {
                Some(instead) => Some(instead),
                None => return false,
            }
        };
        let done = instead.as_ref().map_or(&solution, |first| &first.solution);
        // A plan that keeps the floor costs no less than one with too many spot nodes, unless it leaves more pods out.
        let left = Self::left_out(&solution);
        let first = instead.as_ref().filter(|_| bound && left == 0);
        let with_floor = first.and_then(|first| self.bound_with_floor(call, first, stop));
        self.apply(candidates, (&classes, &there), columns, done);
        let closed = instead.as_ref().map_or(lacking, |first| &first.closed);
        self.note_spot_rules((candidates, columns), &classes, (&spot, closed), done);
        let buys = |group: &solver::solution::NewNodes| {
            matches!(columns.all[group.candidate as usize].source, Source::New(_))
        };
        let buys_any = done.new_nodes.iter().any(buys);
        if priced {
            let charged = self.charged(&classes, columns, done);
            self.outcome.charged += charged;
            self.outcome.objective += done.objective().saturating_sub(charged);
            self.outcome.calls += usize::from(buys_any);
            // Costs over time keep pods off rooms, too.
            let over_time = self.inputs.horizons.weighs()
                || there.at_a_cost.iter().any(|rooms| !rooms.is_empty())
                || self.lives.iter().flatten().any(|life| !life.kept_off.is_empty());
            self.outcome.is_over_time |= over_time;
        }
        if bound {
            self.outcome.steps += usize::from(buys_any);
            let higher = with_floor.filter(|(least, _)| *least > solution.bound);
            let known = higher.unwrap_or((solution.bound, solution.proof));
            if instead.is_some() {
                self.floored = Some(Floored { problem, classes, bound: known });
            } else {
                self.outcome.bound += known.0;
                self.outcome.proof = self.outcome.proof.max(Some(known.1));
            }
        }
        let is_asked = |solution: &Solution| solution.stopped == solver::Stopped::Asked;
        self.outcome.stopped_early |= is_asked(&solution) || is_asked(done);
        true
    }

    /// Returns a solution that passes the checker; `None` if it does not.
    pub(crate) fn checked(
        &mut self,
        problem: &solver::Problem,
        solved: Result<Solution, solver::ProblemError>,
    ) -> Option<Solution> {
        let solution = match solved {
            Ok(solution) => solution,
            Err(error) => {
                self.outcome.refused.push(error.to_string());
                return None;
            }
        };
        if let Err(violations) = solver::check(problem, &solution) {
            self.outcome.refused.extend(violations.iter().map(ToString::to_string));
            return None;
        }
        Some(solution)
    }
}
