//! Demand beyond the pods that are there: pods that a controller has said it will make.
//!
//! A gang arrives over seconds. Were each burst planned by itself, each would get nodes of its own, and the cheaper large
//! node that holds them all would never be bought. So as soon as one pod of a controller finds no node, those that are
//! still to come are planned with it, as copies of it. The claim lists each under a key that no pod can have
//! (`ml/Job:train#7`), so that the room stays theirs after a restart too, and a pod that arrives takes the place of one.
//!
//! A queue that admits work before its pods exist would be another source of [`ExpectedPods`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::earlier::{planned_at, planned_pods};
use crate::model::{Claim, ClaimName, Pod, PodKey, PodPhase, PodRole, Snapshot, Uid, Workload};

/// A controller that has made no pod for this long is not believed to make more: quotas, webhooks and plain errors keep
/// controllers from making pods, and say so nowhere that is certain.
const STILL_COMING: SignedDuration = SignedDuration::from_secs(30);

/// Pods that a controller is about to make.
#[derive(Clone, Debug)]
pub struct ExpectedPods<'a> {
    /// The controller.
    pub workload: &'a Workload,
    /// A pod of it that found no node: what the others will be like.
    pub example: &'a Pod,
    /// How many are still to come, besides those that are there and that the scheduler has not tried.
    pub missing: u64,
    /// Until when that is believed, by times that the cluster records.
    pub until: Timestamp,
}

/// All pods that are expected now.
pub fn expected(snapshot: &Snapshot, now: Timestamp) -> Vec<ExpectedPods<'_>> {
    // Only those of which a pod found no node.
    let stuck = snapshot.pods.values().filter(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. }));
    let owners: BTreeSet<&Uid> = stuck.filter_map(|pod| pod.owner.as_ref()).collect();
    if snapshot.workloads.is_empty() || owners.is_empty() {
        return Vec::new();
    }
    let owned = by_owner(snapshot, &owners);
    let of = |workload: &'_ Arc<Workload>| -> Option<(usize, u64, Timestamp)> {
        let pods = owned.get(&workload.uid)?;
        let there = workload.made.max(pods.len() as u64);
        let within = pods.first().map_or(0, |pod| within_quotas(snapshot, pod));
        let missing = workload.wanted.saturating_sub(there).min(within);
        let untried = pods.iter().any(|pod| pod.phase == PodPhase::Waiting);
        if workload.wanted == 0 || (missing == 0 && !untried) {
            return None;
        }
        // Copies of a pod with volumes of its own would not be copies.
        let tried =
            |pod: &&Pod| matches!(pod.phase, PodPhase::Unschedulable { .. }) && pod.volumes.is_empty();
        let example = pods.iter().position(tried)?;
        let newest = pods.iter().map(|pod| pod.created).max()?;
        let until = newest.checked_add(STILL_COMING).unwrap_or(Timestamp::MAX);
        (until > now).then_some((example, missing, until))
    };
    let mut all = Vec::new();
    for workload in snapshot.workloads.values() {
        if let Some((example, missing, until)) = of(workload) {
            let example = owned[&workload.uid][example];
            all.push(ExpectedPods { workload, example, missing, until });
        }
    }
    all
}

/// How many more pods like this the quotas of its namespace let in.
fn within_quotas(snapshot: &Snapshot, pod: &Pod) -> u64 {
    let quotas = snapshot.quotas.values().filter(|quota| quota.key.namespace == pod.key.namespace);
    let lets_in = |(resource, left): (&String, &u64)| left.checked_div(pod.spec.requests.get(resource));
    quotas.flat_map(|quota| quota.left.iter().filter_map(lets_in)).min().unwrap_or(u64::MAX)
}

/// Unfinished workload pods of these controllers.
fn by_owner<'a>(snapshot: &'a Snapshot, owners: &BTreeSet<&Uid>) -> BTreeMap<&'a Uid, Vec<&'a Pod>> {
    let mut owned: BTreeMap<&Uid, Vec<&Pod>> = BTreeMap::new();
    for pod in snapshot.pods.values() {
        if let Some(owner) = &pod.owner
            && owners.contains(owner)
            && pod.role == PodRole::Workload
            && pod.deleting_since.is_none()
            && pod.phase != PodPhase::Finished
        {
            owned.entry(owner).or_default().push(pod);
        }
    }
    owned
}

/// Whether this is the key of a pod that is still to come.
pub(crate) fn is_expected(key: &PodKey) -> bool {
    key.name.contains('#')
}

/// The key of a controller's pods that are still to come, up to their number.
fn place_of(workload: &Workload) -> (String, String) {
    (workload.key.namespace.clone(), format!("{}:{}#", workload.kind, workload.key.name))
}

/// Until when a claim is kept for pods that are still to come; `None` when none are.
pub(crate) fn kept_until(claim: &Claim, expected: &[ExpectedPods<'_>]) -> Option<Timestamp> {
    let places = || claim.planned_pods.iter().filter(|key| is_expected(key));
    let comes = |expected: &&ExpectedPods<'_>| {
        let (namespace, prefix) = place_of(expected.workload);
        places().any(|key| key.namespace == namespace && key.name.starts_with(&prefix))
    };
    expected.iter().filter(comes).map(|expected| expected.until).max()
}

/// A snapshot in which pods that are still to come stand beside those that are there, and pods that have come are planned
/// where room was kept for them. Also until when the first of them are believed in.
pub(super) fn foresee(snapshot: &Snapshot, now: Timestamp) -> (Cow<'_, Snapshot>, Option<Timestamp>) {
    let coming = expected(snapshot, now);
    let kept = kept_places(snapshot);
    if coming.is_empty() && kept.is_empty() {
        return (Cow::Borrowed(snapshot), None);
    }
    let mut changed = snapshot.clone();
    let concerned = |workload: &&Arc<Workload>| {
        coming.iter().any(|expected| expected.workload.uid == workload.uid)
            || kept.contains_key(&place_of(workload))
    };
    let concerned: Vec<&Arc<Workload>> = snapshot.workloads.values().filter(concerned).collect();
    let owned = by_owner(snapshot, &concerned.iter().map(|workload| &workload.uid).collect());
    let planned = planned_pods(snapshot);
    let nobody = Vec::new();
    for workload in concerned {
        let here = coming.iter().find(|expected| expected.workload.uid == workload.uid);
        let place = place_of(workload);
        let mut free = kept.get(&place).cloned().unwrap_or_default();
        let next = free.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let pods = owned.get(&workload.uid).unwrap_or(&nobody);
        let mut unplanned: Vec<&Pod> = Vec::new();
        for pod in pods {
            match home(snapshot, &planned, pod) {
                // It was planned by its name, or has taken a place already.
                Some(claim) if planned.get(&pod.key) != Some(&claim) => {
                    if let Some(at) = free.iter().position(|(_, place)| *place == claim) {
                        free.remove(at);
                    }
                }
                None if !matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Gated) => unplanned.push(pod),
                _ => {}
            }
        }
        unplanned.sort_by_key(|pod| (pod.created, &pod.key));
        for pod in unplanned {
            if let Some((_, claim)) = free.pop_front() {
                changed.nominations.insert(pod.key.clone(), (pod.uid.clone(), claim.0.clone()));
            } else if here.is_some() && pod.phase == PodPhase::Waiting {
                // It is about to find no node, as its like did.
                untried(&mut changed, pod);
            }
        }
        if let Some(expected) = here {
            let numbers = free.iter().map(|(number, _)| *number).chain(next..);
            for number in numbers.take(usize::try_from(expected.missing).unwrap_or(usize::MAX)) {
                let pod = copy(expected, &place, number);
                changed.pods.insert(pod.key.clone(), Arc::new(pod));
            }
        }
    }
    (Cow::Owned(changed), coming.iter().map(|expected| expected.until).min())
}

/// Places kept by claims for pods that are still to come: by controller, the number of each and its claim.
type Kept<'a> = BTreeMap<(String, String), VecDeque<(u64, &'a ClaimName)>>;

fn kept_places(snapshot: &Snapshot) -> Kept<'_> {
    let mut kept = Kept::new();
    for claim in snapshot.claims.values().filter(|claim| claim.deleting_since.is_none()) {
        for key in claim.planned_pods.iter().filter(|key| is_expected(key)) {
            if let Some((prefix, number)) = key.name.split_once('#')
                && let Ok(number) = number.parse()
            {
                let place = (key.namespace.clone(), format!("{prefix}#"));
                kept.entry(place).or_default().push_back((number, &claim.name));
            }
        }
    }
    for places in kept.values_mut() {
        places.make_contiguous().sort();
    }
    kept
}

/// The claim that the pod is on, or is planned for.
fn home<'a>(
    snapshot: &'a Snapshot,
    planned: &BTreeMap<&PodKey, &'a ClaimName>,
    pod: &Pod,
) -> Option<&'a ClaimName> {
    let claim = match &pod.phase {
        PodPhase::Bound { node } => {
            snapshot.claims.values().find(|claim| claim.node_name.as_ref() == Some(node))
        }
        _ => snapshot.claims.get(&ClaimName(planned_at(snapshot, planned, pod)?.to_owned())),
    };
    claim.map(|claim| &claim.name)
}

fn untried(snapshot: &mut Snapshot, pod: &Pod) {
    if let Some(pod) = snapshot.pods.get_mut(&pod.key) {
        let pod = Arc::make_mut(pod);
        pod.phase = PodPhase::Unschedulable { since: pod.created, message: String::new() };
    }
}

fn copy(expected: &ExpectedPods<'_>, (namespace, prefix): &(String, String), number: u64) -> Pod {
    let key = PodKey::new(namespace, format!("{prefix}{number}"));
    Pod { uid: Uid(format!("expected:{key}")), key, nominated_node: None, ..expected.example.clone() }
}

/// Takes pods that are still to come out of what is said about pods.
pub(super) fn forget(plan: &mut super::Plan) {
    plan.placements.retain(|placement| !is_expected(&placement.pod));
    plan.unplaced.retain(|left| !is_expected(&left.pod));
    plan.nominations.retain(|key, _| !is_expected(key));
}

/// How many pods of each controller a claim keeps room for, in words: `7 pods of Job ml/train that are still to come`.
pub(super) fn in_words(pods: &[PodKey]) -> Option<String> {
    let coming: Vec<&PodKey> = pods.iter().filter(|key| is_expected(key)).collect();
    let owners: BTreeSet<String> = coming
        .iter()
        .filter_map(|key| {
            let (kind, rest) = key.name.split_once(':')?;
            Some(format!("{kind} {}/{}", key.namespace, rest.split_once('#')?.0))
        })
        .collect();
    let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
    (!coming.is_empty())
        .then(|| format!("{} of {owners} that are still to come", super::words::count(coming.len(), "pod")))
}
