//! What a replay comes to, in figures.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use poolwright_catalog::ResourceName;
use poolwright_sim::replay::{End, Machine, Outcome, Pod};
use poolwright_terms::CapacityType;

use super::steps::Steps;

/// Milliseconds of an hour.
const HOUR: u128 = 3_600_000;

/// An amount of money in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub u128);

impl Usd {
    /// What a machine costs from its launch until it is gone, or so far: its price by the millisecond, rounded up to the
    /// micro-dollar. Nothing is known of a machine whose price is not.
    pub fn of(machine: &Machine, played: Duration) -> Self {
        let price = machine.price.map_or(0, |price| u128::from(price.micros()));
        Self((price * lasted(machine, played).as_millis()).div_ceil(HOUR))
    }

    /// For output only: the nearest `f64` in dollars.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for Usd {
    /// Dollars and cents, rounded half up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0 + 5_000) / 10_000;
        f.pad(&format!("{}.{:02}", cents / 100, cents % 100))
    }
}

/// How long a machine was paid for.
pub fn lasted(machine: &Machine, played: Duration) -> Duration {
    machine.gone.map_or(played, |gone| gone.min(played)).saturating_sub(machine.launched)
}

/// What was bought for one pool in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bought {
    /// How many nodes.
    pub nodes: u64,
    /// What they cost.
    pub cost: Usd,
    /// For how long they were paid, together, in milliseconds.
    pub millis: u128,
    /// How long their GPUs were paid for, together, in milliseconds.
    pub gpu_millis: u128,
}

/// What became of pods, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// There were; those that were made again are counted again.
    pub made: u64,
    /// Have done their work.
    pub finished: u64,
    /// Run at the end.
    pub running: u64,
    /// Wait at the end.
    pub waiting: u64,
    /// Were deleted before their work was done, their machine being there still.
    pub evicted: u64,
    /// Lost their machine before their work was done.
    pub machine_lost: u64,
}

/// How long pods waited until they ran. Those that wait at the end count with what they have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Half of them waited no longer.
    pub p50: Duration,
    /// 95 in 100.
    pub p95: Duration,
    /// 99 in 100.
    pub p99: Duration,
    /// All.
    pub most: Duration,
}

/// A moment of the plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// From when.
    pub from: Duration,
    /// What was paid per hour on average, in micro-dollars.
    pub cost: u64,
    /// What no plan could have cost less than.
    pub limit: u64,
    /// The most pods that waited at a time.
    pub waiting: u64,
}

/// What a replay comes to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How much was played.
    pub played: Duration,
    /// How much was asked for.
    pub asked: Duration,
    /// Pods.
    pub pods: Pods,
    /// By pool and capacity type.
    pub bought: BTreeMap<(String, CapacityType), Bought>,
    /// How many nodes have no known price; their cost is in no figure.
    pub unknown_prices: u64,
    /// What nothing could have cost less than.
    pub limit: Usd,
    /// Waiting.
    pub pending: Pending,
    /// How long pods worked in vain: they ended before they were done. In milliseconds.
    pub lost_millis: u128,
    /// The same, for each GPU.
    pub lost_gpu_millis: u128,
    /// For how long GPUs had a pod, in milliseconds.
    pub used_gpu_millis: u128,
    /// What was paid per hour, in micro-dollars.
    pub cost_steps: Steps,
    /// The least it could have been.
    pub limit_steps: Steps,
    /// How many pods waited.
    pub waiting_steps: Steps,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Report {
    /// From what happened, and the limit in micro-dollars per hour.
    pub fn new(outcome: &Outcome, limit_steps: Steps, asked: Duration, notes: Vec<String>) -> Self {
        let played = outcome.played;
        let mut report = Self { played, asked, notes, ..Self::default() };
        for machine in &outcome.machines {
            let key = (machine.pool.clone(), machine.offering.capacity_type);
            let line = report.bought.entry(key).or_default();
            let millis = lasted(machine, played).as_millis();
            line.nodes += 1;
            line.cost.0 += Usd::of(machine, played).0;
            line.millis += millis;
            line.gpu_millis += millis * u128::from(machine.gpus);
            report.unknown_prices += u64::from(machine.price.is_none());
        }
        for pod in &outcome.pods {
            report.count(pod);
        }
        report.pending = Pending::of(outcome.pods.iter().map(|pod| waited(pod, played)).collect());
        report.limit = Usd(limit_steps.sum(Duration::ZERO, played) / HOUR);
        report.limit_steps = limit_steps;
        report.cost_steps = Steps::of_spans(outcome.machines.iter().map(|machine| {
            let price = machine.price.map_or(0, poolwright_catalog::UsdPerHour::micros);
            (machine.launched, machine.launched + lasted(machine, played), price)
        }));
        report.waiting_steps =
            Steps::of_spans(outcome.pods.iter().map(|pod| (pod.made, pod.made + waited(pod, played), 1)));
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
        if let (Some(started), Some((at, End::Evicted | End::MachineLost))) = (pod.started, pod.ended) {
            let lost = at.saturating_sub(started).as_millis();
            self.lost_millis += lost;
            self.lost_gpu_millis += lost * gpus;
        }
    }

    /// What all nodes cost.
    pub fn cost(&self) -> Usd {
        Usd(self.bought.values().map(|line| line.cost.0).sum())
    }

    /// How many nodes were started.
    pub fn node_starts(&self) -> u64 {
        self.bought.values().map(|line| line.nodes).sum()
    }

    /// For how long GPUs were paid for, in milliseconds.
    pub fn paid_gpu_millis(&self) -> u128 {
        self.bought.values().map(|line| line.gpu_millis).sum()
    }

    /// For how long GPUs were paid for and no pod had them, in milliseconds.
    pub fn idle_gpu_millis(&self) -> u128 {
        self.paid_gpu_millis().saturating_sub(self.used_gpu_millis)
    }

    /// So many points of the plot, at equal distances.
    pub fn points(&self, count: u32) -> Vec<Point> {
        let edge = |number: u32| self.played * number / count;
        let point = |number| {
            let (from, until) = (edge(number), edge(number + 1));
            let millis = (until.as_millis() - from.as_millis()).max(1);
            let average = |steps: &Steps| u64::try_from(steps.sum(from, until) / millis).unwrap_or(u64::MAX);
            Point {
                from,
                cost: average(&self.cost_steps),
                limit: average(&self.limit_steps),
                waiting: self.waiting_steps.most(from, until),
            }
        };
        (0..count).map(point).collect()
    }
}

/// How long a pod waited for its containers to run.
fn waited(pod: &Pod, played: Duration) -> Duration {
    let until = pod.started.or(pod.ended.map(|(at, _)| at)).unwrap_or(played);
    until.saturating_sub(pod.made)
}

impl Pending {
    /// By nearest rank.
    fn of(mut waits: Vec<Duration>) -> Self {
        waits.sort_unstable();
        let rank = |percent: usize| {
            let place = (waits.len() * percent).div_ceil(100).saturating_sub(1);
            waits.get(place).copied().unwrap_or_default()
        };
        Self { p50: rank(50), p95: rank(95), p99: rank(99), most: rank(100) }
    }
}
