//! In which order new nodes open to pods.
//!
//! The kube-scheduler puts a waiting pod on any open node that holds it. Were all nodes opened to all as they come, pods
//! would take each other's places: the plan would not happen, and more would be bought. Nodes that are reserved for their
//! pods open as soon as those can come, in any order.
//!
//! Where nodes cannot be reserved pods are nominated first (the scheduler reserves room for nominated pods and tries their
//! node first), then their nodes open, and the next nodes open when those pods are placed. The scheduler clears the nomination of every pod that it tries in vain, and every node that
//! opens makes it try all that wait: hence the groups, and the quiet between them.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use poolwright_terms::ConditionType;

use crate::lifecycle::advertised::missing;
use crate::lifecycle::context::{LifecycleContext, after};
use crate::lifecycle::nominate::to_nominate;
use crate::lifecycle::reserve;
use crate::model::{Claim, ClaimName};

/// How long the pods of one group may take until the next group opens all the same.
const SETTLE: SignedDuration = SignedDuration::from_secs(3);
/// A node opens this long after its turn came even if not all its pods are prepared: the scheduler keeps clearing
/// nominations, or the API server does not take tolerations.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);
/// A group is one node of this many that are ready to open: one by one where there are few, for then nothing can go
/// wrong, and never more than a few dozen rounds where there are many.
const SHARE: usize = 64;

/// What happens now to the nodes that are ready to open; the others wait.
#[derive(Debug, Default)]
pub(crate) struct Opening<'a> {
    /// Their waiting pods are nominated.
    pub nominate: BTreeSet<&'a ClaimName>,
    /// They open.
    pub open: BTreeSet<&'a ClaimName>,
}

pub(crate) fn choose<'a>(context: &mut LifecycleContext<'a>) -> Opening<'a> {
    let claims = || context.snapshot.claims.values().filter(|claim| claim.deleting_since.is_none());
    let ready = claims().filter(|claim| {
        claim.since(ConditionType::Initialized).is_none()
            && claim.node_name.is_some()
            && context.node(claim).is_some_and(|node| missing(claim, node).is_none())
    });
    // Nobody waits for a node without planned pods, so its opening moves no pod.
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
    let is_reserved = |claim: &Claim| context.node(claim).is_some_and(reserve::is_reserved);
    let unsettled = opened().filter(|(claim, _)| !context.expected(claim).is_empty() && !is_reserved(claim));
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
