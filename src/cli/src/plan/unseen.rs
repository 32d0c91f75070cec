//! Room that exists, but that a plan does not count, because the files lack what shows it.

use std::collections::BTreeSet;

use poolwright_core::{ClaimName, Node, Snapshot};
use poolwright_terms::ConditionType;

use crate::not_sold::first_of;

/// What to do about objects that the files lack.
const REMEDY: &str = "give what `kubectl get nodes -o yaml` prints, too";

/// Returns a note about the NodeClaims whose nodes the files lack, and one about the nodes whose status says too little.
pub fn notes(snapshot: &Snapshot) -> Vec<String> {
    claims_without_nodes(snapshot).into_iter().chain(nodes_without_status(snapshot)).collect()
}

/// A plan buys again for the pods that would fit on these nodes.
fn claims_without_nodes(snapshot: &Snapshot) -> Option<String> {
    let claims = snapshot.nodes.values().filter_map(|node| snapshot.claims.of_node(node));
    let have_nodes: BTreeSet<&ClaimName> = claims.map(|claim| &claim.name).collect();
    let joined = snapshot.claims.values().filter(|claim| claim.node_name.is_some());
    let lost = joined.filter(|claim| {
        let is_leaving = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
        !is_leaving && !have_nodes.contains(&claim.name)
    });
    let names: Vec<&str> = lost.map(|claim| claim.name.0.as_str()).collect();
    let (claims, nodes) = match names.len() {
        0 => return None,
        1 => ("NodeClaim", "its node"),
        _ => ("NodeClaims", "their nodes"),
    };
    Some(format!(
        "{claims} {}: the files lack {nodes}, so the room there does not count, and the plan may buy nodes for pods that fit there; \
         {REMEDY}",
        first_of(&names)
    ))
}

/// The scheduler places no pod on a node without allocatable resources, and the plan uses no node that is not known to be ready.
fn nodes_without_status(snapshot: &Snapshot) -> Option<String> {
    let is_known = |node: &Node| {
        !node.allocatable.is_empty()
            && (node.ready || node.unhealthy_conditions.iter().any(|one| one.kind == "Ready"))
    };
    // The claim of a node that is not open yet promises its room.
    let is_promised = |node: &Node| {
        let claim = snapshot.claims.of_node(node);
        claim.is_some_and(|claim| claim.since(ConditionType::Initialized).is_none())
    };
    let all = snapshot.nodes.values().map(|node| &**node);
    let unknown = all.filter(|node| node.deleting_since.is_none() && !is_known(node) && !is_promised(node));
    let names: Vec<&str> = unknown.map(|node| node.name.as_str()).collect();
    let (nodes, status) = match names.len() {
        0 => return None,
        1 => ("Node", "its status has"),
        _ => ("Nodes", "their status has"),
    };
    Some(format!(
        "{nodes} {}: {status} no allocatable resources or no condition Ready, so the room there does not count, and the plan may buy \
         nodes for pods that fit there; {REMEDY}",
        first_of(&names)
    ))
}
