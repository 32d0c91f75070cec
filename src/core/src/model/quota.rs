//! ResourceQuotas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod_key::ObjectKey;

/// A ResourceQuota: the part that limits the creation of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The amount of each resource that pods of the namespace may still request; `pods` is the number of pods.
    pub left: BTreeMap<String, u64>,
}
