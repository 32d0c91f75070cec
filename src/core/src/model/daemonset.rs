//! DaemonSets, and the sizes of their pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::pod::{Pod, PodRole, PodSpec};
use crate::model::pod_key::{DAEMON_SUFFIX, ObjectKey, prefix_of};

/// The longest prefix of a pod's name before its random suffix.
const MAX_PREFIX: usize = 63 - DAEMON_SUFFIX;

/// A DaemonSet, with the resources that its pods take on each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonSet {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// The spec of its pods. Its requests are those of the template, or of its pods if they ask for more.
    pub spec: PodSpec,
}

impl DaemonSet {
    /// Returns the start of the names of its pods, by the naming of the DaemonSet controller.
    pub fn pod_prefix(&self) -> String {
        let mut prefix = format!("{}-", self.key.name);
        if prefix.is_char_boundary(MAX_PREFIX) {
            prefix.truncate(MAX_PREFIX);
        }
        prefix
    }

    /// Returns whether a pod is one of its pods: by the controller that the pod names, or else by the start of its name. `prefix` is
    /// [`Self::pod_prefix`].
    pub(crate) fn has_made(&self, pod: &Pod, prefix: &str) -> bool {
        let is_named = || match &pod.daemonset {
            Some(name) => *name == self.key.name,
            None => prefix_of(&pod.key.name()) == Some(prefix),
        };
        pod.role == PodRole::DaemonSet && pod.key.namespace() == self.key.namespace && is_named()
    }
}
