//! Commitments and charges.

use super::*;
use crate::problem::Commitment;
use crate::solution::Charges;

const fn usd(micros: u64) -> UsdPerHour {
    UsdPerHour::from_micros(micros)
}

/// Two nodes of `a` at 100, discounted to 70; three of `b` at 100, discounted to 50; 160 are left.
fn committed() -> (Problem, Solution) {
    let mut problem = problem(
        vec![class("p", [1, 0, 0], 2, &[0]), class("q", [1, 0, 0], 3, &[1])],
        vec![candidate("a", 100, [1, 0, 0]), candidate("b", 100, [1, 0, 0])],
    );
    problem.commitments =
        vec![Commitment { name: "plan".into(), left: usd(160), rates: vec![(0, usd(70)), (1, usd(50))] }];
    let new = |candidate, count| NewNodes { candidate, pods: vec![(candidate, 1)], count, gpus: Vec::new() };
    let solution = Solution {
        new_nodes: vec![new(0, 2), new(1, 3)],
        // All three of `b`, and 10 of the 70 of one `a`: 60/70 of 100 is 85.7.
        cost: usd(186),
        commitment_use: vec![usd(160)],
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn a_commitment_covers_the_best_discount_first_and_the_last_node_in_part() {
    let (mut problem, mut solution) = committed();
    assert_eq!(check(&problem, &solution), Ok(()));
    problem.commitments[0].left = usd(1_000);
    solution.commitment_use = vec![usd(290)];
    solution.cost = usd(0);
    assert_eq!(check(&problem, &solution), Ok(()));
    problem.commitments[0].left = usd(0);
    solution.commitment_use = vec![usd(0)];
    solution.cost = usd(500);
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn a_part_of_a_micro_dollar_is_not_rounded_in_our_favour() {
    let got = spoilt(committed(), |_, solution| solution.cost = usd(185));
    assert_eq!(got, ["the plan says it costs 0.000185 USD/h, but its nodes cost 0.000186 USD/h"]);
}

#[test]
fn another_use_of_a_commitment_is_named() {
    let got = spoilt(committed(), |_, solution| solution.commitment_use[0] = usd(150));
    assert_eq!(
        got,
        ["the plan says it uses 0.00015 USD/h of commitment `plan`, but its nodes use 0.00016 USD/h"]
    );
}

/// Two pods that would lose work by an interruption, and would prefer another node.
fn charged() -> (Problem, Solution) {
    let mut problem = problem(vec![class("p", [1, 0, 0], 2, &[0])], vec![candidate("spot", 100, [1, 0, 0])]);
    problem.classes[0].at_risk = 2_500_000;
    problem.classes[0].preferences = vec![(0, usd(7))];
    problem.candidates[0].interruptions = 5;
    let solution = Solution {
        new_nodes: vec![NewNodes { candidate: 0, pods: vec![(0, 1)], count: 2, gpus: Vec::new() }],
        cost: usd(200),
        // 12.5 each, rounded half up.
        charges: Charges { risk: usd(26), preferences: usd(14), disruption: usd(0) },
        bound: usd(240),
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn risk_and_preferences_are_charged_by_the_pod() {
    let got = spoilt(charged(), |_, solution| {
        solution.charges.risk = usd(25);
        solution.charges.preferences = usd(15);
        solution.charges.disruption = usd(1);
    });
    assert_eq!(
        got,
        [
            "the plan says it is charged 0.000025 USD/h for risk, but it is 0.000026 USD/h",
            "the plan says it is charged 0.000015 USD/h for preferences, but it is 0.000014 USD/h",
            "the plan says it is charged 0.000001 USD/h for disruption, but it is 0.00 USD/h",
        ]
    );
}

#[test]
fn a_loss_on_one_candidate_counts_instead_of_the_loss_elsewhere() {
    let (mut problem, mut solution) = charged();
    problem.classes[0].at_risk_on = vec![(0, 5_000_000)];
    assert_eq!((problem.classes[0].loss_on(0), problem.classes[0].loss_on(7)), (5_000_000, 2_500_000));
    solution.charges.risk = usd(50);
    let got = spoilt((problem, solution), |_, solution| solution.charges.risk = usd(26));
    assert_eq!(got, ["the plan says it is charged 0.000026 USD/h for risk, but it is 0.00005 USD/h"]);
}

#[test]
fn the_bound_may_reach_the_charges_too_but_not_pass_them() {
    let got = spoilt(charged(), |_, solution| solution.bound = usd(241));
    assert_eq!(got, ["the plan's lower bound of 0.000241 USD/h is above its cost of 0.00024 USD/h"]);
}
