//! Pending pods of a plan.

pub(crate) mod collect;

use crate::model::Pod;
use crate::model::plan::UnplacedPod;
use crate::supply::rooms::Rooms;
use jiff::Timestamp;

/// The demand after pods with sticky places were removed.
#[derive(Debug, Default)]
pub(crate) struct Settled<'a> {
    /// Pods with a place, with the index into [`Rooms::all`].
    pub placed: Vec<(usize, &'a Pod)>,
    /// Pods without a place.
    pub open: Vec<PendingPod<'a>>,
    pub unplaced: Vec<UnplacedPod>,
    /// The time at which the wait for the first preemption ends.
    pub again_at: Option<Timestamp>,
}

/// A pod that needs a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingPod<'a> {
    pub pod: &'a Pod,
    /// Its place in an earlier plan: the name of a claim or a node.
    pub planned_at: Option<&'a str>,
    /// Whether it may only keep an earlier place, because the scheduler has not tried it yet.
    pub sticky_only: bool,
}

impl PendingPod<'_> {
    /// Returns whether an earlier plan gave it a place on a node or claim that is still open. An open pod has lost this place.
    pub fn displaced(&self, rooms: &Rooms<'_>) -> bool {
        let room = self.planned_at.and_then(|target| rooms.of_target(target));
        room.is_some_and(|at| !rooms.all[at].is_cordoned())
    }
}

/// All pending workload pods: the pods that need a node, by key, and all others with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand<'a> {
    pub pending: Vec<PendingPod<'a>>,
    pub unplaced: Vec<UnplacedPod>,
}
