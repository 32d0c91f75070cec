//! Topology spread over nodes (`kubernetes.io/hostname`): how many pods a node may hold.
//!
//! A node may hold `maxSkew` pods more than the node with the fewest. A node that can still join counts as well, with only the
//! pods that DaemonSets put on it. So in most clusters the least count is zero. It is higher only if the constraint counts
//! DaemonSet pods, if no node that it includes can be bought, or if limits leave pods without a new node. If a constraint includes
//! only one node, that node always has the fewest, however many pods come.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::Taint;
use poolwright_terms::labels::HOSTNAME;

use crate::model::{PodSpec, Requirement, TopologySpreadConstraint};
use crate::rules::colocation::present::{Present, UNLIMITED};
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::new_node::NewNodeLabels;
use crate::rules::spread::constraint::{counts, includes};

/// A constraint over nodes, shared by pods of one namespace. Pods are identified by their profiles of
/// [`crate::rules::colocation`].
#[derive(Clone, Debug)]
pub(crate) struct HostSpread<'a> {
    rule: &'a TopologySpreadConstraint,
    namespace: &'a str,
    /// Pods with the constraint, one for each set of nodes that it includes.
    owners: Vec<&'a PodSpec>,
    /// The profiles that it counts, with the number of counted pods that one member of the profile stands for.
    pub weights: BTreeMap<usize, u32>,
    /// The profiles with this constraint.
    pub owned_by: BTreeSet<usize>,
    /// The least count: the pods that it counts on the node with the fewest.
    pub least: u64,
}

/// An existing node or claim, with the pods that constraints may count.
pub(crate) struct Host<'s> {
    /// The value of `kubernetes.io/hostname`.
    pub name: &'s str,
    /// The index of its room, if pods may use it.
    pub room: Option<usize>,
    pub labels: &'s BTreeMap<String, String>,
    pub taints: &'s [Taint],
    pub present: Present,
}

/// A node that can be bought.
pub(crate) struct HostToBuy<'s> {
    pub labels: NewNodeLabels<'s>,
    pub taints: &'s [Taint],
    /// Index into the lists of DaemonSet pods on new nodes.
    pub residents: usize,
}

impl<'a> HostSpread<'a> {
    /// Returns the selector of the pods that it counts.
    pub fn selector(&self) -> Option<&'a [Requirement]> {
        self.rule.selector.as_deref()
    }

    /// Returns its rule.
    pub fn rule(&self) -> &'a TopologySpreadConstraint {
        self.rule
    }

    pub fn new(namespace: &'a str, rule: &'a TopologySpreadConstraint) -> Self {
        let (weights, owned_by) = (BTreeMap::new(), BTreeSet::new());
        Self { rule, namespace, owners: Vec::new(), weights, owned_by, least: 0 }
    }

    /// Registers a pod spec with this constraint. The spec decides which nodes the constraint includes.
    pub fn add_owner(&mut self, spec: &'a PodSpec) {
        let asks = |spec: &PodSpec| {
            let over: BTreeSet<&str> = spec.spreads.iter().map(|rule| rule.topology_key.as_str()).collect();
            over.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let like = |other: &PodSpec| {
            (self.rule.ignore_node_affinity
                || (&other.node_selector, &other.node_affinity) == (&spec.node_selector, &spec.node_affinity))
                && (!self.rule.honor_node_taints || other.tolerations == spec.tolerations)
                && (other.spreads == spec.spreads || asks(other) == asks(spec))
        };
        if !self.owners.iter().any(|other| like(other)) {
            self.owners.push(spec);
        }
    }

    /// Registers a joint profile of these members.
    pub fn add_joint(&mut self, new: usize, members: &[usize]) {
        let weight = members.iter().map(|one| self.weights.get(one).copied().unwrap_or(0)).sum();
        if weight > 0 {
            self.weights.insert(new, weight);
        }
        if members.iter().any(|one| self.owned_by.contains(one)) {
            self.owned_by.insert(new);
        }
    }

    /// Returns whether it counts a pod.
    pub fn counts(&self, pod: Identity<'_>) -> bool {
        counts(self.rule, self.namespace, pod)
    }

    /// Returns the number of counted pods that a node may hold.
    pub fn ceiling(&self) -> u64 {
        self.least + u64::from(self.rule.max_skew)
    }

    /// Returns the number of these pods that it counts.
    pub fn count(&self, present: &Present) -> u64 {
        let counted = present.iter().filter_map(|(profile, count)| Some((self.weights.get(profile)?, count)));
        counted.map(|(weight, count)| u64::from(*weight) * u64::from(*count)).sum()
    }

    /// Returns the number of pods that it counts for one member of a profile.
    pub fn weight(&self, profile: usize) -> u64 {
        self.weights.get(&profile).copied().map_or(0, u64::from)
    }

    /// Returns whether an owner of the constraint is among these pods.
    pub fn is_owned_among(&self, present: &Present) -> bool {
        present.keys().any(|profile| self.owned_by.contains(profile))
    }

    /// Returns whether two counted owners of different profiles may share a node.
    pub fn is_shared(&self) -> bool {
        self.ceiling() > 1
    }

    /// Computes the least count over new nodes, which start with one of `residents`, and existing nodes. `hosts` returns the
    /// existing nodes and is called only if needed.
    pub fn find_least<'b, 't, 'h: 't>(
        &self,
        to_buy: impl Iterator<Item = HostToBuy<'b>> + Clone,
        residents: &[Present],
        hosts: impl Fn() -> &'t [Host<'h>],
    ) -> u64 {
        let mut least = u64::MAX;
        for owner in &self.owners {
            let least_to_buy = self.least_to_buy(owner, to_buy.clone(), residents);
            least = least.min(least_to_buy.unwrap_or(u64::MAX));
            if least == 0 {
                break;
            }
            let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
            for host in hosts().iter().filter(|host| self.includes(owner, host.labels, host.taints)) {
                *counts.entry(host.name).or_default() += self.count(&host.present);
            }
            let few = self.rule.min_domains.is_some_and(|wanted| counts.len() < wanted as usize);
            // If the constraint includes no existing node, the first new node has the least count.
            let there = counts.values().copied().min().unwrap_or(u64::MAX);
            let alone = least_to_buy.is_none() && counts.len() == 1;
            least = match (few, alone) {
                (true, _) => 0,
                (false, true) => least.min(UNLIMITED),
                (false, false) => least.min(there),
            };
        }
        if least == u64::MAX { 0 } else { least }
    }

    /// Returns the least count over new nodes; `None` if none can be bought.
    fn least_to_buy<'t>(
        &self,
        owner: &PodSpec,
        to_buy: impl Iterator<Item = HostToBuy<'t>>,
        residents: &[Present],
    ) -> Option<u64> {
        let counts: Vec<u64> = residents.iter().map(|residents| self.count(residents)).collect();
        let mut least = None;
        for host in to_buy {
            let count = counts[host.residents];
            if least.is_none_or(|least| count < least) && self.includes(owner, &host.labels, host.taints) {
                least = Some(count);
            }
            if least == Some(0) {
                break;
            }
        }
        least
    }

    /// Returns whether the constraint of this owner includes a node.
    pub fn includes(&self, owner: &PodSpec, labels: &impl Labels, taints: &[Taint]) -> bool {
        let mut over = owner.spreads.iter().map(|rule| rule.topology_key.as_str());
        over.all(|key| key == HOSTNAME || labels.label(key).is_some())
            && includes(self.rule, owner, labels, taints)
    }
}
