//! Snapshots: the input of every decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, InstanceTypeName, OfferingId, ResourceList};
use poolwright_terms::NodeClassRef;

use crate::model::Reclaims;
use crate::model::arrivals::Arrivals;
use crate::model::budget::PodDisruptionBudget;
use crate::model::claim::Claim;
use crate::model::claims::Claims;
use crate::model::daemonset::DaemonSet;
use crate::model::disruption::DisruptionBudget;
use crate::model::gang::Gang;
use crate::model::idle::{Gaps, Keep, ScaleToZero};
use crate::model::instances::Instances;
use crate::model::lives::Lives;
use crate::model::names::Uid;
use crate::model::names::{ClaimName, PoolName};
use crate::model::namespace_limits::SpentBudgets;
use crate::model::nodes::Nodes;
use crate::model::persistent_map::PersistentMap;
use crate::model::plan_cache::PlanCache;
use crate::model::pod_affinity::{LimitsByNamespace, Namespace, NamespaceLabels};
use crate::model::pod_group::PodGroup;
use crate::model::pod_key::{ObjectKey, OwnerKey, PodKey};
use crate::model::pods::Pods;
use crate::model::pool::Pool;
use crate::model::profile::Service;
use crate::model::quota::Quota;
use crate::model::retirement::Retirements;
use crate::model::volumes::{Attachment, NodeDrivers, StorageClass, Volume, VolumeClaim};
use crate::model::workload::Workload;

/// The cluster, the clouds' catalogues and remembered setbacks at one moment. Clones share unchanged data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Pods by key, including finished ones.
    pub pods: Pods,
    /// Nodes by name.
    pub nodes: Nodes,
    /// Claims by name.
    pub claims: Claims,
    /// Pools by name.
    pub pools: PersistentMap<PoolName, Arc<Pool>>,
    /// DaemonSets by key.
    pub daemonsets: PersistentMap<ObjectKey, Arc<DaemonSet>>,
    /// Labels of namespaces, by name.
    pub namespaces: Arc<NamespaceLabels>,
    /// Limits that namespaces state, by name.
    pub namespace_limits: Arc<LimitsByNamespace>,
    /// Namespaces whose monthly budget is spent, so that nothing is bought for their pods.
    pub spent_namespaces: Arc<SpentBudgets>,
    /// Controllers of pods, by kind and key.
    pub workloads: PersistentMap<(String, ObjectKey), Arc<Workload>>,
    /// Gangs (JobSets and LeaderWorkerSets), by kind and key.
    pub gangs: PersistentMap<(String, ObjectKey), Arc<Gang>>,
    /// PodGroups by key.
    pub pod_groups: PersistentMap<ObjectKey, Arc<PodGroup>>,
    /// Services by key, if a scheduler has default spread constraints.
    pub services: PersistentMap<ObjectKey, Arc<Service>>,
    /// ResourceQuotas by key.
    pub quotas: PersistentMap<ObjectKey, Arc<Quota>>,
    /// PodDisruptionBudgets by key.
    pub budgets: PersistentMap<ObjectKey, Arc<PodDisruptionBudget>>,
    /// PersistentVolumeClaims by key.
    pub volume_claims: PersistentMap<ObjectKey, Arc<VolumeClaim>>,
    /// PersistentVolumes by name.
    pub volumes: PersistentMap<String, Arc<Volume>>,
    /// StorageClasses by name.
    pub storage_classes: PersistentMap<String, Arc<StorageClass>>,
    /// CSI volume limits of nodes, by node.
    pub node_drivers: PersistentMap<String, Arc<NodeDrivers>>,
    /// VolumeAttachments by name.
    pub attachments: PersistentMap<String, Arc<Attachment>>,
    /// The catalogue of each node class, or the reason why it has none.
    pub catalogues: BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>,
    /// Offerings that failed recently, and the time until which they are held back.
    pub held_back: BTreeMap<(NodeClassRef, OfferingId), Timestamp>,
    /// Offerings whose instances the cloud reclaimed recently. Their prices count as higher.
    pub reclaims: BTreeMap<(NodeClassRef, OfferingId), Reclaims>,
    /// Allocatable resources that nodes lacked compared to the catalogue, by node class and instance type: the largest
    /// difference seen for each resource.
    pub measured: BTreeMap<(NodeClassRef, InstanceTypeName), Arc<ResourceList>>,
    /// The places of pending pods in the last plan.
    pub nominations: BTreeMap<PodKey, (Uid, String)>,
    /// Whether the last plan left pods unplaced because of limits or failed offerings. If so, buffers are not filled.
    pub short_of_capacity: bool,
    /// Namespaces in which the API server refuses to add tolerations to pods.
    pub unpatchable: BTreeSet<String>,
    /// Disruption budgets across all pools, in addition to each pool's own.
    pub disruption_budgets: Arc<[DisruptionBudget]>,
    /// The instances that providers listed; `None` until the first listing succeeds.
    pub instances: Option<Instances>,
    /// The remaining lives of pods: what is known about them.
    pub lives: Arc<Lives>,
    /// How long it takes until a node without work gets the next pod: what is known.
    pub gaps: Arc<Gaps>,
    /// How often pods come for which buffers with `units: auto` keep room: what is known.
    pub arrivals: Arc<Arrivals>,
    /// The nodes that retire, as the last plan decided.
    pub retirements: Arc<Retirements>,
    /// The controllers of pods that give way on nodes that stay, by the last plan. Nodes for their successors are kept for them.
    pub making_way: Arc<BTreeSet<Arc<OwnerKey>>>,
    /// Pods that give way: they leave nodes that stay, and their successors need other places. Each with the claim of its node.
    /// Only trial plans have any.
    pub giving_way: Arc<BTreeMap<PodKey, ClaimName>>,
    /// The plan cache. It saves time and changes no plan.
    pub plan_cache: PlanCache,
}

impl Snapshot {
    /// Adds or replaces a namespace.
    pub fn put_namespace(&mut self, namespace: Namespace) {
        let Namespace { name, labels, limits } = namespace;
        let stated = Arc::make_mut(&mut self.namespace_limits);
        if limits.is_empty() {
            stated.remove(&name);
        } else {
            stated.insert(name.clone(), limits);
        }
        Arc::make_mut(&mut self.namespaces).insert(name, labels);
    }

    /// Returns a namespace.
    pub fn namespace(&self, name: &str) -> Option<Namespace> {
        let labels = self.namespaces.get(name)?.clone();
        let limits = self.namespace_limits.get(name).cloned().unwrap_or_default();
        Some(Namespace { name: name.to_owned(), labels, limits })
    }

    /// Returns a PodGroup: an object of the cluster, or the gang that its pods form by what is written on them.
    pub fn pod_group(&self, key: &ObjectKey) -> Option<&PodGroup> {
        self.pod_groups.get(key).or_else(|| self.pods.marked.get(key)).map(AsRef::as_ref)
    }

    /// Returns whether the user wrote no pool, so that one stands for the whole catalogue.
    pub fn has_implicit_pool(&self) -> bool {
        self.pools.values().any(|pool| pool.is_implicit)
    }

    /// Returns the allocatable resources that nodes of a type lacked, if any.
    pub(crate) fn measured(
        &self,
        node_class: &NodeClassRef,
        kind: &InstanceTypeName,
    ) -> Option<&Arc<ResourceList>> {
        // The map is usually empty. Then no key needs to be built.
        let measured = Some(&self.measured).filter(|measured| !measured.is_empty());
        measured?.get(&(node_class.clone(), kind.clone()))
    }

    /// Returns how long the node of a claim is kept without work; `None` for ever.
    pub fn keeps(&self, claim: &Claim) -> Option<Keep> {
        match self.pools.get(&claim.pool)?.scale_to_zero {
            ScaleToZero::Never => None,
            ScaleToZero::After(time) => Some(Keep { time, why: None }),
            ScaleToZero::Auto => Some(self.gaps.keep(&claim.kind_of_node())),
        }
    }

    /// Returns whether pools, claims, nodes and bound pods are identical to those of another snapshot.
    pub fn has_same_nodes_and_work(&self, other: &Self) -> bool {
        self.claims.is_same(&other.claims)
            && self.nodes.is_same(&other.nodes)
            && self.pools.is_same(&other.pools)
            && self.pods.is_bound_alike(&other.pods)
    }
}
