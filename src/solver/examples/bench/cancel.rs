//! Solves that another thread cancels at random moments: the time until they return.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use poolwright_solver::{Options, Problem, Solution, StopSignal, check, solve};

use crate::common::random_problem::Random;
use crate::report::Row;

/// The number of solves that are cancelled in each of two ways.
const SOLVES: usize = 40;
/// The latest moment. Moments are denser near the start, where the parts of a solve are shorter.
const LATEST: Duration = Duration::from_secs(3);

/// A signal that another thread raises.
struct Raised<'f> {
    flag: &'f AtomicBool,
    /// Whether nobody waits for the plan once it is raised.
    is_abandoned: bool,
    /// The time of the first plan.
    first: Option<Instant>,
}

impl StopSignal for Raised<'_> {
    fn should_stop(&mut self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    fn is_abandoned(&mut self) -> bool {
        self.is_abandoned && self.flag.load(Ordering::Relaxed)
    }

    fn improved(&mut self, _: &Solution) {
        self.first.get_or_insert_with(Instant::now);
    }
}

/// Cancels a solve after some time, and returns how long it goes on: from then, or from its first plan, which is made in any case if
/// somebody waits for it. Returns `None` if it ended by itself.
fn cancelled(problem: &Problem, after: Duration, is_abandoned: bool) -> Option<Duration> {
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let solving = scope.spawn(|| {
            let options = Options { gap_target: 0.0, work: u64::MAX, ..Options::default() };
            let mut signal = Raised { flag: &flag, is_abandoned, first: None };
            let solution = solve(problem, &options, &mut signal).expect("a well-formed problem");
            (Instant::now(), signal.first, solution)
        });
        std::thread::sleep(after);
        let raised = Instant::now();
        flag.store(true, Ordering::Relaxed);
        let (end, first, solution) = solving.join().expect("the solver does not panic");
        assert_eq!(check(problem, &solution), Ok(()));
        let from = if is_abandoned { raised } else { first.map_or(raised, |first| first.max(raised)) };
        (end > raised).then(|| end.saturating_duration_since(from))
    })
}

/// Cancels solves of `problem` in both ways.
pub fn run(problem: &Problem) -> Row {
    let mut extra = Vec::new();
    for (name, is_abandoned) in [("time is over", false), ("nobody waits", true)] {
        let mut random = Random::new(11);
        let mut times: Vec<f64> = (0..SOLVES)
            .filter_map(|_| {
                let part = random.within(0, 1_000) as f64 / 1_000.0;
                cancelled(problem, LATEST.mul_f64(part * part), is_abandoned)
            })
            .map(|time| time.as_secs_f64())
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let last = times.len().saturating_sub(1);
            times.get((times.len() * percent / 100).min(last)).copied().unwrap_or(f64::NAN)
        };
        extra.extend(
            [("p50", 50), ("p99", 99), ("max", 100)]
                .map(|(figure, percent)| (format!("{name}, {figure} s"), at(percent))),
        );
        extra.push((format!("{name}, solves"), times.len() as f64));
    }
    Row { extra, ..Row::default() }
}
