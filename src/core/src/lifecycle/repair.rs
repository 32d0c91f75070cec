//! Repair: replaces nodes that have been unhealthy for too long.
//!
//! The claim is deleted, so the node is closed and drained, and its instance is terminated. If its kubelet does not respond,
//! pods cannot be evicted and are not waited for.

use jiff::Timestamp;
use poolwright_terms::{ConditionType, Reason};

use crate::action::EventType;
use crate::lifecycle::context::{LifecycleContext, after, is, is_not, words};
use crate::lifecycle::protection::kept_by;
use crate::model::{Claim, Node, NodeCondition, Pool, RepairRule, Snapshot};

/// The largest percentage of a pool's nodes that may be unhealthy for a repair, rounded up. If more are unhealthy, the cause is
/// probably not the nodes, but a network, an image or a faulty daemon, and replacing all nodes would end all work.
const BREAKER_PERCENT: u64 = 20;

/// Checks the node of an initialized claim. Returns whether its claim is deleted.
pub(crate) fn decide(context: &mut LifecycleContext<'_>, claim: &Claim, node: &Node) -> bool {
    let Some(pool) = context.snapshot.pools.get(&claim.pool) else { return false };
    let Some((rule, condition, due)) = first_due(pool, node) else {
        if claim.since(ConditionType::Unhealthy).is_some() {
            context.conditions(
                claim,
                [is_not(ConditionType::Unhealthy, Reason::Recovered, "its node is healthy again")],
            );
        }
        return false;
    };
    let what = format!("node {} has had the condition {condition} since {}", node.name, condition.since);
    let snapshot = context.snapshot;
    let counts = context.sick.entry(pool.name.clone()).or_insert_with(|| sick_of_pool(snapshot, pool));
    let held = held(claim, node, pool, *counts);
    let is_held = held.is_some();
    let then = held.unwrap_or_else(|| format!("it is replaced at {due} unless it recovers"));
    context
        .conditions(claim, [is(ConditionType::Unhealthy, Reason::NodeUnhealthy, format!("{what}; {then}"))]);
    if !context.ended(due) || is_held {
        return false;
    }
    let message =
        format!("{what}, longer than the {} that its pool allows, so it is replaced", words(rule.after));
    context.record_event(&claim.name, EventType::Warning, Reason::NodeUnhealthy, message);
    context.delete(claim, false);
    true
}

/// Describes what keeps an unhealthy node from being replaced; `None` if nothing does. `counts` are those of [`sick_of_pool`].
fn held(claim: &Claim, node: &Node, pool: &Pool, (sick, nodes): (u64, u64)) -> Option<String> {
    if let Some(kind) = kept_by(claim, node, pool) {
        return Some(format!("the annotation poolwright.dev/do-not-disrupt of its {kind} keeps it"));
    }
    let most = (nodes * BREAKER_PERCENT).div_ceil(100);
    (sick > most).then(|| {
        format!(
            "it is not replaced while {sick} of the {nodes} nodes of pool `{}` are unhealthy: more than {BREAKER_PERCENT} % at a time point to a common cause, such as a network or an image; find that first",
            pool.name
        )
    })
}

/// What repair does about an unhealthy node.
pub(crate) struct Outlook<'a> {
    /// The rule that is due first.
    pub rule: &'a RepairRule,
    /// The condition that it names.
    pub condition: &'a NodeCondition,
    /// When it is due.
    pub due: Timestamp,
    /// Whether the instance is terminated without a drain, because the node is not ready and a rule about that is due.
    pub is_lost: bool,
    /// What keeps the node from being replaced.
    pub held: Option<String>,
}

impl Outlook<'_> {
    /// Returns whether the node is replaced now.
    pub fn is_now(&self, now: Timestamp) -> bool {
        self.due <= now && self.held.is_none()
    }
}

/// Returns what repair does about the claim's node; `None` if it does nothing: the node matches no rule, the claim is not initialized,
/// or it is being deleted.
pub(crate) fn outlook<'a>(
    snapshot: &'a Snapshot,
    now: Timestamp,
    claim: &Claim,
    node: &'a Node,
) -> Option<Outlook<'a>> {
    let is_open = claim.since(ConditionType::Initialized).is_some() && claim.deleting_since.is_none();
    let pool = snapshot.pools.get(&claim.pool).filter(|_| is_open)?;
    let (rule, condition, due) = first_due(pool, node)?;
    // The claim is deleted when the first rule is due, or now if that time has passed.
    let end = due.max(now);
    let is_lost = !node.ready && broken(pool, node).any(|(_, one, at)| one.kind == READY && at <= end);
    let held = held(claim, node, pool, sick_of_pool(snapshot, pool));
    Some(Outlook { rule, condition, due, is_lost, held })
}

/// The condition without which a kubelet does not respond.
const READY: &str = "Ready";

/// Returns the repair rule of the pool that is due first, with the condition and the time.
fn first_due<'a>(pool: &'a Pool, node: &'a Node) -> Option<(&'a RepairRule, &'a NodeCondition, Timestamp)> {
    broken(pool, node).min_by_key(|(_, _, due)| *due)
}

/// Returns the repair rules that match the node, with the condition and the time at which each is due.
fn broken<'a>(
    pool: &'a Pool,
    node: &'a Node,
) -> impl Iterator<Item = (&'a RepairRule, &'a NodeCondition, Timestamp)> {
    pool.disruption.repair.iter().filter_map(|rule| {
        let condition = node
            .unhealthy_conditions
            .iter()
            .find(|one| one.kind == rule.condition && one.status == rule.status)?;
        Some((rule, condition, after(condition.since, rule.after)))
    })
}

/// Returns the number of initialized nodes of a pool that are unhealthy by its rules, including nodes that are being replaced,
/// and the number of all its initialized nodes.
fn sick_of_pool(snapshot: &Snapshot, pool: &Pool) -> (u64, u64) {
    let of_pool =
        |claim: &&Claim| claim.pool == pool.name && claim.since(ConditionType::Initialized).is_some();
    let (mut sick, mut nodes) = (0, 0);
    for claim in snapshot.claims.values().map(AsRef::as_ref).filter(of_pool) {
        nodes += 1;
        let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
        sick += u64::from(node.is_some_and(|node| first_due(pool, node).is_some()));
    }
    (sick, nodes)
}

/// Returns whether the claim's node is lost, which means that it has been not ready for longer than its pool allows. A node that
/// is being replaced for another reason and is briefly not ready is not lost.
pub(crate) fn is_lost(context: &LifecycleContext<'_>, claim: &Claim) -> bool {
    let Some(pool) = context.snapshot.pools.get(&claim.pool) else { return false };
    let node = context.node(claim).filter(|node| !node.ready);
    let mut broken = node.into_iter().flat_map(|node| broken(pool, node));
    let is_due = broken.any(|(_, condition, due)| condition.kind == READY && due <= context.now);
    claim.since(ConditionType::Unhealthy).is_some() && is_due
}
