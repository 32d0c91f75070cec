//! Tests of what the model merges, drops and keeps.

use super::*;
use crate::problem::PodClass;
use crate::testing::{candidate, class, problem};

#[test]
fn a_candidate_that_is_dearer_and_smaller_is_dropped() {
    let problem = problem(
        vec![class("a", [1000, 1, 0], 1, &[0, 1])],
        vec![candidate("small", 20, [1000, 4, 0]), candidate("large", 10, [2000, 8, 0])],
    );
    let model = Model::new(&problem);
    assert_eq!(model.bins.len(), 1);
    assert_eq!(model.bins[0].origin, Origin::Candidate(1));
}

#[test]
fn of_two_equal_candidates_the_first_is_kept() {
    let problem = problem(
        vec![class("a", [1000, 1, 0], 1, &[0, 1])],
        vec![candidate("one", 10, [2000, 8, 0]), candidate("two", 10, [2000, 8, 0])],
    );
    let model = Model::new(&problem);
    assert_eq!(model.bins.len(), 1);
    assert_eq!(model.bins[0].origin, Origin::Candidate(0));
}

#[test]
fn a_dominating_candidate_with_few_nodes_left_drops_nobody() {
    let mut problem = problem(
        vec![class("a", [1000, 1, 0], 1, &[0, 1])],
        vec![candidate("small", 20, [1000, 4, 0]), candidate("large", 10, [2000, 8, 0])],
    );
    problem.candidates[1].max_nodes = Some(1);
    assert_eq!(Model::new(&problem).bins.len(), 2);
}

#[test]
fn equal_classes_are_merged_unless_a_ceiling_per_node_tells_them_apart() {
    let mut problem = problem(
        vec![class("a", [1000, 1, 0], 3, &[0]), class("b", [1000, 1, 0], 4, &[0])],
        vec![candidate("node", 10, [8000, 64, 0])],
    );
    let model = Model::new(&problem);
    assert_eq!(model.classes.len(), 1);
    assert_eq!(model.classes[0].demand, 7);
    problem.classes[0].max_per_node = Some(1);
    assert_eq!(Model::new(&problem).classes.len(), 2);
}

#[test]
fn single_pods_with_host_ports_of_their_own_are_merged() {
    let classes = |counts: [u32; 2], ports: [u32; 2]| {
        let of = |at: usize| PodClass {
            ports: vec![ports[at]],
            ..class(["a", "b"][at], [1000, 1, 0], counts[at], &[0])
        };
        let problem = problem(vec![of(0), of(1)], vec![candidate("node", 10, [8000, 64, 0])]);
        Model::new(&problem).classes
    };
    let merged = classes([1, 1], [80, 81]);
    assert_eq!((merged.len(), merged[0].demand), (1, 2));
    assert!(merged[0].per_node > 1, "both may share a node");
    let with_the_same = classes([1, 1], [80, 80]);
    assert!(with_the_same.iter().all(|class| class.per_node == 1 || class.keeps_apart));
    assert_eq!(classes([2, 1], [80, 81]).len(), 2, "two pods of one class are kept apart");
}

#[test]
fn a_pod_larger_than_every_node_is_homeless() {
    let problem =
        problem(vec![class("a", [9000, 1, 0], 3, &[0])], vec![candidate("node", 10, [8000, 64, 0])]);
    let model = Model::new(&problem);
    assert_eq!(model.homeless, [(0, 3, UnplacedReason::NothingFits)]);
    assert!(model.classes.is_empty());
}
