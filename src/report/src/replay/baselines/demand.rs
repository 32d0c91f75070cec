//! The demand of the baselines: the pods that some plan starts. Nothing starts of a gang that lacks pods, and nothing of a gang or a pod
//! for which all limits are too low. Poolwright buys nothing for them, so no method does.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_core::plan::{PlanOptions, PreferencePolicy, UnplacedPod, UnplacedReason, plan};
use poolwright_core::{
    DaemonSet, Namespace, ObjectKey, Pod, PodGroup, PodKey, PodSpec, Pool, PoolLimits, Snapshot, SpotRules,
};
use poolwright_solver::{NeverStop, Options};
use poolwright_terms::NodeClassRef;

use super::Arrival;
use crate::replay::bound::bare;

/// Work units of one plan: about 10 ms of one core.
const WORK: u64 = 20_000;

/// What decides which pods can start, besides the pods.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The gangs.
    pub groups: &'a [PodGroup],
    /// The namespaces, with their limits.
    pub namespaces: &'a [Namespace],
    /// The pools.
    pub pools: &'a [Pool],
    /// The DaemonSets, whose pods take room on new nodes.
    pub daemonsets: &'a [DaemonSet],
    /// The catalogue of each node class.
    pub sold: &'a BTreeMap<NodeClassRef, Arc<Catalogue>>,
    /// The most that the nodes of a pool without a money limit of its own may cost.
    pub default_usd_per_hour: Option<UsdPerHour>,
}

impl Around<'_> {
    fn has_limits(&self) -> bool {
        self.default_usd_per_hour.is_some()
            || self.pools.iter().any(|pool| pool.limits != PoolLimits::default())
            || self.namespaces.iter().any(|namespace| !namespace.limits.is_empty())
    }
}

/// Removes the pods that no plan starts. Returns a note that counts them.
pub fn keep_startable(arrivals: &mut Vec<Arrival>, around: &Around<'_>) -> Option<String> {
    let never = never_started(arrivals, around);
    let first = arrivals[*never.first()?].pod.key.clone();
    let mut at = 0;
    arrivals.retain(|_| {
        at += 1;
        !never.contains(&(at - 1))
    });
    let (pods, it, its) = match never.len() {
        1 => (format!("a pod of {first}"), "it", "its"),
        more => (format!("{more} pods, such as those of {first}"), "them", "their"),
    };
    Some(format!(
        "the baselines leave out {pods}, because no plan starts {it}: {its} gang cannot start, or the limits are too low for any node"
    ))
}

/// Pods that start together, or equal pods, each of which starts alone.
struct Unit {
    pods: Vec<usize>,
    is_gang: bool,
}

impl Unit {
    /// Returns the pods that a plan is asked for.
    fn asked(&self) -> &[usize] {
        if self.is_gang { &self.pods } else { &self.pods[..1] }
    }
}

/// Returns the pods that no plan starts, by their number.
fn never_started(arrivals: &[Arrival], around: &Around<'_>) -> BTreeSet<usize> {
    let mut gangs: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
    let mut equal: BTreeMap<(&str, PodSpec), Vec<usize>> = BTreeMap::new();
    let has_limits = around.has_limits();
    for (at, Arrival { pod, .. }) in arrivals.iter().enumerate() {
        match pod.group_key() {
            Some(gang) => gangs.entry(gang).or_default().push(at),
            None if has_limits => {
                equal.entry((pod.key.namespace(), bare(&pod.spec))).or_default().push(at);
            }
            None => {}
        }
    }
    let gangs = gangs.into_values().map(|pods| Unit { pods, is_gang: true });
    let equal = equal.into_values().map(|pods| Unit { pods, is_gang: false });
    let mut open: Vec<Unit> = gangs.chain(equal).collect();
    // What a limit leaves out beside others may start without them.
    while !open.is_empty() {
        let (left, before) = (left_out(&open, arrivals, around), open.len());
        open.retain(|unit| unit.asked().iter().all(|pod| left.contains(pod)));
        if open.len() == before {
            break;
        }
    }
    open.retain(|unit| {
        let left = left_out(slice::from_ref(unit), arrivals, around);
        unit.asked().iter().all(|pod| left.contains(pod))
    });
    open.into_iter().flat_map(|unit| unit.pods).collect()
}

/// Returns the pods of these units that a plan for them alone leaves out, because their gang cannot start or because of a limit. Only
/// the rules that the baselines know count besides.
fn left_out(units: &[Unit], arrivals: &[Arrival], around: &Around<'_>) -> BTreeSet<usize> {
    let mut snapshot = Snapshot::default();
    for at in units.iter().flat_map(Unit::asked) {
        let asked = &arrivals[*at].pod;
        let key = PodKey::new(asked.key.namespace(), at.to_string());
        let (group, gang, labels) = (asked.group.clone(), asked.gang.clone(), asked.labels.clone());
        let pod = Pod { group, gang, labels, ..Pod::waiting(key.clone(), bare(&asked.spec)) };
        snapshot.pods.insert(key, Arc::new(pod));
    }
    for group in around.groups {
        snapshot.pod_groups.insert(group.key.clone(), Arc::new(group.clone()));
    }
    for namespace in around.namespaces {
        snapshot.put_namespace(namespace.clone());
    }
    for one in around.daemonsets {
        snapshot.daemonsets.insert(one.key.clone(), Arc::new(one.clone()));
    }
    for pool in around.pools {
        let Some(sold) = around.sold.get(&pool.node_class) else { continue };
        snapshot.catalogues.insert(pool.node_class.clone(), Ok(sold.clone()));
        let (spot, min_values) = (SpotRules::default(), BTreeMap::new());
        let pool = Pool { weight: 1, spot, min_values, buffer: Vec::new(), ..pool.clone() };
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    let options = PlanOptions {
        include_waiting: true,
        baselines: false,
        preferences: PreferencePolicy::Ignore,
        default_usd_per_hour: around.default_usd_per_hour,
        solver: Options { work: WORK, threads: 1, ..Options::default() },
        ..PlanOptions::default()
    };
    let made = plan(&snapshot, Timestamp::UNIX_EPOCH, &options, &mut NeverStop);
    let never = made.unplaced.into_iter().filter(is_never);
    never.filter_map(|left| left.pod.name().parse().ok()).collect()
}

/// Returns whether a pod has no node because its gang cannot start, or because of a limit.
fn is_never(left: &UnplacedPod) -> bool {
    use UnplacedReason::{
        GangIncomplete, LimitReached, NamespaceLimitReached, PodGroupMissing, PodGroupPending, UnmodelledRule,
    };
    matches!(
        left.reason,
        GangIncomplete
            | LimitReached
            | NamespaceLimitReached
            | PodGroupMissing
            | PodGroupPending
            | UnmodelledRule
    )
}
