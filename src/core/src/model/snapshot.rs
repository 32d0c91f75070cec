//! Everything a decision sees, at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, OfferingId};
use serde::{Deserialize, Serialize};

use super::budget::Budget;
use super::claim::{Claim, ClaimName};
use super::gang::Gang;
use super::node::Node;
use super::others::NamespaceLabels;
use super::pod::{DaemonSet, Pod, PodKey, Uid};
use super::pool::{NodeClassRef, Pool, PoolName};
use super::quota::Quota;
use super::volumes::{NodeDrivers, StorageClass, Volume, VolumeClaim};
use super::workload::Workload;

/// The cluster, the clouds' offers and what is remembered, at one moment. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Pods by key, finished ones included.
    pub pods: BTreeMap<PodKey, Arc<Pod>>,
    /// Nodes by name.
    pub nodes: BTreeMap<String, Arc<Node>>,
    /// Claims by name.
    pub claims: BTreeMap<ClaimName, Arc<Claim>>,
    /// Pools by name.
    pub pools: BTreeMap<PoolName, Arc<Pool>>,
    /// DaemonSets by key.
    pub daemonsets: BTreeMap<PodKey, Arc<DaemonSet>>,
    /// Labels of namespaces, by name.
    pub namespaces: Arc<NamespaceLabels>,
    /// Controllers that say how many pods there will be, by kind and key.
    pub workloads: BTreeMap<(String, PodKey), Arc<Workload>>,
    /// What says how many of those controllers there will be, by kind and key.
    pub gangs: BTreeMap<(String, PodKey), Arc<Gang>>,
    /// ResourceQuotas by key.
    pub quotas: BTreeMap<PodKey, Arc<Quota>>,
    /// PodDisruptionBudgets by key.
    pub budgets: BTreeMap<PodKey, Arc<Budget>>,
    /// PersistentVolumeClaims by key.
    pub volume_claims: BTreeMap<PodKey, Arc<VolumeClaim>>,
    /// PersistentVolumes by name.
    pub volumes: BTreeMap<String, Arc<Volume>>,
    /// StorageClasses by name.
    pub storage_classes: BTreeMap<String, Arc<StorageClass>>,
    /// How many volumes nodes take, by node.
    pub node_drivers: BTreeMap<String, Arc<NodeDrivers>>,
    /// What each node class can buy, or why it cannot be used.
    pub catalogues: BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>,
    /// Offerings that failed lately: not to be bought before this time.
    pub held_back: BTreeMap<(NodeClassRef, OfferingId), Timestamp>,
    /// Where the last plan put pods that are still waiting, by claim.
    pub nominations: BTreeMap<PodKey, (Uid, String)>,
    /// Namespaces in which the API server refuses to let us add tolerations to pods.
    pub unpatchable: BTreeSet<String>,
    /// The instances the providers listed, and when; `None` until a listing succeeded.
    pub instances: Option<(Timestamp, Vec<Instance>)>,
}

/// An instance that a provider runs for this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The cloud's id.
    pub provider_id: String,
    /// UID of the claim it was launched for.
    pub claim_uid: Uid,
    /// Which node class launched it.
    pub node_class: NodeClassRef,
    /// When it was launched.
    pub launched: Timestamp,
}
