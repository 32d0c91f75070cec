//! Pods that packing leaves unplaced: explains them, and finds the pods that may fit elsewhere.

use crate::model::PodKey;
use crate::model::plan::{UnplacedPod, UnplacedReason};
use crate::plan::pack::{classes, solves};
use crate::plan::place::topology;
use crate::plan::unplaced;
use crate::rules;
use crate::rules::pin::Pin;
use crate::supply::rooms;

/// The inputs and the result of packing.
pub(crate) struct LeftOver<'s, 'a> {
    pub inputs: unplaced::UnplacedInputs<'s, 'a>,
    pub classes: &'s classes::PodClasses<'a>,
    pub outcome: &'s solves::Packing<'a>,
    pub assigned: &'s topology::Assigned<'a>,
    pub rooms: &'s rooms::Rooms<'a>,
}

impl LeftOver<'_, '_> {
    /// Explains each unplaced pod. Returns the pods that were pinned to a place and may fit elsewhere.
    pub fn explain(&self, unplaced: &mut Vec<UnplacedPod>) -> Vec<(PodKey, Pin, String)> {
        let mut pinned_and_left = Vec::new();
        for (index, class) in self.classes.classes.iter().enumerate() {
            let Some(left) = self.outcome.left.get(index).filter(|left| !left.is_empty()) else { continue };
            let (reason, message) = self.inputs.explain(class, self.outcome.limit[index]);
            let pin = self.assigned.pin(&left[0].key);
            let (reason, message) = match unplaced::kept_off(class, pin, self.rooms, self.inputs.colocation) {
                Some(kept) if reason == UnplacedReason::NoOfferingFits => {
                    (UnplacedReason::TopologyRule, format!("{kept}; elsewhere: {message}"))
                }
                _ => (reason, message),
            };
            unplaced.extend(left.iter().map(|pod| UnplacedPod {
                pod: pod.key.clone(),
                reason,
                message: message.clone(),
            }));
            // The same limit applies elsewhere, unless it is the stock of an offering, another pool has offerings, or there is
            // room.
            let spec = class.spec;
            let has_room = || {
                self.rooms.all.iter().any(|room| {
                    class.on_whole().fits(&room.free)
                        && rules::admits(spec, &room.labels, &room.taints).is_ok()
                })
            };
            let elsewhere = |limit: u32| {
                let of = self.inputs.limits.all[limit as usize].pool;
                self.inputs.limits.is_stock(limit)
                    || of.is_some_and(|of| self.inputs.supply.others_sell(of, spec))
            };
            let pinned = || left.iter().any(|pod| !self.assigned.pin(&pod.key).is_empty());
            if pinned() && (self.outcome.limit[index].is_none_or(elsewhere) || has_room()) {
                let pins = left.iter().map(|pod| (pod.key.clone(), self.assigned.pin(&pod.key).clone()));
                let pins = pins.filter(|(_, pin)| !pin.is_empty());
                pinned_and_left.extend(pins.map(|(pod, pin)| (pod, pin, message.clone())));
            }
        }
        pinned_and_left
    }
}
