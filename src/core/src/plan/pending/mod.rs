//! Pods that want a node, as plans hold them. `collect` finds them.

pub(crate) mod collect;

use crate::model::Pod;
use crate::model::plan::UnplacedPod;
use crate::supply::rooms::Rooms;
use jiff::Timestamp;

/// Demand after what is decided was taken out.
#[derive(Debug, Default)]
pub(crate) struct Settled<'a> {
    /// Pods on rooms: index into [`Rooms::all`].
    pub placed: Vec<(usize, &'a Pod)>,
    /// Pods still to be planned.
    pub open: Vec<PendingPod<'a>>,
    pub unplaced: Vec<UnplacedPod>,
    /// When the first of the preemptions that pods wait for is given up.
    pub again_at: Option<Timestamp>,
}

/// A pod that wants a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingPod<'a> {
    pub pod: &'a Pod,
    /// Where an earlier plan put it: a claim's or a node's name.
    pub planned_at: Option<&'a str>,
    /// Only an earlier plan may place it: the scheduler has not tried it yet.
    pub sticky_only: bool,
}

impl PendingPod<'_> {
    /// Whether an earlier plan gave it a place on a node or claim that is still there.
    pub fn displaced(&self, rooms: &Rooms<'_>) -> bool {
        self.planned_at.is_some_and(|target| rooms.of_target(target).is_some())
    }
}

/// All waiting workload pods: those that want a node, by key, and the others with the reason.
#[derive(Debug, Default)]
pub(crate) struct Demand<'a> {
    pub pending: Vec<PendingPod<'a>>,
    pub unplaced: Vec<UnplacedPod>,
}
