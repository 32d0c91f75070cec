//! Everything a decision sees, at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, InstanceTypeName, OfferingId, ResourceList};
use poolwright_terms::NodeClassRef;

use crate::model::TakenBack;
use crate::model::budget::Budget;
use crate::model::claims::Claims;
use crate::model::disruption::NodeBudget;
use crate::model::gang::Gang;
use crate::model::instances::Instances;
use crate::model::names::PoolName;
use crate::model::names::Uid;
use crate::model::nodes::Nodes;
use crate::model::plan_cache::PlanCache;
use crate::model::pod::DaemonSet;
use crate::model::pod_affinity::NamespaceLabels;
use crate::model::pod_group::PodGroup;
use crate::model::pod_key::{ObjectKey, PodKey};
use crate::model::pods::Pods;
use crate::model::pool::Pool;
use crate::model::profile::Service;
use crate::model::quota::Quota;
use crate::model::shared::Shared;
use crate::model::volumes::{Attachment, NodeDrivers, StorageClass, Volume, VolumeClaim};
use crate::model::workload::Workload;

/// The cluster, the clouds' offers and what is remembered, at one moment. Clones share everything that does not change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Pods by key, finished ones included.
    pub pods: Pods,
    /// Nodes by name.
    pub nodes: Nodes,
    /// Claims by name.
    pub claims: Claims,
    /// Pools by name.
    pub pools: Shared<PoolName, Arc<Pool>>,
    /// DaemonSets by key.
    pub daemonsets: Shared<ObjectKey, Arc<DaemonSet>>,
    /// Labels of namespaces, by name.
    pub namespaces: Arc<NamespaceLabels>,
    /// Controllers that say how many pods there will be, by kind and key.
    pub workloads: Shared<(String, ObjectKey), Arc<Workload>>,
    /// What says how many of those controllers there will be, by kind and key.
    pub gangs: Shared<(String, ObjectKey), Arc<Gang>>,
    /// PodGroups by key.
    pub pod_groups: Shared<ObjectKey, Arc<PodGroup>>,
    /// Services by key, where a scheduler's default spread goes by them.
    pub services: Shared<ObjectKey, Arc<Service>>,
    /// ResourceQuotas by key.
    pub quotas: Shared<ObjectKey, Arc<Quota>>,
    /// PodDisruptionBudgets by key.
    pub budgets: Shared<ObjectKey, Arc<Budget>>,
    /// PersistentVolumeClaims by key.
    pub volume_claims: Shared<ObjectKey, Arc<VolumeClaim>>,
    /// PersistentVolumes by name.
    pub volumes: Shared<String, Arc<Volume>>,
    /// StorageClasses by name.
    pub storage_classes: Shared<String, Arc<StorageClass>>,
    /// How many volumes nodes take, by node.
    pub node_drivers: Shared<String, Arc<NodeDrivers>>,
    /// Volumes that are attached to nodes, by the name of the attachment.
    pub attachments: Shared<String, Arc<Attachment>>,
    /// What each node class can buy, or why it cannot be used.
    pub catalogues: BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>,
    /// Offerings that failed lately: not to be bought before this time.
    pub held_back: BTreeMap<(NodeClassRef, OfferingId), Timestamp>,
    /// Offerings of which the cloud took instances back lately: they count as dearer than they are.
    pub taken_back: BTreeMap<(NodeClassRef, OfferingId), TakenBack>,
    /// How much less nodes turned out to have than was promised, by node class and instance type: of each resource the most that any
    /// lacked.
    pub measured: BTreeMap<(NodeClassRef, InstanceTypeName), Arc<ResourceList>>,
    /// Where the last plan put pods that are still waiting, by claim.
    pub nominations: BTreeMap<PodKey, (Uid, String)>,
    /// Whether pods waited in the last plan for what cannot be had now: a limit is reached, or offerings failed. Then no room is kept
    /// free.
    pub short_of_capacity: bool,
    /// Namespaces in which the API server refuses to let us add tolerations to pods.
    pub unpatchable: BTreeSet<String>,
    /// How many nodes may be disturbed at a time over all pools, besides what each pool says.
    pub disruption_budgets: Arc<[NodeBudget]>,
    /// The instances the providers listed; `None` until a listing succeeded.
    pub instances: Option<Instances>,
    /// What plans worked out about nodes and offerings that may not have changed since. It saves time and changes no plan.
    pub plan_cache: PlanCache,
}

impl Snapshot {
    /// How much less nodes of a type turned out to have than was promised, if any did.
    pub(crate) fn measured(
        &self,
        node_class: &NodeClassRef,
        kind: &InstanceTypeName,
    ) -> Option<&Arc<ResourceList>> {
        // Often nothing is, and a key is made for nothing.
        let measured = Some(&self.measured).filter(|measured| !measured.is_empty());
        measured?.get(&(node_class.clone(), kind.clone()))
    }

    /// Whether pools, claims, nodes and the pods on them are the very same objects as those of another.
    pub fn has_same_nodes_and_work(&self, other: &Self) -> bool {
        self.claims.is_same(&other.claims)
            && self.nodes.is_same(&other.nodes)
            && self.pools.is_same(&other.pools)
            && self.pods.is_bound_alike(&other.pods)
    }
}
