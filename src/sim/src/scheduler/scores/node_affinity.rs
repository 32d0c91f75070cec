//! `NodeAffinity`: prefers nodes that match the preferred affinity of the pod and of its scheduler profile.

use poolwright_core::rules::check_affinity;

use super::super::attempt::Attempt;
use super::super::cluster::{NodeInfo, NodeLabels};
use super::normalize;

pub(super) fn scores(attempt: &Attempt<'_>, nodes: &[&NodeInfo]) -> Vec<i64> {
    if attempt.preferred.is_empty() {
        return Vec::new();
    }
    let met = |at: &&NodeInfo| {
        let labels = NodeLabels(&at.node);
        let is_met = |term| check_affinity(Some(std::slice::from_ref(term)), &labels).is_ok();
        let met = attempt.preferred.iter().filter(|preference| is_met(&preference.term));
        met.map(|preference| i64::from(preference.weight)).sum()
    };
    let mut scores: Vec<i64> = nodes.iter().map(met).collect();
    normalize(&mut scores, false);
    scores
}
