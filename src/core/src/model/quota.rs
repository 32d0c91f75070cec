//! ResourceQuotas.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod_key::ObjectKey;

/// A ResourceQuota: the part that limits the creation of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// Namespace and name.
    pub key: ObjectKey,
    /// How much of each resource pods of the namespace may still request; `pods` is their number.
    pub left: BTreeMap<String, u64>,
}
