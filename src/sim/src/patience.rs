//! Limits the solver's search, because simulated time stands still during a solve.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use poolwright_controller::Spawner;
use poolwright_controller::clock::{Clock, Moment};

use crate::time::MachineClock;

/// The controller's clock, which advances by a fixed time whenever the solver reads it during a solve. The solver reads it after
/// equal amounts of work, about half a millisecond of one core, so all machines return the same plan.
pub(crate) struct Patience {
    clock: MachineClock,
    look: Duration,
    solving: AtomicBool,
    looks: AtomicU32,
}

impl Patience {
    /// Wraps this clock. It advances by `look` with each look.
    pub fn new(clock: MachineClock, look: Duration) -> Arc<Self> {
        Arc::new(Self { clock, look, solving: AtomicBool::new(false), looks: AtomicU32::new(0) })
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
        Moment { monotonic: moment.monotonic + self.look * looks, ..moment }
    }
}
