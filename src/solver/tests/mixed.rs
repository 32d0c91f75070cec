//! Random problems with all rules mixed: every plan passes the checker.

#[path = "common/random_problem.rs"]
mod random_problem;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{
    NeverStop, Options, Problem, Solution, Unplaced, UnplacedReason, check, explain, greedy, solve,
};
use random_problem::{Shape, problem, rule};

/// The number of seeds for each shape.
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

/// Returns the messages of all violations of the greedy plan and the final plan.
fn faults(problem: &Problem) -> Vec<String> {
    let mut faults = Vec::new();
    let first = greedy(problem).expect("a well-formed problem");
    if let Err(violations) = check(problem, &first) {
        faults.extend(violations.iter().map(|violation| format!("greedy: {violation}")));
    }
    let solution = solve(problem, &Options::default(), &mut NeverStop).expect("a well-formed problem");
    if let Err(violations) = check(problem, &solution) {
        faults.extend(violations.iter().map(|violation| format!("solve: {violation}")));
    }
    if solution.bound > solution.objective() {
        faults.push("the bound is above the objective".into());
    }
    for class in 0..problem.classes.len() as u32 {
        match explain(problem, &solution, class) {
            Some(explanation) => drop(explanation.to_string()),
            None => faults.push(format!("class {class} is not explained")),
        }
    }
    faults
}

/// Checks the plans for problems of `rules` in two sizes.
fn answers_pass(rules: u32) {
    let small = Shape { rules, ..Shape::SMALL };
    let medium = Shape { pods: 60, classes: 12, candidates: 10, existing: 5, rules };
    for (shape, count) in [(small, 300), (medium, 30)] {
        for (seed, problem) in seeds(shape).take(count) {
            assert_eq!(faults(&problem), Vec::<String>::new(), "seed {seed} of {shape:?}");
        }
    }
}

#[test]
fn plans_that_keep_nodes_as_they_are_pass_the_checker() {
    answers_pass(rule::ALL & !rule::REMOVAL);
}

#[test]
fn plans_that_keep_or_move_pods_pass_the_checker() {
    answers_pass(rule::ALL);
}

#[test]
fn plans_with_gangs_and_spreads_pass_the_checker() {
    answers_pass(rule::ALL & !rule::REMOVAL);
}

#[test]
fn plans_with_all_rules_pass_the_checker() {
    answers_pass(rule::ALL);
}
