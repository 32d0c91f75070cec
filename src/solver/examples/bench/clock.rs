//! A watch with a deadline that remembers how cost and bound came together.

use std::time::{Duration, Instant};

use poolwright_solver::{Progress, Solution, Watch, gap};

/// Stops at a deadline, or as soon as the plan is good enough, and notes every change.
pub struct Clock {
    start: Instant,
    limit: Duration,
    /// When something last became better: (seconds, gap).
    pub gaps: Vec<(f64, f64)>,
    /// When the first plan was there.
    pub first: Option<Duration>,
    asked: Instant,
    /// The longest time between two questions whether to stop.
    pub silence: Duration,
    /// The last news.
    pub last: Progress,
}

impl Clock {
    /// From now on.
    pub fn new(limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            start: now,
            limit,
            gaps: Vec::new(),
            first: None,
            asked: now,
            silence: Duration::ZERO,
            last: Progress::default(),
        }
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn note(&mut self, gap: f64) {
        if self.gaps.last().is_none_or(|(_, last)| gap < *last) {
            self.gaps.push((self.start.elapsed().as_secs_f64(), gap));
        }
    }
}

impl Watch for Clock {
    fn should_stop(&mut self) -> bool {
        self.silence = self.silence.max(self.asked.elapsed());
        self.asked = Instant::now();
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
}
