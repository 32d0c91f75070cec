//! Solver calls: what was asked, and what came out.

use std::collections::BTreeSet;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Explanation, Problem, Solution, Why};
use serde::{Deserialize, Serialize};

use crate::model::plan::Target;
use crate::model::pod_key::PodKey;

/// One call of the solver, for inspection or replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solve {
    /// The problem.
    pub problem: Problem,
    /// The pods of each class of the problem.
    pub pods: Vec<Vec<PodKey>>,
    /// The solution; `None` if the problem was rejected as malformed, which would be a bug.
    pub solution: Option<Solution>,
    /// What each candidate of the problem stands for. One kind of node may be several candidates: one for each group of lives.
    pub nodes: Vec<SolveNode>,
    /// By class of the problem: the candidates that it may not use, because they are kept free for pods without a cheaper home.
    pub kept_off: Vec<BTreeSet<u32>>,
    /// Whether the problem counts how long nodes are paid for. Then its prices are not those of the moment.
    pub is_over_time: bool,
}

/// What a candidate of a problem stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SolveNode {
    /// A node to buy, with its price at this moment; `None` if that is unknown.
    New(Option<UsdPerHour>),
    /// An existing node whose further pods cost money, because they postpone its end.
    Existing(Target),
}

impl Solve {
    /// Explains where the pods of a class of the problem are and why, with the prices of nodes at this moment. `None` without a
    /// solution, and for a class that does not exist.
    pub fn explain(&self, class: usize) -> Option<Explanation> {
        let index = u32::try_from(class).ok()?;
        let mut told = poolwright_solver::explain(&self.problem, self.solution.as_ref()?, index)?;
        let kept_off = self.kept_off.get(class);
        for excluded in &mut told.excluded {
            let is_kept_off = kept_off.is_some_and(|off| off.contains(&excluded.candidate));
            if is_kept_off && excluded.why == Why::NotAllowed {
                excluded.why = Why::KeptFree;
            }
        }
        self.tell_of_each_kind_once(&mut told, class);
        for placed in &mut told.placed {
            match placed.candidate.and_then(|at| self.nodes.get(at as usize)) {
                Some(SolveNode::New(price)) => placed.price = *price,
                Some(SolveNode::Existing(target)) => {
                    target.name().clone_into(&mut placed.name);
                    (placed.candidate, placed.price) = (None, Some(UsdPerHour::ZERO));
                }
                None => {}
            }
        }
        Some(told)
    }

    /// Tells of each kind of node only once. A class may not use the candidates for groups of shorter lives, but that is no rule of its
    /// pods.
    fn tell_of_each_kind_once(&self, told: &mut Explanation, class: usize) {
        let name = |at: u32| self.problem.candidates[at as usize].name.as_str();
        let homes: BTreeSet<&str> =
            self.problem.classes[class].candidates.iter().map(|home| name(*home)).collect();
        let used = told.placed.iter().filter_map(|placed| placed.candidate);
        let mut known: BTreeSet<&str> = used.map(name).collect();
        told.alternatives.retain(|other| known.insert(name(other.candidate)));
        told.excluded.retain(|excluded| {
            let is_rule = match &excluded.why {
                Why::NotAllowed => !homes.contains(excluded.name.as_str()),
                Why::DominatedBy(better) => *better != excluded.name,
                _ => true,
            };
            is_rule && known.insert(name(excluded.candidate))
        });
    }
}
