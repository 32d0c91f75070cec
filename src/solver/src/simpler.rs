//! The simple ways to buy of [`crate::baseline`] as plans. One of them replaces a plan that is not proven to be the cheapest, if it
//! costs less. So up to `MOST_PODS_WITHIN_GAP`, no plan is dearer than a baseline that keeps the same rules, however early the search
//! ends. Up to `MOST_PODS`, only a plan that reached the gap target can be, and by no more than the gap.

use crate::baseline::Simple;
use crate::check::check;
use crate::plan::{LaidOut, charges};
use crate::problem::Problem;
use crate::solution::{Proof, Solution, Stopped};
use crate::stop::StopSignal;

/// With more pods on new nodes, the comparison would take too long after a search that was told to stop.
const MOST_PODS: u64 = 20_000;
/// With more pods, a plan that reached the gap target is not compared, because that gains less than the gap.
const MOST_PODS_WITHIN_GAP: u64 = 5_000;

/// Returns a simple plan that places the same pods and costs less than `solution`, if there is one, or else `solution`.
pub(crate) fn or_simpler(problem: &Problem, solution: Solution, signal: &mut dyn StopSignal) -> Solution {
    if solution.objective() <= solution.bound || signal.is_abandoned() {
        return solution;
    }
    // Pods on existing nodes stay there.
    let mut counts = vec![0_u32; problem.classes.len()];
    for group in &solution.new_nodes {
        for (class, each) in &group.pods {
            counts[*class as usize] += each * group.count;
        }
    }
    let pods: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let most = if solution.stopped == Stopped::GapReached { MOST_PODS_WITHIN_GAP } else { MOST_PODS };
    if pods == 0 || pods > most {
        return solution;
    }
    let all = Simple::ways_below(problem, &counts, solution.objective());
    let better = all.iter().filter_map(|simple| instead(problem, &solution, simple));
    match better.min_by_key(Solution::objective) {
        Some(better) => {
            signal.improved(&better);
            better
        }
        None => solution,
    }
}

impl Simple {
    /// Returns a plan with its nodes and without a bound; `None` if that breaks a rule or leaves pods out.
    pub fn plan(&self, problem: &Problem) -> Option<Solution> {
        let plan = with_nodes(problem, &Solution::default(), self)?;
        check(problem, &plan).is_ok().then_some(plan)
    }
}

/// Returns `solution` with the new nodes of a simple way to buy instead; `None` if their GPUs do not hold all pods.
fn with_nodes(problem: &Problem, solution: &Solution, simple: &Simple) -> Option<Solution> {
    let mut laid = LaidOut::new(problem);
    let new_nodes = laid.new_nodes(simple.new_nodes());
    let charges = charges(problem, &new_nodes);
    let (cost, commitment_use) = simple.paid(problem);
    let plan = Solution { new_nodes, cost, charges, commitment_use, ..solution.clone() };
    laid.lost.is_empty().then_some(plan)
}

/// Returns `solution` with the new nodes of a simple way to buy, if these place all its pods, keep all rules and cost less.
fn instead(problem: &Problem, solution: &Solution, simple: &Simple) -> Option<Solution> {
    if simple.left.iter().any(|left| *left > 0) {
        return None;
    }
    let mut plan = with_nodes(problem, solution, simple)?;
    if plan.objective() >= solution.objective() {
        return None;
    }
    if plan.objective() <= plan.bound {
        (plan.proof, plan.stopped) = (Proof::Exact, Stopped::GapReached);
    }
    check(problem, &plan).is_ok().then_some(plan)
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::UsdPerHour;

    use super::*;
    use crate::problem::{Flexibility, Limit, Topology};
    use crate::solution::NewNodes;
    use crate::stop::NeverStop;
    use crate::testing::{candidate, class, problem};

    /// Four pods of two CPUs, which a search that ended early puts on a node each.
    fn cut_short() -> (Problem, Solution) {
        let candidates = vec![candidate("small", 3, [4, 4, 0]), candidate("large", 5, [8, 8, 0])];
        let problem = problem(vec![class("pod", [2, 2, 0], 4, &[0, 1])], candidates);
        let nodes = NewNodes { candidate: 0, pods: vec![(0, 1)], count: 4, gpus: Vec::new() };
        let solution = Solution {
            new_nodes: vec![nodes],
            cost: UsdPerHour::from_micros(12),
            stopped: Stopped::Asked,
            ..Solution::default()
        };
        assert_eq!(check(&problem, &solution), Ok(()));
        (problem, solution)
    }

    fn bought(problem: &Problem, solution: Solution) -> (u64, u64) {
        let solution = or_simpler(problem, solution, &mut NeverStop);
        assert_eq!(check(problem, &solution), Ok(()));
        (solution.cost.micros(), solution.nodes())
    }

    #[test]
    fn a_plan_that_is_dearer_than_first_fit_becomes_first_fit() {
        let (problem, solution) = cut_short();
        assert_eq!(bought(&problem, solution.clone()), (5, 1));
        let bound = UsdPerHour::from_micros(5);
        let known = or_simpler(&problem, Solution { bound, ..solution }, &mut NeverStop);
        assert_eq!((known.proof, known.stopped), (Proof::Exact, Stopped::GapReached));
    }

    #[test]
    fn first_fit_is_not_taken_where_it_breaks_a_rule_and_keeps_limits() {
        let (mut problem, solution) = cut_short();
        for (value, candidate) in (0..).zip(&mut problem.candidates) {
            candidate.domains = vec![(0, value)];
        }
        problem.topologies =
            vec![Topology { name: "type".into(), values: vec!["small".into(), "large".into()] }];
        let rule = Flexibility { name: "two types".into(), candidates: vec![0, 1], topology: 0, at_least: 2 };
        problem.flexibility = vec![rule];
        assert_eq!(bought(&problem, solution.clone()), (12, 4), "no small node could replace the large one");
        problem.flexibility.clear();
        problem.candidates[1].limit_use = vec![(0, 1)];
        problem.limits = vec![Limit { name: "large nodes".into(), bound: 0 }];
        assert_eq!(bought(&problem, solution), (6, 2), "two pods fit each small node");
    }

    #[test]
    fn the_nodes_of_a_simple_way_are_a_plan_if_they_place_all_pods_and_keep_all_rules() {
        let (mut problem, _) = cut_short();
        let simple = Simple::first_fit(&problem);
        let plan = simple.plan(&problem).expect("it keeps all rules");
        assert_eq!((plan.cost.micros(), plan.bound.micros(), plan.nodes()), (5, 0, 1));
        problem.classes[0].count += 1;
        assert_eq!(simple.plan(&problem), None, "a pod is left out");
        problem.classes[0].count -= 1;
        problem.candidates[1].limit_use = vec![(0, 1)];
        problem.limits = vec![Limit { name: "large nodes".into(), bound: 0 }];
        assert_eq!(simple.plan(&problem), None, "a limit is exceeded");
    }

    #[test]
    fn a_proven_plan_is_not_compared() {
        let (problem, solution) = cut_short();
        let proven = Solution { bound: solution.cost, ..solution };
        assert_eq!(bought(&problem, proven), (12, 4));
    }
}
