//! PodGroups whose pods the kube-scheduler holds back, and whether they lack pods or room.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::demand::planned_at::planned_at;
use crate::model::{ObjectKey, Pod, PodGroup, PodPhase, Snapshot};

/// The state of a PodGroup and its existing pods.
#[derive(Debug)]
pub(crate) struct GroupState<'a> {
    /// The PodGroup; `None` if it does not exist.
    pub group: Option<&'a PodGroup>,
    /// The number of bound pods, including pods that are being deleted, because the scheduler counts them too.
    pub bound: usize,
    /// The number of all its pods.
    pub there: usize,
    /// The highest priority of its pods.
    pub priority: i32,
    /// The time at which the first of its pods was created.
    pub created: Timestamp,
}

impl GroupState<'_> {
    /// Returns the number of pods that must fit at the same time; `None` if pods are placed one by one.
    pub fn least(&self) -> Option<usize> {
        self.group?.min_count.map(|count| usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Returns its name in messages.
    pub fn name(&self, key: &ObjectKey) -> String {
        self.group.map_or_else(|| format!("PodGroup {key}"), PodGroup::name)
    }
}

/// The thing that a held PodGroup lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Pods, or the PodGroup itself. They may be about to be created.
    Pods,
    /// Room. Its pods exist, but too few of them have a place.
    Room,
}

/// Returns the PodGroups whose pods the scheduler holds back, and whether each lacks pods or room.
pub(crate) fn incomplete(snapshot: &Snapshot) -> BTreeMap<ObjectKey, Lack> {
    let mut places: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for pod in snapshot.pods.unbound() {
        if let Some(key) = pod.group_key() {
            let waits = matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
            let has = waits && pod.deleting_since.is_none() && planned_at(snapshot, pod).is_some();
            *places.entry(key).or_default() += usize::from(has);
        }
    }
    let lacks = |(key, have): (ObjectKey, usize)| {
        let state = state(snapshot, &key);
        if state.group.is_none() {
            return Some((key, Lack::Pods));
        }
        let least = state.least()?;
        let lack = if state.there < least { Lack::Pods } else { Lack::Room };
        (state.bound + have < least).then_some((key, lack))
    };
    places.into_iter().filter_map(lacks).collect()
}

/// Returns the state of a PodGroup and its existing pods.
pub(crate) fn state<'a>(snapshot: &'a Snapshot, key: &ObjectKey) -> GroupState<'a> {
    let group = snapshot.pod_groups.get(key).map(AsRef::as_ref);
    let mut state = GroupState { group, bound: 0, there: 0, priority: i32::MIN, created: Timestamp::MAX };
    for pod in snapshot.pods.of_group(key).filter(|pod| is_there(pod)) {
        state.there += 1;
        state.bound += usize::from(matches!(pod.phase, PodPhase::Bound { .. }));
        state.priority = state.priority.max(pod.priority);
        state.created = state.created.min(pod.created);
    }
    state
}

/// Returns whether the pod counts for the start of a gang, which means that it exists or is the successor of an existing pod.
pub(crate) fn is_there(pod: &Pod) -> bool {
    pod.key.existing().is_some() || pod.replaces.is_some()
}
