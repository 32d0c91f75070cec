//! The batch window decides when to plan, so that a burst of pods is planned together and a single pod does not wait long.
//!
//! Times are on the monotonic clock. If the wall clock were used, setting it back would keep a window open.

use std::time::Duration;

use crate::index::Change;

/// The batch window. It opens with the first change that matters, stays open while demand keeps coming, and closes after a
/// maximum time at the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchWindow {
    idle: Duration,
    max: Duration,
    open: Option<Window>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    opened: Duration,
    /// The last time at which demand was added, or the time at which the window opened.
    last: Duration,
    urgent: bool,
    /// The times of the first and the last interruption in this window.
    interruption: Option<(Duration, Duration)>,
}

/// The waiting times for more interruptions, because interruptions come in bursts. A plan is due when no interruption has come
/// for the first duration, and at the latest after the second duration. So pods are planned within a second of the interruption
/// of their instance, and one plan with few orders covers all interruptions of that second.
const INTERRUPTION_BURST: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(600));

impl Window {
    const fn at(now: Duration) -> Self {
        Self { opened: now, last: now, urgent: false, interruption: None }
    }
}

impl Default for BatchWindow {
    /// Creates a window that is due after 1 s without new demand, and after 10 s at the latest.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(10))
    }
}

impl BatchWindow {
    /// Creates a closed window that is due when no demand has come for `idle`, and at the latest `max` after it opened.
    pub fn new(idle: Duration, max: Duration) -> Self {
        Self { idle, max, open: None }
    }

    /// Registers a change of the cluster.
    pub fn on(&mut self, change: Change, now: Duration) {
        if change < Change::Room {
            return;
        }
        match &mut self.open {
            None => self.open = Some(Window::at(now)),
            Some(window) if change >= Change::Demand => window.last = window.last.max(now),
            Some(_) => {}
        }
        if change == Change::Interrupted {
            self.on_interruption(now);
        }
    }

    /// Makes a plan due at once. Used when a launch failed, because its pods have waited already.
    pub fn urgent(&mut self, now: Duration) {
        let window = self.open.get_or_insert(Window::at(now));
        window.urgent = true;
    }

    /// Makes a plan due when the burst of interruptions is over, because pods on interrupted instances have little time.
    fn on_interruption(&mut self, now: Duration) {
        let window = self.open.get_or_insert(Window::at(now));
        let first = window.interruption.map_or(now, |(first, _)| first);
        window.interruption = Some((first, now.max(first)));
    }

    /// Returns the time at which the window is due; `None` while it is closed.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.open.map(|window| {
            if window.urgent {
                return window.opened;
            }
            let usual = window.last.saturating_add(self.idle).min(window.opened.saturating_add(self.max));
            let (idle, most) = INTERRUPTION_BURST;
            let interruption = window.interruption.map(|(first, last)| (last + idle).min(first + most));
            interruption.map_or(usual, |interruption| usual.min(interruption))
        })
    }

    /// Returns whether to plan now.
    pub fn due(&self, now: Duration) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Closes the window because planning starts. Later changes open the next one.
    pub fn close(&mut self) {
        self.open = None;
    }
}
