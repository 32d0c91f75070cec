//! Finds PodDisruptionBudgets that can never be met. Their pods can never be evicted, so the nodes of these pods cannot be
//! drained. Such pods still get nodes, and events tell their owners what to change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::{
    BudgetLimit, BudgetSelector, CountOrPercent, ObjectKey, Pod, PodDisruptionBudget, PodKey, PodPhase,
    Snapshot, Uid, Workload,
};
use crate::rules::budget_index::{NamespaceBudgets, by_namespace, of_pod};
use crate::rules::eviction::{OF_SEVERAL, exclude_each_other};
use crate::rules::format::count;

/// What is said of a budget that can never be met.
pub(crate) const NEVER_ALLOWS: &str = "never allows an eviction";

/// A budget that can never be met.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmeetableBudget {
    /// The budget.
    pub budget: ObjectKey,
    /// The wrong field, with its value.
    pub field: String,
    /// The consequence and the remedy.
    pub message: String,
    /// The pods that may never be evicted; sorted.
    pub pods: Vec<PodKey>,
}

impl fmt::Display for UnmeetableBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PodDisruptionBudget {} {NEVER_ALLOWS}: {}", self.budget, self.message)
    }
}

/// Says that more budgets block an eviction, in a sentence that follows another one; empty if there are none.
pub(crate) fn more_block(more: usize) -> String {
    let block = if more == 1 { "blocks" } else { "block" };
    if more > 0 { format!(" {} {block} it too.", count(more, "more budget")) } else { String::new() }
}

/// Returns every budget that can never be met. Budgets that select no pods are skipped, unless they are invalid.
pub fn never_met(snapshot: &Snapshot) -> Vec<UnmeetableBudget> {
    let all = by_namespace(snapshot);
    if all.is_empty() {
        return Vec::new();
    }
    let workloads = by_uid(snapshot);
    all.into_iter().flat_map(|(name, budgets)| in_namespace(snapshot, name, &budgets, &workloads)).collect()
}

/// Returns the budgets that select this pod and can never be met.
pub fn never_met_of(snapshot: &Snapshot, pod: &Pod) -> Vec<UnmeetableBudget> {
    let namespace = pod.key.namespace();
    let budgets = of_pod(snapshot, pod);
    if budgets.is_empty() {
        return Vec::new();
    }
    let budgets = NamespaceBudgets::new(budgets);
    let mut found = in_namespace(snapshot, namespace, &budgets, &by_uid(snapshot));
    found.retain(|one| one.pods.contains(&pod.key));
    found
}

fn by_uid(snapshot: &Snapshot) -> BTreeMap<&Uid, &Workload> {
    snapshot.workloads.values().map(|workload| (&workload.uid, workload.as_ref())).collect()
}

fn in_namespace(
    snapshot: &Snapshot,
    namespace: &str,
    budgets: &NamespaceBudgets<'_>,
    workloads: &BTreeMap<&Uid, &Workload>,
) -> Vec<UnmeetableBudget> {
    let pods = snapshot
        .pods
        .range_from(&PodKey::new(namespace, ""))
        .take_while(|(key, _)| key.namespace() == namespace)
        .map(|(_, pod)| pod.as_ref())
        .filter(|pod| pod.phase != PodPhase::Finished && pod.deleting_since.is_none());
    let mut of_budget: Vec<Vec<&Pod>> = vec![Vec::new(); budgets.all.len()];
    let mut with_several: BTreeMap<&PodKey, Vec<usize>> = BTreeMap::new();
    for pod in pods {
        let selecting: Vec<usize> = budgets.of(pod).collect();
        for at in &selecting {
            of_budget[*at].push(pod);
        }
        if exclude_each_other(selecting.len()) {
            with_several.insert(&pod.key, selecting);
        }
    }
    // Many pods share the same budgets, so each such set is looked at once.
    let mut beside: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); budgets.all.len()];
    for selecting in with_several.values().collect::<BTreeSet<_>>() {
        for at in selecting {
            beside[*at].extend(selecting.iter().filter(|other| *other != at));
        }
    }
    let mut found = Vec::new();
    for ((budget, chosen), beside) in budgets.all.iter().zip(&of_budget).zip(&beside) {
        let keys = || chosen.iter().map(|pod| pod.key.clone()).collect();
        let mut add = |field: String, message: String, pods: Vec<PodKey>| {
            found.push(UnmeetableBudget { budget: budget.key.clone(), field, message, pods });
        };
        if let Some((field, message)) = by_itself(budget, chosen, workloads) {
            add(field, message, keys());
            continue;
        }
        let shared: Vec<&PodKey> =
            chosen.iter().map(|pod| &pod.key).filter(|key| with_several.contains_key(*key)).collect();
        if let Some(first) = shared.first() {
            let others: Vec<&str> =
                beside.iter().map(|other| budgets.all[*other].key.name.as_str()).collect();
            let others = others.join(", ");
            let message = format!(
                "spec.selector selects pods that {others} selects too, such as {first}, and {OF_SEVERAL}; let only one budget select them"
            );
            add(format!("spec.selector, as {others}"), message, shared.into_iter().cloned().collect());
        }
    }
    found
}

/// Returns the wrong field with its value, and the message, if the budget can never be met even without regard to other budgets.
fn by_itself(
    budget: &PodDisruptionBudget,
    chosen: &[&Pod],
    workloads: &BTreeMap<&Uid, &Workload>,
) -> Option<(String, String)> {
    if let BudgetSelector::Invalid(field) = &budget.selector {
        let message = format!(
            "{field} is invalid, so the budget protects no pod; use In, NotIn, Exists or DoesNotExist with matching values"
        );
        return Some((field.clone(), message));
    }
    if chosen.is_empty() {
        return None;
    }
    let expected = expected(chosen, workloads).max(budget.expected);
    let while_ready = if budget.unhealthy.always_allowed { " while it is ready" } else { "" };
    let none = match expected {
        1 => format!("its only pod may never be evicted{while_ready}"),
        more => format!("none of its {more} pods may ever be evicted{while_ready}"),
    };
    let (field, follows) = match budget.limit? {
        BudgetLimit::MaxUnavailable(amount @ (CountOrPercent::Count(0) | CountOrPercent::Percent(0))) => {
            (format!("spec.maxUnavailable is {}", said(amount)), format!("{none}; raise it to at least 1"))
        }
        BudgetLimit::MinAvailable(amount) if at_least(amount, expected) >= expected => {
            let first = if expected == 1 { "run a second one" } else { "lower it" };
            (
                format!("spec.minAvailable is {}", said(amount)),
                format!("{none}; {first}, or write maxUnavailable: 1 instead"),
            )
        }
        _ => return failed(budget, &none),
    };
    let message = format!("{field}, so {follows}");
    Some((field, message))
}

/// Returns the number of pods that must stay healthy.
fn at_least(amount: CountOrPercent, expected: u64) -> u64 {
    match amount {
        CountOrPercent::Count(count) => count,
        CountOrPercent::Percent(percent) => {
            let least = (u128::from(expected) * u128::from(percent)).div_ceil(100);
            u64::try_from(least).unwrap_or(u64::MAX)
        }
    }
}

fn failed(budget: &PodDisruptionBudget, none: &str) -> Option<(String, String)> {
    let why = budget.failure.as_deref()?.trim_end_matches('.');
    let message = format!(
        "the disruption controller cannot compute it ({why}), so {none}; use spec.minAvailable with a number for pods without a controller"
    );
    Some((format!("status: {why}"), message))
}

fn said(amount: CountOrPercent) -> String {
    match amount {
        CountOrPercent::Count(count) => count.to_string(),
        CountOrPercent::Percent(percent) => format!("{percent}%"),
    }
}

/// Returns the number of pods that the budget will select: the replicas of their controllers, plus pods without one.
fn expected(chosen: &[&Pod], workloads: &BTreeMap<&Uid, &Workload>) -> u64 {
    let mut there: BTreeMap<Option<&Uid>, u64> = BTreeMap::new();
    for pod in chosen {
        *there.entry(pod.owner.as_ref()).or_default() += 1;
    }
    let of = |(owner, count): (Option<&Uid>, u64)| {
        let total = owner.and_then(|uid| workloads.get(uid)).map_or(0, |workload| workload.total);
        total.max(count)
    };
    there.into_iter().map(of).sum()
}
