//! DaemonSets, and the sizes of their pods.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use crate::model::pod::PodSpec;
use crate::model::pod_key::{DAEMON_SUFFIX, ObjectKey};
use crate::model::pods::Pods;

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

    /// Returns the DaemonSet with requests that hold each of its pods. Admission gives pods more than the template asks for:
    /// defaults of a LimitRange, injected containers, and the sizes that a VerticalPodAutoscaler sets.
    #[must_use]
    pub fn sized_as(&self, pods: &Pods) -> Self {
        let mut sized = self.clone();
        for requests in pods.requests_of_daemons(&self.key.namespace, &self.pod_prefix()) {
            sized.spec.requests = ResourceList::max(&sized.spec.requests, requests);
        }
        sized
    }
}
