//! Gangs, spreads and admission, compared with a search that tries every pod on every node it may use, or on none.

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::{Gang, Spread, Topology};
use poolwright_solver::{
    Candidate, ExistingNode, Limit, NeverStop, Options, PodClass, Problem, Solution, greedy, solve,
};
use proptest::prelude::*;

const ZONES: u32 = 3;

fn problems() -> impl Strategy<Value = Problem> {
    let class = (
        1..=3u64,
        1..=3u32,
        0..=1i32,
        prop_oneof![3 => Just(0u64), 1 => 1..=4u64],
        proptest::sample::subsequence(vec![0u32, 1, 2, 3], 1..=4),
        any::<bool>(),
    );
    let candidate = (1..=9u64, 2..=6u64, proptest::option::of(0..=2u32), 0..=3u64, 0..=ZONES);
    let group = (
        0..4u8,
        1..=2u32,
        proptest::option::of(2..=4u32),
        proptest::collection::vec(0..=2u32, 3),
        1..=2usize,
    );
    (
        proptest::collection::vec(class, 1..=3),
        proptest::collection::vec(candidate, 4),
        (0..=4u64, 0..=ZONES),
        prop_oneof![Just(1000u64), 0..=6u64],
        group,
        proptest::sample::subsequence(vec![0u32, 1, 2], 2..=3),
    )
        .prop_map(|(classes, candidates, (free, zone), bound, group, values)| {
            let domain = |zone: u32| if zone < ZONES { vec![(0, zone)] } else { Vec::new() };
            let mut pods = 0;
            let classes: Vec<PodClass> = classes
                .into_iter()
                .enumerate()
                .map(|(index, (cpu, count, priority, value, candidates, existing))| {
                    let count = count.min(6 - pods);
                    pods += count;
                    PodClass {
                        name: format!("class {index}"),
                        requests: vec![cpu],
                        count,
                        priority,
                        value,
                        candidates,
                        existing: if existing { vec![0] } else { Vec::new() },
                        ..PodClass::default()
                    }
                })
                .collect();
            let (kind, skew, min_domains, running, size) = group;
            let members: Vec<u32> = (0..classes.len().min(size) as u32).collect();
            let mut problem = Problem {
                resources: vec![ResourceName::new(ResourceName::CPU)],
                classes,
                candidates: candidates
                    .into_iter()
                    .enumerate()
                    .map(|(index, (price, cpu, stock, used, zone))| Candidate {
                        name: format!("candidate {index}"),
                        price: UsdPerHour::from_micros(price * 10_000),
                        capacity: vec![cpu],
                        max_nodes: stock,
                        limit_use: if used > 0 { vec![(0, used)] } else { Vec::new() },
                        domains: domain(zone),
                        ..Candidate::default()
                    })
                    .collect(),
                existing: vec![ExistingNode {
                    name: "old".into(),
                    free: vec![free],
                    domains: domain(zone),
                    ..ExistingNode::default()
                }],
                limits: vec![Limit { name: "units".into(), bound }],
                topologies: vec![Topology {
                    name: "zone".into(),
                    values: vec!["a".into(), "b".into(), "c".into()],
                }],
                ..Problem::default()
            };
            match kind {
                0 => problem.gangs = vec![Gang { name: "gang".into(), classes: members, within: None }],
                1 => problem.gangs = vec![Gang { name: "gang".into(), classes: members, within: Some(0) }],
                _ => {
                    problem.spreads = vec![Spread {
                        name: "spread".into(),
                        classes: members,
                        topology: 0,
                        max_skew: skew,
                        min_domains,
                        running: running[..values.len()].to_vec(),
                        values,
                    }];
                }
            }
            problem
        })
}

/// The value and number of the pods left out, by descending priority; then the cost.
type Key = (Vec<(u64, u64)>, u64);

/// Returns whether the rules allow pods at these places: `(class, zone)`.
fn allowed(problem: &Problem, pods: &[(u32, Option<u32>)]) -> bool {
    let of = |classes: &[u32]| -> Vec<Option<u32>> {
        pods.iter().filter(|(class, _)| classes.contains(class)).map(|(_, zone)| *zone).collect()
    };
    for gang in &problem.gangs {
        let placed = of(&gang.classes);
        let whole: u32 = gang.classes.iter().map(|class| problem.classes[*class as usize].count).sum();
        let one = placed.iter().all(|zone| zone.is_some() && *zone == placed[0]);
        if !placed.is_empty() && (placed.len() as u32 != whole || gang.within.is_some() && !one) {
            return false;
        }
    }
    for spread in &problem.spreads {
        let placed = of(&spread.classes);
        if placed.iter().any(|zone| zone.is_none_or(|zone| !spread.values.contains(&zone))) {
            return false;
        }
        let new = |value: u32| placed.iter().filter(|zone| **zone == Some(value)).count() as u32;
        let after: Vec<(u32, u32)> = spread
            .values
            .iter()
            .zip(&spread.running)
            .map(|(value, running)| (new(*value), new(*value) + running))
            .collect();
        let few = spread.min_domains.is_some_and(|least| (spread.values.len() as u32) < least);
        let least = if few { 0 } else { after.iter().map(|(_, after)| *after).min().unwrap_or(0) };
        if after.iter().any(|(new, after)| *new > 0 && after - least > spread.max_skew) {
            return false;
        }
    }
    true
}

fn key(problem: &Problem, placed: &[u32], cost: u64) -> Key {
    let mut levels: Vec<i32> = problem.classes.iter().map(|class| class.priority).collect();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    let level = |priority: i32| {
        let classes = problem.classes.iter().zip(placed).filter(|(class, _)| class.priority == priority);
        classes.fold((0, 0), |(worth, pods), (class, placed)| {
            let missing = u64::from(class.count - placed);
            (worth + class.value * missing, pods + missing)
        })
    };
    (levels.into_iter().map(level).collect(), cost)
}

struct Node {
    /// `Err` for the existing node.
    candidate: Result<usize, ()>,
    room: u64,
    zone: Option<u32>,
}

/// An exhaustive search. It keeps the best key of all plans, and the lowest cost for given placed pods.
struct Everything<'a> {
    problem: &'a Problem,
    pods: Vec<u32>,
    nodes: Vec<Node>,
    on: Vec<(u32, Option<u32>)>,
    best: Option<Key>,
    /// The pods that the checked plan places, and the lowest cost of placing them.
    like: Vec<u32>,
    least: Option<u64>,
}

impl Everything<'_> {
    fn go(&mut self, at: usize, cost: u64) {
        let Some(&class) = self.pods.get(at) else {
            if allowed(self.problem, &self.on) {
                let placed: Vec<u32> = (0..self.problem.classes.len() as u32)
                    .map(|class| self.on.iter().filter(|(of, _)| *of == class).count() as u32)
                    .collect();
                let key = key(self.problem, &placed, cost);
                if self.best.as_ref().is_none_or(|best| key < *best) {
                    self.best = Some(key);
                }
                if placed == self.like && self.least.is_none_or(|least| cost < least) {
                    self.least = Some(cost);
                }
            }
            return;
        };
        self.go(at + 1, cost);
        let wanted = &self.problem.classes[class as usize];
        let cpu = wanted.requests[0];
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let admitted = match node.candidate {
                Ok(candidate) => wanted.candidates.contains(&(candidate as u32)),
                Err(()) => !wanted.existing.is_empty(),
            };
            if admitted && node.room >= cpu {
                self.on.push((class, node.zone));
                self.nodes[index].room -= cpu;
                self.go(at + 1, cost);
                self.nodes[index].room += cpu;
                self.on.pop();
            }
        }
        for &candidate in &wanted.candidates {
            let offer = &self.problem.candidates[candidate as usize];
            let used = |index: usize| {
                self.problem.candidates[index].limit_use.iter().map(|(_, amount)| amount).sum::<u64>()
            };
            let bought = || self.nodes.iter().filter_map(|node| node.candidate.ok());
            let count = bought().filter(|index| *index == candidate as usize).count() as u32;
            let taken: u64 = bought().map(used).sum();
            if offer.capacity[0] >= cpu
                && offer.max_nodes.is_none_or(|most| count < most)
                && taken + used(candidate as usize) <= self.problem.limits[0].bound
            {
                let zone = offer.domains.first().map(|(_, zone)| *zone);
                self.nodes.push(Node {
                    candidate: Ok(candidate as usize),
                    room: offer.capacity[0] - cpu,
                    zone,
                });
                self.on.push((class, zone));
                self.go(at + 1, cost + offer.price.micros());
                self.on.pop();
                self.nodes.pop();
            }
        }
    }
}

/// Returns the pods of a plan with their zones.
fn pods(problem: &Problem, solution: &Solution) -> Vec<(u32, Option<u32>)> {
    let mut pods = Vec::new();
    let mut put = |placed: &[(u32, u32)], domains: &[(u32, u32)], copies: u32| {
        for (class, count) in placed {
            let zone = domains.first().map(|(_, zone)| *zone);
            pods.extend((0..count * copies).map(|_| (*class, zone)));
        }
    };
    for group in &solution.new_nodes {
        put(&group.pods, &problem.candidates[group.candidate as usize].domains, group.count);
    }
    for used in &solution.on_existing {
        put(&used.pods, &problem.existing[used.node as usize].domains, 1);
    }
    pods
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_small_plan_leaves_out_what_trying_everything_leaves_out_and_costs_no_more(problem in problems()) {
        let options = Options { gap_target: 0.0, ..Options::default() };
        let solution = solve(&problem, &options, &mut NeverStop).expect("a well-formed problem");
        prop_assert_eq!(poolwright_solver::check(&problem, &solution), Ok(()));
        let on = pods(&problem, &solution);
        prop_assert!(allowed(&problem, &on), "{:?}", solution);
        let placed: Vec<u32> = (0..problem.classes.len() as u32)
            .map(|class| on.iter().filter(|(of, _)| *of == class).count() as u32)
            .collect();
        let mut all = Everything {
            problem: &problem,
            pods: problem.classes.iter().enumerate().flat_map(|(at, class)| (0..class.count).map(move |_| at as u32)).collect(),
            nodes: vec![Node {
                candidate: Err(()),
                room: problem.existing[0].free[0],
                zone: problem.existing[0].domains.first().map(|(_, zone)| *zone),
            }],
            on: Vec::new(),
            best: None,
            like: placed.clone(),
            least: None,
        };
        all.go(0, 0);
        prop_assert_eq!(Some(key(&problem, &placed, solution.cost.micros())), all.best);
        prop_assert!(Some(solution.bound.micros()) <= all.least);
        prop_assert_eq!(solution.bound, solution.cost);
        let first = greedy(&problem).expect("a well-formed problem");
        prop_assert_eq!(poolwright_solver::check(&problem, &first), Ok(()));
        prop_assert!(allowed(&problem, &pods(&problem, &first)), "{:?}", first);
        prop_assert_eq!(serde_json::to_value(&solution).unwrap(), serde_json::to_value(solve(&problem, &options, &mut NeverStop).unwrap()).unwrap());
    }
}
