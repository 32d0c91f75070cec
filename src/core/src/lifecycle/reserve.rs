//! Reserved nodes: an open node takes only the pods that are planned for it, until they are there.
//!
//! The node gets a taint that names its claim in the write that opens it, and the pods that are planned for it a toleration
//! of exactly that taint. So nobody takes their room, and they take nobody's: every other new node is reserved too. The
//! order of the writes does not matter for that. What room is left may be what the next plan counts on, so a reservation
//! lasts until the scale-up is over: nobody waits who was planned, or who may be planned next. Whatever happens it ends a
//! while after the node opened, and what room is left then is anybody's.

use crate::lifecycle::nominate::{nominable, to_nominate};
use jiff::SignedDuration;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{ConditionType, Taint, TaintEffect};

use crate::action::Action;
use crate::lifecycle::context::{LifecycleContext, Placement, after};
use crate::lifecycle::waiting;
use crate::model::{Claim, ClaimName, Node, ObjectKey, Pod, Uid};
use crate::rules;

/// A reservation ends this long after its node opened, one for pods of a gang after all nodes of the gang did. Counted from a recorded time: no restart makes it longer.
const LIMIT: SignedDuration = SignedDuration::from_secs(60);
/// The longest value that a taint may have.
const LONGEST_VALUE: usize = 63;

/// The taint of a node that is reserved for the pods of this claim.
pub fn reservation(claim: &ClaimName) -> Taint {
    Taint { key: RESERVED_TAINT.to_owned(), value: claim.0.clone(), effect: TaintEffect::NoSchedule }
}

/// Whether the node is reserved.
pub(crate) fn is_reserved(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.key == RESERVED_TAINT)
}

/// The node's taints but for the reservation.
pub(crate) fn unreserved(node: &Node) -> Vec<Taint> {
    node.taints.iter().filter(|taint| taint.key != RESERVED_TAINT).cloned().collect()
}

/// Whether the claim's node is to be reserved: it opens and somebody waits for it, or it is open, not for too long, and a
/// scale-up is under way; and all who wait for it can be let in.
pub(crate) fn holds(context: &mut LifecycleContext<'_>, claim: &Claim) -> bool {
    let initialized = claim.since(ConditionType::Initialized);
    let successors = context.awaits_successors(claim);
    let wanted =
        successors || !context.expected(claim).is_empty() || initialized.is_some() && is_under_way(context);
    let expected = context.expected(claim);
    let ready = context.ready_since(claim);
    let can_be_let_in = |pod: &&Pod| !context.snapshot.unpatchable.contains(pod.key.namespace());
    context.placement == Placement::Reserve
        && claim.name.0.len() <= LONGEST_VALUE
        && claim.since(ConditionType::Disrupting).is_none()
        && wanted
        && expected.iter().all(can_be_let_in)
        // However long the drain takes: it has begun, or is called off.
        && (successors || ready.is_none_or(|since| !context.ended(after(since, LIMIT))))
}

/// Whether pods wait that were planned, or began to wait so lately that a plan for them may be under way. One that waits
/// for longer and was not planned is one that nothing can be done for.
fn is_under_way(context: &mut LifecycleContext<'_>) -> bool {
    if context.expected.values().any(|pods| !pods.is_empty()) {
        return true;
    }
    let newest = context.unplanned.iter().filter_map(|pod| waiting::waits_since(pod)).max();
    newest.is_some_and(|since| !context.ended(after(since, waiting::UNPLANNED)))
}

/// Lets the pods in that are planned for the claim and would be kept out.
pub(crate) fn let_in(context: &mut LifecycleContext<'_>, claim: &Claim) {
    for (pod, uid) in kept_out(context, claim) {
        context.act(Action::Tolerate { pod, uid, claim: claim.name.clone() });
    }
}

/// Nominates pods that tolerate any reservation: the scheduler tries the node first that a pod is nominated to.
pub(crate) fn lead_in(context: &mut LifecycleContext<'_>, claim: &Claim, node_name: &str) {
    for (pod, uid) in unbound(context, claim) {
        context.act(Action::Nominate { pod, uid, node: node_name.to_owned() });
    }
}

/// Whether every pod that is planned for the claim can come as soon as its node opens.
pub(crate) fn is_prepared(context: &LifecycleContext<'_>, claim: &Claim) -> bool {
    kept_out(context, claim).is_empty() && unbound(context, claim).is_empty()
}

/// Pods without a toleration of the reservation.
fn kept_out(context: &LifecycleContext<'_>, claim: &Claim) -> Vec<(ObjectKey, Uid)> {
    let taint = reservation(&claim.name);
    nominable(context, claim)
        .filter(|pod| !pod.reserved_for.contains(&claim.name) && !tolerates(pod, &taint))
        .filter_map(|pod| Some((pod.key.existing()?.clone(), pod.uid.clone())))
        .collect()
}

/// Pods that tolerate any reservation, so that this one does not bring them here.
fn unbound(context: &LifecycleContext<'_>, claim: &Claim) -> Vec<(ObjectKey, Uid)> {
    let taint = reservation(&claim.name);
    to_nominate(context, claim, |pod| tolerates(pod, &taint))
}

fn tolerates(pod: &Pod, taint: &Taint) -> bool {
    rules::check_taints(&pod.spec.tolerations, std::slice::from_ref(taint)).is_ok()
}
