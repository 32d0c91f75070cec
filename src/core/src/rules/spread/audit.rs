//! The audit of topology spread checks whether a finished plan keeps a constraint. Pods are counted again on all existing and new
//! nodes. The audit shares only the counting rules with the code that chose the places.

use std::collections::BTreeMap;

use crate::model::PodKey;
use crate::model::TopologySpreadConstraint;
use crate::rules::spread::messages;

/// A planned pod with the constraint.
pub(crate) struct Planned<'a> {
    pub pod: &'a PodKey,
    /// The value of the topology key on its node.
    pub domain: Option<&'a str>,
    /// Whether the constraint counts the pod itself.
    pub is_counted: bool,
}

/// Returns the planned pods that violate a constraint, each with a message. `nodes` are the nodes that the constraint includes,
/// each with its domain and the number of counted pods.
pub(crate) fn violations<'a>(
    rule: &TopologySpreadConstraint,
    nodes: impl Iterator<Item = (&'a str, u64)>,
    planned: &[Planned<'a>],
) -> Vec<(PodKey, String)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (domain, pods) in nodes {
        *counts.entry(domain).or_default() += pods;
    }
    let few = rule.min_domains.is_some_and(|wanted| counts.len() < wanted as usize);
    let least = if few { 0 } else { counts.values().copied().min().unwrap_or(0) };
    let ceiling = least + u64::from(rule.max_skew);
    let mut excess: BTreeMap<&str, u64> =
        counts.iter().map(|(domain, count)| (*domain, count.saturating_sub(ceiling))).collect();
    let mut found = Vec::new();
    // If a domain has too many pods, the last of them are reported.
    for one in planned.iter().rev() {
        let Some(domain) = one.domain else {
            found.push((one.pod.clone(), messages::no_label(rule)));
            continue;
        };
        let over = excess.entry(domain).or_default();
        if *over > 0 {
            let count = counts.get(domain).copied().unwrap_or(0);
            found.push((one.pod.clone(), messages::too_many(rule, domain, count, least, few)));
            // A pod that its own constraint does not count does not reduce the excess.
            *over -= u64::from(one.is_counted);
        }
    }
    found
}
