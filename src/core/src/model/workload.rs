//! Controllers of pods: Jobs, ReplicaSets and StatefulSets.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::{ObjectKey, OwnerKey};
use crate::model::rules::Requirement;

/// A Job, a ReplicaSet or a StatefulSet that creates all its pods at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// `Job`, `ReplicaSet` or `StatefulSet`.
    pub kind: String,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID, which its pods have as owner.
    pub uid: Uid,
    /// The UID of its own controller.
    pub owner: Option<Uid>,
    /// The number of pods that it creates in total.
    pub total: u64,
    /// The number of pods that it runs at a time; zero while it is suspended, blocked or finished.
    pub wanted: u64,
    /// The number of its pods that exist and have not ended, according to its status.
    pub current: u64,
    /// Whether its template has scheduling gates. Its pods need no node until the gates are removed.
    #[serde(default)]
    pub scheduling_gated: bool,
    /// Its label selector, AND-ed, for default spread constraints. Set for ReplicaSets, StatefulSets and
    /// ReplicationControllers; `None` if unknown or not needed.
    pub selector: Option<Vec<Requirement>>,
}

impl Workload {
    /// Returns the owner in the keys of its expected pods.
    pub fn owner_key(&self) -> OwnerKey {
        OwnerKey {
            namespace: self.key.namespace.clone(),
            kind: self.kind.clone(),
            name: self.key.name.clone(),
        }
    }

    /// Returns its namespace, kind and name, in the order of [`OwnerKey`].
    pub(crate) fn parts(&self) -> (&str, &str, &str) {
        (&self.key.namespace, &self.kind, &self.key.name)
    }

    /// Returns the same workload without expected pods, for when only its selector matters.
    pub fn without_demand(self) -> Self {
        Self { wanted: 0, ..self }
    }
}
