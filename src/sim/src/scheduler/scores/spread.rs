//! `PodTopologySpread`: prefers nodes in places with few such pods (`ScheduleAnyway`, and the scheduler's defaults).
//!
//! Facts: podtopologyspread/scoring.go.

use std::collections::BTreeMap;

use poolwright_core::TopologySpreadConstraint;
use poolwright_terms::labels::HOSTNAME;

use super::super::attempt::Attempt;
use super::super::cluster::{Cluster, NodeInfo};
use super::super::filters::{counting, has_all, pods_of};
use super::MOST;
use super::logarithm::{BITS, ln};

/// One half with [`BITS`] fractional bits.
const HALF: u128 = 1 << (BITS - 1);

/// A constraint, and the places of the nodes that fit.
struct Counted<'a> {
    rule: &'a TopologySpreadConstraint,
    /// Pods by value of the topology label. For the hostname, each node is counted directly.
    places: BTreeMap<&'a str, i64>,
    /// The weight of one pod. It grows with the number of places.
    weight: u64,
}

pub(super) fn scores(cluster: &Cluster, attempt: &Attempt<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    if attempt.preferred_spreads.is_empty() {
        return Vec::new();
    }
    let counts = |at: &NodeInfo| attempt.built_in || has_all(at, &attempt.preferred_spreads);
    let is_scored: Vec<bool> = nodes.iter().map(|at| counts(at)).collect();
    let scored: Vec<&NodeInfo> =
        nodes.iter().zip(&is_scored).filter(|(_, scored)| **scored).map(|(at, _)| *at).collect();
    let rules: Vec<Counted<'_>> = attempt
        .preferred_spreads
        .iter()
        .map(|rule| placed(cluster, attempt, rule, &scored, &counts))
        .collect();
    let mut sums = vec![0; scored.len()];
    for rule in &rules {
        rule.add(cluster, attempt, &scored, &mut sums);
    }
    let sums: Vec<i64> = sums.into_iter().map(|sum: u128| ((sum + HALF) >> BITS) as i64).collect();
    let (least, most) = (sums.iter().copied().min().unwrap_or(0), sums.iter().copied().max().unwrap_or(0));
    let mut left = sums.into_iter();
    let mut score = |scored: &bool| match scored.then(|| left.next()).flatten() {
        None => 0,
        Some(_) if most == 0 => MOST,
        Some(sum) => MOST * (most + least - sum) / most,
    };
    is_scored.iter().map(&mut score).collect()
}

fn placed<'a>(
    cluster: &'a Cluster,
    attempt: &Attempt<'_>,
    rule: &'a TopologySpreadConstraint,
    scored: &[&'a NodeInfo],
    counts: &impl Fn(&NodeInfo) -> bool,
) -> Counted<'a> {
    if rule.topology_key == HOSTNAME {
        return Counted { rule, places: BTreeMap::new(), weight: ln(scored.len() as u64 + 2) };
    }
    // Like the scheduler, treats a missing label as a value of its own.
    let value = |at: &'a NodeInfo| at.node.labels.get(&rule.topology_key).map_or("", String::as_str);
    let mut places: BTreeMap<&str, i64> = scored.iter().map(|at| (value(at), 0)).collect();
    let mut counting = counting(cluster, attempt.pod, rule);
    for at in cluster.nodes().iter().filter(|at| counts(at) && attempt.counts_node(rule, &at.node)) {
        if let Some(count) = places.get_mut(value(at)) {
            *count += pods_of(&mut counting, at);
        }
    }
    let weight = ln(places.len() as u64 + 2);
    Counted { rule, places, weight }
}

impl Counted<'_> {
    /// Adds the weighted pods at each node's place, with [`BITS`] fractional bits.
    fn add(&self, cluster: &Cluster, attempt: &Attempt<'_>, nodes: &[&NodeInfo], sums: &mut [u128]) {
        let is_host = self.rule.topology_key == HOSTNAME;
        let mut counting = counting(cluster, attempt.pod, self.rule);
        for (at, sum) in nodes.iter().zip(sums) {
            let Some(value) = at.node.labels.get(&self.rule.topology_key) else { continue };
            let there = || self.places.get(value.as_str()).copied().unwrap_or(0);
            let count = if is_host { pods_of(&mut counting, at) } else { there() };
            *sum += count as u128 * u128::from(self.weight);
            *sum += u128::from(self.rule.max_skew.saturating_sub(1)) << BITS;
        }
    }
}
