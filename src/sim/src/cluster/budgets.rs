//! The disruption controller: says how many pods of each PodDisruptionBudget may be evicted. A pod is healthy here if it is on a node
//! and not being deleted.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use poolwright_core::rules::matches;
use poolwright_core::{
    BudgetLimit, BudgetSelector, CountOrPercent, Pod, PodDisruptionBudget, PodKey, PodPhase,
};
use serde_json::{Value, json};

use super::Cluster;
use crate::scheduler::needed;

/// Returns the path of the budgets of a namespace.
pub(super) fn budgets(namespace: &str) -> String {
    format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets")
}

/// A stored budget.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    rule: PodDisruptionBudget,
    /// The number of pods that the controllers of its pods want.
    expected: u64,
    /// Whether all these controllers can be scaled. Jobs cannot, so Kubernetes does not know how many pods a percentage or a maximum of
    /// unavailable pods leaves.
    is_scaled: bool,
    healthy: BTreeSet<PodKey>,
}

impl Budget {
    fn selects(&self, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
        let BudgetSelector::Pods(all) = &self.rule.selector else { return false };
        self.rule.key.namespace == namespace && all.iter().all(|wanted| matches(wanted, labels))
    }

    fn status(&self) -> Value {
        let is_known = match self.rule.limit {
            None => false,
            Some(BudgetLimit::MinAvailable(CountOrPercent::Count(_))) => true,
            Some(_) => self.is_scaled,
        };
        let (desired, healthy) = (needed(self.rule.limit, self.expected), self.healthy.len() as u64);
        let allowed = if is_known { healthy.saturating_sub(desired) } else { 0 };
        json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": healthy,
            "desiredHealthy": desired, "expectedPods": self.expected, "disruptedPods": null})
    }
}

impl Cluster {
    /// Keeps a stored budget. It counts the pods of all Jobs and ReplicaSets that exist or will arrive.
    pub(super) fn add_budget(&mut self, rule: PodDisruptionBudget) {
        let mut budget = Budget { rule, expected: 0, is_scaled: true, healthy: BTreeSet::new() };
        for job in &self.jobs {
            if budget.selects(&job.plan.namespace, &job.labels()) {
                budget.expected += u64::from(job.plan.pods);
                budget.is_scaled &= job.plan.is_set;
            }
        }
        self.budgets.push(budget);
    }

    /// Updates the status of the budgets that select a pod, after the pod changed or was deleted.
    pub(super) fn reckon(&mut self, pod: &Pod, exists: bool) {
        let is_bound = matches!(pod.phase, PodPhase::Bound { .. });
        let is_healthy = exists && is_bound && pod.deleting_since.is_none();
        let mut told = Vec::new();
        for budget in &mut self.budgets {
            if !budget.selects(pod.key.namespace(), &pod.labels) {
                continue;
            }
            if is_healthy {
                budget.healthy.insert(pod.key.clone());
            } else {
                budget.healthy.remove(&pod.key);
            }
            let key = &budget.rule.key;
            told.push((format!("{}/{}/status", budgets(&key.namespace), key.name), budget.status()));
        }
        for (path, status) in told {
            self.ask(&Method::PATCH, &path, &json!({"status": status}));
        }
    }
}
