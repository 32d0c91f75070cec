//! The start of a claim: launch, registration and initialization, until its node is open to pods.

use crate::lifecycle::advertised::missing;
use crate::lifecycle::empty::release;
use crate::lifecycle::nominate::{nominable, to_nominate};
use poolwright_terms::keys::{
    CORDONED_UNTIL_ANNOTATION, CORDONED_UNTIL_INITIALIZED, NODECLAIM_LABEL, NODEPOOL_LABEL, REGISTERED_LABEL,
    UNREGISTERED_TAINT,
};
use poolwright_terms::{ConditionType, Reason, Taint};
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::action::{Action, Event, EventType, Subject};
use crate::lifecycle::context::{LifecycleContext, REPEAT, after, is, is_not, words};
use crate::lifecycle::opening::Opening;
use crate::lifecycle::{empty, interruption, repair, reserve, retire, unlisted};
use crate::model::{Claim, Node, ObjectKey, Pod, PodPhase};
use crate::rules::bare::without_controller;

/// The time that the scheduler may take to bind a pod to the open node that was bought for it.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// The time for which nothing may need a claim before it is deleted without a launch. A controller may replace its pods meanwhile.
const SETTLE: SignedDuration = SignedDuration::from_secs(5);

pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim, opening: &Opening<'_>) {
    let is_open = claim.since(ConditionType::Initialized).is_some();
    let Some(launched) = &claim.launched else {
        if !release(context, claim) && !forgo(context, claim) {
            launch(context, claim);
        }
        return;
    };
    if context.instance_is_gone(claim) {
        let lost = without_controller(context.work(claim), "lost");
        let lost = lost.map_or_else(String::new, |lost| format!(", but {lost}"));
        let message = format!(
            "instance {} no longer exists, and Poolwright did not terminate it; its pods are planned again{lost}",
            launched.provider_id
        );
        unlisted::end(context, claim, Reason::InstanceGone, &message);
        context.record_event(&claim.name, EventType::Warning, Reason::InstanceGone, message);
        return context.delete(claim, false);
    }
    unlisted::decide(context, claim);
    if claim.since(ConditionType::Launched).is_none() {
        let message = format!("{} runs as {}", launched.offering, launched.provider_id);
        context.conditions(claim, [is(ConditionType::Launched, Reason::Launched, message)]);
    }
    if interruption::decide(context, claim) || !is_open && release(context, claim) {
        return;
    }
    let Some(node_name) = &claim.node_name else {
        return register(context, claim);
    };
    if claim.since(ConditionType::Registered).is_none() {
        let message = format!("node {node_name} joined the cluster");
        context.conditions(claim, [is(ConditionType::Registered, Reason::Registered, message)]);
    }
    if is_open {
        initialized(context, claim, node_name);
    } else {
        initialize(context, claim, node_name, opening);
    }
}

/// Launches no instance for a claim that nothing needs any more, and deletes the claim once that has lasted. Returns whether
/// nothing needs it.
///
/// Its pods were deleted or found another place. Or a leader that was suspended wrote the claim late, when its successor had
/// bought nodes for the same pods: a write that is on its way cannot be called back, so the purchase is refused here.
fn forgo(context: &mut LifecycleContext<'_>, claim: &Claim) -> bool {
    let waits_for_gang = context.lacking.contains_key(claim.name.0.as_str());
    if waits_for_gang || empty::needed(context, claim, "its node").is_some() {
        return false;
    }
    let Some(since) = claim.since(ConditionType::Empty) else {
        let message = "no pod is planned for its node, so no instance is launched for it";
        context.conditions(claim, [is(ConditionType::Empty, Reason::NoWorkload, message)]);
        context.wake(after(context.now, SETTLE));
        return true;
    };
    if context.ended(after(since, SETTLE)) {
        let message = "nothing needs its node any more, so it is deleted before an instance is launched";
        context.record_event(&claim.name, EventType::Normal, Reason::ScaledDown, message.to_owned());
        context.delete(claim, true);
    }
    true
}

fn launch(context: &mut LifecycleContext<'_>, claim: &Claim) {
    let deadline = after(claim.created, claim.deadlines.launch);
    if context.ended(deadline) {
        let why = format!("no instance was launched within {}", words(claim.deadlines.launch));
        return give_up(context, claim, Reason::LaunchTimeout, why);
    }
    if context.unproven.contains(claim.node_class.kind.as_str()) {
        let message = "no instance is launched, because the cloud knows none of the instances whose nodes are ready; check the credentials, the \
                       account and the region of the controller";
        return context
            .conditions(claim, [is_not(ConditionType::Launched, Reason::InstanceUnlisted, message)]);
    }
    context.act(Action::Launch { claim: claim.name.clone() });
    context.wake(after(context.now, REPEAT));
}

fn register(context: &mut LifecycleContext<'_>, claim: &Claim) {
    if let Some(node) = context.node(claim).filter(|node| node.deleting_since.is_none()) {
        let action = registration(context, claim, node);
        context.act(action);
        context.wake(after(context.now, REPEAT));
        return;
    }
    let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
    if context.ended(after(since, claim.deadlines.registration)) {
        let why = format!(
            "its node did not join the cluster within {} after launch; check the instance's boot log, network and join token",
            words(claim.deadlines.registration)
        );
        give_up(context, claim, Reason::RegistrationTimeout, why);
    }
}

fn registration(context: &LifecycleContext<'_>, claim: &Claim, node: &Node) -> Action {
    // The order is: labels that the plan relied on and the cloud did not set, labels of the template, Poolwright's own labels.
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    if let Some(Ok(catalogue)) = context.snapshot.catalogues.get(&claim.node_class)
        && let Some(offering) = catalogue.offering(&claim.current_offering().offering)
    {
        labels.extend(catalogue.node_labels(offering));
        labels.retain(|key, _| !node.labels.contains_key(key));
    }
    labels.extend(claim.labels.clone());
    labels.insert(NODEPOOL_LABEL.to_owned(), claim.pool.0.clone());
    labels.insert(NODECLAIM_LABEL.to_owned(), claim.name.0.clone());
    labels.insert(REGISTERED_LABEL.to_owned(), "true".to_owned());
    let mut annotations = claim.annotations.clone();
    annotations.insert(CORDONED_UNTIL_ANNOTATION.to_owned(), CORDONED_UNTIL_INITIALIZED.to_owned());
    // Startup taints are left as they are, because they may have been removed already.
    let mut taints: Vec<Taint> =
        node.taints.iter().filter(|taint| taint.key != UNREGISTERED_TAINT).cloned().collect();
    for taint in &claim.taints {
        if !taints.contains(taint) {
            taints.push(taint.clone());
        }
    }
    Action::Register { claim: claim.name.clone(), node: node.name.clone(), labels, annotations, taints }
}

/// Nominates waiting pods to their planned nodes.
fn nominate(context: &mut LifecycleContext<'_>, claim: &Claim, node_name: &str) {
    for (pod, uid) in to_nominate(context, claim, |_| true) {
        context.act(Action::Nominate { pod, uid, node: node_name.to_owned() });
    }
}

fn initialize(context: &mut LifecycleContext<'_>, claim: &Claim, node_name: &str, opening: &Opening<'_>) {
    let missing = match context.node(claim) {
        None => Some((Reason::NodeGone, format!("node {node_name} no longer exists"))),
        Some(node) => missing(claim, node),
    };
    let reserve = reserve::holds(context, claim);
    if reserve {
        // This is done while the node still starts, too, so that pods can be scheduled as soon as it opens.
        reserve::let_in(context, claim);
    }
    let Some((reason, message)) = missing else {
        if reserve {
            reserve::lead_in(context, claim, node_name);
        }
        if !opening.open.contains(&claim.name) {
            if opening.nominate.contains(&claim.name) {
                nominate(context, claim, node_name);
            }
            return;
        }
        if !reserve {
            // Nominate once more at the last moment, because a cleared nomination would cost the pod its place.
            let key = |pod: &Pod| Some((pod.key.existing()?.clone(), pod.uid.clone()));
            let pods: Vec<_> = nominable(context, claim).filter_map(key).collect();
            for (pod, uid) in pods {
                context.act(Action::Nominate { pod, uid, node: node_name.to_owned() });
            }
        }
        let reserve_for = reserve.then(|| claim.name.clone());
        context.act(Action::Open { node: node_name.to_owned(), reserve_for });
        let message = format!("node {node_name} is ready and advertises the promised resources");
        let to = if reserve { "the pods planned for it, and later to all pods" } else { "all pods" };
        context.record_event(
            &claim.name,
            EventType::Normal,
            Reason::Initialized,
            format!("{message}; it is open to {to}"),
        );
        return context.conditions(claim, [is(ConditionType::Initialized, Reason::Initialized, message)]);
    };
    if let Some(since) = claim.since(ConditionType::Registered)
        && context.ended(after(since, claim.deadlines.initialization))
    {
        let why = format!(
            "its node was not usable within {} after it joined: {message}",
            words(claim.deadlines.initialization)
        );
        return give_up(context, claim, Reason::InitializationTimeout, why);
    }
    context.conditions(claim, [is_not(ConditionType::Initialized, reason, message)]);
}

fn initialized(context: &mut LifecycleContext<'_>, claim: &Claim, node_name: &str) {
    let Some(node) = context.node(claim) else {
        let message = format!("node {node_name} no longer exists; its instance is terminated");
        context.record_event(&claim.name, EventType::Warning, Reason::NodeGone, message);
        return context.delete(claim, true);
    };
    if repair::decide(context, claim, node) {
        return;
    }
    let reserve = reserve::holds(context, claim);
    if reserve && (node.cordoned_until_initialized || node.is_reserved()) {
        reserve::let_in(context, claim);
        reserve::lead_in(context, claim, node_name);
    } else {
        nominate(context, claim, node_name);
    }
    if node.cordoned_until_initialized {
        let reserve_for = reserve.then(|| claim.name.clone());
        context.act(Action::Open { node: node.name.clone(), reserve_for });
    } else {
        if node.is_reserved() && !reserve {
            context.act(Action::SetTaints { node: node.name.clone(), taints: reserve::unreserved(node) });
        }
        retire::decide(context, claim, node, reserve);
        refused(context, claim, node);
    }
    if claim.leaving().is_none() {
        empty::decide(context, claim, node);
    } else if !empty::is_closed(node) {
        empty::close(context, node);
    }
}

/// Records an event if the scheduler does not bind pods to their planned node, so that the node idles.
fn refused(context: &mut LifecycleContext<'_>, claim: &Claim, node: &Node) {
    let Some(open_since) = context.ready_since(claim) else { return };
    let waiting: Vec<(ObjectKey, Timestamp, String)> = context
        .expected(claim)
        .iter()
        .filter_map(|pod| match &pod.phase {
            PodPhase::Unschedulable { since, message } => {
                Some((pod.key.existing()?.clone(), *since, message.clone()))
            }
            _ => None,
        })
        .collect();
    for (pod, since, said) in waiting {
        if context.ended(after(since.max(open_since), PATIENCE)) {
            let message = format!(
                "is planned for node {}, which is open, but the scheduler does not place it there ({said}); the node is kept for it: correct or delete the pod",
                node.name
            );
            let (subject, reason) = (Subject::Pod(pod), Reason::NotScheduledAsPlanned);
            context.act(Action::RecordEvent(Event { subject, kind: EventType::Warning, reason, message }));
        }
    }
}

/// Handles a stage that took too long: avoids the offering for a while and deletes the claim, so that its pods are demand again.
fn give_up(context: &mut LifecycleContext<'_>, claim: &Claim, reason: Reason, why: String) {
    let offering = &claim.current_offering().offering;
    let message = format!("{offering}: {why}");
    context.act(Action::HoldBack { claim: claim.name.clone(), message: message.clone() });
    context.record_event(
        &claim.name,
        EventType::Warning,
        reason,
        format!("{message}. The claim is deleted, the offering is not bought for a while, and its pods are planned again"),
    );
    context.delete(claim, false);
}
