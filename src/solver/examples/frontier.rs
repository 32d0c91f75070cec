//! Consolidates the cluster that a price-blind first fit leaves: `cargo run --release --example frontier -- <pods.csv>
//! <catalogue.csv> [evictions [seconds]]`.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

use std::path::Path;
use std::time::{Duration, Instant};

use poolwright_solver::{Options, Solution, StopSignal, check, frontier, solve};

#[path = "../tests/common/mod.rs"]
mod common;

/// Stops at a deadline and prints every better plan.
struct Clock {
    start: Instant,
    limit: Duration,
}

impl StopSignal for Clock {
    fn should_stop(&mut self) -> bool {
        self.start.elapsed() >= self.limit
    }

    fn improved(&mut self, plan: &Solution) {
        println!(
            "{:8.3} s  {:>12.3} $/h  {} nodes go",
            self.start.elapsed().as_secs_f64(),
            plan.cost.as_f64(),
            plan.removed.len()
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pods, catalogue, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: frontier <pods.csv> <catalogue.csv> [evictions [seconds]]");
        std::process::exit(2);
    };
    let evictions = rest.first().map_or(976, |text| text.parse().expect("a number of evictions"));
    let seconds = rest.get(1).map_or(2.0, |text| text.parse().expect("seconds"));
    let problem = common::problem(Path::new(pods), Path::new(catalogue), usize::MAX);
    let cluster = common::first_fit_cluster(&problem, Some(evictions));
    let mut clock = Clock { start: Instant::now(), limit: Duration::from_secs_f64(seconds) };
    let solution = solve(&cluster, &Options::default(), &mut clock).expect("a well-formed problem");
    let solved = clock.start.elapsed();
    println!("{:?}", check(&cluster, &solution).map_err(|violations| violations.len()));
    let moved: u32 = solution.steps.iter().map(|step| step.evictions).sum();
    println!(
        "{} nodes: {:.3} $/h, bound {:.3}, {} removed, {} launched, {moved} evictions, {} steps, {:.3} s",
        cluster.existing.len(),
        solution.cost.as_f64(),
        solution.bound.as_f64(),
        solution.removed.len(),
        solution.nodes(),
        solution.steps.len(),
        solved.as_secs_f64(),
    );
    let largest = solution.steps.iter().max_by_key(|step| step.evictions).expect("a step");
    println!("largest step: {} evictions, {} nodes", largest.evictions, largest.remove.len());
    let cluster = common::first_fit_cluster(&problem, None);
    clock = Clock { start: Instant::now(), limit: Duration::from_secs_f64(seconds) };
    let points = frontier(&cluster, &Options::default(), &mut clock).expect("a well-formed problem");
    println!("frontier in {:.3} s", clock.start.elapsed().as_secs_f64());
    for point in points.iter().step_by(points.len().div_ceil(40)).chain(points.last()) {
        println!(
            "{:>6} evictions {:>5} nodes {:>12.3} $/h",
            point.evictions,
            point.nodes,
            point.cost.as_f64()
        );
    }
}
