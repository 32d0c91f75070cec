//! The sizes of the pods of DaemonSets, so that no DaemonSet needs a scan of all pods.

use poolwright_catalog::ResourceList;

use crate::model::daemonset::DaemonSet;
use crate::model::persistent_map::PersistentMap;
use crate::model::pod::{Pod, PodPhase, PodRole};
use crate::model::pod_key::{ObjectKey, prefix_of};

/// The number of DaemonSet pods of each origin and size. Pods that have ended or are being deleted do not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DaemonSizes(PersistentMap<(Origin, ResourceList), u32>);

/// Where the pod of a DaemonSet comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// The DaemonSet that the pod names as its controller.
    Named(ObjectKey),
    /// The namespace and the start of the name of a pod that does not name its DaemonSet.
    Guessed(ObjectKey),
}

impl DaemonSizes {
    /// Counts a pod.
    pub fn add(&mut self, pod: &Pod) {
        let Some(size) = size_of(pod) else { return };
        let count = self.0.get(&size).copied().unwrap_or_default();
        self.0.insert(size, count + 1);
    }

    /// Counts a pod no longer.
    pub fn remove(&mut self, pod: &Pod) {
        let Some(size) = size_of(pod) else { return };
        match self.0.get(&size).copied() {
            Some(count) if count > 1 => drop(self.0.insert(size, count - 1)),
            _ => drop(self.0.remove(&size)),
        }
    }

    /// Returns the different requests of the pods of a DaemonSet.
    pub fn of<'a>(&'a self, set: &DaemonSet) -> impl Iterator<Item = &'a ResourceList> {
        let guessed = ObjectKey::new(set.key.namespace.as_str(), set.pod_prefix());
        let origins = [Origin::Named(set.key.clone()), Origin::Guessed(guessed)];
        origins.into_iter().flat_map(move |origin| self.of_origin(origin))
    }

    fn of_origin(&self, origin: Origin) -> impl Iterator<Item = &ResourceList> {
        let first = (origin, ResourceList::new());
        let from_first = self.0.range_from(&first);
        let theirs = from_first.take_while(move |((origin, _), _)| *origin == first.0);
        theirs.map(|((_, requests), _)| requests)
    }
}

fn size_of(pod: &Pod) -> Option<(Origin, ResourceList)> {
    let ends = pod.phase == PodPhase::Finished || pod.deleting_since.is_some();
    if pod.role != PodRole::DaemonSet || ends {
        return None;
    }
    let key = |name: &str| ObjectKey::new(pod.key.namespace(), name);
    let origin = match &pod.daemonset {
        Some(name) => Origin::Named(key(name)),
        None => Origin::Guessed(key(prefix_of(&pod.key.name())?)),
    };
    Some((origin, pod.spec.requests.clone()))
}
