//! Searches for worlds that break a rule: plays many seeds in parallel, and reduces a found world to the fewest accidents
//! that still break the rule.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::accidents::{Accident, Rates};
use crate::invariants::Violation;
use crate::run::{Outcome, Sabotage, Setup, run, run_until};

/// How many worlds are played at most to find out which accidents are needed.
const SHRINK_RUNS: u32 = 300;
/// With fewer accidents a rule may be broken so much later.
const LATER: Duration = Duration::from_mins(10);

/// Which worlds to play.
#[derive(Clone, Debug)]
pub struct Search {
    /// The first seed.
    pub from: u64,
    /// How many.
    pub seeds: u64,
    /// How often things go wrong.
    pub rates: Rates,
    /// Only these accidents; all if `None`.
    pub only: Option<BTreeSet<Accident>>,
    /// How many worlds are played at a time. Each is played by one thread, whatever this is.
    pub threads: NonZeroUsize,
    /// What is wrong with the controller.
    pub sabotage: Option<Sabotage>,
}

/// What a search came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many worlds were played.
    pub seeds: u64,
    /// How many accidents happened in them.
    pub accidents: u64,
    /// How long they took in their own time.
    pub simulated: Duration,
    /// The first seed, of all that were played, in which a rule was broken, and what was seen; known before the accidents are
    /// left out that are not needed.
    pub broken: Option<(u64, Violation)>,
    /// How many worlds were played so far to leave them out.
    pub tried: u32,
    /// That world in the end.
    pub found: Option<Found>,
}

/// A world in which a rule was broken.
#[derive(Clone, Debug)]
pub struct Found {
    /// As it ended with the accidents that are needed, with its whole record.
    pub outcome: Outcome,
    /// How many accidents there were before those were left out that are not needed.
    pub accidents_before: usize,
    /// How many worlds were played to find out.
    pub runs: u32,
}

impl Search {
    fn setup(&self, seed: u64) -> Setup {
        let only = self.only.clone();
        Setup { seed, rates: self.rates, only, keep_record: false, sabotage: self.sabotage }
    }

    /// Plays all of them, or until a rule is broken, or until `stop` is set. `tell` hears of each world that has ended.
    ///
    /// Errors: a runtime that cannot be made.
    pub fn run(&self, stop: &AtomicBool, tell: &(dyn Fn(&Report) + Sync)) -> io::Result<Report> {
        let next = AtomicU64::new(0);
        let broken = AtomicBool::new(false);
        let report: Mutex<Report> = Mutex::default();
        let first: Mutex<Option<Outcome>> = Mutex::new(None);
        let play = || -> io::Result<()> {
            loop {
                // Seeds are begun in order, and what was begun is ended: the first that breaks a rule is the same for any number
                // of threads.
                let number = next.fetch_add(1, Ordering::Relaxed);
                let over = broken.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                if number >= self.seeds || over {
                    return Ok(());
                }
                let outcome = run(&self.setup(self.from.wrapping_add(number)))?;
                let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                report.seeds += 1;
                report.accidents += u64::try_from(outcome.accidents.len()).unwrap_or(u64::MAX);
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

    /// Leaves out accidents as long as the same rule is still broken: halves, quarters, and so on down to single ones (Zeller,
    /// Hildebrandt: Simplifying and Isolating Failure-Inducing Input, 2002).
    fn shrink(&self, outcome: Outcome, stop: &AtomicBool, tried: &mut dyn FnMut(u32)) -> io::Result<Found> {
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
        // It may be that nothing has to go wrong.
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
                    // Only what really happened is needed.
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
        Ok(Found { outcome, accidents_before, runs })
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
    fn what_is_found_does_not_depend_on_the_number_of_threads() {
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
