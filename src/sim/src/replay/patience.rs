//! Limits the solver's search, because simulated time stands still during a solve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use poolwright_controller::Spawner;
use poolwright_controller::clock::{Clock, Moment};

use crate::time::MachineClock;

/// The clock of a solve advances by this each time the solver reads it. The solver reads it after equal amounts of work, about
/// half a millisecond of one core. So a solve takes a few hundredths of the usual three seconds, and all machines return the same
/// plan.
const LOOK: Duration = Duration::from_millis(50);

/// The controller's clock, which advances during a solve.
pub(super) struct Patience {
    clock: MachineClock,
    solving: AtomicBool,
    looks: AtomicU32,
}

impl Patience {
    /// Wraps this clock.
    pub fn new(clock: MachineClock) -> Arc<Self> {
        Arc::new(Self { clock, solving: AtomicBool::new(false), looks: AtomicU32::new(0) })
    }

    /// Runs computations in line, as in every simulated world, while the clock advances.
    pub fn spawner(self: &Arc<Self>) -> Spawner {
        let own = self.clone();
        Arc::new(move |work| {
            own.looks.store(0, Ordering::Relaxed);
            own.solving.store(true, Ordering::Relaxed);
            work();
            own.solving.store(false, Ordering::Relaxed);
        })
    }
}

impl Clock for Patience {
    fn moment(&self) -> Moment {
        let moment = self.clock.moment();
        if !self.solving.load(Ordering::Relaxed) {
            return moment;
        }
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        Moment { monotonic: moment.monotonic + LOOK * looks, ..moment }
    }
}
