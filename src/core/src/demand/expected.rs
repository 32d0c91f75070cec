//! Demand beyond the pods that are there: pods that a controller has said it will make.
//!
//! A gang arrives over seconds. Were each burst planned by itself, each would get nodes of its own, and the cheaper large
//! node that holds them all would never be bought. So as soon as one pod of a controller finds no node, those that are
//! still to come are planned with it, as copies of it. The claim lists each under a key that no pod can have
//! (`ml/Job:train#7`), so that the room stays theirs after a restart too, and a pod that arrives takes the place of one.
//!
//! Of a gang whose object says what its pods will be like (a JobSet, a LeaderWorkerSet), the pods of Jobs and StatefulSets
//! that are not there themselves yet are expected too, from its templates.
//!
//! A queue that admits work before its pods exist would be another source of [`ExpectedPods`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::demand::nominations::planned_at;
use crate::demand::successors::{Moving, Successor, moving, replace};
use crate::demand::template_volumes::copied;
use crate::demand::units::{Left, Unit, families, quotas};
use crate::model::{Claim, ClaimName, OwnerKey, Pod, PodKey, PodPhase, Snapshot, Uid, Workload};

/// A controller that has made no pod for this long is not believed to make more: quotas, webhooks and plain errors keep
/// controllers from making pods, and say so nowhere that is certain.
const STILL_COMING: SignedDuration = SignedDuration::from_secs(30);

/// Pods that a controller, or those of one part of a gang, are about to make.
#[derive(Clone, Debug)]
pub struct ExpectedPods<'a> {
    /// What will make them.
    pub owner: Arc<OwnerKey>,
    /// What they will be like: one that found no node, or the template of their part of a gang.
    pub example: &'a Pod,
    /// How important they are: as those of their like that are there.
    pub priority: i32,
    /// Whether a StatefulSet makes them, with claims to volumes of their own.
    pub of_set: bool,
    /// How many are still to come, besides those that are there and that the scheduler has not tried.
    pub missing: u64,
    /// Until when that is believed, by times that the cluster records.
    pub until: Timestamp,
}

/// All pods that are expected now.
pub fn expected(snapshot: &Snapshot, now: Timestamp) -> Vec<ExpectedPods<'_>> {
    // Only those of which a pod found no node.
    let stuck = snapshot.pods.unbound().filter(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. }));
    let owners: BTreeSet<&Uid> = stuck.filter_map(|pod| pod.owner.as_ref()).collect();
    if snapshot.workloads.is_empty() || owners.is_empty() {
        return Vec::new();
    }
    let owns = |workload: &Workload| owners.contains(&workload.uid);
    let families = families(snapshot, owns, |unit| unit.controllers.iter().any(|workload| owns(workload)));
    let owned = by_owner(snapshot, &uids(&families));
    let mut left = quotas(snapshot);
    let mut all = Vec::new();
    for family in &families {
        all.extend(of_family(snapshot, family, &owned, &mut left, now));
    }
    all
}

fn uids<'a>(families: &[Vec<Unit<'a>>]) -> BTreeSet<&'a Uid> {
    families.iter().flatten().flat_map(|unit| &unit.controllers).map(|workload| &workload.uid).collect()
}

/// What a gang, or a controller by itself, is about to make.
fn of_family<'a>(
    snapshot: &Snapshot,
    family: &[Unit<'a>],
    owned: &BTreeMap<&'a Uid, Vec<&'a Pod>>,
    left: &mut Left<'a>,
    now: Timestamp,
) -> Vec<ExpectedPods<'a>> {
    let pods_of = |unit: &Unit<'a>| -> Vec<&'a Pod> {
        unit.controllers.iter().filter_map(|workload| owned.get(&workload.uid)).flatten().copied().collect()
    };
    let is_stuck = |pod: &&&'a Pod| matches!(pod.phase, PodPhase::Unschedulable { .. });
    let there: Vec<Vec<&Pod>> = family.iter().map(pods_of).collect();
    let Some(newest) = there.iter().flatten().map(|pod| pod.created).max() else { return Vec::new() };
    let Some(first) = there.iter().flatten().find(is_stuck) else { return Vec::new() };
    let until = newest.checked_add(STILL_COMING).unwrap_or(Timestamp::MAX);
    if until <= now {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (unit, pods) in family.iter().zip(&there) {
        let count = |uid: &Uid| owned.get(uid).map_or(0, |pods| pods.len() as u64);
        let of =
            |workload: &&Workload| workload.wanted.saturating_sub(workload.made.max(count(&workload.uid)));
        let wanted = unit.unborn().saturating_add(unit.controllers.iter().map(of).sum());
        let of_set = unit.controllers.first().is_some_and(|workload| workload.kind == "StatefulSet");
        // Where it is not known what the volumes of a copy will be, it would be no copy.
        let can_be = |pod: &Pod, of_set| copied(snapshot, pod, of_set, (&pod.key, &pod.uid)).is_some();
        let tried = pods.iter().find(|pod| is_stuck(pod) && can_be(pod, of_set));
        let template = || unit.part.map(|part| &part.example).filter(|example| can_be(example, false));
        let Some(example) = tried.copied().or_else(template) else { continue };
        let missing = within(left, example, wanted);
        let untried = pods.iter().any(|pod| pod.phase == PodPhase::Waiting);
        let stopped = unit.part.is_none() && unit.controllers.iter().all(|workload| workload.wanted == 0);
        if !stopped && (missing > 0 || untried) {
            let priority = tried.map_or(first.priority, |pod| pod.priority);
            let of_set = of_set && tried.is_some();
            all.push(ExpectedPods { owner: unit.owner.clone(), example, priority, of_set, missing, until });
        }
    }
    all
}

/// How many of so many pods like this the quotas of its namespace let in; what they take is not let in twice.
fn within<'a>(left: &mut Left<'a>, pod: &'a Pod, wanted: u64) -> u64 {
    let namespace = pod.key.namespace();
    let requests = || pod.spec.requests.iter().filter(|(_, amount)| *amount > 0);
    let lets_in = |(name, amount): (&'a _, u64)| {
        let name: &poolwright_catalog::ResourceName = name;
        Some(left.get(&(namespace, name.as_str()))? / amount)
    };
    let missing = requests().filter_map(lets_in).min().unwrap_or(u64::MAX).min(wanted);
    for (name, amount) in requests() {
        if let Some(rest) = left.get_mut(&(namespace, name.as_str())) {
            *rest = rest.saturating_sub(amount.saturating_mul(missing));
        }
    }
    missing
}

/// Unfinished workload pods of these controllers.
fn by_owner<'a>(snapshot: &'a Snapshot, owners: &BTreeSet<&Uid>) -> BTreeMap<&'a Uid, Vec<&'a Pod>> {
    let of = |owner| snapshot.pods.of_owner(owner).filter(|pod| pod.deleting_since.is_none());
    let mut owned: BTreeMap<&Uid, Vec<&Pod>> = BTreeMap::new();
    for pod in owners.iter().flat_map(|owner| of(owner)) {
        if let Some(owner) = &pod.owner {
            owned.entry(owner).or_default().push(pod);
        }
    }
    owned
}

/// Until when a claim is kept for pods that are still to come; `None` when none are.
pub(crate) fn kept_until(claim: &Claim, expected: &[ExpectedPods<'_>]) -> Option<Timestamp> {
    let owners = claim.planned_pods.iter().filter_map(PodKey::owner);
    let comes = |expected: &&ExpectedPods<'_>| owners.clone().any(|owner| *owner == expected.owner);
    expected.iter().filter(comes).map(|expected| expected.until).max()
}

/// What is foreseen.
pub(crate) struct Foreseen<'a> {
    /// Pods that are still to come stand beside those that are there, and pods that have come are planned where room was kept
    /// for them; pods whose nodes are emptied are gone, and their successors wait.
    pub snapshot: Cow<'a, Snapshot>,
    /// Until when the first of them are believed in.
    pub believed_until: Option<Timestamp>,
    /// Pods whose nodes are emptied.
    pub successors: Vec<Successor>,
}

pub(crate) fn foresee(snapshot: &Snapshot, now: Timestamp) -> Foreseen<'_> {
    let coming = expected(snapshot, now);
    let kept = kept_places(snapshot);
    let going = moving(snapshot);
    if coming.is_empty() && kept.is_empty() && going.is_empty() {
        return Foreseen { snapshot: Cow::Borrowed(snapshot), believed_until: None, successors: Vec::new() };
    }
    let leave: BTreeSet<Arc<OwnerKey>> = going.iter().filter_map(Moving::owner).collect();
    let mut successors = Vec::new();
    let mut changed = snapshot.clone();
    let here = |unit: &Unit<'_>| coming.iter().find(|expected| expected.owner == unit.owner);
    let concerned = |unit: &Unit<'_>| {
        here(unit).is_some() || kept.contains_key(&unit.owner) || leave.contains(&unit.owner)
    };
    let mut units: Vec<Unit<'_>> = Vec::new();
    let owners = coming.iter().map(|expected| &expected.owner).chain(kept.keys()).chain(&leave);
    let owners: BTreeSet<(&str, &str, &str)> = owners.map(|owner| owner.parts()).collect();
    let makes = |workload: &Workload| owners.contains(&workload.parts());
    let families = families(snapshot, makes, concerned);
    let owned = by_owner(snapshot, &uids(&families));
    units.extend(families.into_iter().flatten().filter(concerned));
    for unit in &units {
        let here = here(unit);
        let mut free = kept.get(&unit.owner).cloned().unwrap_or_default();
        let next = free.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let mut unplanned: Vec<&Pod> = Vec::new();
        for pod in unit.controllers.iter().filter_map(|workload| owned.get(&workload.uid)).flatten() {
            match home(snapshot, pod) {
                // It was planned by its name, or has taken a place already.
                Some(claim) if snapshot.claims.planned_for(&pod.key) != Some(claim) => {
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
        let mut numbers = free.iter().map(|(number, _)| *number).chain(next..);
        if let Some(expected) = here {
            let missing = usize::try_from(expected.missing).unwrap_or(usize::MAX);
            for number in numbers.by_ref().take(missing) {
                put_copy(&mut changed, snapshot, expected, number);
            }
        }
        let mut wanted = still_wanted(unit, &owned, &going);
        for one in going.iter().filter(|one| one.owner().as_ref() == Some(&unit.owner)) {
            let number = (wanted > 0).then(|| numbers.next()).flatten();
            wanted = wanted.saturating_sub(1);
            successors.push(replace(&mut changed, one, number, now));
        }
    }
    // Whoever has no controller that is known comes back nowhere.
    let done: BTreeSet<PodKey> = successors.iter().map(|successor| successor.pod.clone()).collect();
    for one in going.iter().filter(|one| !done.contains(&one.pod.key)) {
        successors.push(replace(&mut changed, one, None, now));
    }
    let believed_until = coming.iter().map(|expected| expected.until).min();
    Foreseen { snapshot: Cow::Owned(changed), believed_until, successors }
}

/// How many pods a controller still wants besides those that stay.
fn still_wanted(unit: &Unit<'_>, owned: &BTreeMap<&Uid, Vec<&Pod>>, going: &[Moving<'_>]) -> u64 {
    let goes = |pod: &Pod| going.iter().any(|one| one.pod.key == pod.key);
    let of = |workload: &&Workload| {
        let stay = owned.get(&workload.uid).map_or(0, |pods| pods.iter().filter(|pod| !goes(pod)).count());
        // A Job wants no more than are still to succeed; sets that make pods one by one want them all in the end.
        let all = if workload.kind == "Job" { workload.wanted } else { workload.total };
        all.saturating_sub(stay as u64)
    };
    unit.controllers.iter().map(of).sum()
}

/// Places kept by claims for pods that are still to come: by controller, the number of each and its claim.
type Kept<'a> = BTreeMap<Arc<OwnerKey>, VecDeque<(u64, &'a ClaimName)>>;

fn kept_places(snapshot: &Snapshot) -> Kept<'_> {
    let mut kept = Kept::new();
    let stays = |name: &&ClaimName| snapshot.claims.get(*name).is_some_and(|claim| claim.leaving().is_none());
    for (owner, number, claims) in snapshot.claims.awaiting() {
        let places = claims.iter().filter(stays).map(|claim| (number, claim));
        kept.entry(owner.clone()).or_default().extend(places);
    }
    for places in kept.values_mut() {
        places.make_contiguous().sort();
    }
    kept
}

/// The claim that the pod is on, or is planned for.
fn home<'a>(snapshot: &'a Snapshot, pod: &Pod) -> Option<&'a ClaimName> {
    let claim = match &pod.phase {
        PodPhase::Bound { node } => snapshot.claims.named_node(node),
        _ => snapshot.claims.get(&ClaimName(planned_at(snapshot, pod)?.to_owned())),
    };
    claim.map(|claim| &claim.name)
}

fn untried(snapshot: &mut Snapshot, pod: &Pod) {
    snapshot.pods.change(&pod.key, |pod| {
        pod.phase = PodPhase::Unschedulable { since: pod.created, message: String::new() };
    });
}

/// Puts a pod that is still to come into the snapshot, with the claims that will be made for it.
fn put_copy(changed: &mut Snapshot, snapshot: &Snapshot, expected: &ExpectedPods<'_>, number: u64) {
    let key = PodKey::Expected { owner: expected.owner.clone(), ordinal: number };
    let uid = Uid(format!("expected:{key}"));
    let Some(all) = copied(snapshot, expected.example, expected.of_set, (&key, &uid)) else { return };
    let mut volumes = Vec::new();
    for one in all {
        volumes.push(one.volume);
        if let Some(claim) = one.claim {
            changed.volume_claims.insert(claim.key.clone(), Arc::new(claim));
        }
    }
    let example = expected.example.clone();
    let pod = Pod { uid, key, volumes, nominated_node: None, priority: expected.priority, ..example };
    changed.pods.insert(pod.key.clone(), Arc::new(pod));
}

/// Takes pods that are still to come out of what is said about pods.
pub(crate) fn forget(plan: &mut crate::model::plan::Plan) {
    plan.placements.retain(|placement| placement.pod.existing().is_some());
    plan.unplaced.retain(|left| left.pod.existing().is_some());
    plan.nominations.retain(|key, _| key.existing().is_some());
}

/// How many pods of each controller a claim keeps room for, in words: `7 pods of Job ml/train that are still to come`.
pub(crate) fn in_words(pods: &[PodKey]) -> Option<String> {
    let coming: Vec<&Arc<OwnerKey>> = pods.iter().filter_map(PodKey::owner).collect();
    let owners: BTreeSet<String> = coming.iter().map(ToString::to_string).collect();
    let owners = owners.into_iter().collect::<Vec<_>>().join(", ");
    (!coming.is_empty()).then(|| {
        format!("{} of {owners} that are still to come", crate::rules::words::count(coming.len(), "pod"))
    })
}
