//! Work is counted, not timed: the same problem stops at the same point on every machine, unless the caller asks.

use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_catalog::UsdPerHour;

use crate::{Progress, Watch};

/// One unit is about half a microsecond of one core of an ordinary machine.
pub(crate) struct Meter<'a> {
    watch: &'a mut dyn Watch,
    left: u64,
    since_poll: u64,
    asked: bool,
    progress: Progress,
}

/// Units between two questions to the watch.
const POLL: u64 = 1_000;

impl<'a> Meter<'a> {
    /// A budget of `units`.
    pub fn new(watch: &'a mut dyn Watch, units: u64) -> Self {
        Self { watch, left: units, since_poll: 0, asked: false, progress: Progress::default() }
    }

    /// What the watch is told of the problem's size.
    pub fn about(&mut self, classes: usize, candidates: usize) {
        (self.progress.classes, self.progress.candidates) = (classes, candidates);
    }

    /// Spends `units`; `true` when it is time to stop.
    pub fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.saturating_sub(units);
        self.progress.work += units;
        self.tick(units);
        self.stopped()
    }

    /// Lets the watch be asked in the middle of work that is spent at its end; `true` when it asked to stop.
    pub fn tick(&mut self, units: u64) -> bool {
        self.since_poll += units;
        if self.since_poll >= POLL && !self.asked {
            self.since_poll = 0;
            self.asked = self.watch.should_stop();
        }
        self.asked
    }

    /// Units spent so far.
    pub fn spent(&self) -> u64 {
        self.progress.work
    }

    /// Asks the watch now; `true` when it is time to stop.
    pub fn poll(&mut self) -> bool {
        self.ask();
        self.stopped()
    }

    /// Asks the watch now; `true` when it asked to stop.
    pub fn ask(&mut self) -> bool {
        self.since_poll = POLL;
        self.tick(0)
    }

    /// Whether it is time to stop.
    pub fn stopped(&self) -> bool {
        self.asked || self.left == 0
    }

    /// Whether the watch asked.
    pub fn asked(&self) -> bool {
        self.asked
    }

    /// Tells the watch of a better plan.
    pub fn improved(&mut self, plan: &crate::Solution) {
        self.progress.objective = plan.objective();
        self.watch.improved(plan);
        self.watch.progress(&self.progress);
    }

    /// Tells the watch of a round of pricing.
    pub fn round(&mut self) {
        self.progress.rounds += 1;
        self.watch.progress(&self.progress);
    }

    /// Tells the watch of the bound in micro-dollars, if it rose.
    pub fn bound(&mut self, bound: u64) {
        let bound = UsdPerHour::from_micros(bound);
        if bound > self.progress.bound {
            self.progress.bound = bound;
            self.watch.progress(&self.progress);
        }
    }
}

/// What work on any thread asks: whether to stop. Only the thread that owns the watch can ask it; the others see a flag.
pub(crate) enum Pulse<'p, 'w> {
    /// The thread of the watch; raises the flag for the others.
    Owner(&'p mut Meter<'w>, &'p AtomicBool),
    /// Any other.
    Helper(&'p AtomicBool),
}

impl Pulse<'_, '_> {
    /// As [`Meter::tick`].
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

    /// Whether the watch asked to stop.
    pub fn asked(&self) -> bool {
        match self {
            Self::Owner(meter, _) => meter.asked(),
            Self::Helper(flag) => flag.load(Ordering::Relaxed),
        }
    }
}
