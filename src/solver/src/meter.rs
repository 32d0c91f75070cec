//! Counts work instead of time: a solve of the same problem stops at the same point on every machine, unless the
//! caller asks for an earlier stop.

use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_catalog::UsdPerHour;

use crate::solution::Solution;
use crate::stop::{Progress, StopSignal};

/// Ends work early. The units of work that it gets count towards the next look at the signal.
pub(crate) trait Brake {
    /// Returns whether to end work that could only make a plan better.
    fn stops(&mut self, units: u64) -> bool;

    /// Returns whether to end work without which there is no plan: nobody waits for one any more.
    fn gives_up(&mut self, units: u64) -> bool;

    /// Returns whether to end work, before or after there is a plan.
    fn ends(&mut self, has_plan: bool, units: u64) -> bool {
        if has_plan { self.stops(units) } else { self.gives_up(units) }
    }
}

impl Brake for Meter<'_> {
    fn stops(&mut self, units: u64) -> bool {
        self.tick(units)
    }

    fn gives_up(&mut self, units: u64) -> bool {
        self.tick(units) && self.signal.is_abandoned()
    }
}

/// A work budget. One unit is about half a microsecond of one core of an ordinary machine.
pub(crate) struct Meter<'a> {
    signal: &'a mut dyn StopSignal,
    left: u64,
    spent: u64,
    since_poll: u64,
    asked: bool,
    progress: Progress,
}

/// The units between two polls of the signal.
pub(crate) const POLL: u64 = 1_000;

impl<'a> Meter<'a> {
    /// Creates a meter with a budget of `units`.
    pub fn new(signal: &'a mut dyn StopSignal, units: u64) -> Self {
        Self { signal, left: units, spent: 0, since_poll: 0, asked: false, progress: Progress::default() }
    }

    /// Sets the problem's size, for the progress.
    pub fn about(&mut self, classes: usize, candidates: usize) {
        (self.progress.classes, self.progress.candidates) = (classes, candidates);
    }

    /// Spends `units`. Returns `true` when the solve must stop.
    pub fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.saturating_sub(units);
        self.spent += units;
        self.signal.spent(units);
        self.tick(units);
        self.stopped()
    }

    /// Polls the signal in the middle of work that is spent at its end. Returns `true` when the signal asked to stop.
    pub fn tick(&mut self, units: u64) -> bool {
        self.since_poll += units;
        if self.since_poll >= POLL && !self.asked {
            self.since_poll = 0;
            self.asked = self.signal.should_stop();
        }
        self.asked
    }

    /// Lowers what is left of the budget to `units`.
    pub fn limit(&mut self, units: u64) {
        self.left = self.left.min(units);
    }

    /// Returns the units spent so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Polls the signal now. Returns `true` when the solve must stop.
    pub fn poll(&mut self) -> bool {
        self.ask();
        self.stopped()
    }

    /// Polls the signal now. Returns `true` when the signal asked to stop.
    pub fn ask(&mut self) -> bool {
        self.since_poll = POLL;
        self.tick(0)
    }

    /// Returns whether the solve must stop.
    pub fn stopped(&self) -> bool {
        self.asked || self.left == 0
    }

    /// Returns whether the signal asked to stop.
    pub fn asked(&self) -> bool {
        self.asked
    }

    /// Reports a better plan to the signal.
    pub fn improved(&mut self, plan: &Solution) {
        self.progress.objective = plan.objective();
        self.signal.improved(plan);
        self.signal.progress(&self.progress);
    }

    /// Reports a round of pricing to the signal.
    pub fn round(&mut self) {
        self.progress.rounds += 1;
        self.signal.progress(&self.progress);
    }

    /// Reports the bound in micro-dollars to the signal, if it rose.
    pub fn bound(&mut self, bound: u64) {
        let bound = UsdPerHour::from_micros(bound);
        if bound > self.progress.bound {
            self.progress.bound = bound;
            self.signal.progress(&self.progress);
        }
    }
}

/// The stop check for work on any thread. Only the thread that owns the signal can poll it; the others read a flag.
pub(crate) enum Pulse<'p, 'w> {
    /// The thread that owns the signal. It raises the flag for the others.
    Owner(&'p mut Meter<'w>, &'p AtomicBool),
    /// Any other thread.
    Helper(&'p AtomicBool),
}

impl Pulse<'_, '_> {
    /// Like [`Meter::tick`].
    pub fn tick(&mut self, units: u64) -> bool {
        match self {
            Self::Owner(meter, flag) => {
                let asked = meter.tick(units);
                if asked {
                    flag.store(true, Ordering::Relaxed);
                }
                asked
            }
            Self::Helper(flag) => flag.load(Ordering::Relaxed),
        }
    }

    /// Returns whether the signal asked to stop.
    pub fn asked(&self) -> bool {
        match self {
            Self::Owner(meter, _) => meter.asked(),
            Self::Helper(flag) => flag.load(Ordering::Relaxed),
        }
    }
}
