//! Consolidation: replacements of every kind, and the feasibility of every intermediate state.

#[path = "common/random_problem.rs"]
mod random_problem;

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{DisruptionBudget, Removal};
use poolwright_solver::{
    Candidate, ExistingNode, MoveTarget, NeverStop, Options, PodClass, Problem, Proof, Solution, StopSignal,
    check, frontier, solve,
};
use proptest::prelude::*;
use random_problem::Shape;

fn usd(text: &str) -> UsdPerHour {
    text.parse().expect("a price")
}

fn candidate(name: &str, price: &str, capacity: [u64; 2]) -> Candidate {
    Candidate { name: name.into(), price: usd(price), capacity: capacity.to_vec(), ..Candidate::default() }
}

fn class(name: &str, requests: [u64; 2]) -> PodClass {
    PodClass { name: name.into(), requests: requests.to_vec(), ..PodClass::default() }
}

/// Creates a node with pods, by class; the rest of `capacity` is free.
fn node(problem: &Problem, price: &str, capacity: [u64; 2], pods: &[(u32, u32)]) -> ExistingNode {
    let mut free = capacity.to_vec();
    for (class, count) in pods {
        for (free, request) in free.iter_mut().zip(&problem.classes[*class as usize].requests) {
            *free -= request * u64::from(*count);
        }
    }
    let removal = Removal { price: usd(price), disruption: UsdPerHour::ZERO, pods: pods.to_vec() };
    ExistingNode { free, removal: Some(removal), ..ExistingNode::default() }
}

/// Creates a problem with pods of one GPU or none, and nodes to buy for them.
fn g5() -> Problem {
    let mut problem = Problem {
        resources: [ResourceName::CPU, ResourceName::NVIDIA_GPU].map(ResourceName::new).to_vec(),
        classes: vec![class("one gpu", [3000, 1]), class("no gpu", [3000, 0])],
        candidates: vec![
            candidate("g5.xlarge", "1.006", [3920, 1]),
            candidate("g5.12xlarge", "5.672", [47810, 4]),
            candidate("c6i.xlarge", "0.17", [3920, 0]),
        ],
        ..Problem::default()
    };
    problem.classes[0].candidates = vec![0, 1];
    problem.classes[1].candidates = vec![0, 1, 2];
    problem
}

/// Adds these nodes to the problem; every pod may use them.
fn with(mut problem: Problem, nodes: Vec<ExistingNode>) -> Problem {
    for class in &mut problem.classes {
        class.existing = (0..nodes.len() as u32).collect();
    }
    problem.existing = nodes;
    problem
}

/// A signal that says stop after some answers, and counts what follows.
#[derive(Default)]
struct Patience {
    answers: u32,
    /// Whether nobody waits any more from then on.
    leaves: bool,
    asked: u32,
    /// The units of work, and the plans, after it said stop.
    units: u64,
    plans: u32,
}

impl StopSignal for Patience {
    fn should_stop(&mut self) -> bool {
        self.asked += 1;
        self.asked > self.answers
    }

    fn is_abandoned(&mut self) -> bool {
        self.leaves && self.asked > self.answers
    }

    fn improved(&mut self, _plan: &Solution) {
        self.plans += u32::from(self.asked > self.answers);
    }

    fn spent(&mut self, units: u64) {
        self.units += if self.asked > self.answers { units } else { 0 };
    }
}

#[test]
fn a_consolidation_that_is_told_to_stop_begins_no_further_part() {
    // These are too many nodes to try every combination.
    let problem = g5();
    let nodes = (0..12).map(|_| node(&problem, "5.672", [47810, 4], &[(0, 1)])).collect();
    let problem = with(problem, nodes);
    for (patience, leaves) in (0..40).flat_map(|patience| [(patience, false), (patience, true)]) {
        let mut signal = Patience { answers: patience, leaves, ..Patience::default() };
        let solution = solve(&problem, &Options::default(), &mut signal).expect("a well-formed problem");
        assert_eq!(check(&problem, &solution), Ok(()));
        assert!(signal.asked <= patience + 12, "asked {} times with patience for {patience}", signal.asked);
        assert!(signal.plans <= 1, "{} plans after it was told to stop", signal.plans);
        if patience == 0 {
            assert_eq!((signal.units, signal.plans), (0, 0), "no part had begun");
        }
    }
}

/// The pods on each node at some moment.
#[derive(Clone, Default)]
struct State {
    pods: BTreeMap<MoveTarget, BTreeMap<u32, u32>>,
    gone: Vec<u32>,
    launched: BTreeMap<u32, u32>,
}

impl State {
    /// Returns the initial state.
    fn first(problem: &Problem) -> Self {
        let mut state = Self::default();
        for (index, node) in problem.existing.iter().enumerate() {
            let pods = node.removal.iter().flat_map(|removal| removal.pods.iter().copied()).collect();
            state.pods.insert(MoveTarget::Existing(index as u32), pods);
        }
        state
    }

    /// Asserts that no node is overfull, and that every pod is on a node it may use.
    fn assert_feasible(&self, problem: &Problem, solution: &Solution) {
        for (node, pods) in &self.pods {
            let room: Vec<u64> = match node {
                MoveTarget::Existing(index) => {
                    let node = &problem.existing[*index as usize];
                    let own = node.removal.iter().flat_map(|removal| removal.pods.iter());
                    let mut room = node.free.clone();
                    for (class, count) in own {
                        for (room, request) in room.iter_mut().zip(&problem.classes[*class as usize].requests)
                        {
                            *room += request * u64::from(*count);
                        }
                    }
                    room
                }
                MoveTarget::New(group, instance) => {
                    assert!(instance < self.launched.get(group).unwrap_or(&0), "{node:?} is not launched");
                    let candidate = solution.new_nodes[*group as usize].candidate;
                    problem.candidates[candidate as usize].capacity.clone()
                }
            };
            for (dim, room) in room.iter().enumerate() {
                let used: u64 = pods
                    .iter()
                    .map(|(class, count)| problem.classes[*class as usize].requests[dim] * u64::from(*count))
                    .sum();
                assert!(used <= *room, "{node:?} is overfull");
            }
            for (class, count) in pods.iter().filter(|(_, count)| **count > 0) {
                let wanted = &problem.classes[*class as usize];
                assert!(
                    *count <= wanted.max_per_node.unwrap_or(u32::MAX),
                    "too many of one class on {node:?}"
                );
                let at_home = matches!(node, MoveTarget::Existing(index) if problem.existing[*index as usize]
                    .removal
                    .as_ref()
                    .is_some_and(|removal| removal.pods.iter().any(|(own, _)| own == class)));
                assert!(
                    at_home
                        || match node {
                            MoveTarget::Existing(index) => wanted.existing.contains(index),
                            MoveTarget::New(group, _) => {
                                wanted.candidates.contains(&solution.new_nodes[*group as usize].candidate)
                            }
                        }
                );
            }
            for (one, other) in &problem.conflicts {
                let has = |class: &u32| pods.get(class).is_some_and(|count| *count > 0);
                assert!(!(has(one) && has(other)), "conflict on {node:?}");
            }
        }
    }

    /// Returns the current cost of the existing nodes and of those that the steps launched.
    fn paid(&self, problem: &Problem, solution: &Solution) -> i128 {
        let kept: i128 = (0..problem.existing.len() as u32)
            .filter(|node| !self.gone.contains(node))
            .filter_map(|node| problem.existing[node as usize].removal.as_ref())
            .map(|removal| i128::from(removal.price.micros()))
            .sum();
        let new: i128 = self
            .launched
            .iter()
            .map(|(group, count)| {
                let candidate = solution.new_nodes[*group as usize].candidate;
                i128::from(problem.candidates[candidate as usize].price.micros()) * i128::from(*count)
            })
            .sum();
        kept + new
    }
}

/// Walks through the steps, and asserts that each state is feasible and each figure is correct. Ignores commitments.
fn assert_walkable(problem: &Problem, solution: &Solution) {
    let mut state = State::first(problem);
    let mut removed = Vec::new();
    let mut evictions = 0;
    for step in &solution.steps {
        let before = state.paid(problem, solution);
        for (group, count) in &step.launch {
            let launched = state.launched.entry(*group).or_default();
            *launched += count;
            assert!(*launched <= solution.new_nodes[*group as usize].count);
        }
        let mut moved = 0;
        for one in &step.moves {
            assert!(step.remove.contains(&one.from), "only nodes that go are emptied");
            let left =
                state.pods.get_mut(&MoveTarget::Existing(one.from)).expect("a node").get_mut(&one.class);
            let left = left.expect("a pod of the class");
            assert!(*left >= one.count && one.count > 0);
            *left -= one.count;
            *state.pods.entry(one.to).or_default().entry(one.class).or_default() += one.count;
            moved += one.count;
            // This also holds in the middle of a step.
            state.assert_feasible(problem, solution);
        }
        assert_eq!(moved, step.evictions);
        evictions += moved;
        for node in &step.remove {
            let pods = state.pods.remove(&MoveTarget::Existing(*node)).expect("it is still there");
            assert!(pods.values().all(|count| *count == 0), "removed with pods on it");
            state.gone.push(*node);
        }
        removed.extend(step.remove.iter().copied());
        let saved = before - state.paid(problem, solution);
        assert_eq!(step.saving.map(|saving| i128::from(saving.micros())), (saved > 0).then_some(saved));
        state.assert_feasible(problem, solution);
    }
    removed.sort_unstable();
    assert_eq!(removed, solution.removed);
    assert!(problem.disruption.evictions.is_none_or(|most| evictions <= most));
    assert!(problem.disruption.nodes.is_none_or(|most| removed.len() as u32 <= most));
    // The end is the plan: the pods that the steps did not place are the waiting ones.
    let mut waited: BTreeMap<u32, i64> = BTreeMap::new();
    for (index, node) in problem.existing.iter().enumerate() {
        for (class, count) in node.removal.iter().flat_map(|removal| removal.pods.iter()) {
            if let Some(here) = state.pods.get_mut(&MoveTarget::Existing(index as u32)) {
                *here.get_mut(class).expect("its own") -= count;
            }
        }
    }
    let mut count = |place: MoveTarget, pods: &[(u32, u32)]| {
        for (class, count) in pods {
            *waited.entry(*class).or_default() += i64::from(*count);
        }
        for (class, count) in state.pods.remove(&place).into_iter().flatten() {
            *waited.entry(class).or_default() -= i64::from(count);
            let planned = pods.iter().find(|(other, _)| *other == class).map_or(0, |(_, planned)| *planned);
            assert!(count <= planned, "{place:?} gets what is not planned");
        }
    };
    for (group, nodes) in solution.new_nodes.iter().enumerate() {
        (0..nodes.count).for_each(|instance| count(MoveTarget::New(group as u32, instance), &nodes.pods));
    }
    for used in &solution.on_existing {
        assert!(!solution.removed.contains(&used.node));
        count(MoveTarget::Existing(used.node), &used.pods);
    }
    assert!(state.pods.values().flatten().all(|(_, count)| *count == 0), "no pod is where the plan has none");
    for (index, class) in problem.classes.iter().enumerate() {
        let left: u32 =
            solution.unplaced.iter().filter(|left| left.class == index as u32).map(|left| left.count).sum();
        let placed = waited.get(&(index as u32)).copied().unwrap_or(0);
        assert_eq!(placed, i64::from(class.count - left), "class {index}");
    }
    let nodes: u64 = solution
        .new_nodes
        .iter()
        .map(|group| problem.candidates[group.candidate as usize].price.micros() * u64::from(group.count))
        .sum();
    let kept: u64 = (0..problem.existing.len() as u32)
        .filter(|node| !solution.removed.contains(node))
        .filter_map(|node| problem.existing[node as usize].removal.as_ref())
        .map(|removal| removal.price.micros())
        .sum();
    assert_eq!(solution.cost.micros(), nodes + kept);
    let disruption: u64 = solution
        .removed
        .iter()
        .filter_map(|node| problem.existing[*node as usize].removal.as_ref())
        .map(|removal| {
            let pods: u64 = removal
                .pods
                .iter()
                .map(|(class, count)| {
                    problem.classes[*class as usize].disruption.micros() * u64::from(*count)
                })
                .sum();
            removal.disruption.micros() + pods
        })
        .sum();
    assert_eq!(solution.charges.disruption.micros(), disruption);
    assert!(solution.bound <= solution.objective());
}

fn solved(problem: &Problem) -> Solution {
    let options = Options { work: 2_000_000, ..Options::default() };
    let solution = solve(problem, &options, &mut NeverStop).expect("a well-formed problem");
    assert_eq!(check(problem, &solution), Ok(()));
    assert_walkable(problem, &solution);
    solution
}

#[test]
fn a_node_whose_pods_fit_on_another_goes() {
    let g5 = g5();
    let big = node(&g5, "5.672", [47810, 4], &[(0, 3)]);
    let small = node(&g5, "1.006", [3920, 1], &[(0, 1)]);
    let mut problem = with(g5, vec![big, small]);
    // No cheaper node can be bought.
    problem.candidates.remove(0);
    problem.classes[0].candidates = vec![0];
    problem.classes[1].candidates = vec![0, 1];
    let solution = solved(&problem);
    assert_eq!((solution.removed.as_slice(), solution.nodes()), ([1].as_slice(), 0));
    assert_eq!(solution.cost.to_string(), "5.672");
    assert_eq!(solution.steps[0].saving, Some(usd("1.006")));
    assert_eq!((solution.proof, solution.bound), (Proof::Exact, solution.cost));
}

#[test]
fn one_large_node_becomes_two_small_ones() {
    let g5 = g5();
    let large = node(&g5, "5.672", [47810, 4], &[(0, 2)]);
    let solution = solved(&with(g5, vec![large]));
    assert_eq!((solution.removed.as_slice(), solution.nodes()), ([0].as_slice(), 2));
    assert_eq!(solution.cost.to_string(), "2.012");
    assert_eq!((solution.steps.len(), solution.steps[0].evictions), (1, 2));
    assert_eq!((solution.proof, solution.bound), (Proof::Exact, solution.cost));
}

#[test]
fn two_nodes_become_one() {
    let mut g5 = g5();
    g5.candidates[1].price = usd("1.9");
    let nodes = vec![node(&g5, "1.006", [3920, 1], &[(0, 1)]), node(&g5, "1.006", [3920, 1], &[(0, 1)])];
    let solution = solved(&with(g5, nodes));
    assert_eq!((solution.removed.as_slice(), solution.nodes()), ([0, 1].as_slice(), 1));
    assert_eq!(solution.cost.to_string(), "1.90");
    // Replacing one of them alone would save nothing.
    assert_eq!((solution.steps.len(), solution.steps[0].evictions), (1, 2));
}

#[test]
fn three_nodes_become_two() {
    let mut g5 = g5();
    g5.classes[0].requests = vec![2000, 1];
    g5.candidates = vec![candidate("three", "2.0", [6000, 3])];
    g5.classes[0].candidates = vec![0];
    g5.classes[1].candidates = vec![];
    let nodes = (0..3).map(|_| node(&g5, "1.5", [4000, 2], &[(0, 2)])).collect();
    let solution = solved(&with(g5, nodes));
    assert_eq!((solution.removed.len(), solution.nodes()), (3, 2));
    assert_eq!(solution.cost.to_string(), "4.00");
}

#[test]
fn nodes_are_replaced_by_as_many_of_another_kind_when_prices_change() {
    let g5 = g5();
    let nodes = (0..20).map(|_| node(&g5, "3.06", [3920, 1], &[(0, 1)])).collect();
    let solution = solved(&with(g5, nodes));
    assert_eq!((solution.removed.len(), solution.nodes()), (20, 20));
    assert_eq!(solution.steps.len(), 20, "each can be stopped after");
    assert!(solution.steps.iter().all(|step| step.saving == Some(usd("2.054"))));
    assert!(solution.bound.as_f64() > 0.99 * solution.cost.as_f64());
}

#[test]
fn budgets_of_evictions_and_nodes_are_kept_and_spent_on_what_saves_most() {
    let g5 = g5();
    let mut nodes: Vec<ExistingNode> = (0..12).map(|_| node(&g5, "3.06", [3920, 1], &[(0, 1)])).collect();
    nodes.extend((0..3).map(|_| node(&g5, "9.0", [7840, 2], &[(0, 2)])));
    let mut problem = with(g5, nodes);
    problem.disruption = DisruptionBudget { evictions: Some(7), nodes: None };
    let solution = solved(&problem);
    assert_eq!(solution.removed.iter().filter(|node| **node >= 12).count(), 3);
    assert_eq!(solution.removed.len(), 4);
    problem.disruption = DisruptionBudget { evictions: None, nodes: Some(2) };
    let solution = solved(&problem);
    assert_eq!((solution.removed.len(), solution.removed[0]), (2, 12));
}

#[test]
fn a_saving_below_what_disruption_costs_is_left() {
    let g5 = g5();
    let mut nodes = vec![node(&g5, "1.1", [3920, 1], &[(0, 1)]), node(&g5, "3.06", [3920, 1], &[(0, 1)])];
    nodes[0].removal.as_mut().expect("removable").disruption = usd("0.05");
    nodes[1].removal.as_mut().expect("removable").disruption = usd("0.05");
    let mut problem = with(g5, nodes);
    problem.classes[0].disruption = usd("0.06");
    let solution = solved(&problem);
    assert_eq!(solution.removed, [1]);
    assert_eq!(solution.charges.disruption.to_string(), "0.11");
    assert_eq!(solution.bound, solution.objective());
}

#[test]
fn pods_that_cannot_go_elsewhere_keep_their_node() {
    let mut g5 = g5();
    g5.classes.push(PodClass { candidates: vec![], ..class("bound", [100, 0]) });
    let nodes =
        vec![node(&g5, "9.0", [47810, 4], &[(0, 1), (2, 1)]), node(&g5, "9.0", [47810, 4], &[(0, 1)])];
    let mut problem = with(g5, nodes);
    problem.classes[2].existing = vec![];
    let solution = solved(&problem);
    assert_eq!((solution.removed.as_slice(), solution.nodes()), ([1].as_slice(), 0));
    assert_eq!(solution.cost.to_string(), "9.00");
}

#[test]
fn pods_that_may_not_meet_do_not_meet_on_the_way() {
    let g5 = g5();
    let nodes = vec![node(&g5, "9.0", [47810, 4], &[(0, 1)]), node(&g5, "9.0", [47810, 4], &[(1, 1)])];
    let mut problem = with(g5, nodes);
    problem.conflicts = vec![(0, 1)];
    problem.candidates.truncate(1);
    problem.classes[0].candidates = vec![0];
    problem.classes[1].candidates = vec![];
    let solution = solved(&problem);
    // The pod without a GPU has no other node, since the pod on the other node conflicts with it.
    assert_eq!((solution.removed.as_slice(), solution.cost.to_string().as_str()), ([0].as_slice(), "10.006"));
}

#[test]
fn pods_that_wait_use_a_node_that_would_go_without_them() {
    let g5 = g5();
    let nodes = vec![node(&g5, "1.5", [47810, 4], &[(1, 1)]), node(&g5, "0.17", [6920, 0], &[(1, 1)])];
    let mut problem = with(g5, nodes);
    let solution = solved(&problem);
    assert_eq!(solution.removed, [0], "its pod fits beside the other");
    problem.classes[0].count = 4;
    let solution = solved(&problem);
    assert_eq!((solution.removed.as_slice(), solution.nodes()), ([1].as_slice(), 0));
    assert_eq!(solution.cost.to_string(), "1.50");
}

#[test]
fn a_ceiling_per_node_counts_the_pods_that_run_there() {
    let mut g5 = g5();
    g5.classes[1].max_per_node = Some(2);
    let nodes = vec![
        node(&g5, "1.0", [47810, 4], &[(1, 1)]),
        node(&g5, "1.0", [47810, 4], &[(1, 2)]),
        node(&g5, "1.0", [47810, 4], &[(1, 1)]),
    ];
    let mut problem = with(g5, nodes);
    problem.classes[1].candidates = vec![];
    let solution = solved(&problem);
    assert_eq!((solution.removed.len(), solution.steps.len()), (1, 1));
    assert_eq!(solution.cost.to_string(), "2.00");
}

#[test]
fn the_frontier_rises_from_nothing_moved_and_never_pays_more_for_more() {
    let g5 = g5();
    let mut nodes: Vec<ExistingNode> = (0..12).map(|_| node(&g5, "3.06", [3920, 1], &[(0, 1)])).collect();
    nodes.extend((0..3).map(|_| node(&g5, "9.0", [7840, 2], &[(0, 2)])));
    let problem = with(g5, nodes);
    let points = frontier(&problem, &Options::default(), &mut NeverStop).expect("a well-formed problem");
    assert_eq!((points[0].evictions, points[0].saving), (0, UsdPerHour::ZERO));
    assert_eq!(points[0].cost.to_string(), "63.72");
    assert!(
        points.windows(2).all(|pair| pair[0].evictions < pair[1].evictions && pair[0].cost > pair[1].cost)
    );
    let last = points.last().expect("a point");
    assert_eq!((last.evictions, last.nodes, last.cost.to_string().as_str()), (18, 15, "18.108"));
}

fn clusters() -> impl Strategy<Value = Problem> {
    let classes = proptest::collection::vec(
        (
            [1..=6u64, 0..=2u64],
            0..=2u32,
            prop_oneof![3 => Just(None), 1 => (1..=2u32).prop_map(Some)],
            1..=7u32,
        ),
        2..=4,
    );
    let candidates = proptest::collection::vec((1..=40u64, [4..=12u64, 0..=4u64]), 3);
    let nodes = proptest::collection::vec(
        (1..=60u64, [0..=8u64, 0..=2u64], proptest::collection::vec((0..4u32, 1..=2u32), 0..=3), 0..=9u32),
        1..=30,
    );
    let rules = (proptest::option::of(0..=20u32), proptest::option::of(0..=6u32), any::<bool>(), 0..=2u64);
    (classes, candidates, nodes, rules).prop_map(|(classes, candidates, nodes, rules)| {
        let mut problem = Problem {
            resources: [ResourceName::CPU, ResourceName::NVIDIA_GPU].map(ResourceName::new).to_vec(),
            candidates: candidates
                .into_iter()
                .map(|(price, capacity)| Candidate {
                    price: UsdPerHour::from_micros(price * 10_000),
                    capacity: capacity.to_vec(),
                    ..Candidate::default()
                })
                .collect(),
            ..Problem::default()
        };
        for (requests, count, max_per_node, admitted) in classes {
            problem.classes.push(PodClass {
                count,
                max_per_node,
                candidates: (0..3).filter(|bit| admitted >> bit & 1 == 1).collect(),
                disruption: UsdPerHour::from_micros(rules.3 * 5_000),
                ..class("class", requests)
            });
        }
        let conflict = rules.2 && problem.classes.len() > 2;
        if conflict {
            problem.conflicts = vec![(0, 2)];
        }
        for (index, (price, free, pods, flags)) in nodes.into_iter().enumerate() {
            let mut content: BTreeMap<u32, u32> = BTreeMap::new();
            for (class, count) in pods {
                let class = class % problem.classes.len() as u32;
                let most = problem.classes[class as usize].max_per_node.unwrap_or(u32::MAX);
                let enemy = conflict
                    && (class == 0 && content.contains_key(&2) || class == 2 && content.contains_key(&0));
                if !enemy {
                    let held = content.entry(class).or_default();
                    *held = (*held + count).min(most);
                }
            }
            let removal = (flags > 0).then(|| Removal {
                price: UsdPerHour::from_micros(price * 10_000),
                disruption: UsdPerHour::from_micros(rules.3 * 7_000),
                pods: content.into_iter().collect(),
            });
            problem.existing.push(ExistingNode { free: free.to_vec(), removal, ..ExistingNode::default() });
            for (at, class) in problem.classes.iter_mut().enumerate() {
                if flags as usize % 4 != at {
                    class.existing.push(index as u32);
                }
            }
        }
        problem.disruption = DisruptionBudget { evictions: rules.0, nodes: rules.1 };
        problem
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_state_on_the_way_is_feasible_and_every_saving_true(problem in clusters()) {
        let options = Options { work: 200_000, ..Options::default() };
        let solution = solve(&problem, &options, &mut NeverStop).expect("a well-formed problem");
        prop_assert_eq!(check(&problem, &solution), Ok(()));
        assert_walkable(&problem, &solution);
        prop_assert_eq!(solution.steps.is_empty(), solution.removed.is_empty());
        let mut stay = problem.clone();
        stay.disruption = DisruptionBudget { evictions: Some(0), nodes: Some(0) };
        let stays = solve(&stay, &options, &mut NeverStop).expect("a well-formed problem");
        if stays.unplaced == solution.unplaced {
            prop_assert!(solution.objective() <= stays.objective());
        }
    }
}

#[test]
fn random_clusters_under_every_rule_pass_the_checker_on_every_step() {
    let mut moved = 0;
    for shape in [Shape::SMALL, Shape::MEDIUM] {
        let shape = Shape { existing: 12, ..shape };
        for seed in 0..100 {
            let problem = random_problem::problem(seed, &shape);
            if problem.existing.iter().all(|node| node.removal.is_none()) {
                continue;
            }
            let options = Options { work: 50_000, ..Options::default() };
            let solution = solve(&problem, &options, &mut NeverStop).expect("a well-formed problem");
            assert_eq!(check(&problem, &solution), Ok(()), "seed {seed}");
            moved += usize::from(!solution.steps.is_empty());
        }
    }
    assert!(moved > 10, "{moved}");
}
