//! Retiring nodes: a node that admits only planned pods, because newcomers would run cheaper elsewhere.
//!
//! A plan decides which nodes retire ([`crate::model::Retirements`]). A retiring node is reserved like a new one: it has the taint
//! of its claim, and a pod that a plan wants there gets the toleration. Nobody is evicted. When the node's last pod has ended, it
//! is terminated like any empty node.

use poolwright_terms::{ConditionType, Reason};

use crate::action::{Action, ConditionUpdate, Event, EventType, Subject};
use crate::lifecycle::context::{LifecycleContext, is, is_not};
use crate::lifecycle::reserve::{reservation, unreserved};
use crate::model::{Claim, Node, Snapshot};

/// Returns the actions that open all retiring nodes. A controller that stops carries them out, so that no node stays closed
/// without anybody who could let pods in.
pub fn open_all(snapshot: &Snapshot) -> Vec<Action> {
    let retiring = snapshot.claims.values().filter(|claim| claim.since(ConditionType::Retiring).is_some());
    let reserved = retiring.filter_map(|claim| {
        let node = snapshot.nodes.get(claim.node_name.as_ref()?)?;
        node.is_reserved().then(|| Action::SetTaints { node: node.name.clone(), taints: unreserved(node) })
    });
    reserved.collect()
}

/// Closes an open node that retires, and records the reason.
pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim, node: &Node, reserve: bool) {
    let reason = context.snapshot.retirements.of(&claim.name, context.now).cloned();
    if reserve && context.retires(claim) {
        if !node.is_reserved() {
            let mut taints = node.taints.clone();
            taints.push(reservation(&claim.name));
            context.act(Action::SetTaints { node: node.name.clone(), taints });
        }
        // Amounts and times change with every plan. The first reason stays as long as the node retires.
        if let Some(reason) = reason.filter(|_| claim.since(ConditionType::Retiring).is_none()) {
            let message = format!("admits only planned pods, because {reason}");
            turn(context, claim, node, is(ConditionType::Retiring, Reason::CheaperElsewhere, message));
        }
    } else if claim.since(ConditionType::Retiring).is_some() {
        let message = "admits all pods again: recent pods would not run cheaper elsewhere, a pod may need its room, its pool no \
                       longer lets nodes retire, or nobody decides";
        turn(context, claim, node, is_not(ConditionType::Retiring, Reason::RoomIsCheap, message));
    }
}

/// Records that a node begins or ceases to retire: a condition of its claim, and events on the claim and the node.
fn turn(context: &mut LifecycleContext<'_>, claim: &Claim, node: &Node, update: ConditionUpdate) {
    for subject in [Subject::Claim(claim.name.clone()), Subject::Node(node.name.clone())] {
        let (kind, reason, message) = (EventType::Normal, update.reason, update.message.clone());
        context.act(Action::RecordEvent(Event { subject, kind, reason, message }));
    }
    context.conditions(claim, [update]);
}
