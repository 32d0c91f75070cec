//! Tests of conflicts, ports, ceilings with pods that stay, node shares and flexibility.

use super::*;
use crate::problem::{Flexibility, NodeShare, Removal, Topology};

/// Pods of `a` run on a removable node that stays, and one more is placed there, beside one of `b`.
fn kept() -> (Problem, Solution) {
    let mut problem =
        problem(vec![class("a", [100, 1, 0], 1, &[]), class("b", [100, 1, 0], 1, &[])], Vec::new());
    for class in &mut problem.classes {
        class.existing = vec![0];
    }
    problem.existing = vec![ExistingNode {
        name: "old".into(),
        free: vec![200, 2, 0],
        removal: Some(Removal {
            price: UsdPerHour::from_micros(500_000),
            disruption: UsdPerHour::ZERO,
            pods: vec![(0, 2)],
        }),
        ..ExistingNode::default()
    }];
    let solution = Solution {
        on_existing: vec![ExistingUse { node: 0, pods: vec![(0, 1), (1, 1)], gpus: Vec::new() }],
        cost: UsdPerHour::from_micros(500_000),
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn pods_that_stay_count_for_the_ceiling_of_their_class() {
    let got = spoilt(kept(), |problem, _| problem.classes[0].max_per_node = Some(2));
    assert_eq!(got, ["existing node `old` has 3 pods of class `a`, which allows 2 on one node"]);
}

#[test]
fn classes_that_may_not_meet_are_named_once() {
    let got = spoilt(kept(), |problem, _| problem.conflicts = vec![(0, 1)]);
    assert_eq!(got, ["existing node `old` has pods of classes `a` and `b`, which may not share a node"]);
    let got = spoilt(kept(), |problem, solution| {
        problem.conflicts = vec![(0, 1)];
        problem.classes[0].count = 0;
        solution.on_existing[0].pods.remove(0);
    });
    assert_eq!(got, ["existing node `old` has pods of classes `a` and `b`, which may not share a node"]);
}

#[test]
fn a_conflict_that_was_there_before_is_no_fault_of_the_plan() {
    let (mut problem, mut solution) = kept();
    problem.conflicts = vec![(0, 1)];
    problem.classes[0].ports = vec![80];
    problem.classes[0].max_per_node = Some(1);
    problem.classes[1].ports = vec![80];
    problem.classes.iter_mut().for_each(|class| class.count = 0);
    problem.existing[0].removal.as_mut().unwrap().pods.push((1, 1));
    solution.on_existing.clear();
    assert_eq!(check(&problem, &solution), Ok(()));
}

#[test]
fn two_pods_with_one_host_port_are_named() {
    let got = spoilt(kept(), |problem, _| {
        problem.classes[0].ports = vec![80];
        problem.existing[0].removal.as_mut().unwrap().pods = vec![(0, 1)];
    });
    assert_eq!(got, ["existing node `old` has two pods, of classes `a` and `a`, that use port 80"]);
    let got = spoilt(kept(), |problem, _| {
        problem.classes[0].ports = vec![80, 443];
        problem.classes[1].ports = vec![81, 443];
        problem.existing[0].removal.as_mut().unwrap().pods = vec![(1, 1)];
    });
    assert_eq!(
        got,
        [
            "existing node `old` has two pods, of classes `b` and `a`, that use port 443",
            "existing node `old` has two pods, of classes `b` and `b`, that use port 81",
            "existing node `old` has two pods, of classes `a` and `b`, that use port 443",
        ]
    );
    let got = sentences(|problem, _| problem.classes[0].ports = vec![7]);
    assert_eq!(got, ["new node `gpu` (group 0) has two pods, of classes `a` and `a`, that use port 7"]);
}

/// Two nodes of `spot`, one of `sure`; each could also be the other.
fn mix() -> (Problem, Solution) {
    let mut problem = problem(
        vec![class("a", [1000, 1, 0], 3, &[0, 1])],
        vec![candidate("spot", 1_000, [1000, 1, 0]), candidate("sure", 3_000, [1000, 1, 0])],
    );
    problem.node_shares = vec![NodeShare {
        name: "floor".into(),
        part: vec![0],
        of: vec![0, 1],
        at_most_permille: 667,
        round_up: false,
        running_part: 0,
        running_of: 0,
    }];
    problem.topologies = vec![Topology { name: "type".into(), values: vec!["s".into(), "t".into()] }];
    problem.candidates[0].domains = vec![(0, 0)];
    problem.candidates[1].domains = vec![(0, 1)];
    problem.flexibility =
        vec![Flexibility { name: "two types".into(), candidates: vec![0, 1], topology: 0, at_least: 2 }];
    let new = |candidate, count| NewNodes { candidate, pods: vec![(0, 1)], count, gpus: Vec::new() };
    let solution = Solution {
        new_nodes: vec![new(0, 2), new(1, 1)],
        cost: UsdPerHour::from_micros(5_000),
        ..Solution::default()
    };
    (problem, solution)
}

#[test]
fn a_part_of_the_nodes_that_is_too_large_is_named_with_its_rounding() {
    let got = spoilt(mix(), |problem, _| problem.node_shares[0].at_most_permille = 666);
    assert_eq!(got, ["node share `floor`: 2 of 3 nodes are of its part, but at most 1 may be"]);
    let (mut problem, solution) = mix();
    problem.node_shares[0].at_most_permille = 334;
    problem.node_shares[0].round_up = true;
    assert_eq!(check(&problem, &solution), Ok(()));
    let got = spoilt(mix(), |problem, _| {
        problem.node_shares[0].at_most_permille = 333;
        problem.node_shares[0].round_up = true;
    });
    assert_eq!(got, ["node share `floor`: 2 of 3 nodes are of its part, but at most 1 may be"]);
}

#[test]
fn running_nodes_count_towards_a_share_and_their_excess_may_stay_but_not_grow() {
    // Two bought nodes of three are of the part.
    let got = |permille, running: (u32, u32), round_up| {
        let (mut problem, solution) = mix();
        let share = &mut problem.node_shares[0];
        (share.at_most_permille, share.round_up) = (permille, round_up);
        (share.running_part, share.running_of) = running;
        let violations = check(&problem, &solution).err().unwrap_or_default();
        violations.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let over = |told: &str| vec![format!("node share `floor`: {told} may be")];
    assert_eq!(got(334, (0, 3), false), Vec::<String>::new());
    assert_eq!(got(333, (0, 3), false), over("2 of 6 nodes are of its part, but at most 1"));
    assert_eq!(got(333, (0, 3), true), Vec::<String>::new());
    assert_eq!(got(667, (2, 2), false), Vec::<String>::new(), "it was too large before");
    assert_eq!(got(500, (2, 2), false), over("4 of 5 nodes are of its part, but at most 3"));
    assert_eq!(got(666, (9, 9), true), over("11 of 12 nodes are of its part, but at most 10"));
}

#[test]
fn a_node_that_could_be_too_few_others_is_named() {
    let one =
        "new node `spot` (group 0) could be of 1 values of `type`, but flexibility `two types` asks for 2";
    let got = spoilt(mix(), |problem, _| problem.candidates[1].domains.clear());
    assert_eq!(got[0], one);
    let got = spoilt(mix(), |problem, solution| {
        solution.new_nodes[0].pods = vec![(0, 2)];
        problem.candidates[0].capacity = vec![2000, 2, 0];
        problem.classes[0].count = 5;
    });
    assert_eq!(got, [one]);
    let got = spoilt(mix(), |problem, _| problem.candidates[0].max_nodes = Some(0));
    assert_eq!(got.len(), 3, "{got:?}");
    let got = spoilt(mix(), |problem, _| problem.flexibility[0].candidates = vec![0]);
    assert_eq!(got, [one]);
}
