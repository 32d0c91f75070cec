//! Nodes that are emptied to save money are replaced by cheaper ones, if by any. This rule recomputes the prices from the cloud's list.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_catalog::UsdPerHour;
use poolwright_core::{Cause, Node, Snapshot};

use super::{Memory, Scene, disruption_budgets};

pub(super) const RULE: &str =
    "nodes that are emptied to save money cost more than the nodes bought in their place";

/// The order in which a decision and its claims appear is not determined.
const TOGETHER: Duration = Duration::from_secs(30);

/// The memory of this rule, by the UID of each claim.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when each claim exists.
    made: BTreeMap<String, Duration>,
    /// Since when each node is to be emptied to save money, and the pods that were then on it.
    emptied: BTreeMap<String, (Duration, BTreeSet<String>)>,
    /// Claims checked so far.
    judged: BTreeSet<String>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let (all, seen) = (scene.cluster.view(), &mut memory.moves);
    for claim in scene.cluster.claims.values() {
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        seen.made.entry(uid.clone()).or_insert(scene.now);
        if disruption_budgets::leaves(claim) == Some(Cause::Underutilized) {
            seen.emptied.entry(uid).or_insert_with(|| (scene.now, pods_of(all, node_of(all, claim))));
        } else {
            seen.emptied.remove(&uid);
        }
    }
    for claim in scene.cluster.claims.values() {
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        let Some((since, pods)) = seen.emptied.get(uid) else { continue };
        if claim.metadata.deletion_timestamp.is_none() || !seen.judged.insert(uid.to_owned()) {
            continue;
        }
        // The nodes bought for its pods since then, and the other nodes that are emptied onto these.
        let is_new = |other: &&NodeClaim| {
            let made = other.metadata.uid.as_ref().and_then(|uid| seen.made.get(uid));
            made.is_some_and(|made| *made + TOGETHER >= *since)
                && other.spec.pods.iter().any(|pod| pods.contains(pod))
        };
        let bought: Vec<&NodeClaim> = scene.cluster.claims.values().filter(is_new).collect();
        let planned: BTreeSet<&String> = bought.iter().flat_map(|other| &other.spec.pods).collect();
        let shares = |other: &&NodeClaim| {
            let emptied = other.metadata.uid.as_ref().and_then(|uid| seen.emptied.get(uid));
            emptied.is_some_and(|(_, pods)| pods.iter().any(|pod| planned.contains(pod)))
        };
        let emptied = scene.cluster.claims.values().filter(shares);
        let least = bought.iter().map(|claim| price(scene, claim, Bound::Least)).sum::<Option<UsdPerHour>>();
        let most = emptied.map(|claim| price(scene, claim, Bound::Most)).sum::<Option<UsdPerHour>>();
        let (Some(least), Some(most)) = (least, most) else { continue };
        if !bought.is_empty() && least >= most {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            return Some(format!(
                "{name} and others cost at most {most:#}, and nodes for {least:#} or more replace them"
            ));
        }
    }
    None
}

#[derive(Clone, Copy)]
enum Bound {
    Least,
    Most,
}

/// Returns a bound on the price that a controller may know of a launched claim. What a node costs that it buys is the price of the
/// planned offering if the cloud could choose another.
fn price(scene: &Scene<'_>, claim: &NodeClaim, bound: Bound) -> Option<UsdPerHour> {
    let name = claim.metadata.name.as_deref()?;
    let (_, machine) = scene.machines.iter().find(|(_, one)| one.instance.claim == name)?;
    let planned =
        machine.offered.first().filter(|_| matches!(bound, Bound::Least) && machine.offered.len() > 1);
    let offering = planned.unwrap_or(&machine.instance.offering);
    let (least, most) = scene.cluster.cloud.price_range(offering)?;
    Some(match bound {
        Bound::Least => least,
        Bound::Most => most,
    })
}

fn node_of<'s>(all: &'s Snapshot, claim: &NodeClaim) -> Option<&'s Node> {
    all.nodes.get(claim.metadata.name.as_deref()?).map(AsRef::as_ref)
}

fn pods_of(all: &Snapshot, node: Option<&Node>) -> BTreeSet<String> {
    let here = node.and_then(|node| all.pods.on_node(&node.name));
    here.into_iter().flat_map(|here| &here.pods).map(|pod| pod.key.to_string()).collect()
}
