//! Gangs that follow from their pods alone, because an operator writes on each of them what it belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::gang_mark::GangMark;
use crate::model::group_role::GroupRole;
use crate::model::names::Uid;
use crate::model::persistent_map::PersistentMap;
use crate::model::pod::{Pod, PodPhase};
use crate::model::pod_group::PodGroup;
use crate::model::pod_key::ObjectKey;

/// The gangs of marked pods. The pods that exist, have not ended and are not being deleted are the gang.
#[derive(Clone, Debug, Default)]
pub(crate) struct MarkedGangs {
    by_key: PersistentMap<ObjectKey, Marked>,
}

/// A gang, with the number of its pods by mark.
#[derive(Clone, Debug)]
struct Marked {
    marks: BTreeMap<GangMark, u32>,
    group: Arc<PodGroup>,
}

impl MarkedGangs {
    /// Returns a gang.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<PodGroup>> {
        self.by_key.get(key).map(|gang| &gang.group)
    }

    /// Counts a pod.
    pub fn add(&mut self, pod: &Pod) {
        self.change(pod, |count| count + 1);
    }

    /// Counts a pod off.
    pub fn remove(&mut self, pod: &Pod) {
        self.change(pod, |count| count.saturating_sub(1));
    }

    fn change(&mut self, pod: &Pod, change: impl FnOnce(u32) -> u32) {
        let (Some(mark), Some(key)) = (pod.gang.as_deref(), pod.group_key()) else { return };
        let is_there = pod.key.existing().is_some() && pod.deleting_since.is_none();
        if !is_there || pod.phase == PodPhase::Finished {
            return;
        }
        let mut marks = self.by_key.get(&key).map(|gang| gang.marks.clone()).unwrap_or_default();
        let count = change(marks.remove(mark).unwrap_or_default());
        if count > 0 {
            marks.insert(mark.clone(), count);
        }
        if marks.is_empty() {
            self.by_key.remove(&key);
        } else {
            let group = Arc::new(group_of(&key, &marks));
            self.by_key.insert(key, Marked { marks, group });
        }
    }
}

/// Returns the gang of pods with these marks. All that are there start together, unless one of them says that fewer are enough.
fn group_of(key: &ObjectKey, marks: &BTreeMap<GangMark, u32>) -> PodGroup {
    let of_role = |(mark, count): (&GangMark, &u32)| Some(GroupRole { least: *count, ..mark.role.clone()? });
    let mut roles: Vec<GroupRole> = marks.iter().filter_map(of_role).collect();
    let needed: u32 = roles.iter().map(|role| role.least).sum();
    let others = marks.values().sum::<u32>() - needed;
    let enough =
        marks.keys().filter_map(|mark| mark.enough).min().map_or(others, |enough| enough.min(others));
    // If none may be missing, the number says enough.
    if enough == others {
        roles.clear();
    }
    let least = needed + enough;
    PodGroup {
        key: key.clone(),
        uid: Uid(key.name.clone()),
        min_count: (least > 1 || !roles.is_empty()).then_some(least),
        roles,
        unmodelled: Vec::new(),
        stands_for: Some(key.name.clone()),
        held: None,
    }
}
