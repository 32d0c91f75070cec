//! What happens over time: cost, waiting pods, starts, interruptions and lost work, in equal spans.

use std::time::Duration;

use poolwright_catalog::ResourceName;
use poolwright_report::replay::{History, Report};

/// The figures of each span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Curves {
    /// Its begin.
    pub from: Vec<Duration>,
    /// The average cost per hour, in micro-dollars.
    pub cost: Vec<u64>,
    /// The most pods that waited at a time.
    pub waiting: Vec<u64>,
    /// The nodes that were launched.
    pub starts: Vec<u64>,
    /// The nodes that the cloud took back.
    pub interruptions: Vec<u64>,
    /// The run time of the work that was lost, in milliseconds for each GPU.
    pub lost: Vec<u64>,
}

impl Curves {
    /// Returns the figures of spans of this length. The last one may be shorter.
    pub fn of(report: &Report, history: &History, every: Duration) -> Self {
        let points = report.series(every);
        let count = points.len();
        let mut curves = Self {
            from: points.iter().map(|point| point.from).collect(),
            cost: points.iter().map(|point| point.cost).collect(),
            waiting: points.iter().map(|point| point.waiting).collect(),
            starts: vec![0; count],
            interruptions: vec![0; count],
            lost: vec![0; count],
        };
        // What happens at the very end is of the last span.
        let span = |at: Duration| {
            let number = at.as_millis() / every.as_millis().max(1);
            usize::try_from(number).unwrap_or(usize::MAX).min(count.saturating_sub(1))
        };
        let add = |curve: &mut Vec<u64>, at: Duration, more: u64| {
            if let Some(level) = curve.get_mut(span(at)) {
                *level = level.saturating_add(more);
            }
        };
        for machine in &history.machines {
            add(&mut curves.starts, machine.launched, 1);
            if machine.interrupted {
                add(&mut curves.interruptions, machine.gone.unwrap_or(history.played), 1);
            }
        }
        for pod in &history.pods {
            let gpus = pod.model.spec.requests.get(ResourceName::NVIDIA_GPU);
            if let Some((at, ran)) = pod.lost() {
                let lost = ran.as_millis() * u128::from(gpus);
                add(&mut curves.lost, at, u64::try_from(lost).unwrap_or(u64::MAX));
            }
        }
        curves
    }
}
