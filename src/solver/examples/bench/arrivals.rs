//! One more pod on a solved state: planned nodes stay, and the pod takes free room or the cheapest node that holds it, as
//! the controller does between two full solves.

use std::time::{Duration, Instant};

use poolwright_solver::{ExistingNode, Options, PodClass, Problem, check, solve};

use crate::cases::{measured, openb};
use crate::clock::Clock;
use crate::common::random_problem::Random;
use crate::report::Row;

/// The number of arriving pods.
const ARRIVALS: usize = 200;

/// A planned node: its candidate and its free room.
struct Node {
    candidate: u32,
    free: Vec<u64>,
}

fn nodes(problem: &Problem) -> Vec<Node> {
    let options = Options { work: u64::MAX, ..Options::default() };
    let solution =
        solve(problem, &options, &mut Clock::new(Duration::from_secs(5))).expect("a well-formed problem");
    let mut nodes = Vec::new();
    for group in &solution.new_nodes {
        let mut free = problem.candidates[group.candidate as usize].capacity.clone();
        for (class, count) in &group.pods {
            take(&mut free, &problem.classes[*class as usize], *count);
        }
        nodes.extend((0..group.count).map(|_| Node { candidate: group.candidate, free: free.clone() }));
    }
    nodes
}

fn take(free: &mut [u64], class: &PodClass, count: u32) {
    for (free, request) in free.iter_mut().zip(&class.requests) {
        *free -= request * u64::from(count);
    }
}

/// Returns the problem for the arrival of one pod of a class: all planned nodes exist, and all candidates may be bought.
fn arrival(problem: &Problem, nodes: &[Node], class: usize) -> Problem {
    let class = &problem.classes[class];
    let admitted = |node: &Node| class.candidates.binary_search(&node.candidate).is_ok();
    let existing: Vec<u32> =
        (0..nodes.len() as u32).filter(|node| admitted(&nodes[*node as usize])).collect();
    Problem {
        resources: problem.resources.clone(),
        classes: vec![PodClass { count: 1, existing, ..class.clone() }],
        candidates: problem.candidates.clone(),
        existing: nodes
            .iter()
            .enumerate()
            .map(|(index, node)| ExistingNode {
                name: format!("node {index}"),
                free: node.free.clone(),
                ..ExistingNode::default()
            })
            .collect(),
        ..Problem::default()
    }
}

/// Runs the case once.
pub fn run() -> Row {
    let mut problem = openb("gpuspec33");
    let mut nodes = nodes(&problem);
    let mut cost: u64 =
        nodes.iter().map(|node| problem.candidates[node.candidate as usize].price.micros()).sum();
    let mut random = Random::new(7);
    let pods: Vec<usize> =
        problem.classes.iter().enumerate().flat_map(|(at, class)| vec![at; class.count as usize]).collect();
    let mut times = Vec::with_capacity(ARRIVALS);
    for _ in 0..ARRIVALS {
        let class = pods[random.within(0, pods.len() as u64 - 1) as usize];
        let asked = arrival(&problem, &nodes, class);
        let start = Instant::now();
        let options = Options::default();
        let solution =
            solve(&asked, &options, &mut Clock::new(Duration::from_secs(1))).expect("a well-formed problem");
        times.push(start.elapsed().as_secs_f64());
        check(&asked, &solution).expect("a plan that the checker accepts");
        cost += solution.cost.micros();
        for used in &solution.on_existing {
            take(&mut nodes[used.node as usize].free, &problem.classes[class], 1);
        }
        for group in &solution.new_nodes {
            let mut free = problem.candidates[group.candidate as usize].capacity.clone();
            take(&mut free, &problem.classes[class], 1);
            nodes.push(Node { candidate: group.candidate, free });
        }
        problem.classes[class].count += 1;
    }
    times.sort_by(f64::total_cmp);
    // A lower bound for all pods planned at once.
    let anew = measured(&problem, 5.0, false);
    let cost = cost as f64 / 1e6;
    Row {
        cost,
        bound: anew.bound,
        gap: (cost - anew.bound) / anew.bound,
        nodes: nodes.len() as f64,
        seconds: times.iter().sum(),
        others: vec![("planned anew".to_owned(), anew.cost)],
        extra: vec![
            ("p50 s".to_owned(), times[ARRIVALS / 2]),
            ("p99 s".to_owned(), times[ARRIVALS * 99 / 100]),
            ("longest s".to_owned(), times[ARRIVALS - 1]),
        ],
        ..Row::default()
    }
}
