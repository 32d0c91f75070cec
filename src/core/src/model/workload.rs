//! Controllers of pods, as far as they say how many there will be.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::{ObjectKey, OwnerKey};
use crate::model::rules::Requirement;

/// A Job, a ReplicaSet or a StatefulSet that makes all its pods at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// `Job`, `ReplicaSet` or `StatefulSet`.
    pub kind: String,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID, which its pods name as their owner's.
    pub uid: Uid,
    /// The UID of the controller that made it.
    pub owner: Option<Uid>,
    /// How many pods it is to have in the end, in whatever order it makes them.
    pub total: u64,
    /// How many pods it wants at a time, now; zero while it is suspended, kept from making pods, or done.
    pub wanted: u64,
    /// How many it says that it has made and that have not ended.
    pub made: u64,
    /// Whether its template has scheduling gates: what it makes wants no node until something lets it go.
    #[serde(default)]
    pub held: bool,
    /// What its pods are like, AND-ed, where a scheduler's default spread goes by it: for ReplicaSets, StatefulSets and
    /// ReplicationControllers. `None` where it is not known or nobody asks.
    pub selector: Option<Vec<Requirement>>,
}

impl Workload {
    /// The owner in the keys of the pods that it is expected to make.
    pub fn owner_key(&self) -> OwnerKey {
        OwnerKey {
            namespace: self.key.namespace.clone(),
            kind: self.kind.clone(),
            name: self.key.name.clone(),
        }
    }

    /// Its namespace, kind and name, in the order of [`OwnerKey`].
    pub(crate) fn parts(&self) -> (&str, &str, &str) {
        (&self.key.namespace, &self.kind, &self.key.name)
    }

    /// The same, with no pod still to come: where only its selector matters.
    pub fn without_demand(self) -> Self {
        Self { wanted: 0, ..self }
    }
}
