//! The world's time: tokio's paused clock, which jumps to the next timer when nothing is left to do.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_controller::clock::{Clock, Moment};
use tokio::time::Instant;

/// The true time of a world. Create and read it inside the world's runtime.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    start: Instant,
    epoch: Timestamp,
}

impl Time {
    /// Starts now, with the same calendar time in every world.
    pub fn beginning() -> Self {
        Self::starting(first_day())
    }

    /// Starts now, with this calendar time.
    pub fn starting(epoch: Timestamp) -> Self {
        Self { start: Instant::now(), epoch }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the calendar time.
    pub fn now(&self) -> Timestamp {
        self.at(self.elapsed())
    }

    /// Returns the calendar time this long after the start.
    pub fn at(&self, elapsed: Duration) -> Timestamp {
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

/// Returns the calendar time at which worlds start.
pub(crate) fn first_day() -> Timestamp {
    Timestamp::from_second(1_780_000_000).unwrap_or_default()
}

/// The clocks of one machine. The monotonic clock is right; the calendar may be wrong.
#[derive(Debug)]
pub struct MachineClock {
    time: Time,
    off_by: Mutex<SignedDuration>,
}

impl MachineClock {
    /// Clocks without error.
    pub fn new(time: Time) -> Self {
        Self { time, off_by: Mutex::new(SignedDuration::ZERO) }
    }

    /// Shifts the calendar, as when somebody sets the clock.
    pub fn jump(&self, by: SignedDuration) {
        let mut off_by = self.off_by.lock().unwrap_or_else(PoisonError::into_inner);
        *off_by = off_by.saturating_add(by);
    }

    /// Corrects the calendar.
    pub fn set_right(&self) {
        *self.off_by.lock().unwrap_or_else(PoisonError::into_inner) = SignedDuration::ZERO;
    }
}

impl Clock for MachineClock {
    fn moment(&self) -> Moment {
        let off_by = *self.off_by.lock().unwrap_or_else(PoisonError::into_inner);
        let wall = self.time.now().checked_add(off_by).unwrap_or(Timestamp::MAX);
        // Does not start at zero, so that an unset time never equals the start.
        Moment { wall, monotonic: Duration::from_secs(1000) + self.time.elapsed() }
    }
}
