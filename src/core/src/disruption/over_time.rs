//! The cost of a move over time. A saving per hour lasts only until the moved pods have ended, and a pod that moves to another node
//! may keep that node longer.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;

use crate::disruption::payback::{OVERLAP, OverTime, during};
use crate::disruption::search::{Search, TrialPlan};
use crate::disruption::worst_case;
use crate::model::plan::MovedTo;
use crate::model::{Claim, ClaimName, Ends, Life, Pod, PodRole};

impl Search<'_> {
    /// Returns how long a saving on this node would last: from the time when new nodes have taken over until its pods have ended,
    /// at most the payback time of its pool.
    pub(crate) fn lasts(&self, claim: &Claim) -> SignedDuration {
        let payback = self.facts.pool(claim).map_or(SignedDuration::ZERO, |pool| pool.disruption.payback);
        if self.facts.snapshot.lives.is_blank() {
            return payback;
        }
        let lives: Vec<Life> = self.facts.work(claim).map(|pod| self.life(pod)).collect();
        after_overlap(&Ends::of(&lives)).min(payback)
    }

    /// Returns the costs of emptying these nodes. If nothing is known about lives, every pod lives for the payback time.
    pub(crate) fn over_time(&self, set: &[&Claim], tried: &TrialPlan, payback: SignedDuration) -> OverTime {
        let snapshot = self.facts.snapshot;
        let TrialPlan { plan, before, .. } = tried;
        if snapshot.lives.is_blank() {
            // Risk counts as cost, so that healthy pods do not move to nodes that will be interrupted soon.
            return OverTime {
                before: during(*before, payback),
                after: during(worst_case::cost(plan) + plan.risk, payback),
            };
        }
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        let before = self.spent(set, *before, payback);
        let (mut bought, mut rooms): (BTreeMap<&ClaimName, Ends>, BTreeMap<&str, Ends>) = Default::default();
        // The moves of other disruptions cost the same in any case.
        let of_set = plan.moved.iter().filter(|moved| set.iter().any(|claim| claim.name == moved.from));
        for moved in of_set {
            let ends = match &moved.to {
                MovedTo::New(name) => bought.entry(name).or_default(),
                MovedTo::Existing(target) => rooms.entry(target.name()).or_default(),
                MovedTo::Unplaced(_) | MovedTo::NoSuccessor => continue,
            };
            if let Some(pod) = snapshot.pods.get(&moved.pod) {
                ends.add(&self.life(pod));
            }
        }
        let of_new = plan.claims.iter().map(|claim| {
            let time = bought.get(&claim.name).map_or(payback, after_overlap).min(payback);
            during(worst_case::price(claim).unwrap_or_default(), time)
        });
        let prices = plan.claims.iter().filter_map(worst_case::price).sum();
        let of_new = part(of_new.sum(), worst_case::cost(plan), prices);
        let of_rooms = rooms.iter().filter_map(|(name, more)| {
            let claim = snapshot.claims.get(&ClaimName((*name).to_owned()))?;
            let stays = |pod: &&Pod| pod.role == PodRole::Workload && pod.deleting_since.is_none();
            let there: Vec<Life> = self.facts.work(claim).filter(stays).map(|pod| self.life(pod)).collect();
            let longer = Ends::of(&there).extension_by(more).min(payback);
            Some(during(price(claim), longer))
        });
        let longest = set.iter().map(|claim| self.lasts(claim).min(payback)).max().unwrap_or_default();
        OverTime { before, after: of_new + of_rooms.sum::<u64>() + during(plan.risk, longest) }
    }

    /// Returns the cost of these nodes until their pods have ended, if they cost `before` per hour together.
    pub(crate) fn spent(&self, set: &[&Claim], before: UsdPerHour, payback: SignedDuration) -> u64 {
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        let spent = set.iter().map(|claim| during(price(claim), self.lasts(claim).min(payback)));
        // Commitments pay a part of the prices.
        part(spent.sum(), before, set.iter().map(|claim| price(claim)).sum())
    }

    fn life(&self, pod: &Pod) -> Life {
        self.facts.snapshot.lives.of(pod, self.facts.now).life
    }
}

/// Returns the mean time until pods have ended, without the time for which old and new nodes are both paid.
fn after_overlap(ends: &Ends) -> SignedDuration {
    ends.mean().saturating_sub(OVERLAP).max(SignedDuration::ZERO)
}

/// Returns the part of an amount that is paid, if `paid` of these `prices` is.
fn part(amount: u64, paid: UsdPerHour, prices: UsdPerHour) -> u64 {
    let part = u128::from(amount) * u128::from(paid.micros()) / u128::from(prices.micros().max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}
