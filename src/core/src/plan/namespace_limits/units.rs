//! The pods of a namespace for which a plan buys nodes, in units that get their nodes together or not at all.
//!
//! The unit of a gang is its minimum: as many of its pods as must start together, with those that its roles need. Each further pod is
//! a unit of its own, which counts only with the minimum.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::demand::{is_there, pod_group};
use crate::model::plan::Plan;
use crate::model::{ObjectKey, Pod, PodKey};
use crate::plan::context::PlanContext;
use crate::plan::pending::PendingPod;
use crate::supply::namespace_use::counts;

/// The place of a pod on a new node: the index of the node.
pub(super) type Place<'p> = dyn Fn(&PendingPod<'_>) -> Option<usize> + 'p;

/// The order in which the pods of a namespace get what its limits allow: successors of running pods, then others by priority, pods
/// that exist, and older pods.
type Rank<'a> = (bool, Reverse<i32>, bool, Timestamp, &'a PodKey);

/// Pods that are held back together: one pod, or the pods of a gang without which none of it starts.
pub(super) struct Unit<'a> {
    rank: Rank<'a>,
    /// The gang of the pods, if they are of one.
    pub gang: Option<ObjectKey>,
    /// Whether it is the minimum of the gang.
    pub is_gang: bool,
    /// The pods, without those that have the place of an earlier plan.
    pub pods: Vec<&'a Pod>,
    /// The pods on new nodes, each with the index of its node.
    pub on_new: Vec<(usize, &'a Pod)>,
}

impl<'a> PlanContext<'a> {
    /// Returns the pods of a namespace on new nodes, in the order in which they get what its limits allow. The minimum of a gang comes
    /// before its further pods. Without a plan, all pods that wait count as placed.
    pub(super) fn units(&self, namespace: &str, place: &Place<'_>, plan: Option<&Plan>) -> Vec<Unit<'a>> {
        let mut units: Vec<Unit<'a>> = Vec::new();
        let mut gangs: BTreeMap<ObjectKey, Vec<&PendingPod<'a>>> = BTreeMap::new();
        let is_theirs = |want: &&PendingPod<'a>| want.pod.key.namespace() == namespace && counts(want.pod);
        for want in self.demand.pending.iter().filter(is_theirs) {
            let at = place(want);
            if let Some(gang) = self.groups.gang_of(want.pod) {
                gangs.entry(gang).or_default().push(want);
            } else if at.is_some() {
                let mut unit = Unit::new(want.pod, None, false);
                unit.add(want, at);
                units.push(unit);
            }
        }
        let spare = if gangs.is_empty() {
            BTreeMap::new()
        } else {
            self.groups.beyond_minimum(self.snapshot, &self.demand.pending, plan)
        };
        for (gang, mut members) in gangs {
            members.sort_by_key(|want| rank(want.pod));
            let mut spare = spare.get(&gang).cloned().unwrap_or_default();
            let group = pod_group(self.snapshot, &gang);
            let mut minimum = Unit::new(members[0].pod, Some(gang.clone()), true);
            for want in members.into_iter().rev() {
                let (at, is_there) = (place(want), is_there(want.pod));
                // Pods that are only expected do not count for the minimum.
                if at.is_some() && (!is_there || spare.spare(group, want.pod)) {
                    let mut unit = Unit::new(want.pod, Some(gang.clone()), false);
                    unit.add(want, at);
                    units.push(unit);
                } else {
                    minimum.add(want, at);
                }
            }
            units.extend(Some(minimum).filter(|unit| !unit.on_new.is_empty()));
        }
        units.sort_by_key(|unit| (unit.rank, !unit.is_gang));
        units
    }
}

impl<'a> Unit<'a> {
    fn new(first: &'a Pod, gang: Option<ObjectKey>, is_gang: bool) -> Self {
        Self { rank: rank(first), gang, is_gang, pods: Vec::new(), on_new: Vec::new() }
    }

    fn add(&mut self, want: &PendingPod<'a>, at: Option<usize>) {
        if at.is_some() || want.planned_at.is_none() {
            self.pods.push(want.pod);
        }
        self.on_new.extend(at.map(|at| (at, want.pod)));
    }
}

fn rank(pod: &Pod) -> Rank<'_> {
    (pod.replaces.is_none(), Reverse(pod.priority), pod.key.existing().is_none(), pod.created, &pod.key)
}
