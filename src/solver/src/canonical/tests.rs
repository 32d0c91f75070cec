//! Tests of what the model merges, drops and keeps, and of what it knows about contents.

use super::*;
use crate::problem::{Candidate, Flexibility, GpuMode, Gpus, PodClass, Problem, Topology};
use crate::testing::{candidate, class, problem, undecided};

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

#[test]
fn a_content_that_the_search_cannot_decide_is_neither_allowed_nor_excluded() {
    let model = Model::new(&undecided());
    let all = [(0, 2), (1, 17), (2, 3)];
    assert_eq!(Content::verdict(&model, 0, &all), None);
    assert!(!Content::allows(&model, 0, &all));
    assert_eq!(Content::verdict(&model, 0, &[(0, 2), (1, 17), (2, 2)]), Some(true));
    assert_eq!(Content::verdict(&model, 0, &[(0, 3), (1, 17), (2, 3)]), Some(false), "204 of 200 MiB");
    let mut content = Content::empty(&model, 0);
    content.add(0, 2);
    content.add(1, 17);
    let fit = content.fit(2);
    assert_eq!((fit.least, fit.most, content.more(2)), (2, 3, 2));
}

#[test]
fn a_content_that_is_undecided_on_a_second_type_is_undecided_where_two_types_must_hold_it() {
    let mut problem = undecided();
    let gpus = Some(Gpus { count: 1, memory_mib: 200, mode: GpuMode::Shared });
    problem.candidates.push(Candidate { gpus, ..candidate("one large GPU", 20_000, [100, 100, 0]) });
    problem.topologies = vec![Topology { name: "type".into(), values: vec!["five".into(), "one".into()] }];
    for (value, candidate) in (0..).zip(&mut problem.candidates) {
        candidate.domains = vec![(0, value)];
    }
    for class in &mut problem.classes {
        class.candidates = vec![0, 1];
    }
    let bin = |problem: &Problem| {
        let model = Model::new(problem);
        let bin = model.bins.iter().position(|bin| bin.origin == Origin::Candidate(1)).expect("a bin");
        (model, bin as u32)
    };
    let all = [(0, 2), (1, 17), (2, 3)];
    let (model, large) = bin(&problem);
    assert_eq!(Content::verdict(&model, large, &all), Some(true));
    let name = "two types".to_owned();
    problem.flexibility = vec![Flexibility { name, candidates: vec![0, 1], topology: 0, at_least: 2 }];
    let (model, large) = bin(&problem);
    assert_eq!(Content::verdict(&model, large, &all), None);
    assert_eq!(Content::verdict(&model, large, &[(0, 2), (1, 17), (2, 2)]), Some(true));
}
