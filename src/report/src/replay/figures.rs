//! What a replay comes to, in figures.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_terms::CapacityType;

use super::history::{End, History, Pod};
use super::steps::Steps;
use crate::money::{HOUR, Ratio, Usd};

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
    /// The least that any plan could have cost.
    pub bound: u64,
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
    /// The least that any plan could have cost.
    pub bound: Usd,
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
    pub bound_steps: Steps,
    /// How many pods waited.
    pub waiting_steps: Steps,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Report {
    /// The figures of `history`; `bound_steps` is the lower bound in micro-dollars per hour.
    pub fn new(history: &History, bound_steps: Steps, asked: Duration, notes: Vec<String>) -> Self {
        let played = history.played;
        let mut report = Self { played, asked, notes, ..Self::default() };
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
        report.bound = Usd(bound_steps.sum(Duration::ZERO, played) / HOUR);
        report.bound_steps = bound_steps;
        report.cost_steps = Steps::of_spans(history.machines.iter().map(|machine| {
            let price = machine.price.map_or(0, UsdPerHour::micros);
            (machine.launched, machine.launched + machine.lasted(played), price)
        }));
        report.waiting_steps =
            Steps::of_spans(history.pods.iter().map(|pod| (pod.made, pod.made + pod.waited(played), 1)));
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

    /// What all nodes cost per hour, on average.
    pub fn rate(&self) -> Usd {
        Usd(self.cost().0 * HOUR / self.played.as_millis().max(1))
    }

    /// How far the cost is above the bound, as a part of the bound; `None` where the bound is zero.
    pub fn above_bound(&self) -> Option<Ratio> {
        let (cost, bound) = (self.cost().0, self.bound.0);
        (bound > 0).then(|| Ratio { part: cost.saturating_sub(bound), whole: bound })
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

    /// The idle part of the time for which GPUs were paid.
    pub fn idle_gpus(&self) -> Ratio {
        Ratio { part: self.idle_gpu_millis(), whole: self.paid_gpu_millis() }
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
                bound: average(&self.bound_steps),
                waiting: self.waiting_steps.most(from, until),
            }
        };
        (0..count).map(point).collect()
    }
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
