//! Assigns pods to single GPUs when a plan becomes a solution.

use std::collections::BTreeMap;

use crate::gpu::{Room, layout};
use crate::problem::{GpuRequest, Problem};
use crate::solution::{ExistingUse, GpuLayout, NewNodes, Placement, Unplaced, UnplacedReason};

/// Nodes with the layout of their GPUs.
///
/// The packing search has a step limit, though a far higher one than while patterns are tried. If it cannot find a
/// packing again, pods are left out one by one.
pub(crate) struct LaidOut<'a> {
    problem: &'a Problem,
    /// The pods left out, by class of the problem.
    pub lost: BTreeMap<u32, u64>,
}

impl<'a> LaidOut<'a> {
    /// Creates an empty record.
    pub fn new(problem: &'a Problem) -> Self {
        Self { problem, lost: BTreeMap::new() }
    }

    /// Lays out new nodes, and sorts them.
    pub fn new_nodes(&mut self, nodes: Vec<NewNodes>) -> Vec<NewNodes> {
        let mut grouped: BTreeMap<(u32, Vec<Placement>, Vec<GpuLayout>), u32> = BTreeMap::new();
        for group in nodes {
            let room = self.problem.candidates[group.candidate as usize].gpus.as_ref().map(Room::of_new);
            let (pods, gpus) = self.lay_out(room, group.pods, group.count.into());
            *grouped.entry((group.candidate, pods, gpus)).or_default() += group.count;
        }
        let nodes = grouped.into_iter();
        let mut nodes: Vec<NewNodes> =
            nodes.map(|((candidate, pods, gpus), count)| NewNodes { candidate, pods, count, gpus }).collect();
        nodes.sort();
        nodes
    }

    /// Lays out existing nodes, and sorts them.
    pub fn on_existing(&mut self, nodes: Vec<(u32, Vec<Placement>)>) -> Vec<ExistingUse> {
        let mut used: Vec<ExistingUse> = nodes
            .into_iter()
            .map(|(node, pods)| {
                let states = &self.problem.existing[node as usize].gpus;
                let room = (!states.is_empty()).then(|| Room::of_existing(states));
                let (pods, gpus) = self.lay_out(room, pods, 1);
                ExistingUse { node, pods, gpus }
            })
            .collect();
        used.sort();
        used
    }

    /// Adds the pods that were left out.
    pub fn leave_out(self, unplaced: &mut Vec<Unplaced>) {
        let reason = UnplacedReason::NoLayout;
        for (class, count) in self.lost {
            match unplaced.iter_mut().find(|left| left.class == class && left.reason == reason) {
                Some(left) => left.count += count as u32,
                None => unplaced.push(Unplaced { class, count: count as u32, reason }),
            }
        }
    }

    /// Returns the pods with their layout, if the node has shared or partitioned GPUs. A single pod always fits.
    fn lay_out(
        &mut self,
        room: Option<Room>,
        mut pods: Vec<Placement>,
        copies: u64,
    ) -> (Vec<Placement>, Vec<GpuLayout>) {
        let Some(room) = room else { return (pods, Vec::new()) };
        loop {
            let content: Vec<(u32, GpuRequest, u32)> = pods
                .iter()
                .filter_map(|(class, count)| {
                    self.problem.classes[*class as usize].gpu.map(|request| (*class, request, *count))
                })
                .collect();
            if let Some(gpus) = layout(&room, &content) {
                return (pods, gpus);
            }
            let Some((last, _, _)) = content.last() else { return (pods, Vec::new()) };
            *self.lost.entry(*last).or_default() += copies;
            for (class, count) in &mut pods {
                *count -= u32::from(class == last);
            }
            pods.retain(|(_, count)| *count > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{GpuMode, Gpus};
    use crate::testing::{candidate, class, problem};

    #[test]
    fn what_has_no_place_on_the_gpus_is_left_out_of_every_copy() {
        let mut pod = class("a", [1, 0, 0], 9, &[0]);
        pod.gpu = Some(GpuRequest::Share { units: 600, memory_mib: 0 });
        let mut node = candidate("node", 1, [9, 0, 0]);
        node.gpus = Some(Gpus { count: 2, memory_mib: 0, mode: GpuMode::Shared });
        let problem = problem(vec![pod], vec![node]);
        let mut laid = LaidOut::new(&problem);
        let nodes =
            laid.new_nodes(vec![NewNodes { candidate: 0, pods: vec![(0, 3)], count: 3, gpus: Vec::new() }]);
        let one = GpuLayout::Shared(vec![(0, 1)]);
        assert_eq!(
            nodes,
            [NewNodes { candidate: 0, pods: vec![(0, 2)], count: 3, gpus: vec![one.clone(), one] }]
        );
        let mut unplaced = Vec::new();
        laid.leave_out(&mut unplaced);
        assert_eq!(unplaced, [Unplaced { class: 0, count: 3, reason: UnplacedReason::NoLayout }]);
    }
}
