//! Whose pods have lost their node to the cloud.
//!
//! When a machine is taken back, the pods that their controllers make in place of those that go have waited already: what they want is
//! planned in a moment, as what the notice itself asked for was. Most of them find the place that was bought for them then.

use crate::index::{Change, ClusterIndex};
use crate::model::{Claim, ClaimName, Pod, Uid};

impl ClusterIndex {
    /// Takes note of the controllers of pods on the claim's node, which its cloud takes.
    pub(crate) fn note_interrupted(&mut self, claim: &Claim) {
        let node = claim.node_name.as_ref().and_then(|name| self.state.pods.on_node(name));
        let owners = node.into_iter().flat_map(|node| &node.pods).filter_map(|pod| pod.owner.clone());
        self.interrupted_owners.extend(owners.map(|owner| (owner, claim.name.clone())));
    }

    /// Such claims are remembered for as long as they are there: until the instance is gone.
    pub(crate) fn forget_ended(&mut self) {
        let claims = &self.state.claims;
        self.interrupted_owners.retain(|(_, claim)| claims.contains_key(claim));
    }

    /// The cloud does not take the claim's machine after all.
    pub(crate) fn forget_interrupted(&mut self, name: &ClaimName) {
        self.interrupted_owners.retain(|(_, claim)| claim != name);
    }

    /// What it means that this pod wants a node.
    pub(crate) fn demand_of(&self, pod: &Pod) -> Change {
        let Some(owner) = &pod.owner else { return Change::Demand };
        let first: (Uid, ClaimName) = (owner.clone(), ClaimName(String::new()));
        let ends_soon = self.interrupted_owners.range(first..).next().is_some_and(|(of, _)| of == owner);
        if ends_soon { Change::Interrupted } else { Change::Demand }
    }
}
