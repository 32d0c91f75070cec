//! NodePools: what may be bought, how much of it, and the template of its nodes.

use crate::model::names::PoolName;
use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use poolwright_catalog::{InstanceTypeName, ResourceName, UsdPerHour};
use poolwright_terms::{NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::buffer::Buffer;
use crate::model::claim::Deadlines;
use crate::model::disruption::Disruption;
use crate::model::names::Uid;
use crate::model::rules::Requirement;

/// A NodePool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: PoolName,
    /// Its UID.
    pub uid: Uid,
    /// Labels its nodes get.
    pub labels: BTreeMap<String, String>,
    /// Annotations its nodes get.
    pub annotations: BTreeMap<String, String>,
    /// Taints its nodes keep.
    pub taints: Vec<Taint>,
    /// Startup taints: nodes have them at first, and somebody else removes them. Pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// Types of node conditions that must be true before a new node opens.
    pub readiness_gates: Vec<String>,
    /// Requirements on the offerings that it may buy; all must hold.
    pub requirements: Vec<Requirement>,
    /// Its node class.
    pub node_class: NodeClassRef,
    /// Pods go to the pool with the highest weight that fits them.
    pub weight: u32,
    /// Limits over all its nodes.
    pub limits: PoolLimits,
    /// Instance types it may buy although their price is unknown.
    pub allow_unknown_price: BTreeSet<InstanceTypeName>,
    /// How long a node may be empty before it is terminated; `None` for ever.
    pub scale_to_zero_after: Option<SignedDuration>,
    /// The number of nodes of a static pool; `None` for a pool that scales with its pods.
    pub replicas: Option<u64>,
    /// Buffers: capacity kept free on its nodes.
    pub buffer: Vec<Buffer>,
    /// Disruption settings.
    pub disruption: Disruption,
    /// How long each stage of its claims may take.
    pub deadlines: Deadlines,
    /// Whether it is being deleted. It buys nothing then.
    pub deleting: bool,
    /// Why the pool is invalid, if it is. It buys nothing then.
    pub problem: Option<PoolProblem>,
}

/// Limits over all nodes of a pool, including nodes that have not joined yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolLimits {
    /// By resource, in the units of [`poolwright_catalog::ResourceList`]. A limit may be zero, hence a map.
    pub resources: BTreeMap<ResourceName, u64>,
    /// Nodes.
    pub nodes: Option<u64>,
    /// Money.
    pub usd_per_hour: Option<UsdPerHour>,
}

/// Why a pool is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolProblem {
    /// Stable reason: `InvalidQuantity`, `ContradictingRequirements`, ...
    pub reason: Reason,
    /// A sentence that names the field, the cause and the next step.
    pub message: String,
}
