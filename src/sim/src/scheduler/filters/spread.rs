//! `PodTopologySpread`: limits the skew between places (`DoNotSchedule`).
//!
//! Written after podtopologyspread/filtering.go, over all nodes. It shares no counting code with the planner, so each is a second
//! opinion on the other.

use std::collections::BTreeMap;

use poolwright_core::{Pod, TopologySpreadConstraint};

use super::super::attempt::{Attempt, counts};
use super::super::cluster::{Cluster, Filed, NodeInfo};
use super::super::looks::Asking;
use super::super::reason::{Fits, Reason, Unfit};

/// The number of pods per place, for each constraint of one pod.
#[derive(Clone)]
pub(super) struct Spread<'a> {
    rules: Vec<Counted<'a>>,
}

#[derive(Clone)]
struct Counted<'a> {
    rule: &'a TopologySpreadConstraint,
    /// 1 if the constraint counts the pod itself, else 0.
    own: i64,
    /// Pods by value of the topology label, on the nodes that count.
    places: BTreeMap<&'a str, i64>,
}

impl<'a> Spread<'a> {
    pub fn new(cluster: &'a Cluster, attempt: &'a Attempt<'a>) -> Self {
        let new = |rule: &'a TopologySpreadConstraint| Counted {
            rule,
            own: i64::from(counts(rule, &attempt.pod.labels)),
            places: BTreeMap::new(),
        };
        let mut spread = Self { rules: attempt.spreads.iter().map(new).collect() };
        if spread.rules.is_empty() {
            return spread;
        }
        let nodes: Vec<&NodeInfo> =
            cluster.nodes().iter().filter(|at| has_all(at, &attempt.spreads)).collect();
        for Counted { rule, places, .. } in &mut spread.rules {
            let mut counting = counting(cluster, attempt.pod, rule);
            for at in nodes.iter().filter(|at| attempt.counts_node(rule, &at.node)) {
                let value = at.node.labels[&rule.topology_key].as_str();
                *places.entry(value).or_default() += pods_of(&mut counting, at);
            }
        }
        spread
    }

    /// Adds or removes a pod. Like the kube-scheduler, counts pods that are being deleted here.
    pub fn update(&mut self, attempt: &Attempt<'_>, pod: &Pod, at: &'a NodeInfo, by: i64) {
        if pod.key.namespace() != attempt.pod.key.namespace() || !has_all(at, &attempt.spreads) {
            return;
        }
        for of in &mut self.rules {
            if counts(of.rule, &pod.labels) && attempt.counts_node(of.rule, &at.node) {
                *of.places.entry(at.node.labels[&of.rule.topology_key].as_str()).or_default() += by;
            }
        }
    }

    pub fn check(&self, at: &NodeInfo) -> Fits {
        for Counted { rule, own, places } in &self.rules {
            let Some(value) = at.node.labels.get(&rule.topology_key) else {
                return Err(Unfit::unresolvable(Reason::SpreadLabel));
            };
            let few = places.len() < rule.min_domains.unwrap_or(1) as usize;
            let least = if few { 0 } else { places.values().copied().min().unwrap_or(0) };
            let there = places.get(value.as_str()).copied().unwrap_or(0);
            if there + own - least > i64::from(rule.max_skew) {
                return Err(Unfit::resolvable(Reason::Spread));
            }
        }
        Ok(())
    }
}

/// Returns whether a node has the labels of all constraints. A node that lacks one counts for none of them.
pub(in super::super) fn has_all(at: &NodeInfo, rules: &[TopologySpreadConstraint]) -> bool {
    rules.iter().all(|rule| at.node.labels.contains_key(&rule.topology_key))
}

/// Selects the pods that a constraint of this pod counts.
pub(in super::super) fn counting<'a>(
    cluster: &'a Cluster,
    of: &Pod,
    rule: &TopologySpreadConstraint,
) -> Asking<'a, impl Fn(&'a Pod) -> bool> {
    Asking::new(&cluster.looks, |pod: &Pod| {
        pod.key.namespace() == of.key.namespace() && counts(rule, &pod.labels)
    })
}

/// Returns the number of selected pods on a node that are not being deleted.
pub(in super::super) fn pods_of<'a>(
    counting: &mut Asking<'a, impl Fn(&'a Pod) -> bool>,
    at: &NodeInfo,
) -> i64 {
    let counted = |filed: &&Filed| filed.pod.deleting_since.is_none() && counting.holds(filed.look);
    at.pods.iter().filter(counted).count() as i64
}
