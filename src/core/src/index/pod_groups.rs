//! PodGroups in the index.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{ObjectKey, PodGroup};

impl ClusterIndex {
    /// Adds or replaces a PodGroup. Its pods may be planned now.
    pub fn apply_pod_group(&mut self, group: PodGroup) -> Change {
        put(&mut self.state.pod_groups, group.key.clone(), group)
    }

    /// Removes a PodGroup.
    pub fn delete_pod_group(&mut self, key: &ObjectKey) -> Change {
        self.state.pod_groups.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all PodGroups.
    pub fn reset_pod_groups(&mut self, all: impl IntoIterator<Item = PodGroup>) -> Change {
        reset(&mut self.state.pod_groups, all, |group| group.key.clone())
    }
}
