//! Reservations: a reserved open node admits only the pods that are planned for it, until they are bound.
//!
//! The write that opens the node adds a taint with the name of its claim. The planned pods get a toleration for exactly that
//! taint. So no other pod can use the node, and these pods cannot use other new nodes, which are reserved too. The order of the
//! writes does not matter. The next plan may count on the remaining room, so a reservation lasts until the scale-up is over:
//! until no planned pod waits, nor any pod that may be planned next. It always ends some time after the node opened, and then any
//! pod may use the room.

use crate::lifecycle::nominate::{nominable, to_nominate};
use jiff::SignedDuration;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{ConditionType, Taint, TaintEffect};

use crate::action::Action;
use crate::lifecycle::context::{LifecycleContext, PlacementMode, after};
use crate::lifecycle::waiting;
use crate::model::{Claim, ClaimName, Node, ObjectKey, Pod, Uid};
use crate::rules;

/// The time for which a reservation lasts after its node opened or, for pods of a gang, after all nodes of the gang opened. It
/// starts at a recorded time, so a restart does not extend it.
const LIMIT: SignedDuration = SignedDuration::from_secs(60);
/// The longest value that a taint may have.
const LONGEST_VALUE: usize = 63;

/// Returns the taint of a node that is reserved for the pods of this claim.
pub fn reservation(claim: &ClaimName) -> Taint {
    Taint { key: RESERVED_TAINT.to_owned(), value: claim.0.clone(), effect: TaintEffect::NoSchedule }
}

/// Returns the node's taints without the reservation.
pub(crate) fn unreserved(node: &Node) -> Vec<Taint> {
    node.taints.iter().filter(|taint| taint.key != RESERVED_TAINT).cloned().collect()
}

/// Returns whether the claim's node should be reserved. That is so if pods are planned for it or a scale-up is in progress, and
/// the node is not open yet or opened recently. All planned pods must be able to get a toleration.
pub(crate) fn holds(context: &mut LifecycleContext<'_>, claim: &Claim) -> bool {
    let initialized = claim.since(ConditionType::Initialized);
    let successors = context.awaits_successors(claim);
    let retires = context.retires(claim);
    let wanted = successors
        || retires
        || !context.expected(claim).is_empty()
        || initialized.is_some() && is_under_way(context);
    let expected = context.expected(claim);
    let ready = context.ready_since(claim);
    let can_be_let_in = |pod: &&Pod| !context.snapshot.unpatchable.contains(pod.key.namespace());
    context.placement == PlacementMode::Reserve
        && claim.name.0.len() <= LONGEST_VALUE
        && claim.since(ConditionType::Disrupting).is_none()
        && wanted
        && expected.iter().all(can_be_let_in)
        // There is no time limit while the node retires, or while the successors of pods on a disrupted node are the reason. The
        // disruption ends or is called off.
        && (retires || successors || ready.is_none_or(|since| !context.ended(after(since, LIMIT))))
}

/// Returns whether a scale-up is in progress. That is so if planned pods wait, or if pods began to wait so recently that a plan
/// for them may be in progress. Pods that have waited longer without a plan do not count, because no plan can help them.
fn is_under_way(context: &mut LifecycleContext<'_>) -> bool {
    if context.expected.values().any(|pods| !pods.is_empty()) {
        return true;
    }
    let newest = context.unplanned.iter().filter_map(|pod| waiting::waits_since(pod)).max();
    newest.is_some_and(|since| !context.ended(after(since, waiting::UNPLANNED)))
}

/// Adds tolerations to the planned pods that lack them.
pub(crate) fn let_in(context: &mut LifecycleContext<'_>, claim: &Claim) {
    for (pod, uid) in kept_out(context, claim) {
        context.act(Action::Tolerate { pod, uid, claim: claim.name.clone() });
    }
}

/// Nominates planned pods that tolerate every reservation, so that the scheduler tries this node first.
pub(crate) fn lead_in(context: &mut LifecycleContext<'_>, claim: &Claim, node_name: &str) {
    for (pod, uid) in unbound(context, claim) {
        context.act(Action::Nominate { pod, uid, node: node_name.to_owned() });
    }
}

/// Returns whether every planned pod can be scheduled as soon as the node opens.
pub(crate) fn is_prepared(context: &LifecycleContext<'_>, claim: &Claim) -> bool {
    kept_out(context, claim).is_empty() && unbound(context, claim).is_empty()
}

/// Returns the planned pods without a toleration for the reservation.
fn kept_out(context: &LifecycleContext<'_>, claim: &Claim) -> Vec<(ObjectKey, Uid)> {
    let taint = reservation(&claim.name);
    nominable(context, claim)
        .filter(|pod| !pod.reserved_for.contains(&claim.name) && !tolerates(pod, &taint))
        .filter_map(|pod| Some((pod.key.existing()?.clone(), pod.uid.clone())))
        .collect()
}

/// Returns the planned pods that tolerate every reservation and are not nominated to the node yet. The reservation alone does not
/// direct them to the node.
fn unbound(context: &LifecycleContext<'_>, claim: &Claim) -> Vec<(ObjectKey, Uid)> {
    let taint = reservation(&claim.name);
    to_nominate(context, claim, |pod| tolerates(pod, &taint))
}

fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    rules::check_taints(&pod.spec.tolerations, std::slice::from_ref(taint)).is_ok()
}
