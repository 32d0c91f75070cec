//! `make bench-ablation`: the effect of each stage of the search. One stage is disabled at a time, and each solution is
//! compared with that of the whole search on the same problem, in the same process, with the same work budget.
//!
//! `ablation [CASE...] [--runs N] [--stage NAME]...` prints one line for each stage that changes something on a case,
//! with the number of solves that got worse and better by it (`-2+1`), and the cost after a quarter of the work. Run `n`
//! has seed `n` for the search and for random problems. Work units and gaps do not depend on the machine. Time is
//! processor time of a solve with one thread, relative to the whole search. The independent checker checks every
//! solution.

mod cases;

#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;

use poolwright_solver::{
    NeverStop, Options, Problem, Progress, Proof, SearchStage, Solution, Stages, StopSignal, Warm, check,
    gap, solve, solve_from,
};

use cases::Case;

/// The progress of a solve by work.
#[derive(Default)]
struct Heard {
    /// The work until the gap was at most 0.1 %.
    close: Option<u64>,
    work: u64,
    /// The objective after a quarter of the work, and the number of pods left out then.
    quarter: (f64, u64),
    budget: u64,
}

impl StopSignal for Heard {
    fn should_stop(&mut self) -> bool {
        false
    }

    fn improved(&mut self, plan: &Solution) {
        if self.work * 4 <= self.budget {
            self.quarter = (plan.objective().as_f64(), plan.unplaced_pods());
        }
    }

    fn progress(&mut self, progress: &Progress) {
        if self.close.is_none() && gap(progress.objective, progress.bound) <= 0.001 {
            self.close = Some(self.work);
        }
    }

    fn spent(&mut self, units: u64) {
        self.work += units;
    }
}

/// One solution, as the table needs it.
struct Answer {
    objective: f64,
    bound: f64,
    /// The objective after a quarter of the work, if that plan placed as many pods.
    quarter: Option<f64>,
    exact: bool,
    priced: bool,
    /// By descending priority: the pods left out, and their value.
    left_out: Vec<(u64, u64)>,
    evictions: u64,
    /// The saving during the steps, averaged over all evictions.
    early: f64,
    work: u64,
    close: u64,
    seconds: f64,
}

/// Returns the processor seconds of this thread.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn answer(problem: &Problem, solution: &Solution, heard: &Heard, seconds: f64) -> Answer {
    if let Err(violations) = check(problem, solution) {
        panic!("{} violations, the first: {}", violations.len(), violations[0]);
    }
    let mut left_out: BTreeMap<std::cmp::Reverse<i32>, (u64, u64)> = BTreeMap::new();
    for left in &solution.unplaced {
        let class = &problem.classes[left.class as usize];
        let level = left_out.entry(std::cmp::Reverse(class.priority)).or_default();
        level.0 += class.value * u64::from(left.count);
        level.1 += u64::from(left.count);
    }
    let priorities = problem.classes.iter().map(|class| std::cmp::Reverse(class.priority));
    for priority in priorities {
        left_out.entry(priority).or_default();
    }
    let evictions: u64 = solution.steps.iter().map(|step| u64::from(step.evictions)).sum();
    let (mut left, mut early) = (evictions, 0.0);
    for step in &solution.steps {
        left -= u64::from(step.evictions);
        early += step.saving.map_or(0.0, poolwright_catalog::UsdPerHour::as_f64) * left as f64;
    }
    early /= evictions.max(1) as f64;
    Answer {
        objective: solution.objective().as_f64(),
        bound: solution.bound.as_f64(),
        quarter: (heard.quarter.1 == solution.unplaced_pods()).then_some(heard.quarter.0),
        exact: solution.proof == Proof::Exact,
        priced: solution.prices.is_some(),
        left_out: left_out.into_values().collect(),
        evictions,
        early,
        work: heard.work,
        close: heard.close.unwrap_or(heard.work),
        seconds,
    }
}

/// Solves all problems of a case with these stages.
fn run(case: &Case, seed: u64, stages: Stages, problems: &[(Problem, Option<Warm>)]) -> Vec<Answer> {
    let options =
        Options { gap_target: 0.0, work: case.work, seed, threads: 1, stages, ..Options::default() };
    let each = problems.iter().map(|(problem, warm)| {
        let (mut heard, before) = (Heard { budget: case.work, ..Heard::default() }, processor());
        let solution = match warm {
            None => solve(problem, &options, &mut heard),
            Some(warm) => solve_from(problem, &options, warm, &mut heard).map(|(solution, _)| solution),
        };
        let solution = solution.expect("a well-formed problem");
        answer(problem, &solution, &heard, processor() - before)
    });
    each.collect()
}

/// The totals of a case, each compared with the whole search.
#[derive(Default)]
struct Line {
    /// The number of problems whose left-out pods are worse, or better.
    worse: usize,
    better: usize,
    /// The number of solves that place the same pods for more money, or for less.
    dearer: usize,
    cheaper: usize,
    /// The number of solves that place the same pods with a lower bound, or with a higher one.
    looser: usize,
    tighter: usize,
    /// The sums over problems that place the same pods.
    objective: [f64; 2],
    bound: [f64; 2],
    quarter: [f64; 2],
    exact: [usize; 2],
    priced: [usize; 2],
    evictions: [u64; 2],
    early: [f64; 2],
    work: [u64; 2],
    close: [u64; 2],
    seconds: [f64; 2],
}

impl Line {
    fn add(&mut self, whole: &[Answer], part: &[Answer]) {
        for pair in whole.iter().zip(part) {
            match pair.1.left_out.cmp(&pair.0.left_out) {
                std::cmp::Ordering::Greater => self.worse += 1,
                std::cmp::Ordering::Less => self.better += 1,
                std::cmp::Ordering::Equal => {
                    self.dearer += usize::from(pair.1.objective > pair.0.objective);
                    self.cheaper += usize::from(pair.1.objective < pair.0.objective);
                    self.looser += usize::from(pair.1.bound < pair.0.bound);
                    self.tighter += usize::from(pair.1.bound > pair.0.bound);
                    for (at, answer) in [pair.0, pair.1].into_iter().enumerate() {
                        self.objective[at] += answer.objective;
                        self.bound[at] += answer.bound;
                    }
                    if let (Some(whole), Some(part)) = (pair.0.quarter, pair.1.quarter) {
                        self.quarter[0] += whole;
                        self.quarter[1] += part;
                    }
                }
            }
            for (at, answer) in [pair.0, pair.1].into_iter().enumerate() {
                self.exact[at] += usize::from(answer.exact);
                self.priced[at] += usize::from(answer.priced);
                self.evictions[at] += answer.evictions;
                self.early[at] += answer.early;
                self.work[at] += answer.work;
                self.close[at] += answer.close;
                self.seconds[at] += answer.seconds;
            }
        }
    }

    /// Returns whether anything but time differs.
    fn differs(&self) -> bool {
        let same = |pair: [f64; 2]| (pair[0] - pair[1]).abs() < 1e-9;
        self.worse + self.better > 0
            || !same(self.objective)
            || !same(self.bound)
            || !same(self.quarter)
            || self.exact[0] != self.exact[1]
            || self.priced[0] != self.priced[1]
            || self.evictions[0] != self.evictions[1]
            || !same(self.early)
            || self.work[0] != self.work[1]
    }

    fn print(&self, name: &str) {
        let above = |one: f64, base: f64| (base > 0.0).then(|| (one / base - 1.0) * 100.0);
        let signed =
            |percent: Option<f64>| percent.map_or("-".to_owned(), |percent| format!("{percent:+.4}"));
        let gap = |bound: f64| {
            above(self.objective[1], bound).map_or("-".to_owned(), |percent| format!("{percent:.4}"))
        };
        let ratio = |pair: [u64; 2]| pair[1] as f64 / pair[0].max(1) as f64;
        print!(
            "{name:<34} {:>9} {:>7} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>6.2} {:>6.2} {:>6.2}",
            signed(above(self.objective[1], self.objective[0])),
            format!("-{}+{}", self.dearer, self.cheaper),
            signed(above(self.quarter[1], self.quarter[0])),
            signed(above(self.bound[1], self.bound[0])),
            format!("-{}+{}", self.looser, self.tighter),
            gap(self.bound[1]),
            // The gap between the plan and the bound of the whole search.
            gap(self.bound[0]),
            format!("-{}+{}", self.worse, self.better),
            ratio(self.work),
            ratio(self.close),
            self.seconds[1] / self.seconds[0].max(1e-9),
        );
        if self.exact[0] != self.exact[1] {
            print!("  proven {} of {}", self.exact[1], self.exact[0]);
        }
        if self.priced[0] != self.priced[1] {
            print!("  priced {} of {}", self.priced[1], self.priced[0]);
        }
        if self.evictions[0] > 0 {
            print!(
                "  evictions {} of {}, early savings {} %",
                self.evictions[1],
                self.evictions[0],
                signed(above(self.early[1], self.early[0]))
            );
        }
        println!();
    }
}

fn warmth(case: &Case, seed: u64, problem: Problem) -> (Problem, Option<Warm>) {
    if !case.warm {
        return (problem, None);
    }
    let options = Options { work: 4_000_000, seed, ..Options::default() };
    let (_, warm) =
        solve_from(&problem, &options, &Warm::default(), &mut NeverStop).expect("a well-formed problem");
    (common::zones::churned(problem, 100, 3), Some(warm))
}

fn main() {
    let (mut names, mut runs, mut only): (Vec<String>, u64, Vec<String>) = (Vec::new(), 1, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(runs),
            "--stage" => only.extend(arguments.next()),
            name => names.push(name.to_owned()),
        }
    }
    let stages: Vec<SearchStage> = SearchStage::ALL
        .iter()
        .copied()
        .filter(|stage| only.is_empty() || only.iter().any(|only| stage.name().contains(only.as_str())))
        .collect();
    let mut idle: Vec<SearchStage> = stages.clone();
    for case in cases::all() {
        if !names.is_empty() && !names.iter().any(|name| name == case.name) {
            continue;
        }
        println!("\n{} - {}; {} work units, seeds 0..{runs}", case.name, case.what, case.work);
        println!(
            "{:<34} {:>9} {:>7} {:>9} {:>9} {:>7} {:>9} {:>9} {:>7} {:>6} {:>6} {:>6}",
            "stage off",
            "cost %",
            "",
            "at 1/4 %",
            "bound %",
            "",
            "gap %",
            "to whole",
            "placed",
            "work",
            "to .1%",
            "time"
        );
        let mut lines: Vec<Line> = stages.iter().map(|_| Line::default()).collect();
        let mut all = Line::default();
        for seed in 0..runs {
            let problems: Vec<_> =
                (case.problems)(seed).into_iter().map(|problem| warmth(&case, seed, problem)).collect();
            let whole = run(&case, seed, Stages::default(), &problems);
            all.add(&whole, &whole);
            for (stage, line) in stages.iter().zip(&mut lines) {
                line.add(&whole, &run(&case, seed, Stages::default().without(*stage), &problems));
            }
        }
        all.print("(none)");
        println!(
            "of the whole search: objective {:.6} $/h, bound {:.6}, {} work units",
            all.objective[0], all.bound[0], all.work[0]
        );
        for (stage, line) in stages.iter().zip(&lines).filter(|(_, line)| line.differs()) {
            line.print(stage.name());
            idle.retain(|idle| idle != stage);
        }
    }
    let idle: Vec<&str> = idle.into_iter().map(SearchStage::name).collect();
    println!(
        "\nno effect on any case: {}",
        if idle.is_empty() { "none".to_owned() } else { idle.join(", ") }
    );
}
