//! Allocatable resources that nodes lack compared to the catalogue, learned from nodes that have joined.
//!
//! A catalogue can only estimate how much memory a machine's firmware, kernel and kubelet leave free, so a node that advertises
//! nearly the promised amount is accepted. A pod that needs the difference does not fit on this node, nor on the next node of
//! that type. So plans expect future nodes of the type to lack the amounts that earlier nodes lacked.

use std::sync::Arc;

use poolwright_terms::ConditionType;

use crate::index::{Change, ClusterIndex};
use crate::model::{Claim, ClaimName, Node};
use crate::rules::allocatable_tolerance::{is_estimated, is_kept};

impl ClusterIndex {
    /// Measures the node of a claim after the claim or the node has changed. The result outlives the node, because it is used for
    /// later nodes.
    pub(crate) fn measure_claim(&mut self, name: &ClaimName) -> Change {
        let Some(claim) = self.state.claims.get(name).cloned() else { return Change::None };
        let launched = claim.launched.as_ref();
        let by_id = launched.and_then(|launched| self.state.nodes.with_provider_id(&launched.provider_id));
        let by_name = || self.state.nodes.get(claim.node_name.as_ref()?);
        let Some(node) = by_id.or_else(by_name).cloned() else { return Change::None };
        self.measure(&claim, &node)
    }

    /// Measures a node, by name, in the same way.
    pub(crate) fn measure_node(&mut self, name: &str) -> Change {
        let Some(node) = self.state.nodes.get(name).cloned() else { return Change::None };
        let Some(claim) = self.state.claims.of_node(&node).cloned() else { return Change::None };
        self.measure(&claim, &node)
    }

    fn measure(&mut self, claim: &Claim, node: &Node) -> Change {
        // The resources of a node that is not initialized yet say nothing about other nodes.
        if claim.since(ConditionType::Initialized).is_none() {
            return Change::None;
        }
        let offered = claim.current_offering();
        let key = (claim.node_class.clone(), offered.offering.instance_type.clone());
        let known = self.state.measured.get(&key).map(|known| known.as_ref().clone()).unwrap_or_default();
        let mut short = known.clone();
        for (name, promised) in offered.allocatable.iter().filter(|(name, _)| is_estimated(name)) {
            let has = node.allocatable.get(name.as_str());
            let lacks = promised.saturating_sub(has);
            // The difference is relative to the promised amount. If the class later promises more, the difference still applies.
            if lacks > short.get(name.as_str()) && is_kept(name, promised, has) {
                short.set(name.clone(), lacks);
            }
        }
        if short == known {
            return Change::None;
        }
        self.state.measured.insert(key, Arc::new(short));
        Change::Room
    }
}
