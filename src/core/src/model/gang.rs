//! Gangs: sets of pods that several controllers make, as one object says.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod::Pod;
use crate::model::pod_key::{ObjectKey, OwnerKey};

/// A JobSet or a LeaderWorkerSet, as far as it says how many pods there will be and what they will be like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    /// `JobSet` or `LeaderWorkerSet`.
    pub kind: String,
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Its parts, in the order in which they are written; none while it is suspended, done or being deleted.
    pub parts: Vec<GangPart>,
}

impl Gang {
    /// The owner in the keys of the pods that one of its parts is expected to have.
    pub fn owner_key(&self, part: &GangPart) -> OwnerKey {
        OwnerKey {
            namespace: self.key.namespace.clone(),
            kind: self.kind.clone(),
            name: format!("{}.{}", self.key.name, part.name),
        }
    }
}

/// Pods of a gang that are made from one template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GangPart {
    /// Its name, without a dot: that of the replicated job, or `leader` or `workers`.
    pub name: String,
    /// What kind of controller makes its pods: `Job` or `StatefulSet`.
    pub controller: String,
    /// The names of those controllers, in the gang's namespace.
    pub controllers: Vec<String>,
    /// How many pods each of them wants at a time.
    pub each: u64,
    /// Whether controllers that are not there yet are made now; else they wait until others run.
    pub comes: bool,
    /// What its pods will be like.
    pub example: Pod,
}
