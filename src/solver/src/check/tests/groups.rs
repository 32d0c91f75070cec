//! Tests of gangs and spreads.

use super::*;
use crate::problem::{Gang, Removal, Spread, Topology};

/// Four pods of a gang on two nodes of zone `x`; nodes of zone `y` and of no zone can be bought as well.
fn gang() -> (Problem, Solution) {
    let mut problem = problem(
        vec![class("lead", [1, 0, 0], 1, &[0, 1, 2]), class("work", [1, 0, 0], 3, &[0, 1, 2])],
        vec![
            candidate("in x", 10, [2, 0, 0]),
            candidate("in y", 10, [2, 0, 0]),
            candidate("bare", 10, [2, 0, 0]),
        ],
    );
    problem.topologies = vec![Topology { name: "zone".into(), values: vec!["x".into(), "y".into()] }];
    problem.candidates[0].domains = vec![(0, 0)];
    problem.candidates[1].domains = vec![(0, 1)];
    problem.gangs = vec![Gang { name: "team".into(), classes: vec![0, 1], within: Some(0) }];
    let new = |pods| NewNodes { candidate: 0, pods, count: 1, gpus: Vec::new() };
    let solution = Solution {
        new_nodes: vec![new(vec![(0, 1), (1, 1)]), new(vec![(1, 2)])],
        cost: UsdPerHour::from_micros(20),
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn a_gang_placed_in_part_is_named_and_one_left_out_whole_is_not() {
    let leave = |class, count| Unplaced { class, count, reason: UnplacedReason::GangIncomplete(0) };
    let got = spoilt(gang(), |_, solution| {
        solution.new_nodes.pop();
        solution.cost = UsdPerHour::from_micros(10);
        solution.unplaced = vec![leave(1, 2)];
    });
    assert_eq!(got, ["gang `team` runs all or not at all, but 2 of its 4 waiting pods are left out"]);
    let (problem, mut solution) = gang();
    solution.new_nodes.clear();
    solution.cost = UsdPerHour::ZERO;
    solution.unplaced = vec![leave(0, 1), leave(1, 3)];
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn a_gang_that_is_torn_apart_is_named() {
    let got = spoilt(gang(), |_, solution| solution.new_nodes[1].candidate = 1);
    assert_eq!(got, ["gang `team` must be within one `zone`, but has pods in `x` and in `y`"]);
    let got = spoilt(gang(), |_, solution| solution.new_nodes[1].candidate = 2);
    assert_eq!(got, ["new node `bare` (group 1) has pods of `team`, but no value of `zone`"]);
    let (mut problem, mut solution) = gang();
    problem.gangs[0].within = None;
    solution.new_nodes[1].candidate = 2;
    assert_eq!(check(&problem, &solution), Ok(()));
}

/// A removable node in zone `y` with a pod of class 1.
fn old() -> ExistingNode {
    let pods = vec![(1, 1)];
    ExistingNode {
        name: "old".into(),
        free: vec![0, 0, 0],
        domains: vec![(0, 1)],
        removal: Some(Removal { price: UsdPerHour::ZERO, disruption: UsdPerHour::ZERO, pods }),
        ..ExistingNode::default()
    }
}

#[test]
fn who_joins_a_gang_joins_those_that_stay() {
    let got = spoilt(gang(), |problem, _| problem.existing = vec![old()]);
    assert_eq!(got, ["gang `team` must be within one `zone`, but has pods in `x` and in `y`"]);
    let (mut problem, mut solution) = gang();
    problem.existing = vec![old()];
    solution.new_nodes.iter_mut().for_each(|nodes| nodes.candidate = 1);
    assert_eq!(check(&problem, &solution), Ok(()));
}

/// Three pods over two zones, where one already runs in `y`.
fn spread() -> (Problem, Solution) {
    let (mut problem, mut solution) = gang();
    problem.gangs.clear();
    problem.spreads = vec![Spread {
        name: "even".into(),
        classes: vec![0, 1],
        topology: 0,
        max_skew: 1,
        min_domains: None,
        values: vec![0, 1],
        running: vec![0, 1],
    }];
    let new = |candidate, pods| NewNodes { candidate, pods, count: 1, gpus: Vec::new() };
    solution.new_nodes = vec![new(0, vec![(0, 1), (1, 1)]), new(1, vec![(1, 2)])];
    (problem, solution)
}

#[test]
fn pods_spread_unevenly_are_named_with_those_that_run() {
    let got = spoilt(spread(), |problem, _| problem.spreads[0].running = vec![0, 2]);
    assert_eq!(got, ["spread `even` has 4 pods in `y` where the least is 2, which is over its skew of 1"]);
    let got = spoilt(spread(), |problem, _| problem.existing = vec![old()]);
    assert_eq!(got, ["spread `even` has 4 pods in `y` where the least is 2, which is over its skew of 1"]);
    let (mut problem, solution) = spread();
    problem.spreads[0].running = vec![0, 2];
    problem.spreads[0].max_skew = 2;
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn a_value_that_is_given_nothing_may_have_too_many() {
    let (mut problem, mut solution) = spread();
    problem.spreads[0].running = vec![0, 9];
    solution.new_nodes[1].candidate = 0;
    solution.new_nodes[1].pods = vec![(1, 2)];
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn with_too_few_values_the_least_is_zero() {
    let (mut problem, solution) = spread();
    problem.spreads[0].min_domains = Some(2);
    assert_eq!(check(&problem, &solution), Ok(()));
    let got = spoilt(spread(), |problem, _| problem.spreads[0].min_domains = Some(3));
    assert_eq!(
        got,
        [
            "spread `even` has 2 pods in `x` where the least is 0, which is over its skew of 1",
            "spread `even` has 3 pods in `y` where the least is 0, which is over its skew of 1"
        ]
    );
}

#[test]
fn pods_that_are_spread_use_eligible_values_only() {
    let got = spoilt(spread(), |problem, _| {
        problem.spreads[0].values = vec![0];
        problem.spreads[0].running = vec![0];
    });
    assert_eq!(
        got,
        ["new node `in y` (group 1) has pods of spread `even`, but `y` is not one of its values"]
    );
    let got = spoilt(spread(), |_, solution| solution.new_nodes[1].candidate = 2);
    assert_eq!(
        got,
        [
            "new node `bare` (group 1) has pods of `even`, but no value of `zone`",
            "spread `even` has 2 pods in `x` where the least is 1, which is over its skew of 1"
        ][..1]
    );
}
