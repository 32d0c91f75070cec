//! Topology spread over zones and other labels that several nodes share: counts the pods in each domain, and decides whether a
//! domain may get one more.

use std::collections::BTreeSet;

use poolwright_terms::Taint;

use crate::model::{PodSpec, TopologySpreadConstraint};
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::spread::constraint::{counts, includes};

/// A constraint over such domains, shared by pods of one namespace with the same node requirements.
#[derive(Debug)]
pub(crate) struct DomainSpread<'a> {
    pub rule: &'a TopologySpreadConstraint,
    pub namespace: &'a str,
    /// The spec of a pod with the constraint, which decides which nodes count.
    pub owner: &'a PodSpec,
    /// The number of the topology key.
    pub key: usize,
    /// The topology keys of all constraints of the owner. A node without one of these labels does not count.
    pub needs: Vec<usize>,
}

impl DomainSpread<'_> {
    /// Returns whether the constraint counts a pod.
    pub fn counts(&self, pod: Identity<'_>) -> bool {
        counts(self.rule, self.namespace, pod)
    }

    /// Returns whether the constraint counts the pods of a node. `has` says whether the node has a value of a topology key.
    pub fn includes(&self, has: impl Fn(usize) -> bool, labels: &impl Labels, taints: &[Taint]) -> bool {
        self.needs.iter().all(|key| has(*key)) && includes(self.rule, self.owner, labels, taints)
    }
}

/// The pods that one constraint counts, by domain.
#[derive(Clone, Debug)]
pub(crate) struct DomainCounts {
    pods: Vec<u64>,
    /// Whether each domain exists, which means that a node has this value or will have it.
    exists: Vec<bool>,
}

impl DomainCounts {
    /// Creates counts for this number of domains, none of which exists yet.
    pub fn new(domains: usize) -> Self {
        Self { pods: vec![0; domains], exists: vec![false; domains] }
    }

    /// Creates counts for domains that all exist, with these numbers of pods.
    pub fn of(pods: impl Iterator<Item = u64>) -> Self {
        let pods: Vec<u64> = pods.collect();
        Self { exists: vec![true; pods.len()], pods }
    }

    /// Adds a domain that exists or will exist.
    pub fn open(&mut self, domain: usize) {
        self.exists[domain] = true;
    }

    /// Returns whether a domain exists.
    pub fn exists(&self, domain: usize) -> bool {
        self.exists[domain]
    }

    /// Adds pods to a domain.
    pub fn add(&mut self, domain: usize, pods: u64) {
        self.pods[domain] += pods;
    }

    /// Returns the number of pods in a domain.
    pub fn count(&self, domain: usize) -> u64 {
        self.pods[domain]
    }

    /// Returns the number of pods in each domain that exists.
    pub fn existing(&self) -> impl Iterator<Item = (usize, u64)> {
        self.pods.iter().copied().enumerate().filter(|(domain, _)| self.exists[*domain])
    }

    /// Returns the number of pods in the domain with the fewest; zero if fewer than `min_domains` domains exist.
    fn least(&self, min_domains: Option<u32>) -> u64 {
        let few = min_domains.is_some_and(|wanted| self.existing().count() < wanted as usize);
        if few { 0 } else { self.existing().map(|(_, pods)| pods).min().unwrap_or(0) }
    }

    /// Returns whether a domain may get one more pod. `counts_itself` says whether the constraint counts that pod.
    pub fn admits(
        &self,
        domain: usize,
        counts_itself: bool,
        max_skew: u32,
        min_domains: Option<u32>,
    ) -> bool {
        self.count(domain) + u64::from(counts_itself) <= self.least(min_domains) + u64::from(max_skew)
    }

    /// Returns these counts without some of the domains.
    pub fn without(&self, domains: &BTreeSet<usize>) -> Self {
        let mut rest = self.clone();
        for domain in domains {
            rest.exists[*domain] = false;
        }
        rest
    }

    /// Returns whether the constraint is kept, however this number of further pods is distributed.
    pub fn admits_anywhere(&self, pods: u64, max_skew: u32) -> bool {
        let most = self.pods.iter().copied().max().unwrap_or(0) + pods;
        most - self.least(None) <= u64::from(max_skew)
    }
}
