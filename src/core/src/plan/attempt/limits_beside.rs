//! The limits that keep pods out besides the rules about other pods that leave them no place.

use std::collections::BTreeMap;

use crate::demand::Members;
use crate::model::plan::{UnplacedPod, UnplacedReason};
use crate::model::{ObjectKey, Pod, PodSpec};
use crate::plan::attempt::Packed;
use crate::plan::attempt::left_without_place::WithoutPlace;
use crate::plan::context::PlanContext;
use crate::plan::gang_limits;
use crate::plan::gang_nodes::Takes;
use crate::plan::left_by::LeftBy;
use crate::plan::place::topology::Lessons;
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
        if self.has_room(spec, supply, (packed, rooms)) {
            return None;
        }
        let (requests, need) = gpus::wanted(self.options.sharing, &supply.mig_models(), spec);
        let needs = need.as_ref();
        let admits = |at: usize, offer: &PoolOffering| admits(spec, supply, at, offer);
        let mut all: Vec<Beyond> = Vec::new();
        for (at, pool) in supply.pools.iter().enumerate() {
            let holds = |offer: &&PoolOffering| {
                offer.availability.is_sold_in_time()
                    && requests.fits(&supply.capacities[offer.capacity])
                    && admits(at, offer)
            };
            for offer in pool.offers.iter().filter(holds) {
                let price = supply.price_in_time(at, offer);
                let uses = packed.limits.uses_for(supply, at, offer.offering, price, needs.as_slice());
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

    /// Returns whether a node that is there or planned has room for a pod, wherever rules about other pods would let it be.
    fn has_room(
        &self,
        spec: &PodSpec,
        supply: &Supply<'_>,
        (packed, rooms): (&Packed<'_>, &Rooms<'_>),
    ) -> bool {
        let requests = gpus::wanted(self.options.sharing, &supply.mig_models(), spec).0;
        let mut new = packed.outcome.new.iter();
        rooms.all.iter().any(|room| {
            spec.requests.fits(&room.free) && rules::admits(spec, &room.labels, &room.taints).is_ok()
        }) || new.any(|node| requests.fits(&node.free) && admits(spec, supply, node.pool, &node.offer))
    }

    /// Returns by gang the limits that keep it out besides rules about other pods, with what its pods without a place take of each. An
    /// earlier attempt knows those of the gangs that it left out.
    pub(super) fn gang_limits_beside_rules(
        &self,
        supply: &Supply<'_>,
        (packed, rooms): (&Packed<'_>, &Rooms<'_>),
        (missing, unplaced): (&BTreeMap<ObjectKey, Members>, &[UnplacedPod]),
        lessons: &Lessons,
    ) -> BTreeMap<ObjectKey, Takes> {
        let mut lacking: BTreeMap<ObjectKey, Vec<&Pod>> = BTreeMap::new();
        for left in unplaced.iter().filter(|left| left.pod.existing().is_some()) {
            let Some(pod) = self.snapshot.pods.get(&left.pod) else { continue };
            let Some(gang) = pod.group_key() else { continue };
            let is_lacking = missing.get(&gang).is_some_and(|missing| missing.all > 0);
            if is_lacking && !lessons.gangs_left_out.contains_key(&gang) {
                lacking.entry(gang).or_default().push(pod);
            }
        }
        lacking.retain(|_, pods| pods.iter().any(|pod| gang_limits::has_rules_on_others(&pod.spec)));
        let takes = |(gang, pods): (ObjectKey, Vec<&Pod>)| {
            let (group, mut open) = (self.snapshot.pod_group(&gang), missing[&gang].clone());
            let mut counts: BTreeMap<&PodSpec, u64> = BTreeMap::new();
            for pod in pods.into_iter().filter(|pod| open.meet(group, pod)) {
                *counts.entry(&pod.spec).or_default() += 1;
            }
            counts.retain(|spec, _| !self.has_room(spec, supply, (packed, rooms)));
            let takes = gang_limits::beside_rules(&packed.limits, supply, self.options.sharing, &counts);
            (gang, takes)
        };
        lacking.into_iter().map(takes).collect()
    }
}

/// Returns whether an offering of a pool meets the rules of a pod on labels and taints.
fn admits(spec: &PodSpec, supply: &Supply<'_>, at: usize, offer: &PoolOffering) -> bool {
    let taints = &supply.pools[at].pool.taints;
    rules::admits(spec, &supply.labels(at, offer.offering), taints).is_ok()
}
