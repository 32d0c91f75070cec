//! Searches for worlds that break a rule. It plays many seeds in parallel, and reduces a found world to the fewest faults that
//! still break the rule.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::accidents::{Accident, Rates};
use crate::invariants::Violation;
use crate::run::{Outcome, Sabotage, Setup, run, run_until};

/// The maximum number of worlds played to reduce the faults.
const SHRINK_RUNS: u32 = 300;
/// With fewer faults, the rule may be broken this much later.
const LATER: Duration = Duration::from_mins(10);

/// The worlds to play.
#[derive(Clone, Debug)]
pub struct Search {
    /// The first seed.
    pub from: u64,
    /// The number of seeds.
    pub seeds: u64,
    /// The rates of faults.
    pub rates: Rates,
    /// If set, only these faults happen.
    pub only: Option<BTreeSet<Accident>>,
    /// The number of worlds played in parallel. The results do not depend on it.
    pub threads: NonZeroUsize,
    /// A bug of the controller, to test the rules.
    pub sabotage: Option<Sabotage>,
}

/// The results of a search.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of worlds played.
    pub seeds: u64,
    /// The number of faults in them.
    pub accidents: u64,
    /// How often nodes closed in them because newcomers cost less elsewhere.
    pub retired: u64,
    /// The world time that passed in them.
    pub simulated: Duration,
    /// The first seed that broke a rule, and the violation. Known before the faults are reduced.
    pub broken: Option<(u64, Violation)>,
    /// The number of worlds played so far to reduce the faults.
    pub tried: u32,
    /// The world after the reduction.
    pub found: Option<Counterexample>,
}

/// A world that breaks a rule.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// The outcome with only the needed faults, and its whole log.
    pub outcome: Outcome,
    /// The number of faults before the reduction.
    pub accidents_before: usize,
    /// The number of worlds played for the reduction.
    pub runs: u32,
}

impl Search {
    fn setup(&self, seed: u64) -> Setup {
        let only = self.only.clone();
        Setup { seed, rates: self.rates, only, keep_record: false, sabotage: self.sabotage }
    }

    /// Plays all worlds until a rule is broken or `stop` is set. Calls `tell` after each world.
    ///
    /// Errors: the runtime cannot be created.
    pub fn run(&self, stop: &AtomicBool, tell: &(dyn Fn(&Report) + Sync)) -> io::Result<Report> {
        let next = AtomicU64::new(0);
        let broken = AtomicBool::new(false);
        let report: Mutex<Report> = Mutex::default();
        let first: Mutex<Option<Outcome>> = Mutex::new(None);
        let play = || -> io::Result<()> {
            loop {
                // Seeds start in order, and each started seed is finished. So the first seed that breaks a rule does not depend
                // on the number of threads.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = broken.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                if number >= self.seeds || over {
                    return Ok(());
                }
                let outcome = run(&self.setup(self.from.wrapping_add(number)))?;
                let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                report.seeds += 1;
                report.accidents += u64::try_from(outcome.accidents.len()).unwrap_or(u64::MAX);
                report.retired += outcome.tally.retired;
                report.simulated += outcome.simulated;
                tell(&report);
                drop(report);
                if outcome.violation.is_some() {
                    broken.store(true, Ordering::Relaxed);
                    let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.as_ref().is_none_or(|known| outcome.seed < known.seed) {
                        *first = Some(outcome);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.get()).map(|_| scope.spawn(play)).collect();
            let ended = threads.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a world ended in a panic")))
            });
            ended.collect::<io::Result<Vec<()>>>()
        })?;
        let mut report = report.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            report.broken = outcome.violation.clone().map(|violation| (outcome.seed, violation));
            tell(&report);
            let mut tried = |runs| {
                report.tried = runs;
                tell(&report);
            };
            let found = self.shrink(outcome, stop, &mut tried)?;
            report.found = Some(found);
        }
        Ok(report)
    }

    /// Removes faults as long as the same rule is broken: halves, quarters, and so on down to single ones (Zeller, Hildebrandt:
    /// Simplifying and Isolating Failure-Inducing Input, 2002).
    fn shrink(
        &self,
        outcome: Outcome,
        stop: &AtomicBool,
        tried: &mut dyn FnMut(u32),
    ) -> io::Result<Counterexample> {
        let until = outcome.violation.as_ref().map_or(Duration::MAX, |violation| violation.at + LATER);
        let rule = outcome.violation.as_ref().map(|violation| violation.rule);
        let accidents_before = outcome.accidents.len();
        let seed = outcome.seed;
        let mut needed = outcome.accidents;
        let mut runs = 0;
        let mut play = |only: &[Accident], keep_record: bool| {
            runs += 1;
            let only = Some(only.iter().copied().collect());
            tried(runs);
            run_until(&Setup { only, keep_record, ..self.setup(seed) }, until)
        };
        let mut left = SHRINK_RUNS;
        // The rule may be broken without any fault.
        let nothing = play(&[], false)?;
        if nothing.violation.as_ref().map(|violation| violation.rule) == rule {
            needed.clear();
        }
        let mut size = needed.len().div_ceil(2);
        while size > 0 && left > 0 && !stop.load(Ordering::Relaxed) {
            let mut at = 0;
            let mut smaller = false;
            while at < needed.len() && left > 0 {
                let end = (at + size).min(needed.len());
                let rest: Vec<Accident> = needed[..at].iter().chain(&needed[end..]).copied().collect();
                left -= 1;
                let tried = play(&rest, false)?;
                if tried.violation.as_ref().map(|violation| violation.rule) == rule {
                    // Keeps only the faults that really happened.
                    needed = tried.accidents;
                    smaller = true;
                } else {
                    at = end;
                }
            }
            size = match (size, smaller) {
                (1, false) => 0,
                (1, true) => 1,
                _ => size.div_ceil(2),
            };
        }
        let outcome = play(&needed, true)?;
        Ok(Counterexample { outcome, accidents_before, runs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(threads: usize, seeds: u64) -> Report {
        let threads = NonZeroUsize::new(threads).unwrap();
        let search = Search { from: 1, seeds, rates: Rates::USUAL, only: None, threads, sabotage: None };
        search.run(&AtomicBool::new(false), &|_| {}).unwrap()
    }

    #[test]
    fn the_search_result_does_not_depend_on_the_number_of_threads() {
        let (one, two) = (search(1, 4), search(2, 4));
        assert_eq!((one.seeds, one.accidents, one.simulated), (two.seeds, two.accidents, two.simulated));
        assert!(one.accidents > 100, "{} accidents", one.accidents);
        assert!(one.found.is_none(), "{:?}", one.found);
    }

    #[test]
    fn a_search_that_is_stopped_ends() {
        let threads = NonZeroUsize::MIN;
        let search =
            Search { from: 1, seeds: u64::MAX, rates: Rates::NONE, only: None, threads, sabotage: None };
        let stop = AtomicBool::new(false);
        let report = search.run(&stop, &|_| stop.store(true, Ordering::Relaxed)).unwrap();
        assert_eq!(report.seeds, 1);
    }
}
