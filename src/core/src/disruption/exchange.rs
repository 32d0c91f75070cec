//! Empties a node whose pods would need a node as dear, because pods of another node give way to them.
//!
//! An example: only nodes of one dear type can run a pod. The first such node is full of pods that would run anywhere, so a second one
//! was bought. The others move to a cheap node, and the pods of the second node take their room.

use std::collections::BTreeSet;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::StopSignal;

use crate::disruption::payback::{self, OverTime};
use crate::disruption::proposal::{Proposal, leave};
use crate::disruption::room_search::{Choice, RoomSearch};
use crate::disruption::search::{Search, TrialPlan, places};
use crate::disruption::worst_case;
use crate::lifecycle::protection::Facts;
use crate::model::{Cause, Claim, ClaimName};
use crate::rules;

/// The most nodes for which one search tries this. Each takes several plans. The next search tries other nodes.
const MOST: usize = 3;

impl Search<'_> {
    /// Returns a proposal to empty a node while pods of other nodes give way to its pods, if that saves enough. `tried` is a plan
    /// without the node.
    pub(crate) fn saves_with_room(
        &self,
        claim: &Claim,
        tried: &TrialPlan,
        stop: &mut dyn StopSignal,
    ) -> Option<Proposal> {
        let dearest = tried.plan.claims.iter().max_by_key(|new| (new.price(), &new.name))?;
        // If its pods need only cheap nodes, others who give way gain little.
        if dearest.price()? < UsdPerHour::from_micros(tried.before.micros() / 2) {
            return None;
        }
        let without = self.without(&[(claim, Cause::Underutilized)]);
        let facts = Facts::new(&without, self.facts.now);
        let mut room = RoomSearch::new(facts, &tried.plan, self.move_history, self.options);
        let wanted = room.wanted(dearest, |from| *from == claim.name)?;
        let is_due = self.with_room.borrow().len() < MOST && !self.move_history.tried_with_room(&claim.name);
        if !is_due || stop.should_stop() || !room.find_hosts() {
            return None;
        }
        self.with_room.borrow_mut().push(claim.name.clone());
        let room = room;
        let price = claim.current_offering().price.unwrap_or_default();
        let lost = payback::lost(&self.facts, claim, price);
        let (plan, choice) = room.instead_of(
            &wanted,
            |plan, choice| {
                let own = self.facts.pool(claim).map_or(choice.payback, |pool| pool.disruption.payback);
                let choice = &choice.within(own);
                let common = room.cost(self.current, &Choice::nobody(choice.payback));
                let over_time = OverTime {
                    before: self.spent(&[claim], tried.before, choice.payback),
                    after: room.cost(plan, choice).saturating_sub(common),
                };
                // Its pods also wait until the others have ended.
                let grace = choice.pods.iter().map(|gives| gives.pod.ending.grace).max();
                let waiting = payback::during(price, grace.unwrap_or_default());
                let lost = lost.saturating_add(waiting).saturating_add(room.least_saving(plan, choice));
                payback::pays(tried.before, worst_case::cost(plan) + plan.risk, over_time, lost)
            },
            stop,
        )?;
        let leaving: Vec<String> = choice.pods.iter().map(|gives| gives.pod.key.to_string()).collect();
        let from: BTreeSet<&ClaimName> = choice.pods.iter().map(|gives| &gives.from.name).collect();
        let theirs: Vec<String> = from.into_iter().map(|from| places(&plan, from)).collect();
        let what = format!(
            "the work of its node costs {:#} now and {} elsewhere; its pods go to {}, in the room of {}, whose \
             successors go to {}",
            tried.before,
            worst_case::in_words(&plan),
            places(&plan, &claim.name),
            rules::format::list(&leaving, 3),
            theirs.join(", ")
        );
        let saving = tried.before.saturating_sub(worst_case::cost(&plan));
        let nodes_to_empty = vec![leave(claim, Cause::Underutilized, what)];
        Some(Proposal { nodes_to_empty, plan, saving, makes_room: true })
    }
}
