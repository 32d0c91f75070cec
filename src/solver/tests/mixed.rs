//! Random problems of all rules mixed: what is answered passes the checker.

#[path = "common/random_problem.rs"]
mod random_problem;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Problem, Solution, Unplaced, UnplacedReason, check};
use random_problem::{Shape, problem, rule};

/// Seeds tried for each shape.
const SEEDS: u64 = 2_000;

fn seeds(shape: Shape) -> impl Iterator<Item = (u64, Problem)> {
    (0..SEEDS).map(move |seed| (seed, problem(seed, &shape)))
}

#[test]
fn random_problems_are_well_formed_and_have_every_rule() {
    for shape in [Shape::SMALL, Shape::MEDIUM] {
        let mut met = [0u32; 10];
        for (seed, problem) in seeds(shape) {
            assert_eq!(problem.validate(), Ok(()), "seed {seed}");
            let gpus = problem.classes.iter().any(|class| class.gpu.is_some());
            let removable = problem.existing.iter().any(|node| node.removal.is_some());
            let here = [
                !problem.limits.is_empty(),
                !problem.conflicts.is_empty(),
                !problem.gangs.is_empty(),
                !problem.spreads.is_empty(),
                !problem.commitments.is_empty(),
                !problem.node_shares.is_empty(),
                !problem.flexibility.is_empty(),
                gpus,
                removable,
                problem.classes.iter().any(|class| class.at_risk > 0),
            ];
            met.iter_mut().zip(here).for_each(|(met, here)| *met += u32::from(here));
        }
        assert!(met.iter().all(|met| *met > 100), "{met:?}");
    }
    let few = Shape { rules: rule::STOCK | rule::LIMITS, ..Shape::MEDIUM };
    assert!(seeds(few).all(|(_, problem)| problem.gangs.is_empty() && problem.existing.is_empty()));
}

#[test]
fn leaving_everything_as_it_is_is_always_a_plan() {
    for (seed, problem) in seeds(Shape::MEDIUM) {
        let waiting = problem.classes.iter().enumerate().filter(|(_, class)| class.count > 0);
        let solution = Solution {
            unplaced: waiting
                .map(|(index, class)| Unplaced {
                    class: index as u32,
                    count: class.count,
                    reason: UnplacedReason::NothingFits,
                })
                .collect(),
            cost: problem
                .existing
                .iter()
                .filter_map(|node| node.removal.as_ref())
                .map(|removal| removal.price)
                .sum(),
            commitment_use: vec![UsdPerHour::ZERO; problem.commitments.len()],
            ..Solution::default()
        };
        assert_eq!(check(&problem, &solution), Ok(()), "seed {seed}");
    }
}
