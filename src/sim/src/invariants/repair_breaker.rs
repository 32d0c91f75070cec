//! Repair stops when too many nodes of a pool are unhealthy: then the cause is not the nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_core::{PodPhase, PodRole, PoolName};
use poolwright_provider_contract::InstanceState;
use poolwright_terms::ConditionType;

use super::{Memory, Scene};

pub(super) const RULE: &str = "no unhealthy node is replaced while more than a fifth of the nodes of its pool, rounded up, are unhealthy";

/// The largest age of a controller's knowledge, because watches stall, requests are late and processes pause.
const AS_OLD: Duration = Duration::from_mins(8);
/// The same if no request, watch or controller has failed since.
const AS_OLD_IF_CALM: Duration = Duration::from_secs(10);
/// How long after its last deletion of a claim a user may be the reason.
const BY_USER: Duration = Duration::from_secs(30);

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when each node does not report, by name.
    sick: BTreeMap<String, Duration>,
    /// The pool of each claim whose node was open, and when it was last there, by UID. Kept only while some node does not report.
    nodes: BTreeMap<String, (String, Duration)>,
    /// UIDs of the deleted claims checked so far.
    judged: BTreeSet<String>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let Seen { sick, nodes, judged } = &mut memory.repairs;
    let frozen = &scene.cluster.frozen;
    if frozen.is_empty() {
        sick.clear();
        nodes.clear();
        return None;
    }
    sick.retain(|name, _| frozen.contains(name));
    for name in frozen {
        sick.entry(name.clone()).or_insert(scene.now);
    }
    let open = || scene.cluster.claims.values().filter(|claim| says(claim, ConditionType::Initialized));
    for claim in open() {
        if let (Some(uid), Some(pool)) = (&claim.metadata.uid, Scene::pool_of(claim)) {
            nodes.insert(uid.clone(), (pool.clone(), scene.now));
        }
    }
    nodes.retain(|_, (_, there)| scene.now.saturating_sub(*there) <= AS_OLD);
    let is_known = |since: Duration| {
        let age = scene.now.saturating_sub(since);
        age > AS_OLD || age > AS_OLD_IF_CALM && scene.disturbed < since
    };
    for (name, claim) in &scene.cluster.claims {
        let Some(uid) = claim.metadata.uid.as_ref().filter(|_| claim.metadata.deletion_timestamp.is_some())
        else {
            continue;
        };
        if judged.contains(uid) {
            continue;
        }
        judged.insert(uid.clone());
        let Some(pool) = Scene::pool_of(claim).filter(|_| is_repair(scene, name, claim)) else { continue };
        let all = nodes.values().filter(|(of, _)| of == pool).count();
        let unhealthy = open().filter(|one| {
            let since = one.metadata.name.as_ref().and_then(|name| sick.get(name));
            Scene::pool_of(one) == Some(pool) && since.is_some_and(|since| is_known(*since))
        });
        let unhealthy = unhealthy.count();
        if unhealthy > all.div_ceil(5) {
            return Some(format!(
                "{name} is replaced while {unhealthy} of at most {all} nodes of pool {pool} are unhealthy"
            ));
        }
    }
    None
}

/// Returns whether a deleted claim can only have been deleted because its node does not report.
fn is_repair(scene: &Scene<'_>, name: &str, claim: &NodeClaim) -> bool {
    let pool = Scene::pool_of(claim).and_then(|pool| scene.cluster.view().pools.get(&PoolName(pool.clone())));
    let repairs = pool.is_some_and(|pool| !pool.disruption.repair.is_empty() && pool.replicas.is_none());
    let is_interrupted = claim.status.as_ref().is_some_and(|status| status.interruption.is_some());
    let by_user = scene.withdrawn.iter().any(|at| scene.now.saturating_sub(*at) <= BY_USER);
    repairs
        && scene.cluster.frozen.contains(name)
        && says(claim, ConditionType::Unhealthy)
        && !says(claim, ConditionType::Disrupting)
        && !is_interrupted
        && !by_user
        && !scene.was_blind_within(AS_OLD)
        && runs(scene, name)
        && has_work(scene, name)
}

fn says(claim: &NodeClaim, kind: ConditionType) -> bool {
    let mut conditions = claim.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|one| one.type_ == kind.as_str() && one.status == "True")
}

fn runs(scene: &Scene<'_>, name: &str) -> bool {
    let mut machines = scene.machines.iter().map(|(_, machine)| &machine.instance);
    machines.any(|one| one.claim == name && one.state == InstanceState::Running)
}

/// Returns whether pods run on a node. One without pods may be terminated because it is empty.
fn has_work(scene: &Scene<'_>, name: &str) -> bool {
    let here = scene.cluster.view().pods.on_node(name);
    here.into_iter().flat_map(|here| &here.pods).any(|pod| {
        pod.role == PodRole::Workload
            && pod.deleting_since.is_none()
            && matches!(pod.phase, PodPhase::Bound { .. })
    })
}
