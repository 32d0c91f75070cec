//! The proof that a solution states for its bound.

use poolwright_solver::{NeverStop, Options, Problem, Proof, Solution, Stopped, check, solve};

mod common;

fn sample(pods: usize) -> Problem {
    common::openb("gpuspec33", pods)
}

fn solved(problem: &Problem, gap_target: f64, work: u64) -> Solution {
    let options = Options { gap_target, work, ..Options::default() };
    let solution = solve(problem, &options, &mut NeverStop).expect("a well-formed problem");
    assert_eq!(check(problem, &solution), Ok(()));
    assert_eq!(
        solution.proof == Proof::Exact,
        solution.objective() == solution.bound,
        "{:?}",
        solution.proof
    );
    solution
}

#[test]
fn a_plan_that_is_good_enough_rests_on_complete_pricing() {
    let solution = solved(&sample(300), 0.01, 20_000_000);
    assert_eq!((solution.stopped, solution.proof), (Stopped::GapReached, Proof::Complete));
    assert!(solution.gap() > 0.0 && solution.gap() <= 0.01);
}

#[test]
fn a_solve_that_is_cut_short_says_that_its_pricing_is_too() {
    let problem = sample(300);
    for work in [0, 1, 10_000] {
        let solution = solved(&problem, 0.0, work);
        assert_eq!((solution.stopped, solution.proof), (Stopped::WorkLimit, Proof::Truncated), "{work}");
    }
}

#[test]
fn a_plan_that_meets_its_bound_is_exact() {
    let solution = solved(&sample(12), 0.0, 20_000_000);
    assert_eq!(solution.proof, Proof::Exact);
}

#[test]
fn verifying_stops_at_the_same_bound_whatever_the_number_of_threads() {
    let problem = sample(400);
    let of = |threads| {
        let options = Options { threads, gap_target: 0.003, work: 3_000_000, ..Options::default() };
        solve(&problem, &options, &mut NeverStop).expect("a well-formed problem")
    };
    assert_eq!(of(1), of(2));
}

#[test]
fn a_small_plan_goes_on_to_the_optimum_below_the_gap_target() {
    let problem = sample(50);
    let options = |finish_pods| Options { gap_target: 0.01, finish_pods, ..Options::default() };
    let solved = |finish_pods| {
        let solution = solve(&problem, &options(finish_pods), &mut NeverStop).expect("a well-formed problem");
        assert_eq!(check(&problem, &solution), Ok(()));
        solution
    };
    assert_ne!(solved(49).proof, Proof::Exact, "close enough, and not small");
    assert_eq!(solved(50).proof, Proof::Exact);
}
