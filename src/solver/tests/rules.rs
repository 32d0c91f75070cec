//! Random small problems with rules over pods and nodes, compared with an exhaustive search that implements every rule on
//! its own: conflicts, host ports, penalties, flexibility, node shares, commitments.

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{Commitment, Flexibility, NodeShare, Topology, risk};
use poolwright_solver::{
    Candidate, ExistingNode, Limit, NeverStop, Options, PodClass, Problem, Proof, Solution, check, greedy,
    solve,
};
use proptest::prelude::*;

const PODS: u32 = 6;

/// The rules of a random problem.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    content: bool,
    penalties: bool,
    flexibility: bool,
    shares: bool,
    commitments: bool,
    scarce: bool,
}

fn subset(bits: u32, size: usize) -> Vec<u32> {
    (0..size as u32).filter(|bit| bits >> bit & 1 == 1).collect()
}

fn micros(value: u64) -> UsdPerHour {
    UsdPerHour::from_micros(value * 10_000)
}

/// Builds a problem from plain numbers. Lists are long enough for any problem; surplus entries are ignored.
fn problems(rules: Rules) -> impl Strategy<Value = Problem> {
    let class = (
        (1..=6u64, 0..=6u64, 0..=2u64),
        1..=3u32,
        any::<[u32; 3]>(),
        proptest::option::weighted(0.15, 1..=2u32),
        proptest::collection::vec(0..=6u64, 4),
        0..=4u64,
    );
    let candidate =
        ((1..=40u64, 3..=12u64, 3..=12u64, 0..=4u64), any::<[u32; 2]>(), 0..=3u64, 1..=30u64, 0..=3u32);
    (
        proptest::collection::vec(class, 1..=4),
        proptest::collection::vec(candidate, 1..=4),
        proptest::collection::vec((1..=8u64, 1..=8u64, 0..=2u64), 0..=2),
        any::<[u32; 8]>(),
        0..=40u64,
        2..=9u64,
    )
        .prop_map(move |(classes, candidates, existing, bits, left, bound)| {
            let (kinds, nodes) = (candidates.len(), existing.len());
            let mut pods = 0;
            let mut problem = Problem {
                resources: [ResourceName::CPU, ResourceName::MEMORY, ResourceName::NVIDIA_GPU]
                    .map(ResourceName::new)
                    .to_vec(),
                classes: classes
                    .into_iter()
                    .map(|((cpu, memory, gpu), count, bits, most, disliked, at_risk)| {
                        let count = count.min(PODS - pods);
                        pods += count;
                        let preferences =
                            disliked.iter().take(kinds).enumerate().filter(|(_, cost)| **cost > 3);
                        PodClass {
                            name: format!("class of {cpu} {memory} {gpu}"),
                            requests: vec![cpu, memory, gpu],
                            count,
                            max_per_node: most,
                            candidates: subset(bits[0] | bits[1], kinds),
                            existing: subset(bits[2], nodes),
                            ports: if rules.content && (bits[2] >> 8).is_multiple_of(4) {
                                subset(bits[2] >> 10, 3)
                            } else {
                                Vec::new()
                            },
                            preferences: if rules.penalties {
                                preferences.map(|(at, cost)| (at as u32, micros(*cost))).collect()
                            } else {
                                Vec::new()
                            },
                            at_risk: if rules.penalties { at_risk * 500_001 } else { 0 },
                            ..PodClass::default()
                        }
                    })
                    .collect(),
                candidates: candidates
                    .iter()
                    .map(|((price, cpu, memory, gpu), bits, used, _, most)| Candidate {
                        name: format!("candidate of {cpu} {memory} {gpu}"),
                        price: micros(*price),
                        capacity: vec![*cpu, *memory, *gpu],
                        max_nodes: (rules.scarce && bits[1] & 1 == 1).then_some(*most),
                        limit_use: if rules.scarce && *used > 0 { vec![(0, *used)] } else { Vec::new() },
                        domains: if bits[0].is_multiple_of(4) {
                            Vec::new()
                        } else {
                            vec![(0, bits[0] >> 2 & 1)]
                        },
                        interruptions: if rules.penalties { (bits[0] >> 3 & 3) * 25_000 } else { 0 },
                        ..Candidate::default()
                    })
                    .collect(),
                existing: existing
                    .into_iter()
                    .map(|(cpu, memory, gpu)| ExistingNode {
                        name: "node".into(),
                        free: vec![cpu, memory, gpu],
                        ..ExistingNode::default()
                    })
                    .collect(),
                limits: vec![Limit { name: "units".into(), bound }],
                topologies: vec![Topology { name: "zone".into(), values: vec!["a".into(), "b".into()] }],
                ..Problem::default()
            };
            if rules.content {
                let size = problem.classes.len() as u32;
                let pairs = (0..size).flat_map(|i| (i + 1..size).map(move |j| (i, j)));
                problem.conflicts = pairs
                    .enumerate()
                    .filter(|(at, _)| (bits[0] >> (2 * at)).is_multiple_of(4))
                    .map(|(_, pair)| pair)
                    .collect();
            }
            if rules.flexibility {
                problem.flexibility = vec![Flexibility {
                    name: "flexible".into(),
                    candidates: subset(bits[1] | bits[2], kinds),
                    topology: 0,
                    at_least: 1 + (bits[3] & 1),
                }];
            }
            if rules.shares {
                let of = subset(bits[4] | bits[5], kinds);
                problem.node_shares = vec![NodeShare {
                    name: "share".into(),
                    part: of.iter().copied().filter(|at| bits[6] >> at & 1 == 1).collect(),
                    of,
                    at_most_permille: (bits[6] >> 8 & 3) * 250,
                    round_up: bits[6] >> 16 & 1 == 1,
                    running_part: (bits[6] >> 20 & 3).min(bits[6] >> 24 & 3),
                    running_of: bits[6] >> 24 & 3,
                }];
            }
            if rules.commitments {
                let rates = subset(bits[7] | bits[3], kinds);
                problem.commitments = vec![Commitment {
                    name: "plan".into(),
                    left: micros(left),
                    rates: rates.into_iter().map(|at| (at, micros(candidates[at as usize].3))).collect(),
                }];
            }
            problem
        })
}

/// A node with pods on it.
#[derive(Clone)]
struct Used {
    pods: Vec<u32>,
    /// `Ok` for a candidate, `Err` for an existing node.
    kind: Result<usize, usize>,
}

/// An exhaustive search for the lowest objective of placing `pods` (class indices, ascending).
struct Exhaustive<'a> {
    problem: &'a Problem,
    pods: Vec<u32>,
    nodes: Vec<Used>,
    best: Option<u64>,
}

impl Exhaustive<'_> {
    /// Returns whether the pods fit a node with `room` and may be together, regardless of other nodes.
    fn together(&self, room: &[u64], pods: &[u32]) -> bool {
        let problem = self.problem;
        let class = |pod: u32| &problem.classes[pod as usize];
        let fits = (0..room.len())
            .all(|dim| pods.iter().map(|pod| class(*pod).requests[dim]).sum::<u64>() <= room[dim]);
        let ceilings = pods.iter().all(|pod| {
            let have = pods.iter().filter(|other| *other == pod).count() as u32;
            class(*pod).max_per_node.is_none_or(|most| have <= most)
        });
        let peaceful = pods.iter().enumerate().all(|(at, pod)| {
            pods[..at].iter().all(|other| {
                let pair = (*pod.min(other), *pod.max(other));
                let ports = &class(*other).ports;
                !problem.conflicts.contains(&pair)
                    && !class(*pod).ports.iter().any(|port| ports.contains(port))
            })
        });
        fits && ceilings && peaceful
    }

    fn allowed(&self, node: &Used) -> bool {
        let problem = self.problem;
        let kind = match node.kind {
            Err(existing) => return self.together(&problem.existing[existing].free, &node.pods),
            Ok(kind) => kind,
        };
        if !self.together(&problem.candidates[kind].capacity, &node.pods) {
            return false;
        }
        problem.flexibility.iter().filter(|rule| rule.candidates.contains(&(kind as u32))).all(|rule| {
            let mut values: Vec<u32> = rule
                .candidates
                .iter()
                .filter(|at| {
                    let other = &problem.candidates[**at as usize];
                    other.max_nodes != Some(0)
                        && node.pods.iter().all(|pod| problem.classes[*pod as usize].candidates.contains(at))
                        && self.together(&other.capacity, &node.pods)
                })
                .flat_map(|at| &problem.candidates[*at as usize].domains)
                .filter(|(topology, _)| *topology == rule.topology)
                .map(|(_, value)| *value)
                .collect();
            values.sort_unstable();
            values.dedup();
            values.len() >= rule.at_least as usize
        })
    }

    fn search(&mut self, at: usize) {
        let Some(&class) = self.pods.get(at) else {
            if let Some(cost) = self.objective() {
                self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
            }
            return;
        };
        let wanted = &self.problem.classes[class as usize];
        for index in 0..self.nodes.len() {
            let admitted = match self.nodes[index].kind {
                Ok(kind) => wanted.candidates.contains(&(kind as u32)),
                Err(existing) => wanted.existing.contains(&(existing as u32)),
            };
            if admitted {
                self.nodes[index].pods.push(class);
                if self.allowed(&self.nodes[index]) {
                    self.search(at + 1);
                }
                self.nodes[index].pods.pop();
            }
        }
        for &kind in &wanted.candidates {
            let node = Used { pods: vec![class], kind: Ok(kind as usize) };
            if self.allowed(&node) {
                self.nodes.push(node);
                self.search(at + 1);
                self.nodes.pop();
            }
        }
    }

    /// Returns the objective of the nodes; `None` if they may not be bought together.
    fn objective(&self) -> Option<u64> {
        let problem = self.problem;
        let mut bought = vec![0u64; problem.candidates.len()];
        let mut cost = 0;
        for node in &self.nodes {
            let Ok(kind) = node.kind else { continue };
            let offer = &problem.candidates[kind];
            bought[kind] += 1;
            cost += offer.price.micros();
            for pod in &node.pods {
                let class = &problem.classes[*pod as usize];
                cost += risk(class.at_risk, offer.interruptions).micros();
                cost += class
                    .preferences
                    .iter()
                    .filter(|(at, _)| *at as usize == kind)
                    .map(|(_, c)| c.micros())
                    .sum::<u64>();
            }
        }
        let count = |list: &[u32]| list.iter().map(|at| bought[*at as usize]).sum::<u64>();
        let shares = problem.node_shares.iter().all(|share| {
            let most = |of: u64| {
                let most = of * u64::from(share.at_most_permille);
                if share.round_up { most.div_ceil(1000) } else { most / 1000 }
            };
            let (part, of) = (u64::from(share.running_part), u64::from(share.running_of));
            if part <= most(of) {
                part + count(&share.part) <= most(of + count(&share.of))
            } else {
                // More than may be are there already, so the bought nodes must keep the share by themselves.
                count(&share.part) * 1000 <= count(&share.of) * u64::from(share.at_most_permille)
            }
        });
        let stock = problem
            .candidates
            .iter()
            .zip(&bought)
            .all(|(offer, n)| offer.max_nodes.is_none_or(|most| *n <= u64::from(most)));
        let used = problem
            .candidates
            .iter()
            .zip(&bought)
            .flat_map(|(offer, n)| offer.limit_use.iter().map(move |(_, u)| u * n));
        if !shares || !stock || used.sum::<u64>() > problem.limits[0].bound {
            return None;
        }
        for commitment in &problem.commitments {
            // One node after the other, the best discount first.
            let mut nodes: Vec<(u64, u64, u32)> = Vec::new();
            for (at, rate) in &commitment.rates {
                let price = problem.candidates[*at as usize].price.micros();
                nodes.extend((0..bought[*at as usize]).map(|_| (price, rate.micros(), *at)));
            }
            nodes.sort_by(|a, b| (b.0 * a.1).cmp(&(a.0 * b.1)).then(a.2.cmp(&b.2)));
            let mut left = commitment.left.micros();
            for (price, rate, _) in nodes {
                let covered = rate.min(left);
                left -= covered;
                cost = cost - price + (price * (rate - covered)).div_ceil(rate);
            }
        }
        Some(cost)
    }
}

/// Returns the lowest objective of placing the pods that `solution` places.
fn optimum(problem: &Problem, solution: &Solution) -> Option<u64> {
    let mut counts: Vec<u32> = problem.classes.iter().map(|class| class.count).collect();
    for left in &solution.unplaced {
        counts[left.class as usize] -= left.count;
    }
    let pods =
        counts.iter().enumerate().flat_map(|(class, count)| (0..*count).map(move |_| class as u32)).collect();
    let nodes = (0..problem.existing.len()).map(|at| Used { pods: Vec::new(), kind: Err(at) }).collect();
    let mut search = Exhaustive { problem, pods, nodes, best: None };
    search.search(0);
    search.best
}

/// Solves, checks, and compares with the optimum.
fn verify(problem: &Problem) {
    let options = Options { gap_target: 0.0, work: 2_000_000, ..Options::default() };
    let solution = solve(problem, &options, &mut NeverStop).expect("a well-formed problem");
    if let Err(violations) = check(problem, &solution) {
        panic!("{violations:?}\n{solution:?}");
    }
    let first = greedy(problem).expect("a well-formed problem");
    assert_eq!(check(problem, &first), Ok(()));
    let optimum = optimum(problem, &solution).expect("the plan itself is feasible");
    assert_eq!(solution.objective().micros(), optimum, "{solution:?}");
    assert_eq!((solution.bound.micros(), solution.proof), (optimum, Proof::Exact), "{solution:?}");
}

fn rules() -> Rules {
    Rules::default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn conflicts_and_ports_are_honoured_at_least_cost(problem in problems(Rules { content: true, ..rules() })) {
        verify(&problem);
    }

    #[test]
    fn what_pods_are_counted_to_cost_decides_with_the_price(problem in problems(Rules { penalties: true, ..rules() })) {
        verify(&problem);
    }

    #[test]
    fn nodes_that_must_be_flexible_are_at_least_cost(problem in problems(Rules { flexibility: true, content: true, ..rules() })) {
        verify(&problem);
    }

    #[test]
    fn shares_of_nodes_are_kept_at_least_cost(problem in problems(Rules { shares: true, ..rules() })) {
        verify(&problem);
    }

    #[test]
    fn commitments_are_used_to_the_last_micro_dollar_where_that_is_cheapest(problem in problems(Rules { commitments: true, ..rules() })) {
        verify(&problem);
    }

    #[test]
    fn small_plans_under_all_rules_together_are_optimal_and_proven(problem in problems(Rules {
        content: true, penalties: true, flexibility: true, shares: true, commitments: true, scarce: true,
    })) {
        verify(&problem);
    }
}
