//! The cases and their goals.

use std::path::{Path, PathBuf};
use std::time::Duration;

use poolwright_solver::{
    Options, Problem, Solution, Warm, baseline, check, frontier, greedy, solve, solve_from,
};

use crate::arrivals;
use crate::cancel;
use crate::clock::Clock;
use crate::common::{self, fixture, trace, types};
use crate::report::Row;

/// A case to measure.
pub struct Case {
    /// Its id.
    pub name: &'static str,
    /// The description.
    pub what: &'static str,
    /// Runs the case once.
    pub run: fn() -> Row,
    /// The goals.
    pub goals: Vec<Goal>,
}

/// A limit for a figure.
pub struct Goal {
    what: &'static str,
    limit: f64,
    /// Whether the figure must be at least the limit, and not at most.
    is_least: bool,
    of: fn(&Row) -> f64,
}

impl Goal {
    /// Returns whether `row` reaches it.
    pub fn reached(&self, row: &Row) -> bool {
        let figure = (self.of)(row);
        if self.is_least { figure >= self.limit } else { figure <= self.limit }
    }

    /// Returns the result in words.
    pub fn line(&self, row: &Row) -> String {
        let word = if self.reached(row) { "goal reached" } else { "goal MISSED" };
        let limit = if self.is_least { "at least" } else { "at most" };
        format!("{word}: {} is {:.4}, {limit} {}", self.what, (self.of)(row), self.limit)
    }
}

fn goal(what: &'static str, most: f64, of: fn(&Row) -> f64) -> Goal {
    Goal { what, limit: most, is_least: false, of }
}

fn at_least(what: &'static str, limit: f64, of: fn(&Row) -> f64) -> Goal {
    Goal { what, limit, is_least: true, of }
}

/// Returns all cases, in the order they run.
pub fn all() -> Vec<Case> {
    let greedy =
        || goal("greedy above the bound, in %", 12.0, |row| (row.other("greedy") / row.bound - 1.0) * 100.0);
    let list = |name, what, run| Case {
        name,
        what,
        run,
        goals: vec![goal("gap in % at 0.5 s", 0.1, |row| row.gap_at(0.5) * 100.0), greedy()],
    };
    vec![
        Case {
            name: "P1",
            what: "openb gpuspec33, 8,152 pods, 79 types",
            run: || list_of("gpuspec33", 10.0),
            goals: vec![
                goal("first plan in s", 0.05, |row| row.first),
                goal("gap in % at 1 s", 0.5, |row| row.gap_at(1.0) * 100.0),
                goal("gap in % at 5 s", 0.2, |row| row.gap_at(5.0) * 100.0),
                goal("gap in % at the end", 0.1, |row| row.gap * 100.0),
                greedy(),
            ],
        },
        list("P2-default", "openb default, 8,152 pods, 79 types", || list_of("default", 3.0)),
        list("P2-multigpu", "openb multigpu50, 79 types", || list_of("multigpu50", 3.0)),
        list("P2-gpushare", "openb gpushare100, whole GPUs, 79 types", || list_of("gpushare100", 3.0)),
        Case {
            name: "P3-cold",
            what: "10,000 pods, types x 3 zones x spot and on-demand",
            run: || measured(&wide(), 10.0, true),
            goals: vec![goal("gap in % at 3 s", 2.0, |row| row.gap_at(3.0) * 100.0)],
        },
        Case {
            name: "P3-warm",
            what: "the same after 1 % of the pods changed, with what the solve before left",
            run: || {
                let before = wide();
                let options = Options { work: u64::MAX, ..Options::default() };
                let mut clock = Clock::new(Duration::from_secs(10));
                let (_, warm) = solve_from(&before, &options, &Warm::default(), &mut clock)
                    .expect("a well-formed problem");
                let after = common::zones::churned(before, 100, 3);
                let mut clock = Clock::new(Duration::from_secs(5));
                let (solution, _) =
                    solve_from(&after, &options, &warm, &mut clock).expect("a well-formed problem");
                clock.heard();
                accepted(&after, &solution);
                row(&solution, &clock)
            },
            goals: vec![goal("gap in % at 1 s", 2.0, |row| row.gap_at(1.0) * 100.0)],
        },
        Case {
            name: "P4",
            what: "gpuspec33 x 12, 97,824 pods",
            run: || measured(&common::zones::times(openb("gpuspec33"), 12), 5.0, false),
            goals: vec![
                goal("gap in % at 3 s", 1.0, |row| row.gap_at(3.0) * 100.0),
                goal("peak memory in MiB", 1024.0, |row| row.peak_mib),
            ],
        },
        Case {
            name: "P6",
            what: "200 pods, one after the other, on the solved gpuspec33 state",
            run: arrivals::run,
            goals: vec![
                goal("p99 of an arrival in s", 0.05, |row| row.extra("p99 s")),
                goal("gap in % after all of them", 1.0, |row| row.gap * 100.0),
            ],
        },
        Case {
            name: "P8",
            what: "the first-fit cluster of gpuspec33, at most 976 evictions",
            run: consolidation,
            goals: vec![
                goal("$/h", KARPENTER_FIX_POINT, |row| row.cost),
                goal("evictions", 976.0, |row| row.extra("evictions")),
                goal("seconds", 2.0, |row| row.seconds),
            ],
        },
        Case {
            name: "P9",
            what: "openb default on A100, H100, H200, B200 and CPU types, fractions as MIG instances",
            run: || {
                let (mig, whole) = common::gpus::mig(&trace("default"), &types());
                let mut row = measured(&mig, 5.0, true);
                let mut clock = Clock::new(Duration::from_secs(5));
                let options = Options { work: u64::MAX, ..Options::default() };
                let whole = solve(&whole, &options, &mut clock).expect("a well-formed problem");
                row.others.push(("whole GPUs".to_owned(), whole.objective().as_f64()));
                let saved = |cost: f64| (1.0 - cost / whole.objective().as_f64()) * 100.0;
                // No plan with MIG instances costs less than the bound.
                let (now, most) = (saved(row.cost), saved(row.bound));
                row.extra.push((SAVED.to_owned(), now));
                row.extra.push(("the most that any plan saves, %".to_owned(), most));
                row
            },
            goals: vec![
                goal("gap in % at 2 s", 1.0, |row| row.gap_at(2.0) * 100.0),
                at_least("saving against whole GPUs in %", MIG_SAVES, |row| row.extra(SAVED)),
            ],
        },
        Case {
            name: "P13",
            what: "openb gpushare100, fractions share GPUs, 79 types",
            run: || measured(&common::gpus::shared(&trace("gpushare100"), &types()), 5.0, true),
            goals: vec![goal("gap in % at 2 s", 1.0, |row| row.gap_at(2.0) * 100.0)],
        },
        Case {
            name: "cancel",
            what: "the problem of P3, cancelled at random moments from another thread",
            run: || cancel::run(&wide()),
            goals: cancelling(),
        },
        Case {
            name: "cancel-P8",
            what: "the cluster of P8, cancelled at random moments from another thread",
            run: || cancel::run(&common::first_fit_cluster(&openb("gpuspec33"), Some(976))),
            goals: cancelling(),
        },
        Case {
            name: "P13-default",
            what: "openb default, fractions share GPUs beside whole ones, 79 types",
            run: || measured(&common::gpus::shared(&trace("default"), &types()), 5.0, true),
            goals: Vec::new(),
        },
    ]
}

/// Returns the goals of cancelled solves.
fn cancelling() -> Vec<Goal> {
    vec![
        goal("p99 until a solve with a plan returns, in s", 0.02, |row| row.extra("time is over, p99 s")),
        goal("p99 until a solve that nobody waits for returns, in s", 0.02, |row| {
            row.extra("nobody waits, p99 s")
        }),
    ]
}

pub fn openb(name: &str) -> Problem {
    common::openb(name, usize::MAX)
}

fn wide() -> Problem {
    let catalogues = [types(), fixture("catalogue/aws-us-east-1.csv")];
    let catalogues: Vec<&Path> = catalogues.iter().map(PathBuf::as_path).collect();
    common::zones::wide(&trace("gpuspec33"), &catalogues, 10_000, 1)
}

fn list_of(name: &str, seconds: f64) -> Row {
    measured(&openb(name), seconds, true)
}

/// The name of the saving of MIG instances.
const SAVED: &str = "saved against whole GPUs, %";

/// The least that MIG instances should save on P9, in percent. The certified bound proves that no plan saves more than 8.43.
const MIG_SAVES: f64 = 8.3;

/// The final cost of our re-implementation of Karpenter's consolidation, in $/h, with 976 evictions, one command every 15
/// seconds.
const KARPENTER_FIX_POINT: f64 = 12_503.0;

fn consolidation() -> Row {
    let cluster = common::first_fit_cluster(&openb("gpuspec33"), Some(976));
    let before: f64 = cluster
        .existing
        .iter()
        .filter_map(|node| node.removal.as_ref())
        .map(|removal| removal.price.as_f64())
        .sum();
    let mut clock = Clock::new(Duration::from_secs_f64(1.9));
    let options = Options { work: u64::MAX, ..Options::default() };
    let solution = solve(&cluster, &options, &mut clock).expect("a well-formed problem");
    clock.heard();
    let mut row = row(&solution, &clock);
    accepted(&cluster, &solution);
    let evictions: u32 = solution.steps.iter().map(|step| step.evictions).sum();
    row.others = vec![("as it is".to_owned(), before)];
    row.extra = vec![
        ("evictions".to_owned(), f64::from(evictions)),
        ("steps".to_owned(), solution.steps.len() as f64),
        ("nodes before".to_owned(), cluster.existing.len() as f64),
        ("nodes removed".to_owned(), solution.removed.len() as f64),
    ];
    let unbounded = common::first_fit_cluster(&openb("gpuspec33"), None);
    let points = frontier(&unbounded, &options, &mut Clock::new(Duration::from_secs(2)))
        .expect("a well-formed problem");
    row.frontier = points.iter().map(|point| (point.evictions, point.cost.as_f64())).collect();
    row
}

/// Solves once under a deadline and checks the plan.
pub fn measured(problem: &Problem, seconds: f64, first_fit: bool) -> Row {
    let mut clock = Clock::new(Duration::from_secs_f64(seconds));
    let options = Options { work: u64::MAX, ..Options::default() };
    let solution = solve(problem, &options, &mut clock).expect("a well-formed problem");
    clock.heard();
    let mut row = row(&solution, &clock);
    accepted(problem, &solution);
    let quick = greedy(problem).expect("a well-formed problem");
    row.others = vec![
        ("greedy".to_owned(), quick.objective().as_f64()),
        ("one pod per node".to_owned(), baseline::one_pod_per_node(problem).as_f64()),
    ];
    if first_fit {
        row.others.push(("first fit".to_owned(), baseline::first_fit(problem).as_f64()));
    }
    row
}

/// Aborts the run when the checker rejects the plan, since its figures would mean nothing.
fn accepted(problem: &Problem, solution: &Solution) {
    if let Err(violations) = check(problem, solution) {
        panic!("{} violations, the first: {}", violations.len(), violations[0]);
    }
}

/// Returns the figures of a solve.
pub fn row(solution: &Solution, clock: &Clock) -> Row {
    let seconds = clock.elapsed().as_secs_f64();
    let mut gaps = clock.gaps.clone();
    gaps.push((seconds, solution.gap()));
    let until = [0.05, 0.02, 0.01, 0.005, 0.002, 0.001]
        .map(|wanted| (wanted, gaps.iter().find(|(_, gap)| *gap <= wanted).map(|(at, _)| *at)));
    let at = [0.5, 1.0, 2.0, 3.0, 5.0].map(|when| {
        let known = gaps.iter().filter(|(at, _)| *at <= when).map(|(_, gap)| *gap);
        (when, known.fold(1.0, f64::min))
    });
    Row {
        cost: solution.objective().as_f64(),
        bound: solution.bound.as_f64(),
        gap: solution.gap(),
        first: clock.first.map_or(seconds, |first| first.as_secs_f64()),
        seconds,
        until: until.to_vec(),
        at: at.to_vec(),
        nodes: solution.nodes() as f64,
        classes: clock.last.classes as f64,
        candidates: clock.last.candidates as f64,
        rounds: clock.last.rounds as f64,
        work: clock.work as f64 / 1e6,
        silence: clock.silence.as_secs_f64(),
        busy: clock.busy.as_secs_f64(),
        ..Row::default()
    }
}
