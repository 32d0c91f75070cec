//! PodGroups: pods that the kube-scheduler places together.

use serde::{Deserialize, Serialize};

use crate::model::group_role::GroupRole;
use crate::model::names::Uid;
use crate::model::pod::Pod;
use crate::model::pod_key::ObjectKey;
use crate::model::unmodelled::UnmodelledRule;

/// A PodGroup (`scheduling.k8s.io/v1alpha2`). It contains neither the specs nor the number of its pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// Policy `gang`: the number of pods that must fit at the same time before any of them is placed. `None` for policy `basic`,
    /// whose pods are placed one by one.
    pub min_count: Option<u32>,
    /// The roles without which its other pods do nothing. A PodGroup of a cluster has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<GroupRole>,
    /// Rules that the planner does not model. If there are any, its pods are not planned.
    pub unmodelled: Vec<UnmodelledRule>,
    /// What it stands for, if it is no object of a cluster: `JobSet ml/train`, whose pods start together.
    #[serde(default)]
    pub stands_for: Option<String>,
}

impl PodGroup {
    /// Returns its name in messages.
    pub fn name(&self) -> String {
        self.stands_for.clone().unwrap_or_else(|| format!("PodGroup {}", self.key))
    }
}

impl GroupRole {
    /// Returns whether a pod of the gang has this role.
    pub fn has(&self, pod: &Pod) -> bool {
        let (key, value) = &self.label;
        pod.labels.get(key) == Some(value)
    }
}
