//! Groups of a plan's nodes and pods with their sums. A table shows each group as one line.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::UsdPerHour;
use poolwright_terms::{CapacityType, Reason};

use super::document::{Document, GpuUse, NewNode, RelaxedPreference};
use crate::Cost;

/// Equal nodes to buy: the same offering for the same pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase<'a> {
    /// Instance type.
    pub instance_type: &'a str,
    /// Zone.
    pub zone: &'a str,
    /// Capacity type.
    pub capacity_type: CapacityType,
    /// The pool, if the plan buys for several pools.
    pub pool: Option<&'a str>,
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods planned for them.
    pub pods: usize,
    /// The number of units of buffers that they have room for.
    pub units: usize,
    /// The price of each node; `None` if it is unknown.
    pub each: Option<UsdPerHour>,
    /// Their cost together.
    pub cost: Cost,
}

/// The sum of several purchases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurchaseSum {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of pods planned for them.
    pub pods: usize,
    /// The number of units of buffers that they have room for.
    pub units: usize,
    /// Their cost.
    pub cost: Cost,
}

impl Purchase<'_> {
    /// Returns the sum of `purchases`.
    pub fn sum(purchases: &[Self]) -> PurchaseSum {
        let mut sum = PurchaseSum::default();
        for one in purchases {
            sum.nodes += one.nodes;
            sum.pods += one.pods;
            sum.units += one.units;
            sum.cost.usd_per_hour += one.cost.usd_per_hour;
            sum.cost.unknown_prices += one.cost.unknown_prices;
        }
        sum
    }
}

/// GPUs of one instance type with the same use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout<'a> {
    /// Instance type.
    pub instance_type: &'a str,
    /// The use in words.
    pub words: String,
    /// The number of GPUs.
    pub gpus: usize,
}

/// Pods that the plan leaves out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut<'a> {
    /// The reason.
    pub reason: Reason,
    /// A sentence, with the nearest miss.
    pub message: &'a str,
    /// The pods.
    pub pods: Vec<&'a str>,
}

impl Document {
    /// Returns the number of pods planned for nodes that exist or are on their way.
    pub fn pods_on_existing(&self) -> usize {
        self.existing_nodes.iter().map(|node| node.pods.len()).sum()
    }

    /// Returns the number of pods planned for nodes to buy.
    pub fn pods_on_new(&self) -> usize {
        self.nodes.iter().map(|node| node.pods.len()).sum()
    }

    /// Returns the number of units of buffers that nodes to buy have room for.
    pub fn units_on_new(&self) -> usize {
        self.nodes.iter().map(|node| node.units).sum()
    }

    /// Returns whether the nodes to buy are for several pools.
    pub fn has_several_pools(&self) -> bool {
        self.nodes.iter().map(|node| &node.pool).collect::<BTreeSet<_>>().len() > 1
    }

    /// Returns the nodes to buy in groups of equal nodes, the most expensive group first.
    pub fn purchases(&self) -> Vec<Purchase<'_>> {
        let several = self.has_several_pools();
        let mut groups: BTreeMap<(&str, &str, &str, &str), Purchase<'_>> = BTreeMap::new();
        for node in &self.nodes {
            let NewNode { instance_type, zone, capacity_type, usd_per_hour, pool, pods, units, .. } = node;
            let pool = pool.as_deref().filter(|_| several);
            let group = groups
                .entry((instance_type, zone, capacity_type.as_str(), pool.unwrap_or_default()))
                .or_insert_with(|| Purchase {
                    instance_type,
                    zone,
                    capacity_type: *capacity_type,
                    pool,
                    nodes: 0,
                    pods: 0,
                    units: 0,
                    each: None,
                    cost: Cost::default(),
                });
            group.nodes += 1;
            group.pods += pods.len();
            group.units += units;
            group.each = *usd_per_hour;
            group.cost.add(*usd_per_hour);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(name, group)| (Reverse(group.cost.usd_per_hour), *name));
        groups.into_iter().map(|(_, group)| group).collect()
    }

    /// Returns the uses of shared and partitioned GPUs, the most frequent first.
    pub fn layouts(&self) -> Vec<Layout<'_>> {
        let mut groups: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for node in &self.nodes {
            for gpu in &node.gpus {
                *groups.entry((&node.instance_type, gpu.words())).or_default() += 1;
            }
        }
        let mut groups: Vec<_> = groups
            .into_iter()
            .map(|((instance_type, words), gpus)| Layout { instance_type, words, gpus })
            .collect();
        groups.sort_by(|a, b| {
            let key = |group: &Layout<'_>| Reverse(group.gpus);
            key(a).cmp(&key(b)).then_with(|| (a.instance_type, &a.words).cmp(&(b.instance_type, &b.words)))
        });
        groups
    }

    /// Returns the pods left out, grouped by reason; the largest group first.
    pub fn left_out(&self) -> Vec<LeftOut<'_>> {
        let mut groups: BTreeMap<(Reason, &str), Vec<&str>> = BTreeMap::new();
        for pod in &self.unplaced {
            groups.entry((pod.reason, &pod.message)).or_default().push(&pod.pod);
        }
        let mut groups: Vec<_> =
            groups.into_iter().map(|((reason, message), pods)| LeftOut { reason, message, pods }).collect();
        groups.sort_by_key(|group| (Reverse(group.pods.len()), group.reason, group.message));
        groups
    }

    /// Returns the unmet preferences, those with the most pods first.
    pub fn relaxed_by_pods(&self) -> Vec<&RelaxedPreference> {
        let mut all: Vec<_> = self.relaxed_preferences.iter().collect();
        all.sort_by_key(|one| Reverse(one.pods.len()));
        all
    }

    /// Returns the part of the prices of the nodes to buy that commitments pay.
    pub fn paid_by_commitments(&self) -> UsdPerHour {
        let prices: UsdPerHour = self.nodes.iter().filter_map(|node| node.usd_per_hour).sum();
        prices.saturating_sub(self.cost_usd_per_hour)
    }
}

impl GpuUse {
    /// Returns the use in words: `3g.40gb at 4, 1g.10gb at 0`, `500 + 250 of 1000`.
    pub fn words(&self) -> String {
        match self {
            Self::Idle => "idle".to_owned(),
            Self::Whole { .. } => "whole".to_owned(),
            Self::Shared { pods } => {
                let mut shares: Vec<u32> = pods.iter().map(|share| share.milli).collect();
                shares.sort_unstable_by(|a, b| b.cmp(a));
                let shares: Vec<String> = shares.iter().map(u32::to_string).collect();
                format!("{} of 1000", shares.join(" + "))
            }
            Self::Mig { instances } => {
                let each: Vec<String> =
                    instances.iter().map(|one| format!("{} at {}", one.profile, one.start)).collect();
                each.join(", ")
            }
        }
    }
}
