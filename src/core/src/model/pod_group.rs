//! PodGroups: pods that the kube-scheduler places together.

use serde::{Deserialize, Serialize};

use crate::model::group_role::GroupRole;
use crate::model::names::Uid;
use crate::model::pod::Pod;
use crate::model::pod_key::ObjectKey;
use crate::model::unmodelled::UnmodelledRule;

/// Another scheduler that has PodGroups of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangScheduler {
    /// Volcano.
    Volcano,
    /// The plugin coscheduling of the kube-scheduler.
    Coscheduling,
}

impl GangScheduler {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Volcano, Self::Coscheduling];

    /// Returns the API group and version of its PodGroups.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Volcano => "scheduling.volcano.sh/v1beta1",
            Self::Coscheduling => "scheduling.x-k8s.io/v1alpha1",
        }
    }

    /// Returns the API group of its PodGroups.
    pub fn api_group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the name of one of its PodGroups in the model. No PodGroup of Kubernetes has such a name.
    pub fn model_name(self, name: &str) -> String {
        format!("{name} of {}", self.api_group())
    }

    /// Returns whose PodGroup has this name in the model; `None` for one of Kubernetes, and for a gang without a PodGroup.
    pub fn of(model_name: &str) -> Option<Self> {
        let (_, group) = model_name.rsplit_once(" of ")?;
        Self::ALL.into_iter().find(|scheduler| scheduler.api_group() == group)
    }
}

/// A PodGroup: of Kubernetes (`scheduling.k8s.io/v1alpha2`), or of a [`GangScheduler`]. It contains neither the specs nor the number
/// of its pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodGroup {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Its UID.
    pub uid: Uid,
    /// The number of pods that must fit at the same time before any of them is placed (`minCount` of policy `gang`, `minMember`).
    /// `None` if pods are placed one by one (policy `basic`).
    pub min_count: Option<u32>,
    /// The roles without which its other pods do nothing. A PodGroup of Kubernetes has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<GroupRole>,
    /// Rules that the planner does not model. If there are any, its pods are not planned.
    pub unmodelled: Vec<UnmodelledRule>,
    /// What it stands for, if it is no PodGroup of Kubernetes: `JobSet ml/train`, whose pods start together.
    #[serde(default)]
    pub stands_for: Option<String>,
    /// Why its scheduler tries none of its pods yet, although they are there, such as a queue without room. `None` if nothing holds
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
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
