//! The figures of a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_terms::CapacityType;

use super::baselines::Baseline;
use super::bound::Bounds;
use super::gap::{CAUSES, Cause, Gap};
use super::history::{End, History, Pod, Told};
use super::idle::Idle;
use super::steps::Steps;
use crate::money::{HOUR, Ratio, Usd};

/// The nodes of one pool and one capacity type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bought {
    /// The number of nodes.
    pub nodes: u64,
    /// Their cost.
    pub cost: Usd,
    /// The paid time of all nodes together, in milliseconds.
    pub millis: u128,
    /// The paid time of all their GPUs together, in milliseconds.
    pub gpu_millis: u128,
}

/// Numbers of pods, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// All pods. A recreated pod counts again.
    pub made: u64,
    /// Pods that completed their work.
    pub finished: u64,
    /// Pods that run at the end.
    pub running: u64,
    /// Pods that wait at the end.
    pub waiting: u64,
    /// Pods deleted before their work was done, while their machine still existed.
    pub evicted: u64,
    /// Pods that lost their machine before their work was done.
    pub machine_lost: u64,
}

/// The time from a pod's creation until it runs. Pods that wait at the end count with their time so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The median.
    pub p50: Duration,
    /// The 95th percentile.
    pub p95: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The maximum.
    pub most: Duration,
}

/// Something about the GPUs that pods ask for, those that are paid, and those with a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gpus<T> {
    /// Of pods that wait or run.
    pub asked: T,
    /// Of all nodes, from their launch on.
    pub bought: T,
    /// Of pods that have a node.
    pub used: T,
}

impl<T> Gpus<T> {
    /// Applies a function to each.
    pub fn each<U>(&self, of: impl Fn(&T) -> U) -> Gpus<U> {
        Gpus { asked: of(&self.asked), bought: of(&self.bought), used: of(&self.used) }
    }
}

/// A point of the plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The start of its time span.
    pub from: Duration,
    /// The average cost per hour, in micro-dollars.
    pub cost: u64,
    /// The lower bound of the cost.
    pub bound: u64,
    /// The largest number of pods waiting at a time.
    pub waiting: u64,
    /// The average of the gap between cost and bound, by cause, in the order of [`Cause::ALL`].
    pub gap: [u64; CAUSES],
}

/// The report of a replay.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The simulated time.
    pub played: Duration,
    /// The requested time.
    pub requested: Duration,
    /// The numbers of pods.
    pub pods: Pods,
    /// The purchases, by pool and capacity type.
    pub bought: BTreeMap<(String, CapacityType), Bought>,
    /// The number of nodes without a known price. Their cost is in no figure.
    pub unknown_prices: u64,
    /// The lower bound of the cost.
    pub bound: Usd,
    /// The gap between the cost and the bound, split by cause.
    pub gap: Gap,
    /// The cost of nodes without work, against the best choices.
    pub idle: Idle,
    /// The waiting times.
    pub pending: Pending,
    /// The lost work: the run time of pods that ended before they were done, in milliseconds.
    pub lost_millis: u128,
    /// The lost work, counted for each GPU.
    pub lost_gpu_millis: u128,
    /// The time during which GPUs had a pod, in milliseconds.
    pub used_gpu_millis: u128,
    /// The cost per hour over time, in micro-dollars.
    pub cost_steps: Steps,
    /// The lower bound of the cost per hour over time.
    pub bound_steps: Steps,
    /// The number of waiting pods over time.
    pub waiting_steps: Steps,
    /// The cost per hour over time of each pool, in micro-dollars.
    pub pool_steps: BTreeMap<String, Steps>,
    /// The GPUs over time.
    pub gpu_steps: Gpus<Steps>,
    /// Why pods wait at the end.
    pub why_waiting: Vec<Told>,
    /// Why nodes ended without ever running a pod.
    pub in_vain: Vec<Told>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The figures of simpler methods for the same pods.
    pub baselines: Vec<Baseline>,
    /// What the simpler methods ignore in this replay: `weights of the pools`.
    pub baselines_ignore: Vec<String>,
}

impl Report {
    /// Computes the figures of `history`.
    pub fn new(history: &History, bounds: Bounds, requested: Duration, notes: Vec<String>) -> Self {
        let played = history.played;
        let (why_waiting, in_vain) = (history.waiting.clone(), history.in_vain.clone());
        let mut report = Self { played, requested, why_waiting, in_vain, notes, ..Self::default() };
        for machine in &history.machines {
            let key = (machine.pool.clone(), machine.offering.capacity_type);
            let line = report.bought.entry(key).or_default();
            let millis = machine.lasted(played).as_millis();
            line.nodes += 1;
            line.cost.0 += machine.cost(played).0;
            line.millis += millis;
            line.gpu_millis += millis * u128::from(machine.gpus);
            report.unknown_prices += u64::from(machine.price.is_none());
        }
        for pod in &history.pods {
            report.count(pod);
        }
        report.pending = Pending::of(history.pods.iter().map(|pod| pod.waited(played)).collect());
        report.bound = Usd(bounds.limit.sum(Duration::ZERO, played) / HOUR);
        report.gap = Gap::new(history, &bounds, report.cost(), report.bound);
        report.idle = Idle::new(history);
        report.bound_steps = bounds.limit;
        report.cost_steps = Steps::of_spans(history.machines.iter().map(|machine| {
            let price = machine.price.map_or(0, UsdPerHour::micros);
            (machine.launched, machine.launched + machine.lasted(played), price)
        }));
        report.waiting_steps =
            Steps::of_spans(history.pods.iter().map(|pod| (pod.made, pod.made + pod.waited(played), 1)));
        report.pool_steps = pool_steps(history);
        report.gpu_steps = gpu_steps(history);
        report
    }

    fn count(&mut self, pod: &Pod) {
        let gpus = u128::from(pod.model.spec.requests.get(ResourceName::NVIDIA_GPU));
        let until = pod.ended.map_or(self.played, |(at, _)| at);
        if let Some((bound, _)) = pod.bound {
            self.used_gpu_millis += gpus * until.saturating_sub(bound).as_millis();
        }
        let count = match pod.ended {
            Some((_, End::Finished)) => &mut self.pods.finished,
            Some((_, End::Evicted)) => &mut self.pods.evicted,
            Some((_, End::MachineLost)) => &mut self.pods.machine_lost,
            None if pod.started.is_some() => &mut self.pods.running,
            None => &mut self.pods.waiting,
        };
        *count += 1;
        self.pods.made += 1;
        if let Some((_, ran)) = pod.lost() {
            self.lost_millis += ran.as_millis();
            self.lost_gpu_millis += ran.as_millis() * gpus;
        }
    }

    /// Returns the cost of all nodes.
    pub fn cost(&self) -> Usd {
        Usd(self.bought.values().map(|line| line.cost.0).sum())
    }

    /// Returns the average cost of all nodes per hour.
    pub fn rate(&self) -> UsdPerHour {
        let micros = self.cost().0 * HOUR / self.played.as_millis().max(1);
        UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns the excess of the cost over the bound, as a part of the bound; `None` if the bound is zero. The bound has the nodes that
    /// static pools keep for nothing, so they do not count here.
    pub fn above_bound(&self) -> Option<Ratio> {
        let cost = self.cost().0.saturating_sub(self.gap.amount(Cause::StaticPools).0);
        let bound = self.bound.0;
        (bound > 0).then(|| Ratio { part: cost.saturating_sub(bound), whole: bound })
    }

    /// Returns the number of started nodes.
    pub fn node_starts(&self) -> u64 {
        self.bought.values().map(|line| line.nodes).sum()
    }

    /// Returns the paid time of GPUs, in milliseconds.
    pub fn paid_gpu_millis(&self) -> u128 {
        self.bought.values().map(|line| line.gpu_millis).sum()
    }

    /// Returns the paid time of GPUs without a pod, in milliseconds.
    pub fn idle_gpu_millis(&self) -> u128 {
        self.paid_gpu_millis().saturating_sub(self.used_gpu_millis)
    }

    /// Returns the idle part of the GPUs' paid time.
    pub fn idle_gpus(&self) -> Ratio {
        Ratio { part: self.idle_gpu_millis(), whole: self.paid_gpu_millis() }
    }

    /// Returns the start of each of `count` equal parts of the played time, with an average there: `times` the number.
    pub fn averages(&self, steps: &Steps, count: u32, times: u128) -> Vec<(Duration, u64)> {
        self.parts(count).map(|(from, until)| (from, average(steps, from, until, times))).collect()
    }

    /// Returns the start and the end of each of `count` equal parts of the played time.
    fn parts(&self, count: u32) -> impl Iterator<Item = (Duration, Duration)> {
        let played = self.played;
        let edge = move |number: u32| played * number / count;
        (0..count).map(move |number| (edge(number), edge(number + 1)))
    }

    /// Returns `count` points of the plot, at equal distances.
    pub fn points(&self, count: u32) -> Vec<Point> {
        self.parts(count).map(|(from, until)| self.point(from, until)).collect()
    }

    /// Returns points of the plot at this distance. The last one may be for less time.
    pub fn series(&self, every: Duration) -> Vec<Point> {
        let mut points = Vec::new();
        let mut from = Duration::ZERO;
        while from < self.played && !every.is_zero() {
            let until = (from + every).min(self.played);
            points.push(self.point(from, until));
            from = until;
        }
        points
    }

    fn point(&self, from: Duration, until: Duration) -> Point {
        let average = |steps: &Steps| average(steps, from, until, 1);
        Point {
            from,
            cost: average(&self.cost_steps),
            bound: average(&self.bound_steps),
            waiting: self.waiting_steps.most(from, until),
            gap: Cause::ALL.map(|cause| average(self.gap.steps(cause))),
        }
    }
}

/// Returns `times` the average of a number between two moments, rounded down.
fn average(steps: &Steps, from: Duration, until: Duration, times: u128) -> u64 {
    let millis = (until.as_millis() - from.as_millis()).max(1);
    u64::try_from(steps.sum(from, until) * times / millis).unwrap_or(u64::MAX)
}

fn pool_steps(history: &History) -> BTreeMap<String, Steps> {
    let mut spans: BTreeMap<String, Vec<(Duration, Duration, u64)>> = BTreeMap::new();
    for machine in &history.machines {
        let price = machine.price.map_or(0, UsdPerHour::micros);
        let until = machine.launched + machine.lasted(history.played);
        spans.entry(machine.pool.clone()).or_default().push((machine.launched, until, price));
    }
    spans.into_iter().map(|(pool, spans)| (pool, Steps::of_spans(spans))).collect()
}

fn gpu_steps(history: &History) -> Gpus<Steps> {
    let gpus = |pod: &Pod| pod.model.spec.requests.get(ResourceName::NVIDIA_GPU);
    let asked = history.pods.iter().map(|pod| {
        let until = pod.ended.map_or(history.played, |(at, _)| at.min(history.played));
        (pod.made, until.max(pod.made), gpus(pod))
    });
    let bought = history
        .machines
        .iter()
        .map(|machine| (machine.launched, machine.launched + machine.lasted(history.played), machine.gpus));
    let used = history.pods.iter().filter_map(|pod| {
        let (from, until) = history.on_machine(pod)?;
        Some((from, until, gpus(pod)))
    });
    Gpus { asked: Steps::of_spans(asked), bought: Steps::of_spans(bought), used: Steps::of_spans(used) }
}

impl Pending {
    /// Computes the percentiles by nearest rank.
    pub(super) fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let rank = |percent: usize| {
            let place = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            waits.get(place).copied().unwrap_or_default()
        };
        Self { p50: rank(50), p95: rank(95), p99: rank(99), most: rank(100) }
    }
}
