//! What room costs: whether a plan in which pods give way saves more than it loses.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;

use crate::disruption::payback::{OVERLAP, during, lost_by};
use crate::disruption::room_search::{Choice, RoomSearch, Wanted};
use crate::disruption::worst_case;
use crate::model::idle::START;
use crate::model::plan::{MovedTo, Plan, Target};
use crate::model::{Claim, ClaimName, Ends, Life, Pod, PodKey, PodRole, PoolName};
use crate::plan::pack::horizon;

/// The least saving for each dollar that the restarts of pods cost. Consolidation moves a pod once and for good, but a pod that gave
/// way may soon move again.
const LEAST_TIMES: u64 = 10;

impl RoomSearch<'_> {
    /// Returns whether a plan saves more than the loss of the pods that give way.
    pub fn pays(&self, plan: &Plan, choice: &Choice<'_>, wanted: &Wanted) -> bool {
        let successors: UsdPerHour = plan
            .claims
            .iter()
            .filter(|claim| claim.planned_pods.iter().any(|key| key.existing().is_none()))
            .filter_map(worst_case::price)
            .sum();
        let none = Choice::nobody(choice.payback);
        let (mut before, after) = (self.cost(self.current, &none), self.cost(plan, choice));
        if !wanted.is_bought {
            let time = self.time(wanted, self.current, choice.payback);
            before = before.saturating_add(during(wanted.price, time));
        }
        let loss = self.least_saving(plan, choice);
        before > after.saturating_add(loss).saturating_add(during(successors, OVERLAP))
    }

    /// Returns the saving that the loss of the pods that give way asks for.
    pub fn least_saving(&self, plan: &Plan, choice: &Choice<'_>) -> u64 {
        let losses = choice.pods.iter().map(|gives| self.loss(plan, gives.from, gives.pod));
        losses.fold(0, u64::saturating_add).saturating_mul(LEAST_TIMES)
    }

    /// Returns the loss of a pod that gives way. Its work is worth a part of the place that it gets, not of the place that it leaves,
    /// which may be much dearer than it needs.
    pub fn loss(&self, plan: &Plan, from: &Claim, pod: &Pod) -> u64 {
        if self.leaves_already(pod) {
            return 0;
        }
        let moved = plan.moved.iter().find(|moved| moved.pod == pod.key);
        let place = match moved.map(|moved| &moved.to) {
            Some(MovedTo::New(name)) => {
                plan.claims.iter().find(|claim| claim.name == *name).map(|claim| &claim.offerings[0])
            }
            Some(MovedTo::Existing(Target::Claim(name))) => {
                self.facts.snapshot.claims.get(name).map(|claim| claim.current_offering())
            }
            _ => None,
        };
        let place = place.unwrap_or_else(|| from.current_offering());
        lost_by(&self.facts, pod, place.price.unwrap_or_default(), &place.allocatable)
    }

    /// Returns the cost of a plan until its pods have ended, at most for the payback time, in micro-dollars: of new nodes, and of nodes
    /// that its pods keep longer.
    pub fn cost(&self, plan: &Plan, choice: &Choice<'_>) -> u64 {
        let snapshot = self.facts.snapshot;
        let payback = choice.payback;
        if snapshot.lives.is_blank() {
            return during(worst_case::cost(plan) + plan.risk, payback);
        }
        let of_new = plan.claims.iter().map(|claim| {
            let time = self.paid(&claim.planned_pods, &claim.pool, plan, payback);
            during(worst_case::price(claim).unwrap_or_default(), time)
        });
        let prices: UsdPerHour = plan.claims.iter().filter_map(worst_case::price).sum();
        // Commitments pay a part of the prices.
        let paid = u128::from(of_new.sum::<u64>()) * u128::from(worst_case::cost(plan).micros())
            / u128::from(prices.micros().max(1));
        let mut rooms: BTreeMap<&ClaimName, Vec<&PodKey>> = BTreeMap::new();
        for placed in &plan.placements {
            if let Target::Claim(name) = &placed.target {
                rooms.entry(name).or_default().push(&placed.pod);
            }
        }
        // Placements do not mention successors.
        for moved in &plan.moved {
            if let (MovedTo::Existing(Target::Claim(name)), Some(successor)) = (&moved.to, &moved.successor) {
                rooms.entry(name).or_default().push(successor);
            }
        }
        let of_rooms = rooms.into_iter().filter_map(|(name, more)| {
            let claim = snapshot.claims.get(name)?;
            let stays = |pod: &&Pod| {
                pod.role == PodRole::Workload
                    && pod.deleting_since.is_none()
                    && !choice.pods.iter().any(|gone| gone.pod.key == pod.key)
            };
            let there: Vec<Life> = self.facts.work(claim).filter(stays).map(|pod| self.life(pod)).collect();
            let more = self.ends(more.into_iter(), plan);
            let longer = Ends::of(&there).extension_within(&more, payback);
            Some(during(claim.current_offering().price.unwrap_or_default(), longer))
        });
        u64::try_from(paid)
            .unwrap_or(u64::MAX)
            .saturating_add(of_rooms.sum())
            .saturating_add(during(plan.risk, payback))
    }

    /// Returns the time for which a new node is paid: its start, the time until its pods have ended, at most the payback time, and the
    /// time that it stays without work.
    pub fn time(&self, wanted: &Wanted, plan: &Plan, payback: SignedDuration) -> SignedDuration {
        self.paid(&wanted.pods, &wanted.pool, plan, payback)
    }

    pub fn paid(
        &self,
        pods: &[PodKey],
        pool: &PoolName,
        plan: &Plan,
        payback: SignedDuration,
    ) -> SignedDuration {
        let snapshot = self.facts.snapshot;
        if snapshot.lives.is_blank() {
            return payback;
        }
        let until_empty = self.ends(pods.iter(), plan).mean().min(payback);
        let idle = snapshot.pools.get(pool).map_or(SignedDuration::ZERO, |pool| horizon::idle(pool));
        START + until_empty + idle
    }

    /// Returns the time until these pods of a plan have ended. Successors live as long as the pods that they replace.
    pub fn ends<'k>(&self, keys: impl Iterator<Item = &'k PodKey>, plan: &Plan) -> Ends {
        let mut ends = Ends::default();
        let replaced = |key: &PodKey| {
            let moved = plan.moved.iter().find(|moved| moved.successor.as_ref() == Some(key))?;
            self.facts.snapshot.pods.get(&moved.pod)
        };
        for pod in keys.filter_map(|key| self.facts.snapshot.pods.get(key).or_else(|| replaced(key))) {
            ends.add(&self.life(pod));
        }
        ends
    }

    pub fn life(&self, pod: &Pod) -> Life {
        self.facts.snapshot.lives.of(pod, self.facts.now).life
    }
}
