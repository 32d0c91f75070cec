//! What nodes turned out to have.
//!
//! A catalogue can only estimate how much memory a machine's firmware, kernel and kubelet leave, and a node that advertises nearly what
//! was promised is taken. But a pod that needs the difference does not fit there, and would not fit the next one either: what the nodes
//! of a type lacked is what those are expected to lack that are bought after them.

use std::sync::Arc;

use poolwright_terms::ConditionType;

use crate::index::{Change, ClusterIndex};
use crate::model::{Claim, ClaimName, Node};
use crate::rules::allocatable_tolerance::{is_estimated, is_kept};

impl ClusterIndex {
    /// Looks at what the node of a claim has, after either has changed. What is known outlives the node: it is the next one that matters.
    pub(crate) fn measure_claim(&mut self, name: &ClaimName) -> Change {
        let Some(claim) = self.state.claims.get(name).cloned() else { return Change::None };
        let launched = claim.launched.as_ref();
        let by_id = launched.and_then(|launched| self.state.nodes.with_provider_id(&launched.provider_id));
        let by_name = || self.state.nodes.get(claim.node_name.as_ref()?);
        let Some(node) = by_id.or_else(by_name).cloned() else { return Change::None };
        self.measure(&claim, &node)
    }

    /// The same, of a node.
    pub(crate) fn measure_node(&mut self, name: &str) -> Change {
        let Some(node) = self.state.nodes.get(name).cloned() else { return Change::None };
        let Some(claim) = self.state.claims.of_node(&node).cloned() else { return Change::None };
        self.measure(&claim, &node)
    }

    fn measure(&mut self, claim: &Claim, node: &Node) -> Change {
        // Before it was found to be what was ordered, what it has says nothing of others.
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
            // Of what was promised, not of what there is: a class that promises more later is believed in the difference.
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
