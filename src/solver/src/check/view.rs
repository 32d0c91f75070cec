//! The nodes of a plan as the rules see them: the room of each and its pods.

use std::fmt;

use crate::problem::Problem;
use crate::solution::{GpuLayout, Placement, Solution};

/// The node of a plan that a violation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// Nodes to buy: the candidate's name, and the position of the group in the plan.
    New {
        /// The candidate's name.
        candidate: String,
        /// Position in [`crate::Solution::new_nodes`].
        group: usize,
    },
    /// An existing node by name.
    Existing(String),
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { candidate, group } => write!(f, "new node `{candidate}` (group {group})"),
            Self::Existing(name) => write!(f, "existing node `{name}`"),
        }
    }
}

/// One group of equal nodes of the plan, with the room and the pods of each.
pub(super) struct NodeView<'a> {
    pub reference: NodeRef,
    pub room: &'a [u64],
    /// The pods that the plan places on each of these nodes.
    pub pods: &'a [Placement],
    /// The pods that run on a removable node and stay; `room` excludes their requests.
    pub staying: &'a [Placement],
    pub layout: &'a [GpuLayout],
    pub domains: &'a [(u32, u32)],
    /// The index of the candidate or existing node.
    pub index: u32,
    pub existing: bool,
    /// The number of such nodes.
    pub count: u32,
}

impl NodeView<'_> {
    /// Returns the value that these nodes have of a topology.
    pub fn value(&self, topology: u32) -> Option<u32> {
        value(self.domains, topology)
    }
}

/// Returns the value of a topology among a node's domains.
pub(crate) fn value(domains: &[(u32, u32)], topology: u32) -> Option<u32> {
    domains.binary_search_by_key(&topology, |(of, _)| *of).ok().map(|at| domains[at].1)
}

/// Returns the name of a topology's value.
pub(super) fn value_name(problem: &Problem, topology: u32, value: u32) -> String {
    problem.topologies[topology as usize].values[value as usize].clone()
}

/// Returns every group of bought nodes and every used existing node.
pub(super) fn nodes<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = NodeView<'a>> {
    let new = solution.new_nodes.iter().enumerate().map(|(group, nodes)| {
        let candidate = &problem.candidates[nodes.candidate as usize];
        NodeView {
            reference: NodeRef::New { candidate: candidate.name.clone(), group },
            room: &candidate.capacity,
            pods: &nodes.pods,
            staying: &[],
            layout: &nodes.gpus,
            domains: &candidate.domains,
            index: nodes.candidate,
            existing: false,
            count: nodes.count,
        }
    });
    let existing = solution.on_existing.iter().map(|used| {
        let node = &problem.existing[used.node as usize];
        NodeView {
            reference: NodeRef::Existing(node.name.clone()),
            room: &node.free,
            pods: &used.pods,
            staying: node.removal.as_ref().map_or(&[], |removal| &removal.pods),
            layout: &used.gpus,
            domains: &node.domains,
            index: used.node,
            existing: true,
            count: 1,
        }
    });
    new.chain(existing)
}

/// Returns the domains and the pods of removable nodes that stay.
pub(super) fn staying<'a>(
    problem: &'a Problem,
    solution: &'a Solution,
) -> impl Iterator<Item = (&'a [(u32, u32)], &'a [Placement])> {
    problem.existing.iter().enumerate().filter_map(|(index, node)| {
        let removal = node.removal.as_ref()?;
        let stays = solution.removed.binary_search(&(index as u32)).is_err();
        stays.then_some((&node.domains[..], &removal.pods[..]))
    })
}

/// Returns the number of pods of `class` in `pods`, which ascend by class.
pub(super) fn count_of(pods: &[Placement], class: u32) -> u32 {
    pods.binary_search_by_key(&class, |(of, _)| *of).map_or(0, |at| pods[at].1)
}
