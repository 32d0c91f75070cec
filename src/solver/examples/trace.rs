//! Measures the solver on a pod list: `cargo run --release --example trace -- <pods.csv> <catalogue.csv> [sample [seconds]]`.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use poolwright_solver::{Options, Solution, StopSignal, baseline, check, solve};

#[path = "../tests/common/mod.rs"]
mod common;

/// Returns the processor seconds so far, which on a shared machine are more meaningful than wall clock.
fn cpu() -> f64 {
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

/// Stops at a deadline and prints every better plan.
struct Clock {
    start: Instant,
    limit: Option<Duration>,
    asked: Instant,
    /// The longest time between two polls.
    silence: Duration,
}

impl StopSignal for Clock {
    fn should_stop(&mut self) -> bool {
        self.silence = self.silence.max(self.asked.elapsed());
        self.asked = Instant::now();
        self.limit.is_some_and(|limit| self.start.elapsed() >= limit)
    }

    fn improved(&mut self, plan: &Solution) {
        println!(
            "{:8.3} s cpu {:8.3} s  {:>12.3} $/h  bound {:>12.3}",
            self.start.elapsed().as_secs_f64(),
            cpu(),
            plan.cost.as_f64(),
            plan.bound.as_f64()
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pods, catalogue, rest @ ..] = arguments.as_slice() else {
        eprintln!(
            "usage: trace <pods.csv> <catalogue.csv> [sample [seconds]]\n       sample: number of pods, evenly spread; 0 for all"
        );
        std::process::exit(2);
    };
    let sample = match rest.first().map_or("0", String::as_str) {
        "0" => usize::MAX,
        text => text.parse().expect("a number of pods"),
    };
    let problem = common::problem(Path::new(pods), Path::new(catalogue), sample);
    let limit = rest.get(1).map(|text| Duration::from_secs_f64(text.parse().expect("seconds")));
    let start = Instant::now();
    let options = Options::default();
    let mut clock = Clock { start, limit, asked: start, silence: Duration::ZERO };
    let solution = solve(&problem, &options, &mut clock).expect("a well-formed problem");
    let solved = start.elapsed();
    check(&problem, &solution).expect("a feasible plan");
    let checked = start.elapsed().saturating_sub(solved);
    println!(
        "cost {:.3}  bound {:.3}  gap {:.4} %  nodes {}  unplaced {}  {:?}  {:.3} s cpu {:.3} s, checked in {:.4} s, asked at least every {:.4} s",
        solution.cost.as_f64(),
        solution.bound.as_f64(),
        solution.gap() * 100.0,
        solution.nodes(),
        solution.unplaced_pods(),
        solution.stopped,
        solved.as_secs_f64(),
        cpu(),
        checked.as_secs_f64(),
        clock.silence.as_secs_f64(),
    );
    let mut bought: BTreeMap<&str, u32> = BTreeMap::new();
    for group in &solution.new_nodes {
        *bought.entry(&problem.candidates[group.candidate as usize].name).or_default() += group.count;
    }
    println!("{bought:?}");
    println!(
        "one pod per node {}  first fit {}",
        baseline::one_pod_per_node(&problem),
        baseline::first_fit(&problem)
    );
}
