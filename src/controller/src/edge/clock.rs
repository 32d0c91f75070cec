//! Reads the system clocks. No other code does: all other code gets a [`Moment`] or a [`Clock`], so that a simulator can use
//! virtual time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock: for times that are stored or compared between machines. It may jump.
    pub wall: Timestamp,
    /// The monotonic clock: for durations. It never goes back, but may stop while the machine sleeps.
    pub monotonic: Duration,
}

impl Moment {
    /// Returns the moment that is `duration` later.
    pub fn after(self, duration: Duration) -> Self {
        let signed = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
        let wall = self.wall.checked_add(signed).unwrap_or(Timestamp::MAX);
        Self { wall, monotonic: self.monotonic.saturating_add(duration) }
    }

    /// Returns the time until `then`, by the clock on which it comes first; zero if it has passed on either clock.
    pub fn until(self, then: Self) -> Duration {
        let monotonic = then.monotonic.saturating_sub(self.monotonic);
        let wall = Duration::try_from(then.wall.duration_since(self.wall)).unwrap_or_default();
        monotonic.min(wall)
    }
}

/// A wall clock and a monotonic clock.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time on both clocks.
    fn moment(&self) -> Moment;

    /// Returns the time on the wall clock.
    fn now(&self) -> Timestamp {
        self.moment().wall
    }

    /// Returns the time on the monotonic clock.
    fn monotonic(&self) -> Duration {
        self.moment().monotonic
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The system clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Creates system clocks. The monotonic clock starts at zero.
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the edge")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Creates shared system clocks.
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock of the edge")]
    fn moment(&self) -> Moment {
        Moment { wall: Timestamp::now(), monotonic: self.start.elapsed() }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A clock that only a test moves.

    use std::sync::{Mutex, PoisonError};

    use super::{Clock, Duration, Moment, Timestamp};

    /// A clock that starts at 2026-01-01.
    #[derive(Debug)]
    pub struct TestClock(Mutex<Moment>);

    impl TestClock {
        pub fn new() -> Self {
            let wall: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
            Self(Mutex::new(Moment { wall, monotonic: Duration::from_secs(1000) }))
        }

        pub fn advance(&self, duration: Duration) {
            let mut moment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *moment = moment.after(duration);
        }

        /// Advances only the wall clock, as after a machine's sleep.
        pub fn advance_wall(&self, duration: Duration) {
            let mut moment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            moment.wall = moment.after(duration).wall;
        }
    }

    impl TestClock {
        /// Sets the wall clock back.
        pub fn set_back(&self, duration: Duration) {
            let mut moment = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            moment.wall = moment.wall.checked_sub(duration).expect("it is far from the first day");
        }
    }

    /// A clock that follows tokio's clock, which a test may pause.
    #[derive(Debug)]
    pub struct TokioClock(tokio::time::Instant);

    impl TokioClock {
        pub fn new() -> Self {
            Self(tokio::time::Instant::now())
        }
    }

    impl Clock for TokioClock {
        fn moment(&self) -> Moment {
            TestClock::new().moment().after(self.0.elapsed())
        }
    }

    impl Clock for TestClock {
        fn moment(&self) -> Moment {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_comes_as_soon_as_either_clock_says_so() {
        let start = SystemClock::new().moment();
        let then = start.after(Duration::from_secs(10));
        assert_eq!(start.until(then), Duration::from_secs(10));
        let slept = Moment { wall: start.after(Duration::from_secs(11)).wall, ..start };
        assert_eq!(slept.until(then), Duration::ZERO, "the machine slept");
        let turned_back = Moment { monotonic: then.monotonic, ..start };
        assert_eq!(turned_back.until(then), Duration::ZERO, "someone turned the clock back");
    }
}
