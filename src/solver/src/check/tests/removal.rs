//! Tests of removed nodes and of the steps.

use super::*;
use crate::problem::{Commitment, Removal};
use crate::solution::{Charges, Move, MoveTarget, Step};

const fn usd(micros: u64) -> UsdPerHour {
    UsdPerHour::from_micros(micros)
}

/// Two old nodes are removed: three pods go to one new node, which also gets a waiting pod, and one to a node that stays.
fn moved() -> (Problem, Solution) {
    let mut problem = problem(vec![class("a", [1, 0, 0], 1, &[0])], vec![candidate("new", 300, [4, 0, 0])]);
    problem.classes[0].existing = vec![0, 1, 2];
    problem.classes[0].disruption = usd(1);
    let old = |name: &str, pods| ExistingNode {
        name: name.into(),
        free: vec![1, 0, 0],
        removal: Some(Removal { price: usd(200), disruption: usd(10), pods: vec![(0, pods)] }),
        ..ExistingNode::default()
    };
    problem.existing = vec![old("one", 2), old("two", 2), old("three", 1)];
    problem.disruption.evictions = Some(4);
    problem.disruption.nodes = Some(2);
    let pods = |from, to, count| Move { from, to, class: 0, count };
    let solution = Solution {
        new_nodes: vec![NewNodes { candidate: 0, pods: vec![(0, 4)], count: 1, gpus: Vec::new() }],
        on_existing: vec![ExistingUse { node: 2, pods: vec![(0, 1)], gpus: Vec::new() }],
        cost: usd(500),
        charges: Charges { disruption: usd(24), ..Charges::default() },
        removed: vec![0, 1],
        steps: vec![
            Step {
                launch: vec![(0, 1)],
                moves: vec![pods(0, MoveTarget::New(0, 0), 2)],
                remove: vec![0],
                saving: None,
                evictions: 2,
            },
            Step {
                launch: Vec::new(),
                moves: vec![pods(1, MoveTarget::Existing(2), 1), pods(1, MoveTarget::New(0, 0), 1)],
                remove: vec![1],
                saving: Some(usd(200)),
                evictions: 2,
            },
        ],
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn a_node_that_stays_is_not_removed_nor_is_one_that_is_used() {
    let got = spoilt(moved(), |problem, _| problem.existing[0].removal = None);
    assert_eq!(got[0], "existing node `one` is removed, but it is not removable");
    let got = spoilt(moved(), |_, solution| {
        solution.on_existing.insert(0, ExistingUse { node: 0, pods: vec![(0, 1)], gpus: Vec::new() });
    });
    assert_eq!(
        got,
        [
            "existing node `one` is removed, but pods are placed on it",
            "class `a` has 5 pods, but 6 are placed and 0 left out"
        ]
    );
}

#[test]
fn pods_of_removed_nodes_are_placed_and_not_left_out() {
    let got = spoilt(moved(), |_, solution| solution.new_nodes[0].pods[0].1 = 3);
    assert_eq!(got, ["class `a` has 5 pods, but 4 are placed and 0 left out"]);
    let got = spoilt(moved(), |problem, solution| {
        solution.new_nodes[0].pods[0].1 = 2;
        solution.unplaced = vec![Unplaced { class: 0, count: 2, reason: UnplacedReason::NoMoreAvailable }];
        problem.candidates[0].max_nodes = Some(1);
    });
    assert_eq!(got[0], "class `a` has 2 pods left out, but only 1 wait: pods that run would be lost");
}

#[test]
fn the_disruption_budget_is_kept() {
    let got = spoilt(moved(), |problem, _| {
        problem.disruption.evictions = Some(3);
        problem.disruption.nodes = Some(1);
    });
    assert_eq!(
        got,
        [
            "the plan takes 4 evictions, but the disruption budget is 3",
            "the plan takes 2 removals of nodes, but the disruption budget is 1"
        ]
    );
}

#[test]
fn removable_nodes_that_stay_cost_their_price_and_disruption_is_charged() {
    let got = spoilt(moved(), |problem, _| {
        problem.existing[2].removal.as_mut().unwrap().price = usd(201);
        problem.existing[1].removal.as_mut().unwrap().disruption = usd(11);
    });
    assert_eq!(
        got,
        [
            "the plan says it costs 0.0005 USD/h, but its nodes cost 0.000501 USD/h",
            "the plan says it is charged 0.000024 USD/h for disruption, but it is 0.000025 USD/h"
        ]
    );
}

#[test]
fn nodes_are_launched_before_pods_move_to_them() {
    let got = spoilt(moved(), |_, solution| {
        solution.steps[1].launch = std::mem::take(&mut solution.steps[0].launch);
        solution.steps[0].saving = Some(usd(200));
        solution.steps[1].saving = None;
    });
    assert_eq!(got, ["step 1: pods move to number 0 of new node `new` (group 0) before it is launched"]);
    let got = spoilt(moved(), |_, solution| {
        solution.steps[1].launch = vec![(0, 1)];
        solution.steps[1].saving = None;
    });
    assert_eq!(got[0], "step 2: 2 of new node `new` (group 0) are launched, but 1 are bought");
}

#[test]
fn moves_account_for_the_pods_of_removed_nodes() {
    let got = spoilt(moved(), |_, solution| {
        solution.steps[0].moves[0].count = 1;
        solution.steps[0].evictions = 1;
    });
    assert_eq!(got, ["step 1 removes existing node `one` with 1 pods on it"]);
    let got = spoilt(moved(), |_, solution| {
        solution.steps[0].moves[0].count = 3;
        solution.steps[0].evictions = 3;
    });
    assert_eq!(got, ["step 1: more pods of class `a` leave existing node `one` than are on it"]);
    let got = spoilt(moved(), |_, solution| solution.steps[0].moves[0].from = 2);
    assert_eq!(
        got,
        [
            "step 1 takes pods from, or removes, existing node `three`, which the plan keeps",
            "step 1 removes existing node `one` with 2 pods on it"
        ]
    );
    let got = spoilt(moved(), |_, solution| solution.steps[0].evictions = 1);
    assert_eq!(got, ["step 1 says it moves 1 pods, but it moves 2"]);
}

#[test]
fn no_node_has_pods_on_the_way_that_the_plan_does_not_have_there() {
    let got = spoilt(moved(), |_, solution| {
        solution.steps[1].moves = vec![Move { from: 1, to: MoveTarget::Existing(2), class: 0, count: 2 }];
    });
    assert_eq!(
        got,
        ["step 2: 2 pods of class `a` have moved to existing node `three`, where the plan has 1"]
    );
    let got = spoilt(moved(), |_, solution| solution.steps[0].moves[0].to = MoveTarget::Existing(1));
    assert_eq!(
        got,
        [
            "step 1: pods move to existing node `two`, which the plan removes",
            "step 1: 2 pods of class `a` have moved to existing node `two`, where the plan has 0"
        ]
    );
}

#[test]
fn each_removed_node_goes_in_one_step() {
    let got = spoilt(moved(), |_, solution| {
        solution.steps[1].remove = vec![0];
    });
    assert_eq!(
        got,
        [
            "existing node `one` is removed by the plan, and by 2 steps",
            "existing node `two` is removed by the plan, and by 0 steps"
        ]
    );
    let got = spoilt(moved(), |_, solution| solution.steps.clear());
    assert_eq!(got, ["2 existing nodes are removed, but there are 0 steps"]);
    let got = spoilt(moved(), |_, solution| solution.steps.push(Step::default()));
    assert_eq!(got, ["steps entry 2 is empty: nothing may be bought or left out for zero pods"]);
}

#[test]
fn the_saving_of_each_step_is_what_it_is() {
    let got = spoilt(moved(), |_, solution| solution.steps[0].saving = Some(usd(0)));
    assert_eq!(got, ["step 1 says it saves 0.00 USD/h, but it saves nothing"]);
    let got = spoilt(moved(), |problem, solution| {
        let rates = vec![(0, usd(100))];
        problem.commitments = vec![Commitment { name: "plan".into(), left: usd(50), rates }];
        solution.commitment_use = vec![usd(50)];
        solution.cost = usd(350);
    });
    assert_eq!(got, ["step 1 says it saves nothing, but it saves 0.00005 USD/h"]);
}
