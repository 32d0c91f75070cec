//! Checks whether a new node advertises the promised resources and passes its readiness gates.

use poolwright_terms::Reason;
use poolwright_terms::keys::{NOT_READY_TAINT, UNREACHABLE_TAINT, UNREGISTERED_TAINT};

use crate::model::{Claim, Node};
use crate::rules::allocatable_tolerance::is_kept;
use crate::rules::gpus;

/// Returns the reason why a node cannot open yet, and a message; `None` if it can.
pub(crate) fn missing(claim: &Claim, node: &Node) -> Option<(Reason, String)> {
    if node.deleting_since.is_some() {
        return Some((Reason::NodeDeleted, format!("node {} is being deleted", node.name)));
    }
    let unready =
        node.taints.iter().any(|taint| taint.key == NOT_READY_TAINT || taint.key == UNREACHABLE_TAINT);
    if !node.ready || unready {
        return Some((Reason::NodeNotReady, format!("node {} is not ready", node.name)));
    }
    let promised = &claim.current_offering().allocatable;
    let differences: Vec<String> = promised
        .iter()
        .filter(|(name, amount)| !is_kept(name, *amount, node.allocatable.get(name.as_str())))
        .map(|(name, amount)| {
            let advertised = name.quantity(node.allocatable.get(name.as_str()));
            format!("{name}: {} promised, {advertised} advertised", name.quantity(amount))
        })
        .collect();
    if !differences.is_empty() {
        let differences = differences.join("; ");
        let message = if gpus::are_shared(promised, &node.allocatable) {
            format!("node {}: {differences}. {}", node.name, gpus::SHARES_GPUS)
        } else {
            format!("node {}: {differences}", node.name)
        };
        return Some((Reason::ResourcesDiffer, message));
    }
    let starting: Vec<String> = node
        .taints
        .iter()
        .filter(|taint| {
            taint.key == UNREGISTERED_TAINT
                || taint.key.starts_with(READINESS_TAINTS)
                || claim
                    .startup_taints
                    .iter()
                    .any(|startup| startup.key == taint.key && startup.effect == taint.effect)
        })
        .map(|taint| format!("`{taint}`"))
        .collect();
    if !starting.is_empty() {
        return Some((
            Reason::StartupTaintsPresent,
            format!("node {} still has the startup taints {}", node.name, starting.join(", ")),
        ));
    }
    let gates: Vec<String> = claim.readiness_gates.iter().filter_map(|gate| closed(node, gate)).collect();
    if !gates.is_empty() {
        return Some((Reason::ReadinessGates, format!("node {}: {}", node.name, gates.join("; "))));
    }
    None
}

/// Describes the resources of which a node advertises less than its claim promises, beyond what estimates tolerate.
pub fn lacks(claim: &Claim, node: &Node) -> Vec<String> {
    let promised = claim.current_offering().allocatable.iter();
    let less = promised.filter_map(|(name, amount)| {
        let there = node.allocatable.get(name.as_str());
        let is_less = there < amount && !is_kept(name, amount, there);
        is_less.then(|| {
            format!("{name}: {} promised, {} advertised", name.quantity(amount), name.quantity(there))
        })
    });
    less.collect()
}

/// The prefix of the taints of the Node Readiness Controller, which removes each taint when the conditions of its rule hold
/// (<https://github.com/kubernetes-sigs/node-readiness-controller>).
pub(crate) const READINESS_TAINTS: &str = "readiness.k8s.io/";

/// Describes why a readiness gate is not passed; `None` if it is.
pub(crate) fn closed(node: &Node, gate: &str) -> Option<String> {
    if gate == "Ready" {
        // `Ready` is always required.
        return None;
    }
    let Some(reported) = node.condition(gate) else {
        return Some(format!("it does not have the condition {gate} yet"));
    };
    (reported.status != "True").then(|| format!("condition {reported} since {}", reported.since))
}
