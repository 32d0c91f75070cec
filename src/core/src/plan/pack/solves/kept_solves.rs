//! Solver calls that are kept for explanations and replays, with what their problems do not say.

use std::collections::BTreeSet;

use poolwright_solver::{Problem, Solution};

use crate::model::plan::{Solve, SolveNode};
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::pass::Run;

impl Run<'_, '_, '_, '_> {
    /// Keeps a solver call.
    pub(crate) fn keep_solve(
        &mut self,
        (candidates, classes, columns): (&[NodeCandidate], &[usize], &Columns),
        problem: &Problem,
        solution: Option<&Solution>,
    ) {
        let keys = |class: &usize| self.queues[*class].iter().map(|pod| pod.key.clone()).collect();
        let node = |column: &Column| match column.source {
            Source::New(at) => SolveNode::New(candidates[at].offer.availability.price()),
            Source::Room(at) => SolveNode::Existing(self.rooms.all[at].target.clone()),
        };
        let is_over_time = self.inputs.horizons.weighs()
            || columns.all.iter().any(|column| matches!(column.source, Source::Room(_)));
        let solve = Solve {
            problem: problem.clone(),
            pods: classes.iter().map(keys).collect(),
            solution: solution.cloned(),
            nodes: columns.all.iter().map(node).collect(),
            kept_off: self.kept_off(candidates, classes, columns),
            is_over_time,
        };
        let solve = self.uncharged(solve, classes, columns);
        self.outcome.solves.push(solve);
    }

    /// Returns the columns that each class is kept off because of kept room.
    fn kept_off(
        &self,
        candidates: &[NodeCandidate],
        classes: &[usize],
        columns: &Columns,
    ) -> Vec<BTreeSet<u32>> {
        let mut kept_off = vec![BTreeSet::new(); classes.len()];
        for (at, column) in columns.all.iter().enumerate() {
            let off = match column.source {
                Source::New(candidate) => Some(&candidates[candidate].kept_off),
                Source::Room(room) => self.lives[room].as_ref().map(|life| &life.kept_off),
            };
            // Classes ascend.
            for class in off.into_iter().flatten().filter_map(|class| classes.binary_search(class).ok()) {
                kept_off[class].insert(at as u32);
            }
        }
        kept_off
    }
}
