//! Explanations of nodes that are not as their claims promise: unhealthy conditions, what repair does about them, and missing
//! resources.

use jiff::Timestamp;
use poolwright_terms::ConditionType;

use crate::lifecycle::advertised::lacks;
use crate::lifecycle::repair::Outlook;
use crate::model::{Claim, Node, NodeCondition, Pod};
use crate::rules::bare::without_controller;
use crate::rules::format::age;

/// The conditions whose healthy status Kubernetes defines. Other conditions may be as they should.
const BUILT_IN: [&str; 5] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];

/// Returns the lines about the health of a node. `claim` is its claim, `repair` is what repair does about it, and `pods` are its
/// workload pods.
pub(crate) fn of_node(
    node: &Node,
    claim: Option<&Claim>,
    repair: Option<&Outlook<'_>>,
    pods: &[&Pod],
    now: Timestamp,
) -> Vec<String> {
    // Repair looks only at open nodes.
    let open =
        claim.filter(|one| one.since(ConditionType::Initialized).is_some() && one.deleting_since.is_none());
    let mut lines = Vec::new();
    for one in &node.unhealthy_conditions {
        match repair.filter(|repair| repair.condition == one) {
            Some(repair) => lines.push(format!("{} {}", told(one, now), next(repair, pods, now))),
            None if !BUILT_IN.contains(&one.kind.as_str()) => {}
            None if open.is_some() && repair.is_none() => lines.push(format!(
                "{} No rule of its pool's disruption.repair names this, so Poolwright does not replace it.",
                told(one, now)
            )),
            None => lines.push(told(one, now)),
        }
    }
    let is_replaced = repair.is_some_and(|repair| repair.is_now(now));
    lines.extend(open.filter(|_| !is_replaced).and_then(|claim| shortage(claim, node)));
    lines
}

/// Says which condition a node has, since when, and why.
fn told(condition: &NodeCondition, now: Timestamp) -> String {
    let cause = match condition.cause.trim_end_matches('.') {
        "" => String::new(),
        cause => format!(" ({cause})"),
    };
    let since = condition.since;
    if since == Timestamp::MAX {
        return format!("It has the condition {condition}{cause}.");
    }
    format!("It has had the condition {condition} since {since}, for {}{cause}.", age(since, now))
}

/// Says when repair replaces a node and how, or why it does not.
fn next(repair: &Outlook<'_>, pods: &[&Pod], now: Timestamp) -> String {
    let limit = repair.rule.after;
    if repair.condition.since == Timestamp::MAX {
        return "The condition has no lastTransitionTime, so Poolwright does not replace the node."
            .to_owned();
    }
    if let Some(held) = &repair.held {
        return format!("Its pool's disruption.repair allows {limit:#}, but {held}.");
    }
    let how = if repair.is_lost { terminates(pods) } else { drains(pods) };
    if repair.is_now(now) {
        return format!(
            "Its pool's disruption.repair allows {limit:#}, so Poolwright replaces the node now: {how}."
        );
    }
    let left = age(now, repair.due);
    format!(
        "Its pool's disruption.repair allows {limit:#}: Poolwright replaces the node at {}, in {left}, unless it recovers; {how}.",
        repair.due
    )
}

/// Says how repair removes a node that does not respond, and what becomes of its pods.
fn terminates(pods: &[&Pod]) -> String {
    let pods_then = match without_controller(pods.iter().copied(), "lost") {
        None => "their controllers create its pods again".to_owned(),
        Some(lost) if pods.iter().all(|pod| pod.owner.is_none()) => lost,
        Some(lost) => format!("their controllers create its other pods again, but {lost}"),
    };
    format!(
        "it terminates the instance at once, because a node that is not ready cannot be drained; {pods_then}"
    )
}

/// Says how repair removes a node that responds, and which of its pods nothing creates again.
fn drains(pods: &[&Pod]) -> String {
    let lost = without_controller(pods.iter().copied(), "not created again");
    let lost = lost.map_or_else(String::new, |lost| format!("; {lost}"));
    format!("it drains the node, with budgets and protected pods, and then terminates the instance{lost}")
}

/// Names the promised resources that an open node lacks, and the next step.
fn shortage(claim: &Claim, node: &Node) -> Option<String> {
    let lacking = lacks(claim, node);
    (!lacking.is_empty()).then(|| {
        format!(
            "It lacks what its claim promises: {}. Pods that need more than it advertises are planned for other nodes, and Poolwright does \
             not replace the node for this. Look at its kubelet and its device plugin; if they cannot be mended, `kubectl delete nodeclaim \
             {}` drains and terminates it.",
            lacking.join("; "),
            claim.name
        )
    })
}
