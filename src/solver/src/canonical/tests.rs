//! Tests of what the model merges, drops and keeps.

use super::*;
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
fn a_pod_larger_than_every_node_is_homeless() {
    let problem =
        problem(vec![class("a", [9000, 1, 0], 3, &[0])], vec![candidate("node", 10, [8000, 64, 0])]);
    let model = Model::new(&problem);
    assert_eq!(model.homeless, [(0, 3, UnplacedReason::NothingFits)]);
    assert!(model.classes.is_empty());
}
