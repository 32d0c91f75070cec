//! Pools: what may be bought, how much of it, and how its nodes look.

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
    /// Taints its nodes have at first and somebody else lifts; pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// Types of conditions that a new node must have as true before it opens.
    pub readiness_gates: Vec<String>,
    /// Which offerings it may buy; all must hold.
    pub requirements: Vec<Requirement>,
    /// What it launches with.
    pub node_class: NodeClassRef,
    /// Pods go to the pool with the highest weight that can hold them.
    pub weight: u32,
    /// Ceilings over all its nodes.
    pub limits: PoolLimits,
    /// Instance types it may buy although their price is unknown.
    pub allow_unknown_price: BTreeSet<InstanceTypeName>,
    /// An empty node goes after this long; `None` for never.
    pub scale_to_zero_after: Option<SignedDuration>,
    /// It has so many nodes whoever waits, and no others; `None` for a pool that goes by its pods.
    pub replicas: Option<u64>,
    /// Room that is kept free on its nodes.
    pub buffer: Vec<Buffer>,
    /// Which of its nodes may be disturbed.
    pub disruption: Disruption,
    /// How long each stage of its claims may take.
    pub deadlines: Deadlines,
    /// Being deleted: it buys nothing more.
    pub deleting: bool,
    /// Set when the object cannot be used as it is; such a pool buys nothing.
    pub problem: Option<PoolProblem>,
}

/// Ceilings over all nodes of a pool, those on their way included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolLimits {
    /// By resource, in the units of [`poolwright_catalog::ResourceList`]. Zero is a limit too, hence a map.
    pub resources: BTreeMap<ResourceName, u64>,
    /// Nodes.
    pub nodes: Option<u64>,
    /// Money.
    pub usd_per_hour: Option<UsdPerHour>,
}

/// Why a pool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolProblem {
    /// Stable reason: `InvalidQuantity`, `ContradictingRequirements`, ...
    pub reason: Reason,
    /// A sentence that names the field, the cause and the next step.
    pub message: String,
}
