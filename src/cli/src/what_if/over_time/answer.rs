//! The difference of two replays as a document.

use std::time::Duration;

use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_report::money::{amount, six_decimals, usd};
use poolwright_report::replay::Report;
use poolwright_terms::API_VERSION;
use serde::{Serialize, Serializer};

use super::curves::Curves;
use crate::args::{Span, Threshold};
use crate::print::counted;
use crate::replay::{Played, hours, span};
use crate::what_if::delta::{Delta, monthly};

/// The longest replay whose curves are by the hour. Longer ones have curves by the day.
const BY_THE_HOUR: Duration = Duration::from_hours(14 * 24);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// The most columns of a curve in a table. With its name it fits into 80.
const COLUMNS: u64 = 60;

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// `poolwright.dev/v1alpha1`.
    api_version: &'static str,
    /// `WhatIfReplay`.
    kind: &'static str,
    /// The answer in one line.
    pub verdict: String,
    /// Whether any figure differs.
    pub differs: bool,
    /// The limits that the cost exceeds, or why this cannot be judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exceeded: Vec<String>,
    /// What was changed.
    pub changes: Vec<String>,
    /// How long both replays are.
    #[serde(rename = "playedSeconds", serialize_with = "seconds")]
    pub played: Duration,
    /// The replay of the base.
    pub before: Side,
    /// The replay with the changes.
    pub after: Side,
    /// The difference of the average costs per hour.
    pub difference_usd_per_hour: Delta,
    /// The same in a month of 730 hours.
    #[serde(rename = "differenceUsdPerMonth", serialize_with = "monthly")]
    pub month: Delta,
    /// The same as a percentage of the cost before, in words; null if that was zero.
    pub difference_percent: Option<String>,
    /// The curves, by the hour or by the day.
    pub series: Vec<Line>,
    /// Notes on how the input was understood.
    pub notes: Vec<String>,
    /// The curves of the table, before and after.
    #[serde(skip)]
    pub plots: [Curves; 2],
}

/// The figures of one replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The cost of all nodes.
    #[serde(rename = "costUsd", serialize_with = "amount")]
    pub cost: Usd,
    /// The average cost.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// What no way to buy can go below for this work.
    #[serde(rename = "lowerLimitUsd", serialize_with = "amount")]
    pub lower_limit: Usd,
    /// The median of the times until pods run.
    #[serde(rename = "pendingP50Seconds", serialize_with = "seconds")]
    pub p50: Duration,
    /// Their 95th percentile.
    #[serde(rename = "pendingP95Seconds", serialize_with = "seconds")]
    pub p95: Duration,
    /// The nodes that were launched.
    pub node_starts: u64,
    /// The nodes that the cloud took back.
    pub interruptions: u64,
    /// The pods that ended before their work was done.
    pub pods_cut_off: u64,
    /// The work that was lost: the run time of jobs that begin anew, for each GPU.
    #[serde(rename = "lostGpuHours", serialize_with = "in_hours")]
    pub lost_gpu_millis: u128,
    /// The pods that wait at the end.
    pub pods_waiting: u64,
    /// The nodes without a known price, which are in no cost.
    pub nodes_with_unknown_price: u64,
}

/// A span of the curves.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Its begin.
    #[serde(rename = "fromSeconds", serialize_with = "seconds")]
    pub from: Duration,
    /// The figures before.
    pub before: Figures,
    /// The figures after.
    pub after: Figures,
}

/// The figures of a span.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The average cost.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// The most pods that waited at a time.
    pub pods_waiting: u64,
    /// The nodes that were launched.
    pub node_starts: u64,
    /// The nodes that the cloud took back.
    pub interruptions: u64,
    /// The work that was lost.
    #[serde(rename = "lostGpuHours", serialize_with = "in_hours")]
    pub lost_gpu_millis: u128,
}

/// Serializes a time in seconds.
pub fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(six_decimals(time.as_secs_f64()))
}

/// Serializes milliseconds in hours.
fn in_hours<S: Serializer>(millis: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(six_decimals(*millis as f64 / 3_600_000.0))
}

impl Side {
    fn of(report: &Report, played: &Played) -> Self {
        let interrupted = played.history.machines.iter().filter(|machine| machine.interrupted);
        Self {
            cost: report.cost(),
            usd_per_hour: report.rate(),
            lower_limit: report.bound,
            p50: report.pending.p50,
            p95: report.pending.p95,
            node_starts: report.node_starts(),
            interruptions: interrupted.count() as u64,
            pods_cut_off: report.pods.evicted + report.pods.machine_lost,
            lost_gpu_millis: report.lost_gpu_millis,
            pods_waiting: report.pods.waiting,
            nodes_with_unknown_price: report.unknown_prices,
        }
    }
}

impl Figures {
    fn of(curves: &Curves, at: usize) -> Self {
        Self {
            usd_per_hour: UsdPerHour::from_micros(curves.cost[at]),
            pods_waiting: curves.waiting[at],
            node_starts: curves.starts[at],
            interruptions: curves.interruptions[at],
            lost_gpu_millis: curves.lost[at].into(),
        }
    }
}

impl Answer {
    /// Compares two replays of the same length. The caller fills in changes and notes.
    pub fn of(before: &Played, after: &Played) -> Self {
        let played = before.history.played;
        let reports = [before.report(), after.report()];
        let [first, second] = [(&reports[0], before), (&reports[1], after)];
        let (old, new) = (Side::of(first.0, first.1), Side::of(second.0, second.1));
        let curves = |every: Duration| {
            [first, second].map(|(report, played)| Curves::of(report, &played.history, every))
        };
        let [old_curves, new_curves] = curves(if played <= BY_THE_HOUR { HOUR } else { DAY });
        let line = |at: usize| Line {
            from: old_curves.from[at],
            before: Figures::of(&old_curves, at),
            after: Figures::of(&new_curves, at),
        };
        let length = u64::try_from(played.as_millis()).unwrap_or(u64::MAX).div_ceil(COLUMNS);
        let delta = Delta::between(old.usd_per_hour, new.usd_per_hour);
        Self {
            api_version: API_VERSION,
            kind: "WhatIfReplay",
            verdict: verdict(&old, &new, played),
            differs: old != new,
            exceeded: Vec::new(),
            changes: Vec::new(),
            played,
            difference_usd_per_hour: delta,
            month: delta,
            difference_percent: delta.percent_of(old.usd_per_hour),
            series: (0..old_curves.from.len().min(new_curves.from.len())).map(line).collect(),
            notes: Vec::new(),
            plots: curves(Duration::from_millis(length)),
            before: old,
            after: new,
        }
    }

    /// Notes the limits that the rise of the cost exceeds.
    pub fn judge(&mut self, limits: &[Threshold]) {
        let (before, after) = (&self.before, &self.after);
        let unpriced = after.nodes_with_unknown_price.saturating_sub(before.nodes_with_unknown_price);
        self.exceeded = self.difference_usd_per_hour.exceeded(limits, before.usd_per_hour, unpriced as usize);
    }
}

/// Says what differs, in one line.
pub fn verdict(before: &Side, after: &Side, played: Duration) -> String {
    let delta = Delta::between(before.usd_per_hour, after.usd_per_hour);
    let percent = delta.percent_of(before.usd_per_hour).map(|percent| format!(" ({percent})"));
    let cost = if delta.is_zero() {
        format!("the same cost on average over {}", Span(played))
    } else {
        format!(
            "{delta}{} on average over {}, {}",
            percent.unwrap_or_default(),
            Span(played),
            delta.per_month()
        )
    };
    let differ = |name: &str, old: String, new: String| {
        if old == new { format!("{name} {new}, as before") } else { format!("{name} {new}, was {old}") }
    };
    let waiting = match after.pods_waiting {
        0 => String::new(),
        pods => format!("; {} at the end", counted(pods as usize, "waiting pod")),
    };
    let unknown = match after.nodes_with_unknown_price {
        0 => String::new(),
        nodes => format!("; {} of unknown price not counted", counted(nodes as usize, "node")),
    };
    format!(
        "{cost}{unknown}; {}; {}; {}{waiting}",
        differ("p95 of waiting", span(before.p95), span(after.p95)),
        differ("interruptions", before.interruptions.to_string(), after.interruptions.to_string()),
        differ("lost GPU-hours", hours(before.lost_gpu_millis), hours(after.lost_gpu_millis)),
    )
}
