//! Limits how long the solver searches, because simulated time stands still during the search.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use poolwright_controller::Spawner;
use poolwright_controller::clock::{Clock, Moment};

use crate::time::MachineClock;

/// How far the clock of a solve goes on each time it is looked at. The solver looks at it after equal amounts of work, about half a
/// millisecond of one core: of the three seconds that it has on a real clock a few hundredths are left, so that a week of plans
/// is soon made; and all machines come to the same.
const LOOK: Duration = Duration::from_millis(50);

/// The controller's clock: it goes on during a solve.
pub(super) struct Patience {
    clock: MachineClock,
    solving: AtomicBool,
    looks: AtomicU32,
}

impl Patience {
    /// Over this clock.
    pub fn new(clock: MachineClock) -> Arc<Self> {
        Arc::new(Self { clock, solving: AtomicBool::new(false), looks: AtomicU32::new(0) })
    }

    /// Runs computations in line, as in every simulated world, and the clock with them.
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
