//! The existing nodes that a solver call includes.

use crate::plan::pack::solves::inputs::ExistingNodes;
use std::collections::BTreeSet;

use poolwright_catalog::ResourceList;

use crate::plan::pack::classes::PodClass;
use crate::plan::pack::solves::Run;
use crate::rules::colocation::Present;

impl Run<'_, '_, '_, '_> {
    /// Returns the existing nodes that fit a pod of these classes. If more nodes fit a class than all these classes have pods,
    /// the class gets only as many nodes as there are pods: the fullest ones.
    ///
    /// That loses nothing. Existing nodes cost nothing, and a pod that a plan would place on an excluded node finds a free node
    /// among those of its class.
    pub(crate) fn there(&self, classes: &[usize]) -> ExistingNodes {
        let rooms = self.rooms.all.len();
        let pods: usize = classes.iter().map(|class| self.queues[*class].len()).sum();
        let kept = |class: usize| {
            let mut homes: Vec<usize> =
                self.on_rooms(class).chain(self.on_new(class).map(|at| rooms + at)).collect();
            if homes.len() > pods {
                let of = &self.inputs.classes.classes[class];
                homes.sort_by_cached_key(|at| (room_for(of, self.free(*at)), *at));
                homes.truncate(pods);
                homes.sort_unstable();
            }
            homes
        };
        let homes: Vec<Vec<usize>> = classes.iter().map(|class| kept(*class)).collect();
        let nodes: BTreeSet<usize> = homes.iter().flatten().copied().collect();
        let nodes: Vec<usize> = nodes.into_iter().collect();
        let position = |at: &usize| nodes.partition_point(|node| node < at) as u32;
        let homes = homes.iter().map(|homes| homes.iter().map(position).collect()).collect();
        ExistingNodes { nodes, homes }
    }

    /// Returns the free resources of a node.
    pub(crate) fn free(&self, at: usize) -> &ResourceList {
        match self.rooms.all.get(at) {
            Some(room) => &room.free,
            None => &self.outcome.new[at - self.rooms.all.len()].free,
        }
    }

    /// Returns the pods on a node, as colocation rules count them.
    pub(crate) fn present(&self, at: usize) -> &Present {
        match self.rooms.all.get(at) {
            Some(room) => &room.present,
            None => &self.outcome.new[at - self.rooms.all.len()].present,
        }
    }
}

/// Returns the number of pods of a class that fit.
fn room_for(class: &PodClass<'_>, free: &ResourceList) -> u64 {
    let amounts = class.on_whole().iter().filter(|(_, amount)| *amount > 0);
    amounts.map(|(name, amount)| free.get(name.as_str()) / amount).min().unwrap_or(u64::MAX)
}
