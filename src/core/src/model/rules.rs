//! Requirements on labels, node selector terms and tolerations, as in the Kubernetes API.

use std::collections::BTreeSet;

use poolwright_terms::TaintEffect;
use serde::{Deserialize, Serialize};

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Requirement {
    /// The label's key, or [`crate::rules::fields::NODE_NAME_FIELD`] for the node's name.
    pub key: String,
    /// The condition on its value.
    pub operator: Operator,
}

/// The condition on a label's value. `Gt` and `Lt` come from Kubernetes, `Gte` and `Lte` from Karpenter's pools. Comparisons
/// need an integer; an absent or non-integer value does not satisfy them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Operator {
    /// One of these values.
    In(BTreeSet<String>),
    /// Absent, or none of these values.
    NotIn(BTreeSet<String>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Greater.
    Gt(i64),
    /// Less.
    Lt(i64),
    /// Greater or equal.
    Gte(i64),
    /// Less or equal.
    Lte(i64),
}

/// One node selector term: all its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeSelectorTerm {
    /// The requirements, AND-ed. A term without requirements matches nothing (Kubernetes: "a null or empty node selector term
    /// matches no objects").
    pub requirements: Vec<Requirement>,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint's key; `None` tolerates every key (only with [`TolerationMatch::Exists`]).
    pub key: Option<String>,
    /// The comparison of the value.
    pub matches: TolerationMatch,
    /// The effect tolerated; `None` for every effect.
    pub effect: Option<TaintEffect>,
}

/// The comparison of the taint's value by a toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TolerationMatch {
    /// Any value.
    Exists,
    /// This value.
    Equal(String),
}
