//! ResourceQuotas, and the objects that they count.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::model::pod_key::ObjectKey;
use crate::model::rules::Operator;

/// A ResourceQuota: the part that limits the creation of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Which pods of the namespace it counts.
    #[serde(default)]
    pub scopes: QuotaScopes,
    /// The amount of each resource that pods of the namespace may still request; `pods` is the number of pods.
    pub left: BTreeMap<String, u64>,
}

/// The scopes of a ResourceQuota. It counts an object that meets all of them; without scopes, it counts all objects of its
/// namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaScopes(pub Vec<QuotaScope>);

impl QuotaScopes {
    /// Returns whether a quota with these scopes counts a pod (`podMatchesScopeFunc` in Kubernetes).
    pub fn match_pod(&self, pod: &PodScopes) -> bool {
        self.0.iter().all(|scope| match scope {
            QuotaScope::Terminating => pod.terminating,
            QuotaScope::NotTerminating => !pod.terminating,
            QuotaScope::BestEffort => pod.best_effort,
            QuotaScope::NotBestEffort => !pod.best_effort,
            QuotaScope::CrossNamespacePodAffinity => pod.names_namespaces,
            QuotaScope::PriorityClass(condition) => holds(condition, pod.priority_class.as_deref()),
            QuotaScope::VolumeAttributesClass(_) | QuotaScope::Unknown => false,
        })
    }

    /// Returns whether it counts a PersistentVolumeClaim with this VolumeAttributesClass (`pvcMatchesScopeFunc`).
    pub fn match_claim(&self, attributes_class: Option<&str>) -> bool {
        self.0.iter().all(|scope| match scope {
            QuotaScope::VolumeAttributesClass(condition) => holds(condition, attributes_class),
            _ => false,
        })
    }

    /// Returns whether it counts objects of other kinds. These meet no scope.
    pub fn match_others(&self) -> bool {
        self.0.is_empty()
    }
}

/// A condition on the objects that a ResourceQuota counts
/// (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuotaScope {
    /// Pods with a deadline of their own.
    Terminating,
    /// Pods without one.
    NotTerminating,
    /// Pods of which no container states CPU or memory.
    BestEffort,
    /// All other pods.
    NotBestEffort,
    /// Pods with an affinity term that names or selects namespaces.
    CrossNamespacePodAffinity,
    /// Pods by the name of their PriorityClass.
    PriorityClass(Operator),
    /// PersistentVolumeClaims by the name of their VolumeAttributesClass.
    VolumeAttributesClass(Operator),
    /// A scope that is not known here. No object meets it.
    Unknown,
}

/// What the scopes of ResourceQuotas ask of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodScopes {
    /// Whether it has a deadline of its own (`spec.activeDeadlineSeconds`).
    pub terminating: bool,
    /// Whether no container states CPU or memory (QoS class `BestEffort`).
    pub best_effort: bool,
    /// Whether an affinity term of it names or selects namespaces.
    pub names_namespaces: bool,
    /// The name of its PriorityClass, if it names one.
    pub priority_class: Option<String>,
}

/// Returns whether a name, or its absence, meets the condition of a scope. The other operators of labels do not exist here.
fn holds(condition: &Operator, name: Option<&str>) -> bool {
    let is_in = |names: &BTreeSet<String>| name.is_some_and(|name| names.contains(name));
    match condition {
        Operator::In(names) => is_in(names),
        Operator::NotIn(names) => !is_in(names),
        Operator::Exists => name.is_some(),
        Operator::DoesNotExist => name.is_none(),
        Operator::Gt(_) | Operator::Lt(_) | Operator::Gte(_) | Operator::Lte(_) => false,
    }
}
