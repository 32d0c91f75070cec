//! A signal with a deadline that records how cost and bound converge.

use std::time::{Duration, Instant};

use poolwright_solver::{Progress, Solution, StopSignal, gap};

/// Returns the processor time of the calling thread.
fn processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|text| text.parse().ok());
    nanos.map_or(Duration::ZERO, Duration::from_nanos)
}

/// A signal that stops at a deadline, and records every change.
pub struct Clock {
    start: Instant,
    limit: Duration,
    /// The time and value of each improvement of the gap: (seconds, gap).
    pub gaps: Vec<(f64, f64)>,
    /// The time of the first plan.
    pub first: Option<Duration>,
    asked: Instant,
    spent: Duration,
    /// The longest time between two polls, including the time before the first and after the last.
    pub silence: Duration,
    /// The same in processor time of the polling thread: the value on an otherwise idle machine.
    pub busy: Duration,
    /// The last progress.
    pub last: Progress,
    /// The work units spent.
    pub work: u64,
}

impl Clock {
    /// Starts the clock.
    pub fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            start: now,
            limit,
            gaps: Vec::new(),
            first: None,
            asked: now,
            spent: processor(),
            silence: Duration::ZERO,
            busy: Duration::ZERO,
            last: Progress::default(),
            work: 0,
        }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Records a poll, which ends a silence.
    pub fn heard(&mut self) {
        let spent = processor();
        let busy = spent.saturating_sub(self.spent);
        self.busy = self.busy.max(busy);
        self.silence = self.silence.max(self.asked.elapsed());
        (self.asked, self.spent) = (Instant::now(), processor());
    }

    fn note(&mut self, gap: f64) {
        if self.gaps.last().is_none_or(|(_, last)| gap < *last) {
            self.gaps.push((self.start.elapsed().as_secs_f64(), gap));
        }
    }
}

impl StopSignal for Clock {
    fn should_stop(&mut self) -> bool {
        self.heard();
        self.start.elapsed() >= self.limit
    }

    fn improved(&mut self, plan: &Solution) {
        if self.first.is_none() {
            self.first = Some(self.start.elapsed());
        }
        self.note(plan.gap());
    }

    fn progress(&mut self, progress: &Progress) {
        self.last = *progress;
        self.note(gap(progress.objective, progress.bound));
    }

    fn spent(&mut self, units: u64) {
        self.work += units;
    }
}
