//! The node of a claim as pods will find it: its labels, and the taints that last. The node may not have joined yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::ResourceName;
use poolwright_terms::keys::{
    CORDON_TAINT, NODEPOOL_LABEL, NOT_READY_TAINT, RESERVED_TAINT, UNREACHABLE_TAINT,
};
use poolwright_terms::labels::HOSTNAME;
use poolwright_terms::{ConditionType, Taint, TaintEffect, labels};

use crate::model::{Claim, Node, Snapshot};
use crate::rules::csi_labels::add_repeated;
use crate::rules::fields::NODE_NAME_FIELD;

/// Returns the node of a claim, by provider id or else by name.
pub(crate) fn node_of<'a>(snapshot: &'a Snapshot, claim: &Claim) -> Option<&'a Arc<Node>> {
    let launched = claim.launched.as_ref();
    let by_id = launched.and_then(|launched| snapshot.nodes.with_provider_id(&launched.provider_id));
    by_id.or_else(|| snapshot.nodes.get(claim.node_name.as_ref()?))
}

/// Returns the labels and the taints that pods will find on the node of a claim. Before the node is initialized, these are those
/// that its pool and its offering promise.
pub(crate) fn labels_and_taints(
    snapshot: &Snapshot,
    claim: &Claim,
    node: Option<&Node>,
) -> (BTreeMap<String, String>, Vec<Taint>) {
    let (mut labels, taints) = match node {
        Some(node) if claim.since(ConditionType::Initialized).is_some() => {
            (node.labels.clone(), lasting_taints(node))
        }
        _ => {
            let taints = claim.taints.iter().cloned().chain(node.and_then(foreign_cordon)).collect();
            (labels_of_claim(snapshot, claim, node), taints)
        }
    };
    labels.entry(NODEPOOL_LABEL.to_owned()).or_insert_with(|| claim.pool.0.clone());
    // CSI drivers start last, so their labels may still be missing.
    add_repeated(&mut labels);
    labels.extend(node.map(named));
    (labels, taints)
}

/// Returns the labels that a claim's node has, or will have.
pub(crate) fn labels_of_claim(
    snapshot: &Snapshot,
    claim: &Claim,
    node: Option<&Node>,
) -> BTreeMap<String, String> {
    let mut labels = offering_labels(snapshot, claim);
    labels.extend(claim.labels.clone());
    labels.entry(NODEPOOL_LABEL.to_owned()).or_insert_with(|| claim.pool.0.clone());
    labels.extend(node.into_iter().flat_map(|node| node.labels.clone()));
    // Every node has its own host name, even if it is unknown yet. No label value equals this placeholder.
    labels.entry(HOSTNAME.to_owned()).or_insert_with(|| format!("(claim {})", claim.name));
    labels
}

/// Returns the labels that the claim's offering gives its node.
fn offering_labels(snapshot: &Snapshot, claim: &Claim) -> BTreeMap<String, String> {
    let id = &claim.current_offering().offering;
    if let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class)
        && let Some(offering) = catalogue.offering(id)
    {
        return catalogue.node_labels(offering);
    }
    // The catalogue no longer lists the offering, so the labels come from the claim's own data.
    let mut known = BTreeMap::from([
        (labels::INSTANCE_TYPE.to_owned(), id.instance_type.to_string()),
        (labels::ZONE.to_owned(), id.zone.to_string()),
        (labels::CAPACITY_TYPE.to_owned(), id.capacity_type.to_string()),
        (labels::OS.to_owned(), "linux".to_owned()),
    ]);
    let gpus = claim.current_offering().allocatable.get(ResourceName::NVIDIA_GPU);
    if gpus > 0 {
        known.insert(labels::GPU_COUNT.to_owned(), gpus.to_string());
    }
    known
}

/// Returns the node's name, as a label for `matchFields`.
pub(crate) fn named(node: &Node) -> (String, String) {
    (NODE_NAME_FIELD.to_owned(), node.name.clone())
}

/// Returns the taint of a cordon that is not ours. Our own cordon on a new node will be removed soon.
pub(crate) fn foreign_cordon(node: &Node) -> Option<Taint> {
    let closed = node.cordoned && !node.cordoned_until_initialized;
    closed.then(|| Taint {
        key: CORDON_TAINT.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    })
}

/// Returns the node's taints without short-lived ones. The node controller updates not-ready and cordon taints with a delay, so a
/// node that has just opened still has them. Treating it as closed would buy a second node for its pods. So a cordon counts only as
/// long as the node's spec has it. Reservation taints are left out too, because planned pods get a toleration.
pub(crate) fn lasting_taints(node: &Node) -> Vec<Taint> {
    let passing = [NOT_READY_TAINT, UNREACHABLE_TAINT, CORDON_TAINT, RESERVED_TAINT];
    let lasting = node.taints.iter().filter(|taint| !passing.contains(&taint.key.as_str())).cloned();
    lasting.chain(foreign_cordon(node)).collect()
}
