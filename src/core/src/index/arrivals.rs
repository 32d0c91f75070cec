//! Learns how often pods come for which a buffer with `units: auto` keeps room, from the pods that get a node and that leave one.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::index::ClusterIndex;
use crate::model::{Arrivals, Node, ObjectKey, Pod, PodKey, PodPhase, PodRole, PoolName, Units};
use crate::rules::format::is_extended;

/// The units that a pool may keep for pods like one.
struct UnitsFor {
    /// The name of their size.
    size: String,
    /// The most that are kept.
    at_most: u32,
    /// How long the pool usually keeps a node without work; `None` for ever.
    keep: Option<SignedDuration>,
}

impl ClusterIndex {
    /// Sets what is known about the pods that come.
    pub fn set_arrivals(&mut self, arrivals: Arrivals) {
        self.state.arrivals = Arc::new(arrivals);
    }

    /// Learns from a pod that is about to be put into the index, if it has got a node. If it waited for one, it came when the
    /// scheduler first found none.
    pub fn learn_arrival(&mut self, pod: &Pod, now: Timestamp) {
        let PodPhase::Bound { node } = &pod.phase else { return };
        let before = self.state.pods.get(&pod.key).filter(|old| old.uid == pod.uid);
        let came = match before.map(|old| &old.phase) {
            Some(PodPhase::Unschedulable { since, .. }) => *since,
            Some(PodPhase::Waiting | PodPhase::Gated) => now,
            // It has counted, or nobody saw when it came.
            Some(PodPhase::Bound { .. } | PodPhase::Finished) | None => return,
        };
        if let Some(UnitsFor { size, at_most, keep }) = self.units_for(pod, node) {
            Arc::make_mut(&mut self.state.arrivals).came(&size, (came, now), keep, at_most);
        }
    }

    /// Learns from a pod that is about to be removed: if its node stays, the next pod may take its room.
    pub fn learn_departure(&mut self, key: &ObjectKey, now: Timestamp) {
        let Some(pod) = self.state.pods.get(&PodKey::Existing(key.clone())) else { return };
        let PodPhase::Bound { node } = &pod.phase else { return };
        let stays = |node: &Node| {
            let claim = self.state.claims.of_node(node);
            !node.cordoned
                && claim.is_none_or(|claim| {
                    claim.deleting_since.is_none()
                        && claim.interruption.is_none()
                        && claim.since(ConditionType::Disrupting).is_none()
                })
        };
        if self.state.nodes.get(node).is_some_and(|node| stays(node.as_ref()))
            && let Some(UnitsFor { size, .. }) = self.units_for(pod, node)
        {
            Arc::make_mut(&mut self.state.arrivals).left(&size, now);
        }
    }

    /// Returns the units with `units: auto` that the pool of a node keeps for such a pod; the first that it lists.
    fn units_for(&self, pod: &Pod, node: &str) -> Option<UnitsFor> {
        if pod.role != PodRole::Workload {
            return None;
        }
        let pool = PoolName(self.state.nodes.get(node)?.labels.get(NODEPOOL_LABEL)?.clone());
        let pool = self.state.pools.get(&pool)?;
        pool.buffer.iter().find_map(|buffer| match buffer.units {
            Units::Auto { at_most } if needs_one(&pod.spec.requests, &buffer.requests) => {
                Some(UnitsFor { size: buffer.size(&pool.name), at_most, keep: pool.scale_to_zero.usual() })
            }
            _ => None,
        })
    }
}

/// Returns whether pods with such requests need one unit each: one fits a unit, no two do, and it asks for the same devices. Of CPU,
/// memory and disk, only what the unit names counts.
fn needs_one(pod: &ResourceList, unit: &ResourceList) -> bool {
    let fits = unit.iter().all(|(name, amount)| {
        let wanted = pod.get(name.as_str());
        wanted <= amount && (wanted > 0 || !is_extended(name))
    });
    let fills = unit.iter().any(|(name, amount)| {
        name.as_str() != ResourceName::PODS && pod.get(name.as_str()).saturating_mul(2) > amount
    });
    fits && fills && pod.iter().all(|(name, _)| !is_extended(name) || unit.get(name.as_str()) > 0)
}
