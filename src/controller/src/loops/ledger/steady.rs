//! The time of the ledger: that of the wall clock, unless it jumps.
//!
//! A wrong time makes a wrong bill: spans end in the future, or cover hours that never were. So a jump is believed only when it has lasted,
//! or when the API server has written a time after it. Until then the monotonic clock counts.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::edge::clock::Moment;

/// The most that the clocks of two machines may differ. A greater difference between our own two clocks is a jump.
pub const SKEW: SignedDuration = SignedDuration::from_mins(5);
/// A jump that has lasted this long is believed.
pub const BELIEVED_AFTER: Duration = Duration::from_mins(10);

/// A clock that does not jump.
#[derive(Debug, Default)]
pub struct SteadyTime {
    /// The last moment at which both clocks agreed.
    agreed: Option<Moment>,
    /// Since when they do not, on the monotonic clock.
    doubted_since: Option<Duration>,
}

impl SteadyTime {
    /// Returns the time at a moment. `witness` is the latest time that another machine has written.
    pub fn at(&mut self, moment: Moment, witness: Option<Timestamp>) -> Timestamp {
        if let Some(agreed) = self.agreed {
            let expected = agreed.after(moment.monotonic.saturating_sub(agreed.monotonic)).wall;
            let has_jumped = moment.wall.duration_since(expected).abs() > SKEW;
            let is_confirmed = witness.is_some_and(|seen| seen.duration_since(expected) > SKEW);
            if has_jumped && !is_confirmed {
                let since = *self.doubted_since.get_or_insert(moment.monotonic);
                if moment.monotonic.saturating_sub(since) < BELIEVED_AFTER {
                    return expected;
                }
            }
        }
        (self.agreed, self.doubted_since) = (Some(moment), None);
        moment.wall
    }

    /// Returns whether the wall clock has jumped and is not believed yet.
    pub fn is_doubted(&self) -> bool {
        self.doubted_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::clock::Clock;
    use crate::edge::clock::testing::TestClock;

    const HOUR: Duration = Duration::from_hours(1);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_jump_counts_only_after_it_has_lasted_and_one_that_is_undone_never_counts() {
        let (clock, mut steady) = (TestClock::new(), SteadyTime::default());
        let start = clock.now();
        let minutes = |time: Timestamp| time.duration_since(start).as_mins();
        assert_eq!(minutes(steady.at(clock.moment(), None)), 0);
        clock.advance_wall(HOUR);
        clock.advance(MINUTE);
        assert_eq!((minutes(steady.at(clock.moment(), None)), steady.is_doubted()), (1, true));
        clock.set_back(HOUR);
        clock.advance(MINUTE);
        assert_eq!((minutes(steady.at(clock.moment(), None)), steady.is_doubted()), (2, false));
        clock.set_back(HOUR);
        clock.advance(MINUTE);
        assert_eq!(minutes(steady.at(clock.moment(), None)), 3, "back is a jump, too");
        clock.advance_wall(HOUR * 3);
        assert_eq!(minutes(steady.at(clock.moment(), None)), 3);
        clock.advance(BELIEVED_AFTER);
        assert_eq!((minutes(steady.at(clock.moment(), None)), steady.is_doubted()), (133, false));
    }

    #[test]
    fn after_a_sleep_of_the_machine_the_time_of_another_one_confirms_the_wall_clock() {
        let (clock, mut steady) = (TestClock::new(), SteadyTime::default());
        let before = steady.at(clock.moment(), None);
        clock.advance_wall(HOUR);
        assert_eq!(steady.at(clock.moment(), Some(before)), before, "it was written before the sleep");
        let after = clock.now();
        assert_eq!((steady.at(clock.moment(), Some(after)), steady.is_doubted()), (after, false));
    }
}
