//! PodGroups whose pods the kube-scheduler holds back, and whether they lack pods or room.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::demand::planned_at::planned_at;
use crate::model::{GroupRole, ObjectKey, Pod, PodGroup, PodPhase, Snapshot};

/// A number of pods of a PodGroup, and how many of them have each of its roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    /// The number of pods.
    pub all: usize,
    /// The number of pods by role, in the order of the roles. It may be shorter: the rest is zero.
    of_roles: Vec<usize>,
}

impl Members {
    /// Counts a pod of the PodGroup.
    pub fn add(&mut self, group: Option<&PodGroup>, pod: &Pod) {
        self.all += 1;
        let roles = group.map_or(0, |group| group.roles.len());
        self.of_roles.resize(roles, 0);
        for at in roles_of(group, pod) {
            self.of_roles[at] += 1;
        }
    }

    /// Returns both numbers together.
    fn plus(&self, other: &Self) -> Self {
        let roles = self.of_roles.len().max(other.of_roles.len());
        let of_roles = (0..roles).map(|at| self.of_role(at) + other.of_role(at)).collect();
        Self { all: self.all + other.all, of_roles }
    }

    /// Counts a pod off if it is one of those that are still lacking, and returns whether it is.
    pub fn meet(&mut self, group: Option<&PodGroup>, pod: &Pod) -> bool {
        if self.meet_role(group, pod) {
            return true;
        }
        let of_roles: usize = self.of_roles.iter().sum();
        let is_lacking = self.all > of_roles;
        self.all -= usize::from(is_lacking);
        is_lacking
    }

    /// Counts a pod off if it has a role that is still lacking, and returns whether it has.
    pub fn meet_role(&mut self, group: Option<&PodGroup>, pod: &Pod) -> bool {
        let lacking = roles_of(group, pod).find(|at| self.of_role(*at) > 0);
        if let Some(at) = lacking {
            self.of_roles[at] -= 1;
            self.all = self.all.saturating_sub(1);
        }
        lacking.is_some()
    }

    /// Counts a pod off if it can be spared: of all pods and of each of its roles, one is left. Returns whether it can.
    pub fn spare(&mut self, group: Option<&PodGroup>, pod: &Pod) -> bool {
        let can = self.all > 0 && roles_of(group, pod).all(|at| self.of_role(at) > 0);
        if can {
            self.all -= 1;
            for at in roles_of(group, pod) {
                self.of_roles[at] -= 1;
            }
        }
        can
    }

    fn of_role(&self, at: usize) -> usize {
        self.of_roles.get(at).copied().unwrap_or_default()
    }
}

/// Returns the roles that a pod has, by their index.
fn roles_of(group: Option<&PodGroup>, pod: &Pod) -> impl Iterator<Item = usize> {
    let roles = group.into_iter().flat_map(|group| &group.roles).enumerate();
    roles.filter(move |(_, role)| role.has(pod)).map(|(at, _)| at)
}

/// The state of a PodGroup and its existing pods.
#[derive(Debug)]
pub(crate) struct GroupState<'a> {
    /// The PodGroup; `None` if it does not exist.
    pub group: Option<&'a PodGroup>,
    /// The bound pods. Those of a PodGroup that are being deleted are among them, because the scheduler counts them too.
    pub bound: Members,
    /// All its pods.
    pub there: Members,
    /// The highest priority of its pods.
    pub priority: i32,
    /// The time at which the first of its pods was created.
    pub created: Timestamp,
}

impl<'a> GroupState<'a> {
    /// Returns the number of pods that must fit at the same time; `None` if pods are placed one by one.
    pub fn least(&self) -> Option<usize> {
        self.group?.min_count.map(number)
    }

    /// Returns the pods that have room: the bound ones and those with a place.
    pub fn room(&self, placed: Option<&Members>) -> Members {
        placed.map_or_else(|| self.bound.clone(), |placed| self.bound.plus(placed))
    }

    /// Returns how many further pods must have room besides these, so that any is placed.
    pub fn shortage(&self, members: &Members) -> Members {
        let Some(least) = self.least() else { return Members::default() };
        let roles = self.roles().enumerate();
        let of_roles = roles.map(|(at, role)| number(role.least).saturating_sub(members.of_role(at)));
        let of_roles: Vec<usize> = of_roles.collect();
        let all = least.saturating_sub(members.all).max(of_roles.iter().sum());
        Members { all, of_roles }
    }

    /// Returns the first role of which a shortage has pods, and how many of its pods there are.
    pub fn lacking_role(&self, shortage: &Members) -> Option<(&'a GroupRole, usize)> {
        let lacking = self.roles().enumerate().find(|(at, _)| shortage.of_role(*at) > 0);
        lacking.map(|(at, role)| (role, number(role.least).saturating_sub(shortage.of_role(at))))
    }

    /// Returns how many of these pods are beyond the minimum; `None` if pods are placed one by one.
    pub fn beyond(&self, members: &Members) -> Option<Members> {
        let all = members.all.saturating_sub(self.least()?);
        let roles = self.roles().enumerate();
        let of_roles = roles.map(|(at, role)| members.of_role(at).saturating_sub(number(role.least)));
        Some(Members { all, of_roles: of_roles.collect() })
    }

    /// Returns its name in messages.
    pub fn name(&self, key: &ObjectKey) -> String {
        self.group.map_or_else(|| format!("PodGroup {key}"), PodGroup::name)
    }

    fn roles(&self) -> impl Iterator<Item = &'a GroupRole> + use<'a> {
        self.group.into_iter().flat_map(|group| &group.roles)
    }
}

fn number(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The thing that a held PodGroup lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Pods, the PodGroup itself, or its turn in a queue. They may be about to come.
    Pods,
    /// Room. Its pods exist, but too few of them have a place.
    Room,
}

/// Returns the PodGroups whose pods the scheduler holds back, and whether each lacks pods or room.
pub(crate) fn incomplete(snapshot: &Snapshot) -> BTreeMap<ObjectKey, Lack> {
    let mut places: BTreeMap<ObjectKey, Members> = BTreeMap::new();
    for pod in snapshot.pods.unbound() {
        if let Some(key) = pod.group_key() {
            let waits = matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
            let has = waits && pod.deleting_since.is_none() && planned_at(snapshot, pod).is_some();
            let group = group(snapshot, &key);
            let places = places.entry(key).or_default();
            if has {
                places.add(group, pod);
            }
        }
    }
    let lacks = |(key, have): (ObjectKey, Members)| {
        let state = state(snapshot, &key);
        if state.group.is_none_or(|group| group.held.is_some()) {
            return Some((key, Lack::Pods));
        }
        let lack = if state.shortage(&state.there).all > 0 { Lack::Pods } else { Lack::Room };
        (state.shortage(&state.room(Some(&have))).all > 0).then_some((key, lack))
    };
    places.into_iter().filter_map(lacks).collect()
}

/// Returns a PodGroup, if it exists.
pub(crate) fn group<'a>(snapshot: &'a Snapshot, key: &ObjectKey) -> Option<&'a PodGroup> {
    snapshot.pod_group(key)
}

/// Returns the state of a PodGroup and its existing pods.
pub(crate) fn state<'a>(snapshot: &'a Snapshot, key: &ObjectKey) -> GroupState<'a> {
    let group = group(snapshot, key);
    let (bound, there) = (Members::default(), Members::default());
    let mut state = GroupState { group, bound, there, priority: i32::MIN, created: Timestamp::MAX };
    for pod in snapshot.pods.of_group(key).filter(|pod| is_there(pod)) {
        state.there.add(group, pod);
        if matches!(pod.phase, PodPhase::Bound { .. }) {
            state.bound.add(group, pod);
        }
        state.priority = state.priority.max(pod.priority);
        state.created = state.created.min(pod.created);
    }
    state
}

/// Returns whether the pod counts for the start of a gang, which means that it exists or is the successor of an existing pod. The gang
/// of marked pods is without those that are being deleted.
pub(crate) fn is_there(pod: &Pod) -> bool {
    let is_leaving = pod.gang.is_some() && pod.deleting_since.is_some();
    !is_leaving && (pod.key.existing().is_some() || pod.replaces.is_some())
}
