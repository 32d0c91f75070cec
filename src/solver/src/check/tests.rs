mod gpus;
mod groups;
mod money;
mod node_rules;
mod removal;

use poolwright_catalog::UsdPerHour;

use super::*;
use crate::problem::{ExistingNode, Limit};
use crate::solution::{ExistingUse, NewNodes, Stopped, Unplaced, UnplacedReason};
use crate::testing::{candidate, class, problem};

/// Five pods: three on a bought node, one on an existing node, one left out.
fn good() -> (Problem, Solution) {
    let mut problem = problem(
        vec![class("a", [1000, 10, 1], 4, &[0]), class("b", [500, 10, 0], 1, &[0])],
        vec![candidate("gpu", 1_000_000, [4000, 100, 2])],
    );
    problem.candidates[0].max_nodes = Some(1);
    problem.candidates[0].limit_use = vec![(0, 2)];
    problem.limits = vec![Limit { name: "pool p: nvidia.com/gpu".into(), bound: 2 }];
    problem.existing =
        vec![ExistingNode { name: "old".into(), free: vec![1000, 10, 1], ..ExistingNode::default() }];
    problem.classes[0].existing = vec![0];
    let solution = Solution {
        new_nodes: vec![NewNodes { candidate: 0, pods: vec![(0, 2), (1, 1)], count: 1, gpus: Vec::new() }],
        on_existing: vec![ExistingUse { node: 0, pods: vec![(0, 1)], gpus: Vec::new() }],
        unplaced: vec![Unplaced { class: 0, count: 1, reason: UnplacedReason::LimitReached(0) }],
        cost: UsdPerHour::from_micros(1_000_000),
        bound: UsdPerHour::from_micros(900_000),
        stopped: Stopped::GapReached,
        ..Solution::default()
    };
    (problem, solution)
}

/// Returns the messages for the good plan after `spoil`.
fn sentences(spoil: impl FnOnce(&mut Problem, &mut Solution)) -> Vec<String> {
    spoilt(good(), spoil)
}

/// Returns the messages for a plan that passes, after `spoil`.
fn spoilt(
    (mut problem, mut solution): (Problem, Solution),
    spoil: impl FnOnce(&mut Problem, &mut Solution),
) -> Vec<String> {
    assert_eq!(check(&problem, &solution), Ok(()));
    spoil(&mut problem, &mut solution);
    let violations = check(&problem, &solution).expect_err("the plan was spoilt");
    violations.iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_plan_passes() {
    let (problem, solution) = good();
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn a_node_with_too_much_on_it_is_named_with_the_resource() {
    let got = sentences(|problem, _| problem.candidates[0].capacity[0] = 2400);
    assert_eq!(got, ["new node `gpu` (group 0) holds 2400m of cpu, but its pods take 2500m"]);
    let got = sentences(|problem, _| problem.existing[0].free[2] = 0);
    assert_eq!(got, ["existing node `old` holds 0 of nvidia.com/gpu, but its pods take 1"]);
}

#[test]
fn pods_on_a_node_they_may_not_use_are_named() {
    let got = sentences(|problem, _| problem.classes[0].existing.clear());
    assert_eq!(got, ["pods of class `a` may not use existing node `old`"]);
    let got = sentences(|problem, _| problem.classes[1].candidates.clear());
    assert_eq!(got, ["pods of class `b` may not use new node `gpu` (group 0)"]);
}

#[test]
fn too_many_of_a_class_on_one_node_are_named() {
    let got = sentences(|problem, _| problem.classes[0].max_per_node = Some(1));
    assert_eq!(got, ["new node `gpu` (group 0) has 2 pods of class `a`, which allows 1 on one node"]);
}

#[test]
fn more_nodes_than_can_be_had_are_named() {
    let got = sentences(|problem, _| problem.candidates[0].max_nodes = Some(0));
    assert_eq!(got, ["1 nodes of `gpu` are bought, but at most 0 can be"]);
}

#[test]
fn a_passed_limit_is_named() {
    let got = sentences(|problem, _| problem.limits[0].bound = 1);
    assert_eq!(got, ["limit `pool p: nvidia.com/gpu` has 1 left, but the plan takes 2"]);
}

#[test]
fn a_pod_that_is_forgotten_or_placed_twice_is_named() {
    let got = sentences(|_, solution| solution.unplaced.clear());
    assert_eq!(got, ["class `a` has 4 pods, but 3 are placed and 0 left out"]);
    let got = sentences(|_, solution| solution.unplaced[0].count = 2);
    assert_eq!(got, ["class `a` has 4 pods, but 3 are placed and 2 left out"]);
}

#[test]
fn a_wrong_cost_and_a_bound_above_the_cost_are_named() {
    let got = sentences(|_, solution| solution.cost = UsdPerHour::from_micros(800_000));
    assert_eq!(
        got,
        [
            "the plan says it costs 0.80 USD/h, but its nodes cost 1.00 USD/h",
            "the plan's lower bound of 0.90 USD/h is above its cost of 0.80 USD/h"
        ]
    );
}

#[test]
fn indices_order_and_emptiness_are_verified_before_they_are_followed() {
    let got = sentences(|_, solution| solution.new_nodes[0].candidate = 7);
    assert_eq!(got, ["newNodes entry 0 names candidate number 7, which does not exist"]);
    let got = sentences(|_, solution| solution.new_nodes[0].pods.reverse());
    assert_eq!(got, ["newNodes entry 0 is out of order or a duplicate"]);
    let got = sentences(|_, solution| solution.on_existing.push(solution.on_existing[0].clone()));
    assert_eq!(got, ["onExisting entry 1 is out of order or a duplicate"]);
    let got = sentences(|_, solution| solution.new_nodes[0].pods.clear());
    assert_eq!(got, ["newNodes entry 0 is empty: nothing may be bought or left out for zero pods"]);
}

#[test]
fn lists_that_go_with_the_problem_have_its_length() {
    let got = sentences(|_, solution| solution.commitment_use.push(UsdPerHour::ZERO));
    assert_eq!(got, ["commitmentUse has 1 entries where the problem has 0"]);
    let got = sentences(|_, solution| {
        let (classes, limits, candidates) = (vec![1], vec![1], vec![1]);
        solution.prices = Some(crate::solution::ShadowPrices { classes, limits, candidates });
    });
    assert_eq!(got, ["prices.classes has 1 entries where the problem has 2"]);
}

#[test]
fn a_reason_that_does_not_exist_is_named() {
    let got = sentences(|_, solution| solution.unplaced[0].reason = UnplacedReason::LimitReached(3));
    assert_eq!(got, ["unplaced entry 0 names limit number 3, which does not exist"]);
    let got = sentences(|problem, solution| {
        problem.gangs = vec![crate::problem::Gang { name: "team".into(), classes: vec![1], within: None }];
        solution.unplaced[0].reason = UnplacedReason::GangIncomplete(0);
    });
    assert_eq!(got, ["class `a` is said to be left out because of `team`, which it is not in"]);
}
