//! An index of PodDisruptionBudgets, to find those of a pod without a look at each. A tenant can write thousands.

use std::collections::BTreeMap;

use crate::model::{BudgetSelector, ObjectKey, Pod, PodDisruptionBudget, Requirement, Snapshot};
use crate::rules::requirement::matches;
use crate::rules::selector_index::SelectorIndex;

/// The budgets of one namespace.
pub(crate) struct NamespaceBudgets<'a> {
    /// The budgets, by name.
    pub all: Vec<&'a PodDisruptionBudget>,
    selectors: SelectorIndex<'a>,
}

impl<'a> NamespaceBudgets<'a> {
    /// Creates the index of these budgets.
    pub fn new(all: Vec<&'a PodDisruptionBudget>) -> Self {
        Self { selectors: SelectorIndex::new(all.iter().map(|budget| selector(budget))), all }
    }

    /// Returns the budgets that select a pod of the namespace, as ascending indices.
    pub fn of(&self, pod: &Pod) -> impl Iterator<Item = usize> {
        let candidates = self.selectors.candidates(&pod.labels).into_iter();
        candidates.filter(move |at| selects(self.all[*at], pod))
    }
}

/// Returns the budgets of each namespace that has some.
pub(crate) fn by_namespace(snapshot: &Snapshot) -> BTreeMap<&str, NamespaceBudgets<'_>> {
    let mut all: BTreeMap<&str, Vec<&PodDisruptionBudget>> = BTreeMap::new();
    for budget in snapshot.budgets.values() {
        all.entry(&budget.key.namespace).or_default().push(budget);
    }
    all.into_iter().map(|(namespace, budgets)| (namespace, NamespaceBudgets::new(budgets))).collect()
}

/// Returns the budgets that select a pod, by name, without an index of all budgets.
pub(crate) fn of_pod<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Vec<&'a PodDisruptionBudget> {
    let namespace = pod.key.namespace();
    let from = snapshot.budgets.range_from(&ObjectKey::new(namespace, ""));
    let there = from.take_while(|(key, _)| key.namespace == namespace).map(|(_, budget)| budget.as_ref());
    there.filter(|budget| selects(budget, pod)).collect()
}

/// Returns whether a budget selects a pod of its namespace.
fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    selector(budget).is_some_and(|all| all.iter().all(|requirement| matches(requirement, &pod.labels)))
}

/// Returns the requirements of a budget; `None` if it selects no pod.
fn selector(budget: &PodDisruptionBudget) -> Option<&[Requirement]> {
    match &budget.selector {
        BudgetSelector::Pods(all) => Some(all),
        BudgetSelector::Nothing | BudgetSelector::Invalid(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::model::{PodKey, PodSpec, Uid, UnhealthyPods};
    use crate::rules::generated::requirements;

    fn any_selector() -> impl Strategy<Value = BudgetSelector> {
        prop_oneof![
            Just(BudgetSelector::Nothing),
            Just(BudgetSelector::Invalid("spec.selector".into())),
            requirements().prop_map(BudgetSelector::Pods),
        ]
    }

    proptest! {
        #[test]
        fn the_index_finds_the_budgets_of_a_pod_as_a_look_at_each_budget_does(
            selectors in vec(any_selector(), 0..8),
            labels in btree_map("[abc]", "[xyz]", 0..3),
        ) {
            let named = |(at, selector)| PodDisruptionBudget {
                key: ObjectKey::new("default", format!("b{at}")),
                uid: Uid(format!("b{at}")),
                selector,
                limit: None,
                expected: 0,
                allowed: None,
                failure: None,
                unhealthy: UnhealthyPods::default(),
            };
            let budgets: Vec<PodDisruptionBudget> = selectors.into_iter().enumerate().map(named).collect();
            let mut pod = Pod::waiting(PodKey::new("default", "p"), PodSpec::default());
            pod.labels = labels.into();
            let plain: Vec<usize> =
                (0..budgets.len()).filter(|at| selects(&budgets[*at], &pod)).collect();
            let index = NamespaceBudgets::new(budgets.iter().collect());
            prop_assert_eq!(index.of(&pod).collect::<Vec<_>>(), plain);
        }
    }
}
