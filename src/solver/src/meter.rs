//! Work is counted, not timed: the same problem stops at the same point on every machine, unless the caller asks.

use crate::Watch;

/// One unit is about half a microsecond of one core of an ordinary machine.
pub(crate) struct Meter<'a> {
    watch: &'a mut dyn Watch,
    left: u64,
    since_poll: u64,
    asked: bool,
}

/// Units between two questions to the watch.
const POLL: u64 = 1_000;

impl<'a> Meter<'a> {
    /// A budget of `units`.
    pub fn new(watch: &'a mut dyn Watch, units: u64) -> Self {
        Self { watch, left: units, since_poll: 0, asked: false }
    }

    /// Spends `units`; `true` when it is time to stop.
    pub fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.saturating_sub(units);
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

    /// Asks the watch now.
    pub fn poll(&mut self) -> bool {
        self.since_poll = POLL;
        self.spend(0)
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
        self.watch.improved(plan);
    }
}
