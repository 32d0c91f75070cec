//! DaemonSets whose requests hold the pods that they have.

use poolwright_catalog::ResourceList;

use crate::model::daemonset::DaemonSet;
use crate::model::pods::Pods;

impl DaemonSet {
    /// Returns the DaemonSet with requests that hold each of its pods. Admission gives pods more than the template asks for:
    /// defaults of a LimitRange, injected containers, and the sizes that a VerticalPodAutoscaler sets.
    #[must_use]
    pub fn sized_as(&self, pods: &Pods) -> Self {
        let mut sized = self.clone();
        for requests in pods.daemons.of(self) {
            sized.spec.requests = ResourceList::max(&sized.spec.requests, requests);
        }
        sized
    }
}
