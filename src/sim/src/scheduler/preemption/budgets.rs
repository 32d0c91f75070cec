//! Finds the pods of a node that a PodDisruptionBudget protects from eviction.

use poolwright_core::rules::matches;
use poolwright_core::{BudgetLimit, BudgetSelector, CountOrPercent, Pod, PodDisruptionBudget};

use super::super::Found;
use super::super::cluster::{Cluster, Filed};

/// The disruptions that each budget still allows, computed like the disruption controller: healthy pods minus required ones. A
/// pod is healthy here if it is on a node and not being deleted.
pub(super) struct Allowed<'a>(Vec<(&'a PodDisruptionBudget, i64)>);

impl<'a> Allowed<'a> {
    pub fn new(cluster: &'a Cluster, found: &Found<'_>) -> Self {
        // No node can be helped by evictions, so nothing is counted.
        if found.unfit.iter().all(|(_, unfit)| !unfit.resolvable) {
            return Self(Vec::new());
        }
        let all = cluster.around.budgets.values().map(AsRef::as_ref);
        Self(all.map(|budget| (budget, allowed(cluster, budget))).collect())
    }

    /// Splits pods into those that a budget protects and the rest, in order. Earlier pods use up the allowed disruptions first.
    pub fn split<'p>(&self, pods: &[&'p Filed]) -> (Vec<&'p Filed>, Vec<&'p Filed>) {
        let mut left: Vec<i64> = self.0.iter().map(|(_, allowed)| *allowed).collect();
        let mut is_protected = |pod: &Pod| {
            let mut violated = false;
            for ((budget, _), left) in self.0.iter().zip(&mut left) {
                if selects(budget, pod) {
                    *left -= 1;
                    violated |= *left < 0;
                }
            }
            violated
        };
        pods.iter().partition(|filed| is_protected(&filed.pod))
    }
}

/// Returns whether a budget selects a pod. A budget with a missing or empty selector protects no pods here, and no budget
/// protects a pod without labels.
fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let BudgetSelector::Pods(all) = &budget.selector else { return false };
    budget.key.namespace == pod.key.namespace()
        && !all.is_empty()
        && !pod.labels.is_empty()
        && all.iter().all(|requirement| matches(requirement, &pod.labels))
}

fn allowed(cluster: &Cluster, budget: &PodDisruptionBudget) -> i64 {
    if budget.failure.is_some() {
        return 0;
    }
    let all = || cluster.nodes().iter().flat_map(|at| &at.pods).map(|filed| &filed.pod);
    let pods = || all().filter(|pod| selects(budget, pod));
    let healthy = pods().filter(|pod| pod.deleting_since.is_none()).count() as i64;
    let needed = needed(budget.limit, budget.expected.max(pods().count() as u64));
    (healthy - i64::try_from(needed).unwrap_or(i64::MAX)).max(0)
}

/// Returns how many of the expected pods must stay healthy.
pub(crate) fn needed(limit: Option<BudgetLimit>, expected: u64) -> u64 {
    let of = |amount: CountOrPercent| match amount {
        CountOrPercent::Count(count) => count,
        CountOrPercent::Percent(percent) => (u128::from(expected) * u128::from(percent)).div_ceil(100) as u64,
    };
    match limit {
        None => 0,
        Some(BudgetLimit::MinAvailable(amount)) => of(amount),
        Some(BudgetLimit::MaxUnavailable(amount)) => expected.saturating_sub(of(amount)),
    }
}
