//! Whether the API server evicts a pod now (`pkg/registry/core/pod/storage/eviction.go` in Kubernetes).

use crate::model::{Pod, PodDisruptionBudget, PodHealth, PodPhase};
use crate::rules::format::list;

/// Why the API server refuses to evict a pod that several budgets select.
pub(crate) const OF_SEVERAL: &str = "the API server never evicts a pod of two budgets";

/// The most budgets that are named.
const NAMED: usize = 3;

/// What PodDisruptionBudgets mean for the eviction of a pod now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction<'a> {
    /// No budget counts.
    Free,
    /// It takes one of the disruptions that this budget allows.
    Takes(&'a PodDisruptionBudget),
    /// The API server refuses it until only one of these budgets selects the pod.
    Never(Vec<&'a PodDisruptionBudget>),
}

impl<'a> Eviction<'a> {
    /// Returns what these budgets mean for a pod. They are all the budgets that select it.
    pub fn of(pod: &Pod, selecting: impl IntoIterator<Item = &'a PodDisruptionBudget>) -> Self {
        let ends_alone = pod.deleting_since.is_some() || pod.phase == PodPhase::Finished;
        if ends_alone || pod.health == PodHealth::Pending {
            return Self::Free;
        }
        let selecting: Vec<&PodDisruptionBudget> = selecting.into_iter().collect();
        if exclude_each_other(selecting.len()) {
            return Self::Never(selecting);
        }
        match selecting.first().copied() {
            None => Self::Free,
            Some(budget) if pod.health == PodHealth::NotReady && budget.unhealthy.may_be_evicted() => {
                Self::Free
            }
            Some(budget) => Self::Takes(budget),
        }
    }

    /// Describes why the API server never evicts the pod, with the remedy; `None` if it may.
    pub(crate) fn never(&self, pod: &Pod) -> Option<String> {
        let Self::Never(budgets) = self else { return None };
        let names: Vec<String> = budgets.iter().map(|budget| budget.key.to_string()).collect();
        Some(format!(
            "PodDisruptionBudgets {} select pod {}, and {OF_SEVERAL}; let only one budget select it",
            list(&names, NAMED),
            pod.key
        ))
    }
}

/// Returns whether so many budgets keep the API server from evicting a pod that they select.
pub(crate) const fn exclude_each_other(budgets: usize) -> bool {
    budgets > 1
}
