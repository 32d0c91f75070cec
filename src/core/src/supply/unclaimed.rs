//! Nodes with the label of a pool for which no claim is known. They count towards the limits of the pool.

use std::collections::BTreeSet;

use poolwright_catalog::{OfferingId, RankedOffering, ResourceName};
use poolwright_terms::keys::{NODECLAIM_LABEL, NODEPOOL_LABEL};
use poolwright_terms::{CapacityType, labels};

use crate::model::{ClaimName, Node, PoolName, Snapshot};

/// A node of a pool without a claim.
#[derive(Clone, Debug)]
pub(crate) struct UnclaimedNode {
    /// Its name.
    pub name: String,
    /// The pool that its label names.
    pub pool: PoolName,
    /// Its offering by its labels, with the price if the catalogue has it. Of a type in the catalogue it counts at least the
    /// resources that such nodes promise, for a starting node may not report its GPUs yet. Its GPUs are those of the machine, even if it
    /// advertises each of them several times because pods share them.
    pub offering: RankedOffering,
}

/// Returns the nodes with a pool's label that belong to no claim, by name.
pub(crate) fn nodes(snapshot: &Snapshot) -> Vec<UnclaimedNode> {
    let is_named = |node: &Node| {
        let claim = node.labels.get(NODECLAIM_LABEL);
        claim.is_some_and(|claim| snapshot.claims.contains_key(&ClaimName(claim.clone())))
    };
    let labelled = snapshot.nodes.values().filter(|node| node.labels.contains_key(NODEPOOL_LABEL));
    let unnamed: Vec<&Node> = labelled.map(AsRef::as_ref).filter(|node| !is_named(node)).collect();
    if unnamed.is_empty() {
        return Vec::new();
    }
    // A node may lack the label of its claim until it has registered.
    let claims = || snapshot.claims.values();
    let names: BTreeSet<&str> = claims().filter_map(|claim| claim.node_name.as_deref()).collect();
    let launched = claims().filter_map(|claim| claim.launched.as_ref());
    let ids: BTreeSet<&str> = launched.map(|launched| launched.provider_id.as_str()).collect();
    let is_claimed = |node: &Node| {
        names.contains(node.name.as_str()) || node.provider_id.as_deref().is_some_and(|id| ids.contains(id))
    };
    unnamed.into_iter().filter(|node| !is_claimed(node)).map(|node| unclaimed(snapshot, node)).collect()
}

fn unclaimed(snapshot: &Snapshot, node: &Node) -> UnclaimedNode {
    let label = |key: &str| node.labels.get(key).map(String::as_str).unwrap_or_default();
    let pool = PoolName(label(NODEPOOL_LABEL).to_owned());
    let class = snapshot.pools.get(&pool).map(|pool| &pool.node_class);
    let catalogue = class.and_then(|class| snapshot.catalogues.get(class)?.as_ref().ok());
    let capacity_type = label(labels::CAPACITY_TYPE).parse().unwrap_or(CapacityType::OnDemand);
    let id = OfferingId {
        instance_type: label(labels::INSTANCE_TYPE).into(),
        zone: label(labels::ZONE).into(),
        capacity_type,
    };
    let mut allocatable = node.allocatable.clone();
    if let Some(kind) = catalogue.and_then(|catalogue| catalogue.instance_type(&id.instance_type)) {
        for (name, amount) in kind.allocatable.iter() {
            let is_gpu = name.as_str() == ResourceName::NVIDIA_GPU;
            let there = if is_gpu { 0 } else { allocatable.get(name.as_str()) };
            allocatable.set(name.clone(), amount.max(there));
        }
    }
    let price = catalogue.and_then(|catalogue| catalogue.offering(&id)?.price.known());
    let offering = RankedOffering { offering: id, price, allocatable };
    UnclaimedNode { name: node.name.clone(), pool, offering }
}
