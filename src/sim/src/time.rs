//! The world's time: tokio's paused clock, which jumps to the next timer when nothing is left to do.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_controller::clock::{Clock, Moment};
use tokio::time::Instant;

/// The true time. Made and read inside of the runtime of one world.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    start: Instant,
    epoch: Timestamp,
}

impl Time {
    /// Begins now, at the same calendar time for every world.
    pub fn beginning() -> Self {
        Self::starting(first_day())
    }

    /// Begins now, at this calendar time.
    pub fn starting(epoch: Timestamp) -> Self {
        Self { start: Instant::now(), epoch }
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The calendar's time.
    pub fn now(&self) -> Timestamp {
        self.at(self.elapsed())
    }

    /// The calendar's time so long after the beginning.
    pub fn at(&self, elapsed: Duration) -> Timestamp {
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// When worlds begin. They have no other today than their own.
pub(crate) fn first_day() -> Timestamp {
    Timestamp::from_second(1_780_000_000).unwrap_or_default()
}

/// The clocks of one machine: they run as the true time does, but the calendar may be off.
#[derive(Debug)]
pub struct MachineClock {
    time: Time,
    off_by: Mutex<SignedDuration>,
}

impl MachineClock {
    /// Clocks that are right.
    pub fn new(time: Time) -> Self {
        Self { time, off_by: Mutex::new(SignedDuration::ZERO) }
    }

    /// Moves the calendar, as when somebody sets the clock.
    pub fn jump(&self, by: SignedDuration) {
        let mut off_by = self.off_by.lock().unwrap_or_else(PoisonError::into_inner);
        *off_by = off_by.saturating_add(by);
    }

    /// Sets the calendar right.
    pub fn set_right(&self) {
        *self.off_by.lock().unwrap_or_else(PoisonError::into_inner) = SignedDuration::ZERO;
    }
}

impl Clock for MachineClock {
    fn moment(&self) -> Moment {
        let off_by = *self.off_by.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = self.time.now().checked_add(off_by).unwrap_or(Timestamp::MAX);
        // Not from zero: what is not set must not look like the beginning.
        Moment { wall, monotonic: Duration::from_secs(1000) + self.time.elapsed() }
    }
}
