//! PodDisruptionBudgets in the index. No plan depends on them.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{ObjectKey, PodDisruptionBudget};

impl ClusterIndex {
    /// Adds or replaces a PodDisruptionBudget.
    pub fn apply_budget(&mut self, budget: PodDisruptionBudget) -> Change {
        put(&mut self.state.budgets, budget.key.clone(), budget).min(Change::Life)
    }

    /// Removes a PodDisruptionBudget.
    pub fn delete_budget(&mut self, key: &ObjectKey) -> Change {
        self.state.budgets.remove(key).map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all PodDisruptionBudgets.
    pub fn reset_budgets(&mut self, all: impl IntoIterator<Item = PodDisruptionBudget>) -> Change {
        reset(&mut self.state.budgets, all, |budget| budget.key.clone()).min(Change::Life)
    }
}
