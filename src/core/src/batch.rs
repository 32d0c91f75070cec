//! The batch window: a burst of pods is planned together, a single one does not wait long.
//!
//! Its times are those of a monotonic clock: a calendar that is set back would keep a window open for as long as it was wrong.

use std::time::Duration;

use crate::index::Change;

/// When to plan. It opens with the first change that matters, is extended while demand keeps coming, and closes at the
/// latest after its ceiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchWindow {
    idle: Duration,
    max: Duration,
    open: Option<Window>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    opened: Duration,
    /// The last time demand was added, or the window opened.
    last: Duration,
    urgent: bool,
    /// Since when, and for how long at least, what presses is waited for.
    pressing: Option<(Duration, Duration)>,
}

/// What presses comes in bursts: so long nothing more of it comes before a plan is made, and so long at most. Pods are planned a second
/// after their instance is told of at the latest; and what comes within that second is one plan and few orders.
const PRESSING: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(600));

impl Window {
    const fn at(now: Duration) -> Self {
        Self { opened: now, last: now, urgent: false, pressing: None }
    }
}

impl Default for BatchWindow {
    /// Idle 1 s, at most 10 s.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), Duration::from_secs(10))
    }
}

impl BatchWindow {
    /// A closed window that is due when no demand came for `idle`, and `max` after it opened at the latest.
    pub fn new(idle: Duration, max: Duration) -> Self {
        Self { idle, max, open: None }
    }

    /// Takes note of a change of the cluster.
    pub fn on(&mut self, change: Change, now: Duration) {
        if change < Change::Room {
            return;
        }
        match &mut self.open {
            None => self.open = Some(Window::at(now)),
            Some(window) if change >= Change::Demand => window.last = window.last.max(now),
            Some(_) => {}
        }
        if change == Change::Pressing {
            self.press(now);
        }
    }

    /// A plan is wanted at once, without waiting for more pods: an order failed, and its pods have waited already.
    pub fn urgent(&mut self, now: Duration) {
        let window = self.open.get_or_insert(Window::at(now));
        window.urgent = true;
    }

    /// A plan is wanted as soon as a burst is over: instances are taken away, and those on them have little time.
    fn press(&mut self, now: Duration) {
        let window = self.open.get_or_insert(Window::at(now));
        let first = window.pressing.map_or(now, |(first, _)| first);
        window.pressing = Some((first, now.max(first)));
    }

    /// When the window is due; `None` while it is closed.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.open.map(|window| {
            if window.urgent {
                return window.opened;
            }
            let usual = window.last.saturating_add(self.idle).min(window.opened.saturating_add(self.max));
            let (idle, most) = PRESSING;
            let pressing = window.pressing.map(|(first, last)| (last + idle).min(first + most));
            pressing.map_or(usual, |pressing| usual.min(pressing))
        })
    }

    /// Whether to plan now.
    pub fn due(&self, now: Duration) -> bool {
        self.next_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Closes the window: planning starts. What comes from now on opens the next one.
    pub fn close(&mut self) {
        self.open = None;
    }
}
