//! The limits that keep pods out besides the rules about other pods that leave them no place.

use std::collections::BTreeMap;

use crate::model::PodSpec;
use crate::model::plan::UnplacedReason;
use crate::plan::attempt::Packed;
use crate::plan::attempt::left_without_place::WithoutPlace;
use crate::plan::context::PlanContext;
use crate::plan::left_by::LeftBy;
use crate::plan::unplaced::beyond::{Beyond, nearest_beyond};
use crate::rules::{self, gpus};
use crate::supply::offerings::{PoolOffering, Supply};
use crate::supply::rooms::Rooms;

impl PlanContext<'_> {
    /// Returns for each of these pods the words about the limits that keep it out besides a rule about other pods; empty if only the
    /// rule does. Without these words, it would be advised to change the rule alone, which would not help.
    pub(super) fn limits_beside_rules(
        &self,
        supply: &Supply<'_>,
        (packed, rooms): (&Packed<'_>, &Rooms<'_>),
        without_place: &[WithoutPlace],
    ) -> Vec<String> {
        let mut known: BTreeMap<&PodSpec, String> = BTreeMap::new();
        let mut all = Vec::with_capacity(without_place.len());
        for (pod, reason, _) in without_place {
            let kind = self.relations.kinds.get(self.relations.of(pod));
            // A pod that must be with others may fit once there is room on their node.
            let is_alone = kind.is_some_and(|kind| kind.affinity.is_none());
            let is_meant = is_alone && *reason == UnplacedReason::TopologyRule;
            let words = self.snapshot.pods.get(pod).filter(|_| is_meant).map(|pod| {
                let of_spec = || {
                    let by = self.beyond_limits(&pod.spec, supply, (packed, rooms));
                    let words = |by: LeftBy| format!("; besides, {}", by.sentence(&packed.limits, supply));
                    by.map_or_else(String::new, words)
                };
                known.entry(&pod.spec).or_insert_with(of_spec).clone()
            });
            all.push(words.unwrap_or_default());
        }
        all
    }

    /// Returns the limits that leave a pod no node, wherever rules about other pods would let it be. Returns `None` if a node that is
    /// there or planned has room for it, if limits allow one more node for it, or if something else than a limit keeps it out.
    fn beyond_limits(
        &self,
        spec: &PodSpec,
        supply: &Supply<'_>,
        (packed, rooms): (&Packed<'_>, &Rooms<'_>),
    ) -> Option<LeftBy> {
        let requests = gpus::wanted(self.options.sharing, &supply.mig_models(), spec).0;
        let admits = |at: usize, offer: &PoolOffering| {
            let taints = &supply.pools[at].pool.taints;
            rules::admits(spec, &supply.labels(at, offer.offering), taints).is_ok()
        };
        let has_room = rooms.all.iter().any(|room| {
            spec.requests.fits(&room.free) && rules::admits(spec, &room.labels, &room.taints).is_ok()
        });
        let mut new = packed.outcome.new.iter();
        if has_room || new.any(|node| requests.fits(&node.free) && admits(node.pool, &node.offer)) {
            return None;
        }
        let mut all: Vec<Beyond> = Vec::new();
        for (at, pool) in supply.pools.iter().enumerate() {
            let holds = |offer: &&PoolOffering| {
                offer.availability.is_sold()
                    && requests.fits(&supply.capacities[offer.capacity])
                    && admits(at, offer)
            };
            for offer in pool.offers.iter().filter(holds) {
                let price = offer.availability.price();
                let uses = packed.limits.uses(supply, at, offer.offering, price);
                let beyond = packed.limits.beyond(&uses);
                if packed.limits.has_stock(&uses) {
                    if beyond.is_empty() {
                        return None;
                    }
                    all.push((price, beyond));
                }
            }
        }
        nearest_beyond(&all, None).map(LeftBy::limits)
    }
}
