//! PodGroups: pods that the kube-scheduler places as one.

use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::pod_key::ObjectKey;
use crate::model::unmodelled::UnmodelledRule;

/// A PodGroup (`scheduling.k8s.io/v1alpha2`). It says nothing of what its pods ask for, nor how many there will be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Policy `gang`: how many of its pods must have room at the same time before any of them is placed. `None` for policy
    /// `basic`, whose pods are placed one by one.
    pub min_count: Option<u32>,
    /// What it asks besides that the planner does not model. Its pods are not planned then.
    pub unmodelled: Vec<UnmodelledRule>,
}
