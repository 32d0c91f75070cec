//! PodGroups: pods that the kube-scheduler places together.

use serde::{Deserialize, Serialize};

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

/// A role in a gang: pods that the others need, such as the master of a training job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupRole {
    /// Its name in messages: `master`.
    pub name: String,
    /// The label of its pods, with its value.
    pub label: (String, String),
    /// The number of its pods that must fit at the same time before any pod of the gang is placed.
    pub least: u32,
}

impl GroupRole {
    /// Returns whether a pod of the gang has this role.
    pub fn has(&self, pod: &Pod) -> bool {
        let (key, value) = &self.label;
        pod.labels.get(key) == Some(value)
    }

    /// Returns what the gang needs of it, in words: `its master`.
    pub fn needed(&self) -> String {
        match self.least {
            1 => format!("its {}", self.name),
            least => format!("{least} pods of its role `{}`", self.name),
        }
    }
}
