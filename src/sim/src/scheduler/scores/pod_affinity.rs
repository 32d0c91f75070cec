//! `InterPodAffinity`: prefers nodes near the pods that this pod prefers, and near pods that prefer this one.
//!
//! Facts: interpodaffinity/scoring.go.

use std::collections::BTreeMap;

use poolwright_core::rules::{Identity, selects};
use poolwright_core::{Pod, PodAffinityTerm, Weighted};

use super::super::cluster::{Cluster, Filed, NodeInfo};
use super::super::filters::near;
use super::super::looks::Asking;
use super::MOST;

/// The weight of another pod's required affinity (`hardPodAffinityWeight`).
const REQUIRED: i64 = 1;

/// Sums of weights, by topology label and value.
type Weights<'a> = BTreeMap<&'a str, BTreeMap<&'a str, i64>>;

pub(super) fn scores(cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo]) -> Vec<i64> {
    let weights = weights(cluster, pod);
    if weights.is_empty() {
        return Vec::new();
    }
    let sum = |at: &&NodeInfo| {
        let of = |(key, values): (&&str, &BTreeMap<&str, i64>)| {
            let value = at.node.labels.get(*key)?;
            values.get(value.as_str()).copied()
        };
        weights.iter().filter_map(of).sum()
    };
    let sums: Vec<i64> = nodes.iter().map(sum).collect();
    let (Some(least), Some(most)) = (sums.iter().min(), sums.iter().max()) else { return Vec::new() };
    let range = most - least;
    let score = |sum: &i64| if range == 0 { 0 } else { MOST * (sum - least) / range };
    sums.iter().map(score).collect()
}

fn weights<'a>(cluster: &'a Cluster, pod: &'a Pod) -> Weights<'a> {
    let namespaces = &cluster.around.namespaces;
    let newcomer = Identity::of_pod(pod, namespaces);
    let likes = |pod: &'a Pod| {
        let preferences = pod.spec.preferences.as_deref();
        let to = preferences.map(|preferences| preferences.affinity.as_slice()).unwrap_or_default();
        let from = preferences.map(|preferences| preferences.anti_affinity.as_slice()).unwrap_or_default();
        let weight = |preference: &'a Weighted<PodAffinityTerm>, sign: i64| {
            (&preference.term, sign * i64::from(preference.weight))
        };
        let to = to.iter().map(move |preference| weight(preference, 1));
        to.chain(from.iter().map(move |preference| weight(preference, -1)))
    };
    let mut weights = Weights::new();
    let mut add = |at: &'a NodeInfo, term: &'a PodAffinityTerm, weight| {
        if let Some((key, value)) = near(at, term) {
            *weights.entry(key).or_default().entry(value).or_default() += weight;
        }
    };
    for (term, weight) in likes(pod) {
        let meets = |other: &Pod| selects(term, Identity::of_pod(other, namespaces));
        let mut meets = Asking::new(&cluster.looks, meets);
        for at in cluster.nodes() {
            let met = at.pods.iter().filter(|other| meets.holds(other.look)).count() as i64;
            if met > 0 {
                add(at, term, weight * met);
            }
        }
    }
    for at in cluster.nodes() {
        for Filed { pod: other, .. } in &at.with_affinity {
            let required = other.spec.affinity.iter().map(|term| (term, REQUIRED));
            for (term, weight) in required.chain(likes(other)).filter(|(term, _)| selects(term, newcomer)) {
                add(at, term, weight);
            }
        }
    }
    weights
}
