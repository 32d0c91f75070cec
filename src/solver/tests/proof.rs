//! The proof that a solution states for its bound.

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{GpuMode, GpuRequest, Gpus};
use poolwright_solver::{
    Candidate, NeverStop, Options, PodClass, Problem, Proof, Solution, Stopped, check, solve,
};

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

#[test]
fn a_plan_is_not_proven_where_the_search_for_places_on_shared_gpus_is_cut_short() {
    // All pods fit one node: 13 + 9 + 9 + 9 MiB on three of its GPUs, and 4 + 9 + 9 + 9 + 9 on the other two. While contents are
    // tried, the search has too few steps to find this.
    let class = |memory_mib, count| PodClass {
        name: format!("{memory_mib} MiB"),
        requests: vec![1],
        count,
        candidates: vec![0],
        gpu: Some(GpuRequest::Share { units: 1, memory_mib }),
        ..PodClass::default()
    };
    let node = Candidate {
        name: "node".to_owned(),
        price: UsdPerHour::from_micros(10_000),
        capacity: vec![100],
        gpus: Some(Gpus { count: 5, memory_mib: 40, mode: GpuMode::Shared }),
        ..Candidate::default()
    };
    let problem = Problem {
        resources: vec![ResourceName::new(ResourceName::CPU)],
        classes: vec![class(4, 2), class(9, 17), class(13, 3)],
        candidates: vec![node],
        ..Problem::default()
    };
    let solution = solved(&problem, 0.0, 20_000_000);
    assert!(solution.bound.micros() <= 10_000, "{solution:?}");
}
