//! NodePools: the offerings that may be bought, their limits, and the template of the nodes.

use crate::model::names::PoolName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_catalog::{InstanceTypeName, ResourceName, UsdPerHour};
use poolwright_terms::{NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::buffer::Buffer;
use crate::model::claim::Deadlines;
use crate::model::disruption::Disruption;
use crate::model::idle::ScaleToZero;
use crate::model::monthly_budget::MonthlyBudget;
use crate::model::names::Uid;
use crate::model::rules::Requirement;
use crate::model::spot::SpotRules;

/// A NodePool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Its name.
    pub name: PoolName,
    /// Its UID.
    pub uid: Uid,
    /// Labels that its nodes get.
    pub labels: BTreeMap<String, String>,
    /// Annotations that its nodes get.
    pub annotations: BTreeMap<String, String>,
    /// Taints that its nodes keep.
    pub taints: Vec<Taint>,
    /// Startup taints: nodes have them at first, and another component removes them later. Pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// Types of node conditions that must be true before a new node opens.
    pub readiness_gates: Vec<String>,
    /// Requirements on the offerings that it may buy; all must hold.
    pub requirements: Vec<Requirement>,
    /// For some label keys, the least number of different values among the offerings that the cloud may choose from for a node.
    pub min_values: BTreeMap<String, u32>,
    /// Its node class.
    pub node_class: NodeClassRef,
    /// The weight. Pods go to the pool with the highest weight that fits them.
    pub weight: u32,
    /// Limits on all its nodes together.
    pub limits: PoolLimits,
    /// Its budget for each calendar month, with what was spent; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_budget: Option<MonthlyBudget>,
    /// Rules on its spot nodes.
    #[serde(default, skip_serializing_if = "SpotRules::is_empty")]
    pub spot: SpotRules,
    /// Instance types that it may buy although their price is unknown.
    pub allow_unknown_price: BTreeSet<InstanceTypeName>,
    /// When its empty nodes are terminated.
    pub scale_to_zero: ScaleToZero,
    /// The number of nodes of a static pool; `None` for a pool that scales with its pods.
    pub replicas: Option<u64>,
    /// Buffers: capacity that is kept free on its nodes.
    pub buffer: Vec<Buffer>,
    /// Disruption settings.
    pub disruption: Disruption,
    /// The time limits of the stages of its claims.
    pub deadlines: Deadlines,
    /// Whether it is being deleted. Such a pool buys nothing.
    pub deleting: bool,
    /// The problem of the pool if it is invalid. An invalid pool buys nothing.
    pub problem: Option<PoolProblem>,
    /// Whether the user wrote no pool, and this one stands for the whole catalogue. No sentence names such a pool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_implicit: bool,
}

impl Pool {
    /// Returns how sentences name the pool.
    pub(crate) fn in_words(&self) -> PoolInWords<'_> {
        if self.is_implicit { PoolInWords::Catalogue } else { PoolInWords::Named(&self.name) }
    }

    /// Returns whether it differs from another at most in what was spent of its budget.
    pub(crate) fn is_alike_but_for_spend(&self, other: &Self) -> bool {
        let mut same = self.clone();
        if let (Some(mine), Some(theirs)) = (&mut same.monthly_budget, &other.monthly_budget) {
            mine.spend = theirs.spend;
        }
        same == *other
    }
}

/// How sentences name a pool: ``pool `gpu` ``, or `the catalogue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolInWords<'p> {
    /// A pool that the user wrote.
    Named(&'p PoolName),
    /// The pool that stands for the whole catalogue.
    Catalogue,
}

impl PoolInWords<'_> {
    /// Returns whether the user wrote no pool.
    pub fn is_catalogue(self) -> bool {
        matches!(self, Self::Catalogue)
    }

    /// Returns a suffix for things of the pool: ` of pool gpu`; empty if the user wrote no pool.
    pub fn of(self) -> String {
        match self {
            Self::Named(name) => format!(" of pool {name}"),
            Self::Catalogue => String::new(),
        }
    }

    /// Returns advice to widen the requirements of the pool, with the word that follows it; empty if there are none to widen.
    pub fn widen_or(self) -> &'static str {
        if self.is_catalogue() { "" } else { "widen the pool's requirements, or " }
    }
}

impl fmt::Display for PoolInWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "pool `{name}`"),
            Self::Catalogue => f.write_str("the catalogue"),
        }
    }
}

/// Limits on all nodes of a pool together, including nodes that have not joined yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolLimits {
    /// The limit of each resource, in the units of [`poolwright_catalog::ResourceList`]. This is a plain map because a limit may
    /// be zero.
    pub resources: BTreeMap<ResourceName, u64>,
    /// The number of nodes.
    pub nodes: Option<u64>,
    /// The cost per hour.
    pub usd_per_hour: Option<UsdPerHour>,
}

impl PoolLimits {
    /// Returns these limits, with this one on cost if they have none. Every reader of a default limit asks here.
    pub fn or_default(&self, usd_per_hour: Option<UsdPerHour>) -> Self {
        Self { usd_per_hour: self.usd_per_hour.or(usd_per_hour), ..self.clone() }
    }
}

/// The problem of an invalid pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolProblem {
    /// Stable reason: `InvalidQuantity`, `ContradictingRequirements`, ...
    pub reason: Reason,
    /// A sentence that names the field, the cause and the next step.
    pub message: String,
}
