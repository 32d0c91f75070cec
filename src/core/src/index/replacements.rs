//! Controllers whose pods lose their nodes to interruptions. Their new pods are urgent.
//!
//! When an instance is reclaimed, controllers create new pods for the pods that end. The new pods are planned as quickly as the
//! interruption itself. Most of them get the place that was bought for them when the interruption was planned.

use crate::index::{Change, ClusterIndex};
use crate::model::{Claim, ClaimName, Pod, Uid};

impl ClusterIndex {
    /// Remembers the controllers of pods on the node of an interrupted claim.
    pub(crate) fn note_interrupted(&mut self, claim: &Claim) {
        let node = claim.node_name.as_ref().and_then(|name| self.state.pods.on_node(name));
        let owners = node.into_iter().flat_map(|node| &node.pods).filter_map(|pod| pod.owner.clone());
        self.interrupted_owners.extend(owners.map(|owner| (owner, claim.name.clone())));
    }

    /// Forgets the controllers of claims that no longer exist.
    pub(crate) fn forget_ended(&mut self) {
        let claims = &self.state.claims;
        self.interrupted_owners.retain(|(_, claim)| claims.contains_key(claim));
    }

    /// Forgets the controllers of a claim that is no longer interrupted.
    pub(crate) fn forget_interrupted(&mut self, name: &ClaimName) {
        self.interrupted_owners.retain(|(_, claim)| claim != name);
    }

    /// Returns the effect of a pod that needs a node.
    pub(crate) fn demand_of(&self, pod: &Pod) -> Change {
        let Some(owner) = &pod.owner else { return Change::Demand };
        let first: (Uid, ClaimName) = (owner.clone(), ClaimName(String::new()));
        let ends_soon = self.interrupted_owners.range(first..).next().is_some_and(|(of, _)| of == owner);
        if ends_soon { Change::Interrupted } else { Change::Demand }
    }
}
