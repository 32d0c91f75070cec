//! Explanations of retiring nodes: why a node admits only planned pods, and what that means for a waiting pod.

use std::borrow::Cow;

use jiff::Timestamp;
use poolwright_terms::ConditionType;

use crate::demand::{profiles, volumes};
use crate::model::plan::{Plan, Target};
use crate::model::{Claim, ClaimName, PlanOptions, PodKey, PodPhase, PodRole, Snapshot};
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::rules::format::age;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::rooms;

/// Returns why the claim's node retires; `None` if it does not. The reason is that of this plan. If the plan has none, because it
/// does not know how long pods run, the reason is the recorded one.
pub(crate) fn reason(snapshot: &Snapshot, plan: &Plan, now: Timestamp, claim: &Claim) -> Option<String> {
    let since = closed_since(snapshot, claim)?;
    let retiring = format!("Retiring for {}", age(since, now));
    if let Some(reason) = plan.retirements.of(&claim.name, now) {
        return Some(format!("{retiring}: admits only planned pods, because {reason}."));
    }
    let message = &claim.conditions.get(&ConditionType::Retiring)?.message;
    Some(format!("{retiring}. When that began: {}.", message.trim_end_matches('.')))
}

/// Returns the time since which the claim's node retires and is closed. A node that was opened by hand, or by a controller that
/// stopped, retires again only when a controller closes it.
fn closed_since(snapshot: &Snapshot, claim: &Claim) -> Option<Timestamp> {
    let is_closed = |name: &String| snapshot.nodes.get(name).is_some_and(|node| node.is_reserved());
    claim.retires_since().filter(|_| claim.node_name.as_ref().is_some_and(is_closed))
}

/// Returns what a retiring node with room for a waiting pod means for the pod; `None` if there is no such node.
pub fn closed_room(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    plan: &Plan,
    key: &PodKey,
) -> Option<String> {
    let waits = |phase: &PodPhase| matches!(phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
    snapshot.pods.get(key).filter(|pod| pod.role == PodRole::Workload && waits(&pod.phase))?;
    let placement = plan.placements.iter().find(|placement| placement.pod == *key);
    let planned = placement.map(|placement| &placement.target);
    let name = match planned {
        Some(Target::Claim(name)) => name.clone(),
        Some(Target::Node(_)) => return None,
        None => with_room(snapshot, options, key)?,
    };
    let claim = snapshot.claims.get(&name).filter(|claim| closed_since(snapshot, claim).is_some())?;
    let node = claim.node_name.as_deref()?;
    if planned.is_some() {
        return Some(format!(
            "Node {node} retires and admits only planned pods. The controller lets this one in; if no controller runs, open the node: `poolwright open {node}`."
        ));
    }
    let why = reason(snapshot, plan, now, claim)?;
    let is_bought = plan.claims.iter().any(|claim| claim.planned_pods.contains(key));
    let instead = if is_bought { "The plan buys a new node for it instead." } else { "" };
    Some(
        format!(
            "Node {node} has room for it, but retires. {why} {instead} To open nodes of pool {pool} to all pods, set `spec.disruption.retire: Never` there; if no controller runs: `poolwright open {node}`.",
            pool = claim.pool
        )
        .replace("  ", " "),
    )
}

/// Returns a retiring node with room for a pod.
fn with_room(snapshot: &Snapshot, options: &PlanOptions, key: &PodKey) -> Option<ClaimName> {
    let mut ruled = Cow::Borrowed(snapshot);
    profiles::apply(&mut ruled, options);
    let volumes = volumes::resolve(&mut ruled);
    let snapshot = ruled.as_ref();
    let colocation = Colocation::new(snapshot);
    let daemons = DaemonSets::new(snapshot);
    let rooms = rooms::collect(snapshot, &daemons, &colocation, &volumes.attachable);
    let (spec, profile) = (&snapshot.pods.get(key)?.spec, colocation.of(key));
    let mut holding = rooms.all.iter().filter(|room| {
        spec.requests.fits(&room.free)
            && rules::admits(spec, &room.labels, &room.taints).is_ok()
            && colocation.admits_one(profile, &room.present)
    });
    let retires = |name: &&ClaimName| {
        snapshot.claims.get(*name).is_some_and(|claim| closed_since(snapshot, claim).is_some())
    };
    holding.find_map(|room| room.claim().filter(retires)).cloned()
}
