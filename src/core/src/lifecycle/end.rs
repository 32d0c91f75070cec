//! Termination of a deleted claim: closes and drains its node, and terminates its instance.

use poolwright_terms::{ConditionType, Reason};

use crate::action::Action;
use crate::lifecycle::context::{LifecycleContext, REPEAT, after, is};
use crate::lifecycle::drain::Drain;
use crate::lifecycle::{detach, drain, empty, interruption, repair};
use crate::model::Claim;

pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim) {
    let node = context.node(claim);
    if let Some(node) = node.filter(|node| !empty::is_closed(node)) {
        empty::close(context, node);
    }
    if let Some(interruption) = &claim.interruption {
        let said = interruption::interruption_conditions(interruption, context.now);
        context.conditions(claim, said.into_iter().filter(|one| one.kind == ConditionType::Interrupted));
        interruption::record_event(context, claim, interruption);
    }
    let name = node.map(|node| node.name.as_str()).or(claim.node_name.as_deref());
    // Nothing runs on an instance that is gone, even if pods are still bound to its node. A lost node does not respond.
    let lost = repair::is_lost(context, claim);
    let gone = context.instance_is_gone(claim);
    let ending = claim.is_ending() && !gone;
    if let Some(name) = name.filter(|_| ending) {
        drain::abandon(context, claim, name);
    }
    let runs = name.filter(|_| !lost && !gone && !ending);
    let drained = match runs {
        Some(name) => drain::decide(context, claim, name),
        None => Drain::Done,
    };
    if let (Drain::Done, Some(name)) = (&drained, runs)
        && detach::waits(context, claim, name)
    {
        return;
    }
    let (message, forced) = match drained {
        Drain::Waiting => return,
        Drain::Done if ending => {
            ("the cloud is stopping or terminating its instance, so Poolwright terminates it too", true)
        }
        Drain::Done if lost => (
            "its node has been not ready for too long, so pods cannot be evicted; its instance is being terminated",
            true,
        ),
        Drain::Done => ("no work is left on its node; its instance is being terminated", false),
        Drain::TimeIsUp => ("its deadline has passed; its instance is being terminated", true),
    };
    context.conditions(claim, [is(ConditionType::InstanceTerminating, Reason::Terminating, message)]);
    context.act(Action::Terminate { claim: claim.name.clone(), forced });
    context.wake(after(context.now, REPEAT));
}
