//! Baselines over time: the cost of simpler methods for the same pods, at the same prices and with the same delays.
//!
//! The pods and the types that admit them come from core, as for the lower bound. Only resources, labels and tolerations count:
//! no rules between pods and no volumes. Every method keeps the limits of pools, and pods wait while these allow no node. Pods that no
//! plan starts, because of their gang or a limit, are no demand. New nodes have room for the DaemonSets that run on them. A pod takes its
//! room as soon as it is placed.
//!
//! Every method has the nodes that static pools keep, as Poolwright has them: it pays for them, may use their room, and leaves them.

mod consolidate;
mod demand;
mod karpenter;
mod limits;
mod rules;
#[cfg(test)]
mod tests;
mod waiting;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{Catalogue, Usd, UsdPerHour};
use poolwright_core::{DaemonSet, Lives, Pod, Pool};
use poolwright_terms::NodeClassRef;

use super::bound::{Counted, bare, question_of};
use super::figures::Pending;
pub use demand::{Around, keep_startable};
use world::{Market, World};

/// A pod of the workload.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its requirements, and what it says about its duration.
    pub pod: Pod,
    /// When it is created.
    pub arrives: Duration,
    /// How long it runs; `None` runs for ever.
    pub length: Option<Duration>,
}

/// The delays of the simulated world. Equal numbers have equal delays, whatever the method.
pub trait Delays {
    /// The time from the launch of the n-th node until it can run pods.
    fn node_start(&self, node: u64) -> Duration;
    /// The time from the termination of the n-th node until it is gone.
    fn node_end(&self, node: u64) -> Duration;
    /// The time from the binding of the n-th pod until its containers run.
    fn pod_start(&self, pod: u64) -> Duration;
}

/// A method of placing pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Each pod gets its own node, the cheapest that holds it.
    OnePodPerNode,
    /// Each pod goes into any room, the best fit first, whatever it costs. Without room, it gets the cheapest node that holds it.
    FirstFit,
    /// Each pod goes into room only if that is expected to cost less than its own node, by the distributions of durations.
    Extension,
    /// As Karpenter: pods go into any room, as kube-scheduler binds them. Others are packed in batches, without regard to prices.
    /// Each packed node becomes the cheapest type that holds its pods. Empty nodes are removed.
    Karpenter,
    /// Karpenter with its default consolidation. An evicted pod starts again.
    Consolidation,
    /// The same, but an evicted pod keeps the work that it has done.
    ConsolidationKept,
}

impl Method {
    /// All methods, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::OnePodPerNode,
        Self::FirstFit,
        Self::Extension,
        Self::Karpenter,
        Self::Consolidation,
        Self::ConsolidationKept,
    ];

    /// Whether it moves pods, by evicting them.
    pub const fn consolidates(self) -> bool {
        matches!(self, Self::Consolidation | Self::ConsolidationKept)
    }
}

/// The figures of one method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The method.
    pub method: Method,
    /// The cost of its nodes, each from its launch until it is gone.
    pub cost: Usd,
    /// The number of launched nodes.
    pub node_starts: u64,
    /// The number of evictions.
    pub evicted: u64,
    /// The waiting times. A pod counts again after each eviction.
    pub pending: Pending,
    /// The number of pods that no node holds.
    pub unplaced: u64,
}

/// The workload and the world of the baselines.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The pods.
    pub arrivals: &'a [Arrival],
    /// The pools.
    pub pools: &'a [Pool],
    /// The DaemonSets, whose pods take room on new nodes.
    pub daemonsets: &'a [DaemonSet],
    /// The catalogue of each node class.
    pub sold: &'a BTreeMap<NodeClassRef, Arc<Catalogue>>,
    /// The most that the nodes of a pool without a money limit of its own may cost.
    pub default_usd_per_hour: Option<UsdPerHour>,
    /// What is known about durations at the beginning.
    pub lives: &'a Lives,
    /// The delays.
    pub delays: &'a dyn Delays,
    /// The simulated time.
    pub played: Duration,
}

/// Plays every method.
pub fn play(setting: &Setting<'_>) -> Vec<Baseline> {
    let pods = setting.arrivals.iter().map(|arrival| &arrival.pod).enumerate();
    let counted = Counted::AllPools(setting.default_usd_per_hour);
    let Some(question) = question_of(pods, setting.pools, setting.daemonsets, setting.sold, counted) else {
        return Vec::new();
    };
    let market = Market::new(&question, setting.pools);
    Method::ALL.map(|method| World::new(method, &market, &question.classes, setting).play()).into()
}

/// Returns whether the nodes of a pool wait for agents, which remove their startup taints or pass their readiness gates.
pub fn waits_for_agents(pool: &Pool) -> bool {
    !pool.startup_taints.is_empty() || pool.readiness_gates.iter().any(|gate| gate != "Ready")
}

/// Names what no baseline respects, of pools and of pods: `weights of the pools`.
pub fn ignored(arrivals: &[Arrival], pools: &[Pool]) -> Vec<String> {
    // The methods know no pool of a node, so they wait for the agents of all nodes or of none.
    let some_wait = pools.iter().any(waits_for_agents) && !pools.iter().all(waits_for_agents);
    // Of a static pool, the baselines have the same nodes as Poolwright.
    let pools: Vec<&Pool> = pools.iter().filter(|pool| pool.replicas.is_none()).collect();
    let any = |has: &dyn Fn(&Pool) -> bool| pools.iter().any(|pool| has(pool));
    let of_pools = [
        ("weights", any(&|pool| pool.weight != pools[0].weight)),
        ("rules on spot nodes", any(&|pool| !pool.spot.is_empty())),
        ("minValues", any(&|pool| !pool.min_values.is_empty())),
        ("room kept free", any(&|pool| !pool.buffer.is_empty())),
        ("startup taints and readiness gates", some_wait),
    ];
    let of_pools: Vec<&str> =
        of_pools.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name).collect();
    let told =
        |names: Vec<&str>, of: &str| (!names.is_empty()).then(|| format!("{} of the {of}", names.join(", ")));
    let mut names: Vec<&str> = Vec::new();
    let mut name = |is_used: bool, name: &'static str| {
        if is_used && !names.contains(&name) {
            names.push(name);
        }
    };
    for Arrival { pod, .. } in arrivals {
        let spec = &pod.spec;
        name(!spec.affinity.is_empty(), "pod affinity");
        name(!spec.anti_affinity.is_empty(), "pod anti-affinity");
        name(!spec.spreads.is_empty(), "topology spread");
        name(!spec.host_ports.is_empty(), "host ports");
        name(!spec.volumes.is_empty() || !pod.volumes.is_empty(), "volumes");
        name(spec.gpu_share.is_some(), "shares of GPUs");
        name(spec.preferences.is_some(), "preferences");
        name(spec.enforced.is_some() && bare(spec).enforced.is_none(), "enforced node affinity");
        name(pod.priority != 0, "priorities");
        name(pod.group.is_some(), "pod groups");
    }
    [told(of_pools, "pools"), told(names, "pods")].into_iter().flatten().collect()
}
