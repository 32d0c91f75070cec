//! Carries a solution out: its pods leave the queues, and what it uses is no longer free.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_solver as solver;
use poolwright_solver::Solution;

use crate::model::Pod;
use crate::plan::pack::layout;
use crate::plan::pack::solves::candidates::{Choice, NodeCandidate};
use crate::plan::pack::solves::columns::{Columns, Source};
use crate::plan::pack::solves::further::Sizes;
use crate::plan::pack::solves::inputs::ExistingNodes;
use crate::plan::pack::solves::packing::NewNode;
use crate::plan::pack::solves::pass::Run;
use crate::rules::colocation::join;
use crate::rules::gpus::{GpuForm, GpuNeed};

impl Run<'_, '_, '_, '_> {
    /// Places the pods of a solution, and buys its nodes.
    pub(crate) fn apply(
        &mut self,
        candidates: &[NodeCandidate],
        (classes, there): (&[usize], &ExistingNodes),
        columns: &Columns,
        solution: &Solution,
    ) {
        let all = &self.inputs.classes.classes;
        for used in &solution.on_existing {
            let at = there.nodes[used.node as usize];
            for (class, count) in &used.pods {
                let class = classes[*class as usize];
                if at < self.rooms.all.len() {
                    self.place_in_room(at, class, *count);
                } else {
                    let pods = self.queues[class].drain(..*count as usize);
                    let profile = all[class].profile;
                    let node = &mut self.outcome.new[at - self.rooms.all.len()];
                    node.pods.extend(pods);
                    *node.content.entry(class).or_default() += count;
                    take(&mut node.free, &all[class].requests, *count);
                    join(&mut node.present, profile, *count);
                }
            }
        }
        for (of, used) in self.outcome.commitments.iter_mut().zip(&solution.commitment_use) {
            of.used += *used;
        }
        let sizes = Sizes::new(self.inputs.classes);
        let mut prices = UsdPerHour::ZERO;
        for group in &solution.new_nodes {
            let column = columns.all[group.candidate as usize];
            let price = self.price(candidates, column);
            prices += (0..group.count).map(|_| price).sum();
            let number = match column.source {
                Source::New(candidate) => candidate,
                Source::Room(at) => {
                    let is_long = |class: u32| all[classes[class as usize]].horizon == column.horizon;
                    let long = group.pods.iter().filter(|(class, _)| is_long(*class));
                    let long: u64 = long.map(|(_, count)| u64::from(*count)).sum();
                    // The price is that with one of these pods.
                    let further = self.of_further(&sizes, candidates, column);
                    let cost = (price + further.times(long)).saturating_sub(further);
                    self.outcome.room_cost += cost.times(u64::from(group.count));
                    for (class, count) in &group.pods {
                        self.place_in_room(at, classes[*class as usize], *count);
                    }
                    continue;
                }
            };
            let candidate = &candidates[number];
            for _ in 0..group.count {
                let mut node = NewNode {
                    candidate: number,
                    pool: candidate.pool,
                    offer: candidate.offer,
                    content: BTreeMap::new(),
                    pods: Vec::new(),
                    form: candidate.form,
                    gpus: Vec::new(),
                    uses: candidate.uses.clone(),
                    leaves_choice: matches!(candidate.choice, Choice::Required { .. }),
                    free: candidate.form.room(&self.inputs.supply.capacities[candidate.offer.capacity]),
                    present: self.inputs.supply.residents[candidate.offer.residents].clone(),
                };
                let mut on: BTreeMap<usize, Vec<&Pod>> = BTreeMap::new();
                for (class, count) in &group.pods {
                    let class = classes[*class as usize];
                    let pods: Vec<_> = self.queues[class].drain(..*count as usize).collect();
                    node.pods.extend(&pods);
                    on.insert(class, pods);
                    node.content.insert(class, *count);
                    take(&mut node.free, &all[class].requests, *count);
                    let profile = all[class].profile;
                    join(&mut node.present, profile, *count);
                }
                let kind = self.inputs.supply.instance_type(candidate.pool, candidate.offer.offering);
                let class = |class: u32| classes[class as usize];
                node.gpus = layout::planned(&group.gpus, &on, self.inputs.classes, class, kind);
                if candidate.form != GpuForm::Whole {
                    // It may count with instances that no pod got.
                    let needs: Vec<&GpuNeed> =
                        node.content.keys().filter_map(|class| all[*class].gpu_need.as_ref()).collect();
                    self.limits.leave_uncut(&mut node.uses, kind, &needs);
                }
                self.limits.take(&node.uses);
                self.outcome.new.push(node);
            }
        }
        if !self.outcome.commitments.is_empty() {
            let covered = prices.micros().saturating_sub(solution.cost.micros());
            self.outcome.covered += UsdPerHour::from_micros(covered);
        }
        for left in &solution.unplaced {
            let class = classes[left.class as usize];
            match left.reason {
                // The solver's further limits are on the uses of rooms, and no user has set them.
                solver::UnplacedReason::LimitReached(limit) if (limit as usize) < self.limits.all.len() => {
                    self.outcome.limit[class] = Some(limit);
                }
                solver::UnplacedReason::NoLayout => {
                    self.outcome.without_layout.insert(class);
                }
                _ => {}
            }
        }
    }

    /// Places waiting pods of a class in a room.
    fn place_in_room(&mut self, at: usize, class: usize, count: u32) {
        let of = &self.inputs.classes.classes[class];
        let pods = self.queues[class].drain(..count as usize);
        self.outcome.on_rooms.extend(pods.map(|pod| (at, pod)));
        let room = Arc::make_mut(&mut self.rooms.all[at]);
        take(Arc::make_mut(&mut room.free), of.on_whole(), count);
        join(&mut room.present, of.profile, count);
        if let Some(life) = &mut self.lives[at] {
            self.inputs.horizons.add(&mut life.ends, of.horizon, count);
        }
    }
}

fn take(free: &mut ResourceList, requests: &ResourceList, count: u32) {
    for (name, amount) in requests.iter() {
        let left = free.get(name.as_str()).saturating_sub(amount.saturating_mul(u64::from(count)));
        free.set(name.clone(), left);
    }
}
