//! The expected time of a job on nodes that the cloud may take back, and the expected number of its interruptions.

use std::time::Duration;

/// The longest expected time in seconds: 3660 days. A job that takes longer does not end.
const LONGEST: f64 = 3_660.0 * 86_400.0;

/// A job whose nodes work together: an interruption of one of them stops all work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The time that the job takes without interruptions.
    pub takes: Duration,
    /// The time between checkpoints; `None` if the job starts over after each interruption.
    pub checkpoint: Option<Duration>,
    /// The time from an interruption until the job works again: the start of a node and of the job.
    pub restart: Duration,
}

/// What is expected of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The number of interruptions.
    pub interruptions: f64,
    /// The time until the job ends.
    pub finish: Duration,
    /// The part of this time in which the job does work that is lost.
    pub lost: Duration,
}

impl Work {
    /// Returns what is expected on so many nodes with this rate of interruption each; `None` if the job does not end.
    ///
    /// Interruptions come independently of each other, at the rate `r` for all nodes together. Checkpoints split the work into `k` equal
    /// parts of the length `s`; without checkpoints it is one part. An interruption loses the work since the last checkpoint. Each part
    /// then is interrupted `e^(r s) - 1` times until it succeeds, so there are `n = k (e^(r s) - 1)` interruptions, and the job ends after
    /// `n (1/r + restart)`. If `r s` is small, each interruption loses about half a part.
    pub fn on(&self, nodes: usize, per_million_hours: u32) -> Option<Run> {
        let per_second = nodes as f64 * f64::from(per_million_hours) / 3.6e9;
        if per_second <= 0.0 {
            return Some(Run { interruptions: 0.0, finish: self.takes, lost: Duration::ZERO });
        }
        let parts = self.checkpoint.map_or(1, |every| {
            let every = every.as_millis().max(1);
            self.takes.as_millis().div_ceil(every).max(1)
        });
        let parts = parts as f64;
        let interruptions = parts * (per_second * self.takes.as_secs_f64() / parts).exp_m1();
        let seconds = interruptions * (per_second.recip() + self.restart.as_secs_f64());
        (seconds <= LONGEST).then(|| {
            let finish = Duration::from_millis((seconds * 1000.0).round() as u64);
            let restarts = self.restart.mul_f64(interruptions);
            let lost = finish.saturating_sub(self.takes).saturating_sub(restarts);
            Run { interruptions, finish, lost }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn hours(time: Duration) -> f64 {
        time.as_secs_f64() / 3600.0
    }

    fn is_near(number: f64, expected: f64) -> bool {
        (number - expected).abs() < 1e-5
    }

    #[test]
    fn a_job_without_interruptions_takes_the_time_of_its_work() {
        let work = Work { takes: HOUR * 40, checkpoint: None, restart: HOUR };
        let run = work.on(8, 0).expect("it ends");
        assert!(run.interruptions.abs() < 1e-9 && run.finish == HOUR * 40 && run.lost.is_zero(), "{run:?}");
    }

    #[test]
    fn a_job_without_checkpoints_starts_over() {
        // In an hour, one in two runs is interrupted: ln 2 is 0.693147. So there is one interruption until an hour succeeds.
        let work = Work { takes: HOUR, checkpoint: None, restart: HOUR / 2 };
        let run = work.on(1, 693_147).expect("it ends");
        assert!(is_near(run.interruptions, 1.0), "{run:?}");
        assert!(is_near(hours(run.finish), 1.0 / std::f64::consts::LN_2 + 0.5), "{run:?}");
        assert!(is_near(hours(run.lost), 1.0 / std::f64::consts::LN_2 - 1.0), "{run:?}");
    }

    #[test]
    fn an_interruption_of_any_node_loses_about_half_of_the_time_between_checkpoints() {
        // Eight nodes are interrupted 0.01 times an hour together. e^0.01 - 1 is 0.010050167, and e^0.4 - 1 is 0.491824698.
        let work = Work { takes: HOUR * 40, checkpoint: Some(HOUR), restart: HOUR / 6 };
        let run = work.on(8, 1_250).expect("it ends");
        assert!(is_near(run.interruptions, 0.402_007), "{run:?}");
        assert!(is_near(hours(run.finish), 40.267_669), "{run:?}");
        assert!((hours(run.lost) / run.interruptions - 0.5).abs() < 0.01, "{run:?}");
        let over = Work { checkpoint: None, ..work }.on(8, 1_250).expect("it ends");
        assert!(is_near(over.interruptions, 0.491_825), "{over:?}");
        assert!(is_near(hours(over.finish), 49.264_441), "{over:?}");
    }

    #[test]
    fn a_job_that_is_interrupted_all_the_time_does_not_end() {
        let work = Work { takes: HOUR * 40, checkpoint: None, restart: HOUR };
        assert_eq!(work.on(8, 1_000_000), None);
        assert_eq!(work.on(8, u32::MAX), None);
        let saved = Work { checkpoint: Some(Duration::from_mins(1)), ..work };
        assert!(saved.on(8, 1_000_000).is_some(), "checkpoints save it");
    }
}
