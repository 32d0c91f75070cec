//! Nodes that are emptied to save money are replaced by cheaper ones, if by any. This rule recomputes the prices from the cloud's list.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_catalog::UsdPerHour;
use poolwright_core::Cause;

use super::{Memory, Scene, disruption_budgets, no_oscillation};

pub(super) const RULE: &str =
    "nodes that are emptied to save money cost more than the nodes bought in their place";

/// The order in which a decision and its claims appear is not determined.
const TOGETHER: Duration = Duration::from_secs(30);
/// Nodes that are emptied within this time may be emptied onto the same new nodes.
const SHARED: Duration = Duration::from_mins(10);

/// The memory of this rule, by the UID of each claim.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when each claim exists.
    made: BTreeMap<String, Duration>,
    emptied: BTreeMap<String, Emptied>,
    /// Claims checked so far.
    judged: BTreeSet<String>,
}

/// A node that is to be emptied to save money.
#[derive(Debug)]
struct Emptied {
    since: Duration,
    /// The Jobs and ReplicaSets that then had all their pods, some of them on this node.
    jobs: BTreeSet<String>,
    /// The most that the node may cost.
    most: UsdPerHour,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let seen = &mut memory.moves;
    for claim in scene.cluster.claims.values() {
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        seen.made.entry(uid.clone()).or_insert(scene.now);
        if disruption_budgets::leaves(claim) != Some(Cause::Underutilized) {
            seen.emptied.remove(&uid);
        } else if let Some(most) = price(scene, claim, Bound::Most) {
            let new = || Emptied { since: scene.now, jobs: jobs_on(scene, claim), most };
            seen.emptied.entry(uid).or_insert_with(new);
        }
    }
    for claim in scene.cluster.claims.values() {
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        let Some(Emptied { since, jobs, .. }) = seen.emptied.get(uid) else { continue };
        if claim.metadata.deletion_timestamp.is_none() || !seen.judged.insert(uid.to_owned()) {
            continue;
        }
        // The nodes bought for the successors of its pods since then, and the other nodes that are emptied onto these.
        let is_new = |other: &&NodeClaim| {
            let made = other.metadata.uid.as_ref().and_then(|uid| seen.made.get(uid));
            made.is_some_and(|made| *made + TOGETHER >= *since) && !planned_jobs(other).is_disjoint(jobs)
        };
        let bought: Vec<&NodeClaim> = scene.cluster.claims.values().filter(is_new).collect();
        let planned: BTreeSet<String> = bought.iter().flat_map(|other| planned_jobs(other)).collect();
        let shares =
            |other: &&Emptied| other.since.abs_diff(*since) <= SHARED && !other.jobs.is_disjoint(&planned);
        let most: UsdPerHour = seen.emptied.values().filter(shares).map(|other| other.most).sum();
        let least = bought.iter().map(|claim| price(scene, claim, Bound::Least)).sum::<Option<UsdPerHour>>();
        if let Some(least) = least.filter(|least| !bought.is_empty() && *least >= most) {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            return Some(format!(
                "{name} and others cost at most {most:#}, and nodes for {least:#} or more replace them"
            ));
        }
    }
    None
}

/// Returns the Jobs of the pods that a claim was bought for.
fn planned_jobs(claim: &NodeClaim) -> BTreeSet<String> {
    claim.spec.pods.iter().filter_map(|planned| no_oscillation::job_of(planned)).collect()
}

/// Returns the Jobs with pods on the node of a claim, unless other pods of them are missing: nodes may be bought for these too.
fn jobs_on(scene: &Scene<'_>, claim: &NodeClaim) -> BTreeSet<String> {
    let pods = &scene.cluster.view().pods;
    let here = claim.metadata.name.as_deref().and_then(|name| pods.on_node(name));
    let here = here.into_iter().flat_map(|here| &here.pods);
    let jobs: BTreeSet<String> = here.filter_map(|pod| pod.labels.get("job").cloned()).collect();
    jobs.into_iter().filter(|name| scene.cluster.has_all_pods(name)).collect()
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
