//! The order in which new nodes open to pods.
//!
//! The kube-scheduler binds a pending pod to any open node that fits. If all nodes opened as they join, pods would take each
//! other's places, and more nodes would be bought. Nodes that are reserved for their pods open as soon as these pods tolerate
//! the reservation, in any order.
//!
//! If nodes cannot be reserved, pods are nominated first, because the scheduler reserves room for nominated pods and tries
//! their node first. Then their nodes open, and the next nodes open when these pods are bound. The scheduler clears the
//! nomination of every pod that it fails to place, and every node that opens makes it try all pending pods. So nodes open in
//! groups, with pauses between them.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use poolwright_terms::ConditionType;

use crate::lifecycle::advertised::missing;
use crate::lifecycle::context::{LifecycleContext, after};
use crate::lifecycle::nominate::to_nominate;
use crate::lifecycle::reserve;
use crate::model::{Claim, ClaimName, Node};

/// The time to wait for the pods of one group before the next group opens anyway.
const SETTLE: SignedDuration = SignedDuration::from_secs(3);
/// The time to wait for the preparation of a node's pods before the node opens anyway. The scheduler may keep clearing
/// nominations, or the API server may refuse tolerations.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);
/// The divisor that gives the size of a group from the number of nodes that are ready to open. Up to this many nodes open one by
/// one, and more nodes open in larger groups.
const SHARE: usize = 64;

/// The nodes that proceed now. All other nodes wait.
#[derive(Debug, Default)]
pub(crate) struct Opening<'a> {
    /// Nodes whose pods are nominated now.
    pub nominate: BTreeSet<&'a ClaimName>,
    /// Nodes that open now.
    pub open: BTreeSet<&'a ClaimName>,
}

pub(crate) fn choose<'a>(context: &mut LifecycleContext<'a>) -> Opening<'a> {
    let claims = || context.snapshot.claims.values().filter(|claim| claim.deleting_since.is_none());
    let ready = claims().filter(|claim| {
        claim.since(ConditionType::Initialized).is_none()
            && claim.node_name.is_some()
            && context.node(claim).is_some_and(|node| missing(claim, node).is_none())
    });
    // A node without planned pods may open at any time, because no pod can lose its place.
    let (waited_for, alone): (Vec<&Claim>, Vec<&Claim>) =
        ready.map(AsRef::as_ref).partition(|claim| !context.expected(claim).is_empty());
    let mut opening = Opening { open: alone.iter().map(|claim| &claim.name).collect(), ..Opening::default() };
    let (reserved, mut waited_for): (Vec<&Claim>, Vec<&Claim>) =
        waited_for.into_iter().partition(|claim| reserve::holds(context, claim));
    for claim in reserved {
        let registered = claim.since(ConditionType::Registered).unwrap_or(claim.created);
        if reserve::is_prepared(context, claim) || context.ended(after(registered, PATIENCE)) {
            opening.open.insert(&claim.name);
        }
    }
    let opened = || claims().filter_map(|claim| Some((claim, claim.since(ConditionType::Initialized)?)));
    let last_opened = opened().map(|(_, since)| since).max();
    let is_held = |claim: &Claim| context.node(claim).is_some_and(Node::is_reserved);
    let unsettled = opened().filter(|(claim, _)| !context.expected(claim).is_empty() && !is_held(claim));
    let settled_at = unsettled.map(|(_, since)| after(since, SETTLE)).max();
    if waited_for.is_empty() || settled_at.is_some_and(|at| !context.ended(at)) {
        return opening;
    }
    waited_for.sort_by_key(|claim| (claim.created, &claim.name));
    waited_for.truncate(waited_for.len().div_ceil(SHARE));
    if waited_for.iter().all(|claim| to_nominate(context, claim, |_| true).is_empty()) {
        opening.open.extend(waited_for.iter().map(|claim| &claim.name));
        return opening;
    }
    for claim in waited_for {
        opening.nominate.insert(&claim.name);
        let registered = claim.since(ConditionType::Registered).unwrap_or(claim.created);
        let turn = last_opened.map_or(registered, |last| registered.max(last));
        if context.ended(after(turn, PATIENCE)) {
            opening.open.insert(&claim.name);
        }
    }
    opening
}
