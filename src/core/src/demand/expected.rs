//! Expected pods: pods that a controller, or a part of a gang, is about to create.
//!
//! A controller creates its pods over several seconds. If each burst were planned separately, it would get its own nodes, and the
//! cheaper large node for all pods would never be bought. So as soon as one pod of a controller is unschedulable, the pods that
//! are still to come are planned with it, as copies that share its spec and labels. The claim lists each of them with a
//! [`PodKey::Expected`], so the places survive a restart, and each new pod takes one of them.
//!
//! A gang's object (JobSet, LeaderWorkerSet) contains the templates of its pods. So pods of its Jobs and StatefulSets are
//! expected before those controllers exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::demand::copied_volumes::copied;
use crate::demand::units::{Unit, UnusedQuotas, families};
use crate::model::{Claim, OwnerKey, Pod, PodKey, PodPhase, Snapshot, Uid, Workload};

/// The time after which a controller that has created no further pod is not expected to create more. Quotas, webhooks and errors
/// may block it, and no field shows that reliably.
const STILL_COMING: SignedDuration = SignedDuration::from_secs(30);

/// The most expected pods of one owner. A tenant can write any number into a controller, and each expected pod takes memory and time.
pub const MOST_OF_OWNER: u64 = 5_000;
/// The most text of the expected pods of one owner, in bytes. A tenant can write up to the size of an object, 1.5 MiB, into their
/// example. They share most of it, but rules look at the text of each. Usual pods have two to four kilobytes, so their number ends
/// first.
const MOST_TEXT_OF_OWNER: u64 = 24 << 20;
/// The limits of one owner, of one namespace, and of all.
const OF_OWNER: Amount = Amount { pods: MOST_OF_OWNER, text: MOST_TEXT_OF_OWNER };
const OF_NAMESPACE: Amount = Amount { pods: 2 * MOST_OF_OWNER, text: 2 * MOST_TEXT_OF_OWNER };
const OF_ALL: Amount = Amount { pods: 4 * MOST_OF_OWNER, text: 4 * MOST_TEXT_OF_OWNER };

/// The pods that one owner is about to create.
#[derive(Clone, Debug)]
pub struct ExpectedPods<'a> {
    /// Their owner.
    pub owner: Arc<OwnerKey>,
    /// An example: an unschedulable pod of the owner, or the template of a part of a gang.
    pub example: &'a Pod,
    /// Their priority, which is the priority of the owner's existing pods.
    pub priority: i32,
    /// Whether a StatefulSet creates them, with volume claims of their own as its existing pods have.
    pub of_set: bool,
    /// The number of missing pods that are planned for now.
    pub missing: u64,
    /// The number of missing pods beyond a maximum. They are planned for when they, or fewer others, are missing.
    pub beyond: u64,
    /// The time at which the expectation ends, computed from recorded times.
    pub until: Timestamp,
}

/// Returns all pods expected at `now`.
pub fn expected(snapshot: &Snapshot, now: Timestamp) -> Vec<ExpectedPods<'_>> {
    // Only owners with an unschedulable pod matter.
    let stuck = snapshot.pods.unbound().filter(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. }));
    let owners: BTreeSet<&Uid> = stuck.filter_map(|pod| pod.owner.as_ref()).collect();
    if snapshot.workloads.is_empty() || owners.is_empty() {
        return Vec::new();
    }
    let owns = |workload: &Workload| owners.contains(&workload.uid);
    let families = families(snapshot, owns, |unit| unit.controllers.iter().any(|workload| owns(workload)));
    let owned = owned_by(snapshot, &uids(&families));
    let mut left = UnusedQuotas::of(snapshot);
    let mut room = Room::default();
    let mut all = Vec::new();
    for family in &families {
        all.extend(of_family(snapshot, family, &owned, (&mut left, &mut room), now));
    }
    all
}

/// An amount of expected pods.
#[derive(Clone, Copy, Default)]
struct Amount {
    pods: u64,
    /// The size of their models as text, in bytes.
    text: u64,
}

impl Amount {
    /// Returns how many more pods with this much text a limit allows.
    fn room_below(self, limit: Self, text: u64) -> u64 {
        let pods = limit.pods.saturating_sub(self.pods);
        pods.min(limit.text.saturating_sub(self.text) / text.max(1))
    }

    fn add(&mut self, pods: u64, text: u64) {
        self.pods += pods;
        self.text += pods * text;
    }
}

/// The expected pods so far.
#[derive(Default)]
struct Room<'a> {
    all: Amount,
    of_namespace: BTreeMap<&'a str, Amount>,
}

impl<'a> Room<'a> {
    /// Returns how many copies of a pod may be expected, and counts them.
    fn take(&mut self, example: &'a Pod, pods: u64) -> u64 {
        if pods == 0 {
            return 0;
        }
        let text = size_as_text(example);
        let of_namespace = self.of_namespace.entry(example.key.namespace()).or_default();
        let room = self.all.room_below(OF_ALL, text).min(of_namespace.room_below(OF_NAMESPACE, text));
        let taken = pods.min(room).min(Amount::default().room_below(OF_OWNER, text));
        self.all.add(taken, text);
        of_namespace.add(taken, text);
        taken
    }
}

/// Returns the size of a pod's model as text, in bytes, without making the text.
fn size_as_text(pod: &Pod) -> u64 {
    struct Size(u64);
    impl fmt::Write for Size {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 += text.len() as u64;
            Ok(())
        }
    }
    let mut size = Size(0);
    // A size does not refuse text.
    let _ = write!(size, "{pod:?}");
    size.0
}

pub(super) fn uids<'a>(families: &[Vec<Unit<'a>>]) -> BTreeSet<&'a Uid> {
    families.iter().flatten().flat_map(|unit| &unit.controllers).map(|workload| &workload.uid).collect()
}

/// Returns the pods that a gang, or a controller outside any gang, is about to create.
fn of_family<'a>(
    snapshot: &Snapshot,
    family: &[Unit<'a>],
    owned: &BTreeMap<&'a Uid, Vec<&'a Pod>>,
    (left, room): (&mut UnusedQuotas<'a>, &mut Room<'a>),
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
            |workload: &&Workload| workload.wanted.saturating_sub(workload.current.max(count(&workload.uid)));
        let wanted = unit.unborn().saturating_add(unit.controllers.iter().map(of).sum());
        let of_set = unit.controllers.first().is_some_and(|workload| workload.kind == "StatefulSet");
        // A pod whose volumes are unknown cannot be copied.
        let can_be = |pod: &Pod, of_set| copied(snapshot, pod, of_set, (&pod.key, &pod.uid)).is_some();
        let tried = pods.iter().find(|pod| is_stuck(pod) && can_be(pod, of_set));
        let template = || unit.part.map(|part| &part.example).filter(|example| can_be(example, false));
        let Some(example) = tried.copied().or_else(template) else { continue };
        let lacking = left.take(example, wanted);
        let missing = room.take(example, lacking);
        let untried = pods.iter().any(|pod| pod.phase == PodPhase::Waiting);
        let stopped = unit.part.is_none() && unit.controllers.iter().all(|workload| workload.wanted == 0);
        if !stopped && (missing > 0 || untried) {
            let priority = tried.map_or(first.priority, |pod| pod.priority);
            let of_set = of_set && tried.is_some();
            let (owner, beyond) = (unit.owner.clone(), lacking - missing);
            all.push(ExpectedPods { owner, example, priority, of_set, missing, beyond, until });
        }
    }
    all
}

/// Returns the unfinished workload pods of these controllers that are not being deleted.
pub(super) fn owned_by<'a>(
    snapshot: &'a Snapshot,
    owners: &BTreeSet<&Uid>,
) -> BTreeMap<&'a Uid, Vec<&'a Pod>> {
    let of = |owner| snapshot.pods.of_owner(owner).filter(|pod| pod.deleting_since.is_none());
    let mut owned: BTreeMap<&Uid, Vec<&Pod>> = BTreeMap::new();
    for pod in owners.iter().flat_map(|owner| of(owner)) {
        if let Some(owner) = &pod.owner {
            owned.entry(owner).or_default().push(pod);
        }
    }
    owned
}

/// Returns the time until which a claim is kept for expected pods; `None` if it lists no pods that are still expected.
pub(crate) fn kept_until(claim: &Claim, expected: &[ExpectedPods<'_>]) -> Option<Timestamp> {
    let owners = claim.planned_pods.iter().filter_map(PodKey::owner);
    let comes = |expected: &&ExpectedPods<'_>| owners.clone().any(|owner| *owner == expected.owner);
    expected.iter().filter(comes).map(|expected| expected.until).max()
}
