//! The cluster ahead: the cluster as it is, and what each source adds to it.

use crate::demand::copied_volumes::copied;
use crate::model::PodKey;
use crate::model::Pool;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use crate::demand::expected::{ExpectedPods, expected, owned_by, uids};
use crate::demand::successors::moving::{LeavingPod, Successor, moving};
use crate::demand::units::{Unit, families};
use crate::model::{ClaimName, OwnerKey, Pod, Snapshot, Uid, Workload};

/// What sources are told besides the cluster.
#[derive(Clone, Copy, Debug)]
pub struct ForecastOptions<'o> {
    /// The time.
    pub now: Timestamp,
    /// The priority of pods that give way to all others.
    pub lowest_priority: i32,
    /// The name of the scheduler that places pods of no other one.
    pub scheduler: &'o str,
}

/// What sources know: the cluster as it is, and who is about to make pods there.
pub struct ForecastInput<'a> {
    /// The cluster as it is.
    pub(super) snapshot: &'a Snapshot,
    pub(super) outlook: ForecastOptions<'a>,
    /// Pods that controllers and gangs are about to make.
    pub(super) coming: Vec<ExpectedPods<'a>>,
    /// Pods whose nodes are emptied.
    pub(super) going: Vec<LeavingPod<'a>>,
    /// Everything that makes expected pods, or for whose pods a claim keeps a place: gangs first.
    pub(super) units: Vec<Unit<'a>>,
    /// Unfinished pods of those units, by controller.
    pub(super) owned: BTreeMap<&'a Uid, Vec<&'a Pod>>,
}

/// The cluster ahead, as sources add to it.
pub struct ForecastBuilder<'a> {
    pub(super) snapshot: Cow<'a, Snapshot>,
    pub(super) successors: Vec<Successor>,
    pub(super) nodes: Vec<NodesWanted>,
    kept: Kept<'a>,
}

/// The cluster ahead, when all sources were asked.
pub struct Forecast<'a> {
    /// The cluster with every pod that is foreseen. Pods whose nodes are emptied are gone, and their successors wait.
    pub snapshot: Cow<'a, Snapshot>,
    /// Until when the first source believes what it added.
    pub believed_until: Option<Timestamp>,
    /// Pods whose nodes are emptied.
    pub(crate) successors: Vec<Successor>,
    /// Nodes that pools want whoever waits.
    pub nodes: Vec<NodesWanted>,
}

type Kept<'a> = BTreeMap<Arc<OwnerKey>, KeptPlaces<'a>>;

/// Places that claims keep for the expected pods of one owner. No ordinal is given twice.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptPlaces<'a> {
    /// Places that no pod has taken: the ordinal of each and its claim, ascending.
    pub free: VecDeque<(u64, &'a ClaimName)>,
    /// No claim lists this ordinal, nor a higher one.
    next: u64,
}

impl KeptPlaces<'_> {
    /// The ordinal of the next expected pod: that of a kept place as long as one is free.
    pub fn next_ordinal(&mut self) -> u64 {
        self.free.pop_front().map_or_else(
            || {
                self.next += 1;
                self.next - 1
            },
            |(ordinal, _)| ordinal,
        )
    }
}

impl<'a> ForecastInput<'a> {
    fn new(snapshot: &'a Snapshot, outlook: &ForecastOptions<'a>, kept: &Kept<'a>) -> Self {
        let coming = expected(snapshot, outlook.now);
        let going = moving(snapshot);
        let (units, owned) = (Vec::new(), BTreeMap::new());
        let mut known = Self { snapshot, outlook: *outlook, coming, going, units, owned };
        let coming = known.coming.iter().map(|expected| expected.owner.clone());
        let going = known.going.iter().filter_map(LeavingPod::owner);
        let owners: BTreeSet<Arc<OwnerKey>> = coming.chain(kept.keys().cloned()).chain(going).collect();
        if owners.is_empty() {
            return known;
        }
        let parts: BTreeSet<(&str, &str, &str)> = owners.iter().map(|owner| owner.parts()).collect();
        let makes = |workload: &Workload| parts.contains(&workload.parts());
        let concerned = |unit: &Unit<'a>| owners.contains(&unit.owner);
        let families = families(snapshot, makes, concerned);
        known.owned = owned_by(snapshot, &uids(&families));
        known.units = families.into_iter().flatten().filter(concerned).collect();
        known
    }

    /// The pods that a unit is about to make.
    pub(super) fn coming_of(&self, unit: &Unit<'_>) -> Option<&ExpectedPods<'a>> {
        self.coming.iter().find(|expected| expected.owner == unit.owner)
    }

    /// Unfinished pods of a unit, by controller.
    pub(super) fn pods_of(&self, unit: &Unit<'a>) -> impl Iterator<Item = &'a Pod> {
        let controllers = unit.controllers.iter();
        controllers.filter_map(|workload| self.owned.get(&workload.uid)).flatten().copied()
    }
}

impl<'a> ForecastBuilder<'a> {
    /// What is known of a cluster, and the cluster ahead before any source has added to it.
    pub(super) fn begin(snapshot: &'a Snapshot, outlook: &ForecastOptions<'a>) -> (ForecastInput<'a>, Self) {
        let kept = kept_places(snapshot);
        let known = ForecastInput::new(snapshot, outlook, &kept);
        let snapshot = Cow::Borrowed(snapshot);
        (known, Self { snapshot, successors: Vec::new(), nodes: Vec::new(), kept })
    }

    /// The places that are kept for the pods of a unit.
    pub(super) fn places_of(&mut self, unit: &Unit<'_>) -> &mut KeptPlaces<'a> {
        self.kept.entry(unit.owner.clone()).or_default()
    }

    pub(super) fn foreseen(self, believed_until: Option<Timestamp>) -> Forecast<'a> {
        let Self { snapshot, successors, nodes, .. } = self;
        Forecast { snapshot, believed_until, successors, nodes }
    }
}

fn kept_places(snapshot: &Snapshot) -> Kept<'_> {
    let mut kept = Kept::new();
    let stays = |name: &&ClaimName| snapshot.claims.get(*name).is_some_and(|claim| claim.leaving().is_none());
    for (owner, ordinal, claims) in snapshot.claims.awaiting() {
        let places = claims.iter().filter(stays).map(|claim| (ordinal, claim));
        kept.entry(owner.clone()).or_default().free.extend(places);
    }
    for places in kept.values_mut() {
        places.free.make_contiguous().sort();
        places.next = places.free.iter().map(|(ordinal, _)| ordinal + 1).max().unwrap_or(0);
    }
    kept
}

/// Nodes that a static pool lacks.
#[derive(Clone, Debug)]
pub struct NodesWanted {
    /// The pool.
    pub pool: Arc<Pool>,
    /// How many it has. Nodes that leave do not count: their replacements are ordered while they are still there.
    pub there: u64,
    /// How many more it wants.
    pub lacking: u64,
}

/// Puts the pods that these units are about to make into the cluster ahead. Returns until when the first are believed in.
pub(super) fn put_in<'a>(
    known: &ForecastInput<'a>,
    ahead: &mut ForecastBuilder<'a>,
    is_ours: impl Fn(&Unit<'_>) -> bool,
) -> Option<Timestamp> {
    let mut until = None;
    for unit in known.units.iter().filter(|unit| is_ours(unit)) {
        let Some(expected) = known.coming_of(unit) else { continue };
        for _ in 0..expected.missing {
            let ordinal = ahead.places_of(unit).next_ordinal();
            put_copy(ahead.snapshot.to_mut(), known.snapshot, expected, ordinal);
        }
        until = [until, Some(expected.until)].into_iter().flatten().min();
    }
    until
}

/// Puts one expected pod into the cluster ahead, with the volume claims that will be made for it.
pub(crate) fn put_copy(
    changed: &mut Snapshot,
    snapshot: &Snapshot,
    expected: &ExpectedPods<'_>,
    ordinal: u64,
) {
    let key = PodKey::Expected { owner: expected.owner.clone(), ordinal };
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
