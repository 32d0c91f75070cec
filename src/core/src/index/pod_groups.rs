//! PodGroups in the index.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{GangScheduler, ObjectKey, PodGroup};

impl ClusterIndex {
    /// Adds or replaces a PodGroup. Its pods may be planned now.
    pub fn apply_pod_group(&mut self, group: PodGroup) -> Change {
        put(&mut self.state.pod_groups, group.key.clone(), group)
    }

    /// Removes a PodGroup.
    pub fn delete_pod_group(&mut self, key: &ObjectKey) -> Change {
        self.state.pod_groups.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all PodGroups of a scheduler, or those of Kubernetes (`None`).
    pub fn reset_pod_groups(
        &mut self,
        of: Option<GangScheduler>,
        all: impl IntoIterator<Item = PodGroup>,
    ) -> Change {
        let groups = &mut self.state.pod_groups;
        let stays = |group: &PodGroup| GangScheduler::of(&group.key.name) != of;
        let others: Vec<PodGroup> =
            groups.values().filter(|group| stays(group)).map(|group| PodGroup::clone(group)).collect();
        reset(groups, others.into_iter().chain(all), |group| group.key.clone())
    }
}
