//! The rounds of one pass: the tiers one after the other, and each until nothing more can be placed.

use std::collections::VecDeque;

use poolwright_catalog::ResourceName;
use poolwright_solver::StopSignal;

use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;

impl Run<'_, '_, '_, '_> {
    /// Solves all tiers. If it `weighs`, pods that a limit leaves out are chosen by what their next choices cost. Returns false if a
    /// solution failed verification.
    pub(crate) fn pass(
        &mut self,
        tiers: &Tiers<'_>,
        unpriced: Option<&Tiers<'_>>,
        weighs: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        self.admit_rooms();
        self.instances_that_are_there();
        for round in 0..tiers.rounds() {
            if weighs {
                self.worth = self.worth(tiers, round);
            }
            let before: Vec<usize> = self.queues.iter().map(VecDeque::len).collect();
            let takes_part = |class: usize| tiers.takes_part(class, round);
            let admitted = |class: usize| tiers.admitted(class, round);
            if !self.tier(tiers.candidates, takes_part, admitted, true, stop) {
                return false;
            }
            let served: Vec<usize> =
                before.iter().zip(&self.queues).map(|(before, left)| before - left.len()).collect();
            self.contested |= self.is_contested(tiers, round, &served);
            self.served.push(served);
        }
        self.worth.clear();
        self.charges.clear();
        // Plans that charge no more cost at least the rest.
        self.outcome.bound = self.outcome.bound.saturating_sub(self.outcome.charged);
        let Some(unpriced) = unpriced else { return true };
        let admitted = |class: usize| unpriced.without_preferences(class);
        self.tier(unpriced.candidates, |_| true, admitted, false, stop)
    }

    /// Places pods that request MIG instances by name on existing nodes with free instances. These cost nothing, so the solver is
    /// not needed.
    fn instances_that_are_there(&mut self) {
        for (class, wanted) in self.inputs.classes.classes.iter().enumerate() {
            if !wanted
                .spec
                .requests
                .iter()
                .any(|(name, _)| name.as_str().starts_with(ResourceName::MIG_PREFIX))
            {
                continue;
            }
            for at in 0..self.rooms.all.len() {
                while self.room_admits[at].contains(wanted.signature)
                    && wanted.spec.requests.fits(&self.rooms.all[at].free)
                    && self.colocation.admits_one(wanted.profile, &self.rooms.all[at].present)
                    && let Some(pod) = self.queues[class].pop_front()
                {
                    self.outcome.on_rooms.push((at, pod));
                    self.rooms.take(at, &wanted.spec.requests, wanted.profile);
                }
            }
        }
    }

    /// Solves one tier until nothing more can be placed. Returns false if a solution failed verification.
    ///
    /// A solution may leave room for more pods, under the limits or on nodes, so the tier is solved again. Only the first solve
    /// adds to the bound, because only its problem covers all plans.
    fn tier(
        &mut self,
        candidates: &[NodeCandidate],
        takes_part: impl Fn(usize) -> bool,
        admitted: impl Fn(usize) -> Vec<usize>,
        priced: bool,
        stop: &mut dyn StopSignal,
    ) -> bool {
        let (mut bound, mut later) = (priced, self.later.pop_front());
        let sets_aside = later.is_some();
        loop {
            let aside = self.set_aside(later.take());
            let before = self.waiting();
            if !self.round(candidates, &takes_part, &admitted, priced, bound, stop) {
                return false;
            }
            let is_last = self.waiting() == before && aside.is_empty();
            self.put_back(aside);
            bound = false;
            let within = |candidate: &usize| self.limits.allow(&candidates[*candidate].uses);
            let left: Vec<usize> = (0..self.queues.len())
                .filter(|class| !self.queues[*class].is_empty() && takes_part(*class))
                .collect();
            let more = left.iter().any(|class| {
                admitted(*class).iter().any(within)
                    || self.on_rooms(*class).next().is_some()
                    || self.on_new(*class).next().is_some()
            });
            if is_last || !more || stop.is_abandoned() {
                self.bound_floored(&left, stop);
                // The solver did not say of these pods that a limit leaves them out.
                for class in &left {
                    let is_untold = sets_aside || self.outcome.without_layout.contains(class);
                    if is_untold && self.outcome.limit[*class].is_none() {
                        let beyond = |at: &usize| self.limits.first_beyond(&candidates[*at].uses);
                        let limit = admitted(*class).iter().find_map(beyond);
                        self.outcome.limit[*class] = limit;
                    }
                }
                let reached = left.iter().filter_map(|class| self.outcome.limit[*class]);
                self.outcome.limits_reached.extend(reached);
                return true;
            }
        }
    }
}
