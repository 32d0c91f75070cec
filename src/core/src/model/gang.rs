//! Gangs: pods of several controllers that one object describes, such as a JobSet or a LeaderWorkerSet.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod::Pod;
use crate::model::pod_key::{ObjectKey, OwnerKey};

/// A JobSet or a LeaderWorkerSet, with the number of its pods and their templates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    /// `JobSet` or `LeaderWorkerSet`.
    pub kind: String,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Its parts, in the order of the spec. Empty while it is suspended, finished or being deleted.
    pub parts: Vec<GangPart>,
}

impl Gang {
    /// Returns the owner in the keys of the expected pods of one part.
    pub fn owner_key(&self, part: &GangPart) -> OwnerKey {
        OwnerKey {
            namespace: self.key.namespace.clone(),
            kind: self.kind.clone(),
            name: format!("{}.{}", self.key.name, part.name),
        }
    }
}

/// The pods of a gang that are created from one template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangPart {
    /// Its name, without a dot: the replicated job's name, or `leader` or `workers`.
    pub name: String,
    /// The kind of controller that creates its pods: `Job` or `StatefulSet`.
    pub controller: String,
    /// The names of those controllers, in the gang's namespace.
    pub controllers: Vec<String>,
    /// The number of pods that each of those controllers runs at a time.
    pub pods_per_controller: u64,
    /// Whether missing controllers are about to be created. If false, they are created only when other parts run.
    pub creates_missing: bool,
    /// An example of its pods.
    pub example: Pod,
}
