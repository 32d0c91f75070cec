//! The cluster index holds the cluster as watches last showed it. Only synchronous calls change it.

pub(crate) mod arrivals;
pub(crate) mod budgets;
pub(crate) mod claims;
pub(crate) mod gangs;
pub(crate) mod gaps;
pub(crate) mod held;
pub(crate) mod instances;
pub(crate) mod learning;
pub(crate) mod lives;
pub(crate) mod measured;
pub(crate) mod nodes;
pub(crate) mod pod_groups;
pub(crate) mod pods;
pub(crate) mod replacements;
pub(crate) mod services;
pub(crate) mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, OfferingId};
use poolwright_terms::NodeClassRef;

use crate::index::learning::{GivenUp, Learning};
use crate::model::plan::{Moved, Plan};
use crate::model::{
    ClaimName, DaemonSet, DisruptionBudget, Namespace, ObjectKey, OwnerKey, PersistentMap, PodKey, Pool,
    PoolName, Quota, Reclaims, Retirements, Snapshot, SpentBudgets, Uid, Workload,
};

/// The effect of a change on decisions. The values are ordered, and a larger value wakes more loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// No effect.
    #[default]
    None,
    /// An effect on [`crate::lifecycle::decide`], but not on the planner.
    Life,
    /// Capacity or rules changed, so the plan for pending pods may change.
    Room,
    /// More pods need a node, or they need a different one.
    Demand,
    /// Pods are losing their node to an interruption, or have lost it and need another.
    Interrupted,
}

/// The index of everything known about the cluster. Taking a [`Snapshot`] of it is cheap.
#[derive(Clone, Debug, Default)]
pub struct ClusterIndex {
    state: Snapshot,
    /// Whether selectors of controllers are needed.
    keeps_selectors: bool,
    /// Claims that we created and no watch has shown yet, with their UIDs and the time until which they are kept.
    expected: BTreeMap<ClaimName, (Uid, Timestamp)>,
    instances_gone: TerminatedInstances,
    /// Controllers of pods on interrupted nodes, and the claims of those nodes.
    interrupted_owners: BTreeSet<(Uid, ClaimName)>,
    /// Nodes that were terminated because they had no work, for which it is not known yet whether a pod came that they could
    /// have held.
    given_up: GivenUp,
    /// What it needs to learn how long pods run.
    learning: Learning,
    /// Namespaces with pods that the last plan held back because of a limit of their namespace.
    held_in: BTreeSet<String>,
    /// Whether another limit kept the last plan from buying nodes.
    limit_reached: bool,
    /// The DaemonSets as their templates say. The state has them in the sizes of their pods.
    templates: BTreeMap<ObjectKey, DaemonSet>,
}

impl ClusterIndex {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a snapshot of the current state.
    pub fn snapshot(&self) -> Snapshot {
        self.state.clone()
    }

    /// Returns the current state, without a copy.
    pub fn view(&self) -> &Snapshot {
        &self.state
    }

    /// Adds or replaces a pool.
    pub fn apply_pool(&mut self, pool: Pool) -> Change {
        let known = self.state.pools.get(&pool.name);
        // What was spent changes each minute. It can only keep the pool from buying, so nobody need plan again.
        let is_alike = known.is_some_and(|known| known.is_alike_but_for_spend(&pool));
        let change = put(&mut self.state.pools, pool.name.clone(), pool);
        if is_alike { Change::None } else { change }
    }

    /// Removes a pool.
    pub fn delete_pool(&mut self, name: &PoolName) -> Change {
        self.state.pools.remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// Sets the namespaces whose monthly budget is spent.
    pub fn set_spent_namespaces(&mut self, spent: SpentBudgets) -> Change {
        // What was spent changes each minute, and no plan.
        let is_alike = self.state.spent_namespaces.keys().eq(spent.keys());
        self.state.spent_namespaces = Arc::new(spent);
        if is_alike { Change::None } else { Change::Room }
    }

    /// Sets the disruption budgets of all pools together.
    pub fn set_disruption_budgets(&mut self, budgets: Arc<[DisruptionBudget]>) {
        self.state.disruption_budgets = budgets;
    }

    /// Sets the namespaces in which pods may not be given tolerations.
    pub fn set_unpatchable(&mut self, namespaces: BTreeSet<String>) -> Change {
        if self.state.unpatchable == namespaces {
            return Change::None;
        }
        self.state.unpatchable = namespaces;
        Change::Life
    }

    /// Replaces all pools.
    pub fn reset_pools(&mut self, pools: impl IntoIterator<Item = Pool>) -> Change {
        let pools: BTreeMap<PoolName, Pool> =
            pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
        let gone = drop_missing(&mut self.state.pools, &pools, Change::Room);
        pools.into_values().map(|pool| self.apply_pool(pool)).fold(gone, Ord::max)
    }

    /// Adds or replaces a DaemonSet.
    pub fn apply_daemonset(&mut self, daemonset: DaemonSet) -> Change {
        let sized = daemonset.sized_as(&self.state.pods);
        self.templates.insert(daemonset.key.clone(), daemonset);
        put(&mut self.state.daemonsets, sized.key.clone(), sized)
    }

    /// Removes a DaemonSet.
    pub fn delete_daemonset(&mut self, key: &ObjectKey) -> Change {
        self.templates.remove(key);
        self.state.daemonsets.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all DaemonSets.
    pub fn reset_daemonsets(&mut self, daemonsets: impl IntoIterator<Item = DaemonSet>) -> Change {
        let all: BTreeMap<ObjectKey, DaemonSet> =
            daemonsets.into_iter().map(|daemonset| (daemonset.key.clone(), daemonset)).collect();
        let gone = drop_missing(&mut self.state.daemonsets, &all, Change::Room);
        self.templates.retain(|key, _| all.contains_key(key));
        all.into_values().map(|daemonset| self.apply_daemonset(daemonset)).fold(gone, Ord::max)
    }

    /// Adds or replaces a namespace.
    pub fn apply_namespace(&mut self, namespace: Namespace) -> Change {
        if self.state.namespace(&namespace.name).as_ref() == Some(&namespace) {
            return Change::None;
        }
        self.state.put_namespace(namespace);
        Change::Room
    }

    /// Removes a namespace.
    pub fn delete_namespace(&mut self, name: &str) -> Change {
        Arc::make_mut(&mut self.state.namespace_limits).remove(name);
        Arc::make_mut(&mut self.state.namespaces).remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all namespaces.
    pub fn reset_namespaces(&mut self, namespaces: impl IntoIterator<Item = Namespace>) -> Change {
        let all: Vec<Namespace> = namespaces.into_iter().collect();
        let limits = Namespace::limits_by_name(&all);
        let labels = Namespace::labels_by_name(all);
        if self.state.namespaces == labels && self.state.namespace_limits == limits {
            return Change::None;
        }
        self.state.namespaces = labels;
        self.state.namespace_limits = limits;
        Change::Room
    }

    /// Adds or replaces a controller of pods. Only its existing pods are demand. The controller shows how many further pods to
    /// expect.
    pub fn apply_workload(&mut self, mut workload: Workload) -> Change {
        // Clusters keep many ReplicaSets without pods, whose selectors are not needed.
        if !self.keeps_selectors || workload.total == 0 {
            workload.selector = None;
        }
        let key = (workload.kind.clone(), workload.key.clone());
        put(&mut self.state.workloads, key, workload).min(Change::Life)
    }

    /// Removes a controller of pods.
    pub fn delete_workload(&mut self, kind: &str, key: &ObjectKey) -> Change {
        let gone = self.state.workloads.remove(&(kind.to_owned(), key.clone()));
        gone.map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all controllers of a kind.
    pub fn reset_workloads(&mut self, kind: &str, all: impl IntoIterator<Item = Workload>) -> Change {
        self.state.workloads.retain(|(known, _), _| known != kind);
        all.into_iter().map(|workload| self.apply_workload(workload)).fold(Change::Life, Ord::max)
    }

    /// Adds or replaces a ResourceQuota.
    pub fn apply_quota(&mut self, quota: Quota) -> Change {
        put(&mut self.state.quotas, quota.key.clone(), quota).min(Change::Life)
    }

    /// Removes a ResourceQuota.
    pub fn delete_quota(&mut self, key: &ObjectKey) -> Change {
        self.state.quotas.remove(key).map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all ResourceQuotas.
    pub fn reset_quotas(&mut self, all: impl IntoIterator<Item = Quota>) -> Change {
        reset(&mut self.state.quotas, all, |quota| quota.key.clone()).min(Change::Life)
    }

    /// Sets the catalogue of a node class, or the reason why it has none.
    pub fn set_catalogue(
        &mut self,
        class: NodeClassRef,
        catalogue: Result<Arc<Catalogue>, String>,
    ) -> Change {
        if self.state.catalogues.get(&class) == Some(&catalogue) {
            return Change::None;
        }
        self.state.catalogues.insert(class, catalogue);
        Change::Room
    }

    /// Removes a node class.
    pub fn delete_catalogue(&mut self, class: &NodeClassRef) -> Change {
        self.state.catalogues.remove(class).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all node classes.
    pub fn reset_catalogues(
        &mut self,
        catalogues: impl IntoIterator<Item = (NodeClassRef, Result<Arc<Catalogue>, String>)>,
    ) -> Change {
        let all: BTreeMap<_, _> = catalogues.into_iter().collect();
        let before = self.state.catalogues.len();
        self.state.catalogues.retain(|class, _| all.contains_key(class));
        let gone = if self.state.catalogues.len() < before { Change::Room } else { Change::None };
        all.into_iter().map(|(class, catalogue)| self.set_catalogue(class, catalogue)).fold(gone, Ord::max)
    }

    /// Sets the offerings that are held back, from [`crate::setbacks::Setbacks::held_back`].
    pub fn set_held_back(&mut self, held_back: BTreeMap<(NodeClassRef, OfferingId), Timestamp>) -> Change {
        if self.state.held_back == held_back {
            return Change::None;
        }
        self.state.held_back = held_back;
        Change::Room
    }

    /// Sets the offerings that were reclaimed recently, from [`crate::setbacks::Setbacks::reclaims`].
    pub fn set_reclaims(&mut self, reclaims: BTreeMap<(NodeClassRef, OfferingId), Reclaims>) -> Change {
        if self.state.reclaims == reclaims {
            return Change::None;
        }
        self.state.reclaims = reclaims;
        Change::Room
    }

    /// Sets the nodes that retire.
    pub fn set_retirements(&mut self, retirements: Arc<Retirements>) -> Change {
        let same = self.state.retirements.claims == retirements.claims
            && self.state.retirements.inherited == retirements.inherited;
        self.state.retirements = retirements;
        if same { Change::None } else { Change::Life }
    }

    /// Sets the controllers of pods that give way on nodes that stay, from a plan.
    pub fn set_making_way(&mut self, plan: &Plan) -> Change {
        let stays = |moved: &&Moved| {
            self.state.claims.get(&moved.from).is_some_and(|claim| claim.leaving().is_none())
        };
        let owners = plan.moved.iter().filter(stays).filter_map(|moved| moved.successor.as_ref()?.owner());
        let owners: BTreeSet<Arc<OwnerKey>> = owners.cloned().collect();
        if *self.state.making_way == owners {
            return Change::None;
        }
        self.state.making_way = Arc::new(owners);
        Change::Life
    }

    /// Sets the places of pending pods in the last plan ([`crate::model::plan::Plan::nominations`]), and whether it left pods
    /// unplaced for lack of capacity.
    pub fn set_nominations(
        &mut self,
        nominations: BTreeMap<PodKey, (Uid, String)>,
        short_of_capacity: bool,
    ) -> Change {
        if self.state.nominations == nominations && self.state.short_of_capacity == short_of_capacity {
            return Change::None;
        }
        self.state.nominations = nominations;
        self.state.short_of_capacity = short_of_capacity;
        Change::Life
    }
}

fn put<K: Ord + Clone, V: PartialEq>(map: &mut PersistentMap<K, Arc<V>>, key: K, value: V) -> Change {
    if map.get(&key).is_some_and(|old| **old == value) {
        return Change::None;
    }
    map.insert(key, Arc::new(value));
    Change::Room
}

fn reset<K: Ord + Clone, V: PartialEq>(
    map: &mut PersistentMap<K, Arc<V>>,
    all: impl IntoIterator<Item = V>,
    key: fn(&V) -> K,
) -> Change {
    let all: BTreeMap<K, V> = all.into_iter().map(|one| (key(&one), one)).collect();
    let gone = drop_missing(map, &all, Change::Room);
    all.into_iter().map(|(key, one)| put(map, key, one)).fold(gone, Ord::max)
}

fn drop_missing<K: Ord + Clone, V: Clone, W>(
    map: &mut PersistentMap<K, V>,
    listed: &BTreeMap<K, W>,
    change: Change,
) -> Change {
    let before = map.len();
    map.retain(|key, _| listed.contains_key(key));
    if map.len() < before { change } else { Change::None }
}

/// Instances that have terminated, with the time since which they have.
pub(crate) type TerminatedInstances = BTreeMap<String, Timestamp>;
