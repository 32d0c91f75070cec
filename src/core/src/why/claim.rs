//! Explanations of claims and nodes: why a node was bought, and why it is kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_terms::keys::DO_NOT_DISRUPT_ANNOTATION;
use poolwright_terms::{ConditionType, Taint, TaintEffect};

use crate::lifecycle::PlacementMode;
use crate::lifecycle::advertised::lacks;
use crate::lifecycle::buffer;
use crate::lifecycle::context::{LifecycleContext, after};
use crate::lifecycle::empty::needed;
use crate::lifecycle::protection::kept_by;
use crate::lifecycle::repair;
use crate::model::plan::Plan;
use crate::model::{Claim, ClaimName, Node, ObjectKey, Pod, PodPhase, PodRole, Snapshot, Stage};
use crate::rules::budget_index::of_pod;
use crate::rules::budgets::{NEVER_ALLOWS, more_block, never_met_of};
use crate::rules::claim_node::{lasting_taints, node_of};
use crate::rules::eviction::{Eviction, OF_SEVERAL};
use crate::rules::format::{age, gist, list};
use crate::supply::rooms::is_used;
use crate::why::{health, retiring};

/// The most pods that are named.
const SHOWN: usize = 4;

/// Returns the explanation of a claim; `None` if it does not exist. `plan` says why its node retires.
pub fn claim(snapshot: &Snapshot, now: Timestamp, plan: &Plan, name: &ClaimName) -> Option<Vec<String>> {
    let claim = snapshot.claims.get(name)?;
    let offering = claim.current_offering();
    let price = offering.price.map_or("an unknown price".to_owned(), UsdPerHour::with_month);
    let mut lines = vec![format!(
        "Claim {name} of pool {}: {} at {price}, created {} ago.",
        claim.pool,
        offering.offering,
        age(claim.created, now)
    )];
    lines.push(match claim.reason.trim_end_matches('.') {
        "" => "Its claim does not say why it was bought.".to_owned(),
        reason => format!("Bought because {reason}."),
    });
    if claim.launched.as_ref().is_some_and(|launched| launched.offering != claim.offerings[0].offering) {
        lines.push(format!("The plan chose {}, which was not available.", claim.offerings[0].offering));
    } else if let Some(next) = claim.offerings.get(1).filter(|_| claim.launched.is_none()) {
        let price = next.price.map_or("an unknown price".to_owned(), |price| format!("{price:#}"));
        lines.push(format!(
            "If it is not available, {} at {price} is next, the first of {} alternatives.",
            next.offering,
            claim.offerings.len() - 1
        ));
    }
    if let Some(lost) = lost(snapshot, claim) {
        lines.extend(lost);
        return Some(lines);
    }
    let node: Option<&Node> =
        claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name)).map(AsRef::as_ref);
    let repair = node.and_then(|node| repair::outlook(snapshot, now, claim, node));
    let is_replaced = repair.as_ref().is_some_and(|repair| repair.is_now(now));
    // What holds until the end of the node is of no interest when that is now.
    if !is_replaced {
        let retires = retiring::reason(snapshot, plan, now, claim);
        lines.push(retires.unwrap_or_else(|| stands(snapshot, now, claim)));
    }
    // Of a deleted claim, its stage says it.
    let unlisted = claim.since(ConditionType::InstanceUnlisted).filter(|_| claim.deleting_since.is_none());
    let unlisted = unlisted.and_then(|_| message(claim, ConditionType::InstanceUnlisted));
    lines.extend(unlisted.map(|why| format!("Something is wrong: {why}.")));
    let pods = node.map_or_else(Vec::new, |node| work(snapshot, &node.name));
    let health = node.map(|node| health::of_node(node, Some(claim), repair.as_ref(), &pods, now));
    lines.extend(health.into_iter().flatten());
    // A lost node is not drained, and the drain of one that is terminated has ended.
    let is_drained = repair.as_ref().is_none_or(|repair| !repair.is_lost || repair.held.is_some())
        && claim.since(ConditionType::InstanceTerminating).is_none();
    if is_replaced {
        lines.extend(runs(snapshot, claim));
    } else if claim.deleting_since.is_none() {
        let is_unhealthy = repair.is_some_and(|repair| repair.held.is_none());
        // Work does not keep a node that is going to be replaced.
        let work = if is_unhealthy { runs(snapshot, claim) } else { None };
        lines.push(work.unwrap_or_else(|| kept(snapshot, now, claim)));
    }
    // The condition of a drain that a budget blocks may be among the lines already.
    let is_told = lines.iter().any(|line| line.contains(NEVER_ALLOWS) || line.contains(OF_SEVERAL));
    let blocked = node.filter(|_| is_drained && !is_told);
    lines.extend(blocked.and_then(|node| undrainable(snapshot, &node.name)));
    Some(lines)
}

/// Returns the explanation of a node; `None` if it does not exist. `plan` says why it retires.
pub fn node(snapshot: &Snapshot, now: Timestamp, plan: &Plan, name: &str) -> Option<Vec<String>> {
    let node = snapshot.nodes.get(name)?;
    let owner = snapshot.claims.of_node(node);
    let mut lines = vec![format!("Node {name} has {}; {}.", gist(&node.allocatable), state(node))];
    let Some(owner) = owner else {
        let pods = work(snapshot, name);
        lines.push("It has no claim: Poolwright did not buy it and never removes it.".to_owned());
        lines.push(if !pods.is_empty() {
            format!("It runs {}.", named(&pods))
        } else if is_used(node) && !node.cordoned {
            let only =
                tolerating(&blocking(node, &[])).map_or_else(String::new, |pods| format!(" for {pods}"));
            format!("It runs no workload pod; Poolwright uses its room first{only}.")
        } else {
            "It runs no workload pod.".to_owned()
        });
        lines.extend(health::of_node(node, None, None, &[], now));
        lines.extend(undrainable(snapshot, name));
        return Some(lines);
    };
    lines.extend(claim(snapshot, now, plan, &owner.name)?);
    Some(lines)
}

/// Describes a claim whose node had joined and no longer exists, so that a plan counts no room of it; `None` if its node exists,
/// has not joined yet, or is being removed.
fn lost(snapshot: &Snapshot, claim: &Claim) -> Option<Vec<String>> {
    let name = claim.node_name.as_deref()?;
    let is_leaving = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
    if is_leaving || node_of(snapshot, claim).is_some() {
        return None;
    }
    let mut lines = vec![format!("Its node {name} does not exist here, so no pod is planned for its room.")];
    let bound = work(snapshot, name);
    if !bound.is_empty() {
        lines.push(format!("Bound to that node: {}.", named(&bound)));
    }
    let planned = waiting(snapshot, claim);
    if !planned.is_empty() {
        lines.push(format!("It was bought for pods that are planned anew: {}.", named(&planned)));
    }
    Some(lines)
}

/// Says which pods run on the node of a claim; `None` if none do.
fn runs(snapshot: &Snapshot, claim: &Claim) -> Option<String> {
    let pods = work(snapshot, claim.node_name.as_deref()?);
    (!pods.is_empty()).then(|| format!("It runs {}.", named(&pods)))
}

/// Describes the budgets that make it impossible to drain a node; `None` if there are none. Pods that the API server evicts without a
/// look at budgets do not count.
pub fn undrainable(snapshot: &Snapshot, name: &str) -> Option<String> {
    let pods = work(snapshot, name);
    let mut kept: Vec<&Pod> = Vec::new();
    let mut budgets: BTreeMap<ObjectKey, String> = BTreeMap::new();
    let needs_budgets = |pod: &&Pod| Eviction::of(pod, of_pod(snapshot, pod)) != Eviction::Free;
    for pod in pods.into_iter().filter(needs_budgets) {
        let found = never_met_of(snapshot, pod);
        if !found.is_empty() {
            kept.push(pod);
        }
        budgets.extend(found.into_iter().map(|one| (one.budget.clone(), one.to_string())));
    }
    let first = budgets.values().next()?;
    let more = more_block(budgets.len() - 1);
    Some(format!("It cannot be drained: {first}. That protects {}.{more}", named(&kept)))
}

fn state(node: &Node) -> String {
    let mut words = vec![if node.ready { "ready" } else { "not ready" }];
    if node.cordoned_until_initialized {
        words.push("closed until its claim is initialized");
    } else if node.cordoned {
        words.push("cordoned");
    }
    if node.deleting_since.is_some() {
        words.push("being deleted");
    }
    words.join(", ")
}

/// Describes the stage of a claim, and what it waits for.
fn stands(snapshot: &Snapshot, now: Timestamp, claim: &Claim) -> String {
    let limits = &claim.deadlines;
    let (next, words, deadline) = match claim.stage() {
        Stage::Draining | Stage::Terminating => return ends(now, claim),
        Stage::Disrupting => {
            return match message(claim, ConditionType::Disrupting) {
                Some(why) => format!("It is being emptied: {why}."),
                None => "It is being emptied.".to_owned(),
            };
        }
        Stage::Initialized => return open(snapshot, claim),
        Stage::Registered => {
            let since = claim.since(ConditionType::Registered);
            let deadline = since.map(|since| (since, limits.initialization, "its node joined"));
            (ConditionType::Initialized, "Its node has joined and is not open yet", deadline)
        }
        Stage::Launched => {
            let since = claim.since(ConditionType::Launched).unwrap_or(claim.created);
            let deadline = Some((since, limits.registration, "its launch"));
            (ConditionType::Registered, "Its instance is launched and has not joined yet", deadline)
        }
        Stage::Pending => (
            ConditionType::Launched,
            "It is not launched yet",
            Some((claim.created, limits.launch, "its creation")),
        ),
    };
    let why = message(claim, next).map_or_else(String::new, |why| format!(": {why}"));
    let deadline = deadline.map_or_else(String::new, |(since, limit, start)| {
        let due = after(since, limit);
        let due = if due > now { format!("in {}", age(now, due)) } else { "now".to_owned() };
        format!(" Poolwright gives it up {due}, {limit:#} after {start}.")
    });
    format!("{words}{why}.{deadline}")
}

/// Returns the taints that keep pods off a node and that its claim does not ask for.
fn blocking(node: &Node, asked: &[Taint]) -> Vec<Taint> {
    let is_hard = |taint: &Taint| taint.effect != TaintEffect::PreferNoSchedule && !asked.contains(taint);
    lasting_taints(node).into_iter().filter(is_hard).collect()
}

/// Describes the pods that tolerate these taints; `None` if there are no taints.
fn tolerating(taints: &[Taint]) -> Option<String> {
    let names: Vec<String> = taints.iter().map(|taint| format!("`{taint}`")).collect();
    let taint = if names.len() == 1 { "taint" } else { "taints" };
    (!names.is_empty()).then(|| format!("pods that tolerate its {taint} {}", list(&names, SHOWN)))
}

/// Describes an initialized node: whether pods may use it.
fn open(snapshot: &Snapshot, claim: &Claim) -> String {
    let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
    let only = node.and_then(|node| tolerating(&blocking(node, &claim.taints)));
    match node {
        Some(node) if !node.ready => "Its node is not ready, so no new pod goes there.".to_owned(),
        Some(node) if node.cordoned => "Its node is cordoned, so no new pod goes there.".to_owned(),
        // The condition says what was true when the node opened.
        Some(node) if only.is_none() && !lacks(claim, node).is_empty() => "It is open to pods.".to_owned(),
        _ => match (only, message(claim, ConditionType::Initialized)) {
            (Some(only), _) => format!("It is open only to {only}."),
            (None, Some(why)) => format!("It is open to pods: {why}."),
            (None, None) => "It is open to pods.".to_owned(),
        },
    }
}

/// Describes the end of a claim that is being deleted: since when, and what it waits for.
fn ends(now: Timestamp, claim: &Claim) -> String {
    let steps = [ConditionType::Drained, ConditionType::VolumesDetached, ConditionType::InstanceTerminating];
    let open = steps.into_iter().find(|step| claim.since(*step).is_none() && message(claim, *step).is_some());
    let runs_on = claim.since(ConditionType::InstanceUnlisted).map(|_| ConditionType::InstanceUnlisted);
    let open = runs_on.or(open);
    let why = open.and_then(|step| message(claim, step)).map_or_else(String::new, |why| format!(": {why}"));
    let since = claim.deleting_since.map_or_else(String::new, |since| format!(" since {}", age(since, now)));
    let deadline = match (claim.deadlines.termination, claim.deleting_since) {
        (Some(limit), Some(since)) => {
            let due = after(since, limit);
            let due = if due > now { format!("in {}", age(now, due)) } else { "now".to_owned() };
            format!(" Its pods are killed and its instance is terminated {due} in any case.")
        }
        _ => " It has no termination deadline, so it waits as long as pods and budgets require.".to_owned(),
    };
    let deadline = if claim.since(ConditionType::Drained).is_some() { String::new() } else { deadline };
    format!("It is being deleted{since}{why}.{deadline}")
}

/// Returns the message of a condition, without the full stop.
fn message(claim: &Claim, kind: ConditionType) -> Option<&str> {
    let condition = claim.conditions.get(&kind)?;
    Some(condition.message.trim_end_matches('.')).filter(|message| !message.is_empty())
}

fn kept(snapshot: &Snapshot, now: Timestamp, claim: &Claim) -> String {
    let pods = claim.node_name.as_deref().map_or_else(Vec::new, |node| work(snapshot, node));
    if !pods.is_empty() {
        return format!("Kept because it runs {}.", named(&pods));
    }
    let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
    if let (Some(node), Some(pool)) = (node, snapshot.pools.get(&claim.pool))
        && let Some(kind) = kept_by(claim, node, pool)
    {
        return format!(
            "It has no work, and the annotation {DO_NOT_DISRUPT_ANNOTATION} of its {kind} keeps it."
        );
    }
    let mut context = LifecycleContext::new(snapshot, now, PlacementMode::default());
    context.buffered = buffer::kept(&mut context);
    if context.expected(claim).is_empty()
        && let Some((_, why)) = needed(&mut context, claim, "It")
    {
        return format!("{why}.");
    }
    let expected = waiting(snapshot, claim);
    if !expected.is_empty() {
        return format!("Kept for {}.", named(&expected));
    }
    let Some(keep) = snapshot.keeps(claim) else {
        return "It has no work; its pool keeps empty nodes forever (scaleToZero.after).".to_owned();
    };
    let after = keep.time;
    let why = keep.reason().map_or_else(String::new, |why| format!(", because {why}"));
    match claim.since(ConditionType::Empty) {
        Some(since) => {
            format!(
                "It has had no work for {}; Poolwright terminates it after {after:#}{why}.",
                age(since, now)
            )
        }
        None => {
            format!(
                "It has no work, and none is planned for it; Poolwright terminates it after {after:#} of that{why}."
            )
        }
    }
}

/// Returns the waiting pods that are planned for a claim or nominated to it.
fn waiting<'a>(snapshot: &'a Snapshot, claim: &Claim) -> Vec<&'a Pod> {
    let nominated = snapshot.nominations.iter().filter(|(_, (_, target))| *target == claim.name.0);
    let keys = nominated.map(|(key, _)| key).chain(&claim.planned_pods);
    let pods = keys.filter_map(|key| snapshot.pods.get(key)).map(AsRef::as_ref);
    pods.filter(|pod| matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. })).collect()
}

fn work<'a>(snapshot: &'a Snapshot, node: &str) -> Vec<&'a Pod> {
    let pods = snapshot.pods.on_node(node).into_iter().flat_map(|there| &there.pods);
    pods.map(AsRef::as_ref).filter(|pod| pod.role == PodRole::Workload).collect()
}

fn named(pods: &[&Pod]) -> String {
    let mut names: Vec<String> = pods.iter().map(|pod| pod.key.to_string()).collect();
    names.sort();
    names.dedup();
    let count = if names.len() == 1 { "1 pod".to_owned() } else { format!("{} pods", names.len()) };
    format!("{count}: {}", list(&names, SHOWN))
}

/// Returns the price of a claim; zero if unknown.
pub(crate) fn price(claim: &Claim) -> UsdPerHour {
    claim.current_offering().price.unwrap_or_default()
}
