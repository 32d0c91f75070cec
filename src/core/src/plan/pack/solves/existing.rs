//! The existing nodes that a solver call includes.

use crate::plan::pack::solves::inputs::ExistingNodes;
use std::collections::BTreeSet;

use poolwright_catalog::ResourceList;

use crate::plan::pack::classes::PodClass;
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Column, Source};
use crate::plan::pack::solves::pass::Run;
use crate::rules::colocation::Present;

impl Run<'_, '_, '_, '_> {
    /// Returns the existing nodes that fit a pod of these classes. If more nodes fit a class than all these classes have pods,
    /// the class gets only as many nodes as there are pods: the fullest ones.
    ///
    /// That loses nothing. Existing nodes cost nothing, and a pod that a plan would place on an excluded node finds a free node
    /// among those of its class.
    pub(crate) fn there(
        &self,
        candidates: &[NodeCandidate],
        classes: &[usize],
        admitted: &[Vec<usize>],
    ) -> ExistingNodes {
        let rooms = self.rooms.all.len();
        let pods: usize = classes.iter().map(|class| self.queues[*class].len()).sum();
        // The solver cannot choose between parts of GPUs on new nodes and room at a cost.
        let shares = classes.iter().any(|class| self.inputs.classes.classes[*class].gpu_need.is_some());
        let mut at_a_cost = Vec::new();
        let mut kept = |class: usize, admitted: &[usize]| {
            let of = &self.inputs.classes.classes[class];
            let cost = |at: &usize| {
                self.price(candidates, Column { source: Source::Room(*at), horizon: of.horizon })
            };
            let (costly, mut homes): (Vec<usize>, Vec<usize>) =
                self.on_rooms(class).partition(|at| self.lives[*at].is_some());
            let costly = if shares {
                // So the room counts as free for pods whose own node would cost more, or cannot be bought.
                let of_new = |at: &usize| {
                    self.price(candidates, Column { source: Source::New(*at), horizon: of.horizon })
                };
                let buyable = admitted.iter().filter(|at| self.limits.allow(&candidates[**at].uses));
                let own = buyable.map(of_new).min();
                homes.extend(costly.into_iter().filter(|at| own.is_none_or(|own| cost(at) < own)));
                Vec::new()
            } else {
                best(costly, pods, |at| (cost(at), room_for(of, self.free(*at)), *at))
            };
            at_a_cost.push(costly);
            homes.extend(self.on_new(class).map(|at| rooms + at));
            best(homes, pods, |at| (room_for(of, self.free(*at)), *at))
        };
        let homes: Vec<Vec<usize>> =
            classes.iter().zip(admitted).map(|(class, admitted)| kept(*class, admitted)).collect();
        let nodes: BTreeSet<usize> = homes.iter().flatten().copied().collect();
        let nodes: Vec<usize> = nodes.into_iter().collect();
        let position = |at: &usize| nodes.partition_point(|node| node < at) as u32;
        let homes = homes.iter().map(|homes| homes.iter().map(position).collect()).collect();
        ExistingNodes { nodes, homes, at_a_cost }
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

/// Returns the `most` first ones by a key, ascending by index.
fn best<K: Ord>(mut nodes: Vec<usize>, most: usize, key: impl FnMut(&usize) -> K) -> Vec<usize> {
    if nodes.len() > most {
        nodes.sort_by_cached_key(key);
        nodes.truncate(most);
    }
    nodes.sort_unstable();
    nodes
}

/// Returns the number of pods of a class that fit.
fn room_for(class: &PodClass<'_>, free: &ResourceList) -> u64 {
    let amounts = class.on_whole().iter().filter(|(_, amount)| *amount > 0);
    amounts.map(|(name, amount)| free.get(name.as_str()) / amount).min().unwrap_or(u64::MAX)
}
