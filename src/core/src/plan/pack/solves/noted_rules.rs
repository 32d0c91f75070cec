//! The rules by which a plan may cost more than another one.

use std::collections::BTreeSet;

use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::packing::NewNode;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;

impl Run<'_, '_, '_, '_> {
    /// Notes by which rules the plan may cost more than another.
    pub(crate) fn note_rules(&mut self, tiers: &Tiers<'_>) {
        let known = |node: &&NewNode<'_>| node.offer.availability.price().is_some();
        let on_new = self.outcome.new.iter().filter(known).flat_map(|node| node.content.keys().copied());
        let on_new: BTreeSet<usize> = on_new.collect();
        let classes = &self.inputs.classes.classes;
        for class in on_new.iter().copied() {
            let loses = !classes[class].loss.is_zero();
            let is_risky = |one: &NodeCandidate| one.is_reclaimed || (loses && one.interruptions > 0);
            self.outcome.by_weight |= tiers.differ_in_weight(class);
            self.outcome.by_risk |= tiers.any_home(class, is_risky);
        }
        let mixes = self.inputs.spot_mixes;
        self.outcome.by_spot_rules = self.outcome.new.iter().any(|node| mixes.contains_key(&node.pool));
        let pools = &self.inputs.supply.pools;
        self.outcome.by_min_values =
            self.outcome.new.iter().any(|node| !pools[node.pool].pool.min_values.is_empty());
        let left = (0..self.queues.len()).filter(|class| !self.queues[*class].is_empty());
        let mut concerned = on_new.iter().copied().chain(left);
        self.outcome.by_node_spread =
            concerned.any(|class| !self.colocation.spreads_of(classes[class].profile).is_empty());
        let priorities: BTreeSet<i32> = on_new.iter().map(|class| classes[*class].priority).collect();
        self.outcome.by_priority = self.outcome.steps > 1 && priorities.len() > 1;
    }
}
