//! The pods that want a node, as every room after this one sees them.

use crate::model::Pod;
use crate::model::plan::UnplacedPod;

/// A pod that wants a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanting<'a> {
    pub pod: &'a Pod,
    /// Where an earlier plan put it: a claim's or a node's name.
    pub planned_at: Option<&'a str>,
    /// Only an earlier plan may place it: the scheduler has not tried it yet.
    pub sticky_only: bool,
}

/// All waiting workload pods: those that want a node, by key, and the others with the reason.
#[derive(Debug, Default)]
pub(crate) struct Demand<'a> {
    pub wanting: Vec<Wanting<'a>>,
    pub unplaced: Vec<UnplacedPod>,
}
