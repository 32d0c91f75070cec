//! Topology spread over nodes once nothing more can be bought for the pods that are left.
//!
//! While a node can be bought, it sets the least count of a constraint, because it would be empty. The kube-scheduler counts only
//! the nodes that are there. So pods without a new node may go to existing ones, as long as these fill up evenly.

use poolwright_solver::StopSignal;

use crate::plan::pack::solves::pass::Run;
use crate::rules::colocation::Present;
use crate::rules::spread::hosts::HostToBuy;

impl Run<'_, '_, '_, '_> {
    /// Places the pods that are left where constraints allow it now. Returns false if a solution failed verification.
    pub(crate) fn fill_evenly(&mut self, stop: &mut dyn StopSignal) -> bool {
        let classes = &self.inputs.classes.classes;
        let is_concerned = |class: usize| !self.queues[class].is_empty() && classes[class].profile > 0;
        if self.colocation.spreads.is_empty() || !(0..classes.len()).any(is_concerned) {
            return true;
        }
        let mut hosts = (self.inputs.hosts)();
        loop {
            let (supply, new) = (self.inputs.supply, &self.outcome.new);
            let bought = new.iter().enumerate().map(|(residents, node)| HostToBuy {
                labels: supply.labels(node.pool, node.offer.offering),
                taints: &supply.pools[node.pool].pool.taints,
                residents,
            });
            let residents: Vec<Present> = new.iter().map(|node| node.present.clone()).collect();
            let raised = hosts.raised(&self.colocation, self.rooms, bought, &residents);
            let Some(least) = raised else { return true };
            self.colocation.to_mut().set_least(least.clone());
            self.outcome.least = Some(least);
            let has_room = |class: usize| {
                !self.queues[class].is_empty()
                    && (self.on_rooms(class).next().is_some() || self.on_new(class).next().is_some())
            };
            let takes_part: Vec<bool> = (0..self.queues.len()).map(has_room).collect();
            let before = self.waiting();
            if !self.round(&[], |class| takes_part[class], |_| Vec::new(), true, false, stop) {
                return false;
            }
            if self.waiting() == before || stop.should_stop() {
                return true;
            }
        }
    }
}
