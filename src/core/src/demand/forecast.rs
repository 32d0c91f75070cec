//! The forecast: the cluster as it is, plus the pods and nodes that each demand source expects.

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
use crate::model::plan::DeferredPods;
use crate::model::{ClaimName, OwnerKey, Pod, PodPhase, Snapshot, Uid, Workload};

/// The inputs of demand sources besides the cluster.
#[derive(Clone, Copy, Debug)]
pub struct ForecastOptions<'o> {
    /// The time.
    pub now: Timestamp,
    /// The lowest priority, at which pods give way to all other pods.
    pub lowest_priority: i32,
    /// The name of the default scheduler.
    pub scheduler: &'o str,
}

/// The inputs that all sources share: the cluster, and the owners that are about to create pods.
pub struct ForecastInput<'a> {
    /// The cluster as it is.
    pub(super) snapshot: &'a Snapshot,
    pub(super) outlook: ForecastOptions<'a>,
    /// Pods that controllers and gangs are about to create.
    pub(super) coming: Vec<ExpectedPods<'a>>,
    /// Pods on disrupted nodes.
    pub(super) going: Vec<LeavingPod<'a>>,
    /// Units that create expected pods, or whose pods have places on claims; gangs first.
    pub(super) units: Vec<Unit<'a>>,
    /// The unfinished pods of these units, by controller.
    pub(super) owned: BTreeMap<&'a Uid, Vec<&'a Pod>>,
}

/// A forecast under construction, to which the sources add.
pub struct ForecastBuilder<'a> {
    pub(super) snapshot: Cow<'a, Snapshot>,
    pub(super) successors: Vec<Successor>,
    pub(super) nodes: Vec<NodesWanted>,
    deferred: Vec<DeferredPods>,
    kept: Kept<'a>,
}

/// The finished forecast.
pub struct Forecast<'a> {
    /// The cluster with all expected pods. Pods on disrupted nodes are replaced by their successors, which are pending.
    pub snapshot: Cow<'a, Snapshot>,
    /// The time at which the first expectation ends.
    pub believed_until: Option<Timestamp>,
    /// The pods on nodes that are emptied, with their successors.
    pub(crate) successors: Vec<Successor>,
    /// Nodes that static pools lack.
    pub nodes: Vec<NodesWanted>,
    /// The expected pods that are too many to plan for now.
    pub deferred: Vec<DeferredPods>,
}

type Kept<'a> = BTreeMap<Arc<OwnerKey>, KeptPlaces<'a>>;

/// The places that claims keep for expected pods of one owner. No ordinal is used twice.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptPlaces<'a> {
    /// Free places: ordinal and claim, ascending.
    pub free: VecDeque<(u64, &'a ClaimName)>,
    /// The first ordinal above those of all free places.
    next: u64,
}

impl KeptPlaces<'_> {
    /// Returns the ordinal of the next expected pod, which is the ordinal of a free place if there is one.
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

    /// Returns the pods that a unit is about to create.
    pub(super) fn coming_of(&self, unit: &Unit<'_>) -> Option<&ExpectedPods<'a>> {
        self.coming.iter().find(|expected| expected.owner == unit.owner)
    }

    /// Returns the unfinished pods of a unit, by controller.
    pub(super) fn pods_of(&self, unit: &Unit<'a>) -> impl Iterator<Item = &'a Pod> {
        let controllers = unit.controllers.iter();
        controllers.filter_map(|workload| self.owned.get(&workload.uid)).flatten().copied()
    }
}

impl<'a> ForecastBuilder<'a> {
    /// Creates the shared inputs, and an empty forecast.
    pub(super) fn begin(snapshot: &'a Snapshot, outlook: &ForecastOptions<'a>) -> (ForecastInput<'a>, Self) {
        let kept = kept_places(snapshot);
        let known = ForecastInput::new(snapshot, outlook, &kept);
        let snapshot = Cow::Borrowed(snapshot);
        (known, Self { snapshot, successors: Vec::new(), nodes: Vec::new(), deferred: Vec::new(), kept })
    }

    /// Returns the places that claims keep for pods of a unit.
    pub(super) fn places_of(&mut self, unit: &Unit<'_>) -> &mut KeptPlaces<'a> {
        self.kept.entry(unit.owner.clone()).or_default()
    }

    pub(super) fn foreseen(self, believed_until: Option<Timestamp>) -> Forecast<'a> {
        let Self { snapshot, successors, nodes, deferred, .. } = self;
        Forecast { snapshot, believed_until, successors, nodes, deferred }
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
    /// The number of nodes that it has. Disrupted nodes do not count, because their replacements are launched first.
    pub there: u64,
    /// The number of further nodes that it needs.
    pub lacking: u64,
}

/// Adds the pods that these units are about to create to the forecast. Returns the time at which the first expectation ends.
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
        if expected.beyond > 0 {
            ahead.deferred.push(DeferredPods {
                pod: expected.example.key.clone(),
                owner: expected.owner.to_string(),
                pods: expected.beyond,
                planned: expected.missing,
            });
        }
        until = [until, Some(expected.until)].into_iter().flatten().min();
    }
    until
}

/// Adds one expected pod to the forecast, with the volume claims that will be created for it. It shares spec and labels with its
/// example.
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
    // What the scheduler said is about the example.
    let phase = match example.phase {
        PodPhase::Unschedulable { since, .. } => PodPhase::Unschedulable { since, message: String::new() },
        phase => phase,
    };
    let pod = Pod { uid, key, volumes, phase, nominated_node: None, priority: expected.priority, ..example };
    changed.pods.insert(pod.key.clone(), Arc::new(pod));
}
