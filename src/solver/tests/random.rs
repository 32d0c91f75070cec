//! Random small problems, compared with an exhaustive search.

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::{
    Candidate, ExistingNode, Limit, NeverStop, Options, PodClass, Problem, Solution, check, greedy, solve,
};
use proptest::prelude::*;

const PODS: u32 = 6;

fn vector(most: [u64; 3]) -> impl Strategy<Value = Vec<u64>> {
    (1..=most[0], 0..=most[1], 0..=most[2]).prop_map(|(cpu, memory, gpu)| vec![cpu, memory, gpu])
}

fn indices(size: usize) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<bool>(), size)
        .prop_map(|bits| (0..bits.len() as u32).filter(|index| bits[*index as usize]).collect())
}

fn problems(scarce: bool) -> impl Strategy<Value = Problem> {
    (1..=4usize, 1..=4usize, 0..=2usize).prop_flat_map(move |(classes, candidates, existing)| {
        let class = (
            vector([6, 6, 2]),
            0..=3u32,
            0..=1i32,
            proptest::option::weighted(0.2, 1..=2u32),
            indices(candidates),
            indices(existing),
        );
        let stock = proptest::option::weighted(0.5, 0..=3u32).prop_map(move |most| most.filter(|_| scarce));
        let candidate = (1..=40u64, vector([12, 12, 4]), stock, 0..=3u64);
        (
            proptest::collection::vec(class, classes),
            proptest::collection::vec(candidate, candidates),
            proptest::collection::vec(vector([8, 8, 2]), existing),
            if scarce { 0..=8u64 } else { 1000..=1000u64 },
        )
            .prop_map(|(classes, candidates, existing, bound)| {
                let mut pods = 0;
                Problem {
                    resources: [ResourceName::CPU, ResourceName::MEMORY, ResourceName::NVIDIA_GPU]
                        .map(ResourceName::new)
                        .to_vec(),
                    classes: classes
                        .into_iter()
                        .enumerate()
                        .map(|(index, (requests, count, priority, max_per_node, candidates, existing))| {
                            let count = count.min(PODS - pods);
                            pods += count;
                            PodClass {
                                name: format!("class {index}"),
                                requests,
                                count,
                                priority,
                                max_per_node,
                                candidates,
                                existing,
                                ..PodClass::default()
                            }
                        })
                        .collect(),
                    candidates: candidates
                        .into_iter()
                        .enumerate()
                        .map(|(index, (price, capacity, max_nodes, used))| Candidate {
                            name: format!("candidate {index}"),
                            price: UsdPerHour::from_micros(price * 10_000),
                            capacity,
                            max_nodes,
                            limit_use: if used > 0 { vec![(0, used)] } else { Vec::new() },
                            ..Candidate::default()
                        })
                        .collect(),
                    existing: existing
                        .into_iter()
                        .enumerate()
                        .map(|(index, free)| ExistingNode {
                            name: format!("node {index}"),
                            free,
                            ..ExistingNode::default()
                        })
                        .collect(),
                    limits: vec![Limit { name: "units".into(), bound }],
                    ..Problem::default()
                }
            })
    })
}

/// A node with pods on it.
struct Used {
    room: Vec<u64>,
    by_class: Vec<u32>,
    /// `Ok` for a candidate, `Err` for an existing node.
    kind: Result<u32, u32>,
}

/// An exhaustive search for the lowest cost of placing `pods` (class indices, ascending).
struct Exhaustive<'a> {
    problem: &'a Problem,
    pods: Vec<u32>,
    nodes: Vec<Used>,
    best: Option<u64>,
}

impl Exhaustive<'_> {
    fn search(&mut self, at: usize, cost: u64) {
        if self.best.is_some_and(|best| cost >= best) {
            return;
        }
        let Some(&class) = self.pods.get(at) else {
            self.best = Some(cost);
            return;
        };
        let wanted = &self.problem.classes[class as usize];
        let fits = |room: &[u64]| wanted.requests.iter().zip(room).all(|(request, room)| request <= room);
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let admitted = match node.kind {
                Ok(candidate) => wanted.candidates.contains(&candidate),
                Err(existing) => wanted.existing.contains(&existing),
            };
            if admitted
                && fits(&node.room)
                && wanted.max_per_node.is_none_or(|most| node.by_class[class as usize] < most)
            {
                self.put(index, class, false);
                self.search(at + 1, cost);
                self.put(index, class, true);
            }
        }
        for &candidate in &wanted.candidates {
            let offer = &self.problem.candidates[candidate as usize];
            let bought = self.nodes.iter().filter(|node| node.kind == Ok(candidate)).count() as u32;
            let used = |index: u32| {
                self.problem.candidates[index as usize]
                    .limit_use
                    .iter()
                    .map(|(_, amount)| *amount)
                    .sum::<u64>()
            };
            let taken: u64 = self.nodes.iter().filter_map(|node| node.kind.ok()).map(used).sum();
            if fits(&offer.capacity)
                && wanted.max_per_node != Some(0)
                && offer.max_nodes.is_none_or(|most| bought < most)
                && taken + used(candidate) <= self.problem.limits[0].bound
            {
                self.nodes.push(Used {
                    room: offer.capacity.clone(),
                    by_class: vec![0; self.problem.classes.len()],
                    kind: Ok(candidate),
                });
                self.put(self.nodes.len() - 1, class, false);
                self.search(at + 1, cost + offer.price.micros());
                self.nodes.pop();
            }
        }
    }

    fn put(&mut self, node: usize, class: u32, back: bool) {
        let node = &mut self.nodes[node];
        for (room, request) in node.room.iter_mut().zip(&self.problem.classes[class as usize].requests) {
            if back {
                *room += request;
            } else {
                *room -= request;
            }
        }
        let count = &mut node.by_class[class as usize];
        if back {
            *count -= 1;
        } else {
            *count += 1;
        }
    }
}

/// Returns the lowest cost of placing the pods that `solution` places.
fn optimum(problem: &Problem, solution: &Solution) -> Option<u64> {
    let mut counts: Vec<u32> = problem.classes.iter().map(|class| class.count).collect();
    for left in &solution.unplaced {
        counts[left.class as usize] -= left.count;
    }
    let pods =
        counts.iter().enumerate().flat_map(|(class, count)| (0..*count).map(move |_| class as u32)).collect();
    let nodes = problem
        .existing
        .iter()
        .enumerate()
        .map(|(index, node)| Used {
            room: node.free.clone(),
            by_class: vec![0; problem.classes.len()],
            kind: Err(index as u32),
        })
        .collect();
    let mut search = Exhaustive { problem, pods, nodes, best: None };
    search.search(0, 0);
    search.best
}

fn verify(problem: &Problem) -> Solution {
    let solution = solve(problem, &Options::default(), &mut NeverStop).expect("a well-formed problem");
    if let Err(violations) = check(problem, &solution) {
        panic!("{violations:?}\n{solution:?}");
    }
    let first = greedy(problem).expect("a well-formed problem");
    assert_eq!(check(problem, &first), Ok(()));
    if first.unplaced == solution.unplaced {
        assert!(solution.cost <= first.cost, "the greedy plan is cheaper");
    }
    let again = solve(problem, &Options::default(), &mut NeverStop).expect("a well-formed problem");
    let bytes = |solution: &Solution| serde_json::to_vec(solution).expect("a solution serialises");
    assert_eq!(bytes(&solution), bytes(&again), "two solves differ");
    solution
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_plenty_of_nodes_small_plans_are_optimal_and_proven(problem in problems(false)) {
        let solution = verify(&problem);
        let optimum = optimum(&problem, &solution).expect("the plan itself is feasible");
        prop_assert_eq!(solution.cost.micros(), optimum);
        prop_assert_eq!(solution.bound.micros(), optimum);
    }

    #[test]
    fn with_scarce_nodes_the_optimum_lies_between_bound_and_cost(problem in problems(true)) {
        let solution = verify(&problem);
        let optimum = optimum(&problem, &solution).expect("the plan itself is feasible");
        prop_assert!(solution.bound.micros() <= optimum, "bound {} optimum {}", solution.bound, optimum);
        prop_assert!(optimum <= solution.cost.micros());
    }

    #[test]
    fn pods_of_low_priority_never_keep_out_pods_of_high_priority(problem in problems(true)) {
        let urgent = |solution: &Solution| -> u32 {
            let left = solution.unplaced.iter().filter(|left| problem.classes[left.class as usize].priority > 0);
            left.map(|left| left.count).sum()
        };
        let mut alone = problem.clone();
        for class in alone.classes.iter_mut().filter(|class| class.priority == 0) {
            class.count = 0;
        }
        let (all, alone) = (verify(&problem), verify(&alone));
        prop_assert!(urgent(&all) <= urgent(&alone), "{} left out, {} without the others", urgent(&all), urgent(&alone));
    }
}
