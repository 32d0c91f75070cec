//! The loop that warns of PodDisruptionBudgets that can never be met, with events on the budget and some of its pods. It warns
//! once for each budget and spec.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::rules::budgets::{UnmeetableBudget, never_met};
use poolwright_core::{EventType, ObjectKey, PodKey, PodPhase, PodRole, Snapshot, Subject, Uid};
use poolwright_terms::Reason;

use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::Executor;
use crate::executor::context::Context;

/// The most pods that get an event about one budget. The explanation of every affected pod mentions the budget.
const PODS_TOLD: usize = 10;
/// The reason of these events.
const REASON: Reason = Reason::BudgetNeverMet;

/// The loop that warns of PodDisruptionBudgets that can never be met.
pub struct BudgetWarnings {
    context: Context,
    executor: Arc<Executor>,
    told: Told,
}

impl BudgetWarnings {
    /// Creates a loop that has not warned yet.
    pub fn new(context: Context, executor: Arc<Executor>) -> Self {
        Self { context, executor, told: Told::default() }
    }
}

impl LeaderLoop for BudgetWarnings {
    const NAME: &'static str = "warning of budgets";
    // Every pod that is created or deleted may change what budgets select.
    const PAUSE: Duration = Duration::from_secs(5);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        let snapshot = self.context.world.snapshot();
        for (found, pods) in self.told.news(&snapshot, never_met(&snapshot)) {
            let subject = Subject::PodDisruptionBudget(found.budget.clone());
            let say = |subject: &Subject, message: &str| {
                self.executor.record_event(subject, EventType::Warning, REASON, message);
            };
            say(&subject, &format!("it can never be met: {}", found.message));
            for pod in pods {
                say(&Subject::Pod(pod), &found.to_string());
            }
        }
        None
    }
}

/// Warnings so far: the invalid fields of each budget.
#[derive(Default)]
struct Told(BTreeMap<Uid, BTreeSet<String>>);

impl Told {
    /// Returns new warnings, with the pods to record them on.
    fn news(
        &mut self,
        snapshot: &Snapshot,
        found: Vec<UnmeetableBudget>,
    ) -> Vec<(UnmeetableBudget, Vec<ObjectKey>)> {
        let uids: BTreeSet<&Uid> = snapshot.budgets.values().map(|budget| &budget.uid).collect();
        self.0.retain(|uid, _| uids.contains(uid));
        let is_new = |one: &UnmeetableBudget| {
            let Some(budget) = snapshot.budgets.get(&one.budget) else { return false };
            self.0.entry(budget.uid.clone()).or_default().insert(one.field.clone())
        };
        let new: Vec<UnmeetableBudget> = found.into_iter().filter(is_new).collect();
        let ours: BTreeSet<&str> =
            snapshot.claims.values().filter_map(|claim| claim.node_name.as_deref()).collect();
        // Pods that Poolwright plans for, and pods on its nodes.
        let concerns = |key: &&PodKey| {
            snapshot.pods.get(*key).is_some_and(|pod| match &pod.phase {
                PodPhase::Bound { node } => ours.contains(node.as_str()),
                PodPhase::Unschedulable { .. } => true,
                _ => false,
            } && pod.role == PodRole::Workload)
        };
        let with_pods = |one: UnmeetableBudget| {
            let pods = one
                .pods
                .iter()
                .filter(concerns)
                .filter_map(PodKey::existing)
                .take(PODS_TOLD)
                .cloned()
                .collect();
            (one, pods)
        };
        new.into_iter().map(with_pods).collect()
    }
}

#[cfg(test)]
mod tests {
    use poolwright_core::{BudgetLimit, BudgetSelector, CountOrPercent, PodDisruptionBudget, UnhealthyPods};

    use super::*;

    fn snapshot(pods: usize, uid: &str) -> Snapshot {
        let key = ObjectKey::new("default", "web");
        let budget = PodDisruptionBudget {
            key: key.clone(),
            uid: Uid(uid.to_owned()),
            selector: BudgetSelector::Pods(vec![]),
            limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(0))),
            expected: 0,
            allowed: None,
            failure: None,
            unhealthy: UnhealthyPods::default(),
        };
        let mut snapshot = Snapshot::default();
        snapshot.budgets.insert(key, budget.into());
        for at in 0..pods {
            let object = serde_json::json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": format!("p{at}"), "namespace": "default", "uid": format!("p{at}")},
                "spec": {"containers": [{"name": "main", "image": "x"}]},
                "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}});
            let pod = poolwright_intake::pod(&serde_json::from_value(object).unwrap()).unwrap();
            snapshot.pods.insert(pod.key.clone(), pod.into());
        }
        snapshot
    }

    #[test]
    fn a_budget_is_told_once_whatever_its_pods_do_and_only_some_of_them_are() {
        let mut told = Told::default();
        let mut news = |snapshot: &Snapshot| told.news(snapshot, never_met(snapshot));
        let first = news(&snapshot(1000, "a"));
        assert_eq!((first.len(), first[0].1.len()), (1, PODS_TOLD));
        assert!(news(&snapshot(1001, "a")).is_empty(), "another pod is no news");
        assert_eq!(news(&snapshot(1, "b")).len(), 1, "a budget made anew is");
        assert!(news(&Snapshot::default()).is_empty());
    }
}
