//! Successors: pods that will be made in place of pods whose nodes are emptied, for whatever reason.
//!
//! They are demand before anybody is evicted. So the nodes that they need are bought first, and the room that they count on is
//! taken. In a plan they are expected pods ([`PodKey::Expected`]): the claims that are bought for them list them, and the pods
//! that come take their places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::demand::units::Unit;
use crate::demand::{Ahead, DemandSource, Known, Mentions};
use crate::model::{
    Claim, ClaimName, Gang, GangPart, OwnerKey, Pod, PodKey, PodPhase, PodRole, Snapshot, Uid, Workload,
};

/// A pod whose node is emptied.
pub(crate) struct Moving<'a> {
    pub pod: &'a Pod,
    /// The claim of its node.
    pub from: &'a ClaimName,
    /// Who makes the next one, and one that wants a node at once; `None` where that is not known.
    maker: Option<&'a Workload>,
    /// The part of a gang that its controller is one of.
    part: Option<(&'a Gang, &'a GangPart)>,
}

impl Moving<'_> {
    /// The owner in the key of its successor.
    pub fn owner(&self) -> Option<Arc<OwnerKey>> {
        let maker = self.maker?;
        Some(Arc::new(self.part.map_or_else(|| maker.owner_key(), |(gang, part)| gang.owner_key(part))))
    }
}

/// A pod that leaves, and what will be made in its place.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    /// The pod that leaves.
    pub pod: PodKey,
    /// The claim of its node.
    pub from: ClaimName,
    /// The key of its successor; `None` where none is made.
    pub key: Option<PodKey>,
}

pub(super) struct Successors;

impl DemandSource for Successors {
    fn name(&self) -> &'static str {
        "successors of pods on nodes that are emptied"
    }

    fn foresee<'a>(&self, known: &Known<'a>, ahead: &mut Ahead<'a>) -> Option<Timestamp> {
        if known.going.is_empty() {
            return None;
        }
        for unit in &known.units {
            let mut wanted = still_wanted(known, unit);
            for one in known.going.iter().filter(|one| one.owner().as_ref() == Some(&unit.owner)) {
                let ordinal = (wanted > 0).then(|| ahead.places_of(unit).next_ordinal());
                wanted = wanted.saturating_sub(1);
                replace(ahead, one, ordinal, known.outlook.now);
            }
        }
        // A pod without a known controller comes back nowhere.
        let done: BTreeSet<PodKey> = ahead.successors.iter().map(|successor| successor.pod.clone()).collect();
        for one in known.going.iter().filter(|one| !done.contains(&one.pod.key)) {
            replace(ahead, one, None, known.outlook.now);
        }
        None
    }

    fn mentions(&self) -> Mentions {
        Mentions::InClaims
    }
}

/// How many pods a unit still wants besides those that stay.
fn still_wanted(known: &Known<'_>, unit: &Unit<'_>) -> u64 {
    let goes = |pod: &Pod| known.going.iter().any(|one| one.pod.key == pod.key);
    let of = |workload: &&Workload| {
        let owned = known.owned.get(&workload.uid);
        let stay = owned.map_or(0, |pods| pods.iter().filter(|pod| !goes(pod)).count());
        // A Job wants no more than are still to succeed; sets that make pods one by one want them all in the end.
        let all = if workload.kind == "Job" { workload.wanted } else { workload.total };
        all.saturating_sub(stay as u64)
    };
    unit.controllers.iter().map(of).sum()
}

/// All workload pods on nodes that are emptied, by claim and pod.
pub(crate) fn moving(snapshot: &Snapshot) -> Vec<Moving<'_>> {
    let leaving: Vec<&Claim> = snapshot.claims.leaving().map(AsRef::as_ref).collect();
    if leaving.is_empty() {
        return Vec::new();
    }
    let mut there: Vec<(&ClaimName, &Pod)> = Vec::new();
    for claim in leaving {
        let on_node = claim.node_name.as_deref().and_then(|node| snapshot.pods.on_node(node));
        let pods = on_node.into_iter().flat_map(|on_node| &on_node.pods).map(AsRef::as_ref);
        there.extend(pods.filter(|pod| pod.role == PodRole::Workload).map(|pod| (&claim.name, pod)));
    }
    let owners: BTreeSet<&Uid> = there.iter().filter_map(|(_, pod)| pod.owner.as_ref()).collect();
    let workloads = snapshot.workloads.values().filter(|workload| owners.contains(&workload.uid));
    let makers: BTreeMap<&Uid, &Workload> =
        workloads.map(|workload| (&workload.uid, workload.as_ref())).collect();
    let maker =
        |pod: &Pod| pod.owner.as_ref().and_then(|uid| makers.get(uid).copied()).filter(|maker| !maker.held);
    let mut parts: BTreeMap<(&str, &str, &str), (&Gang, &GangPart)> = BTreeMap::new();
    for gang in snapshot.gangs.values() {
        for part in &gang.parts {
            let key = |name| (part.controller.as_str(), gang.key.namespace.as_str(), name);
            parts.extend(part.controllers.iter().map(|name| (key(name.as_str()), (gang.as_ref(), part))));
        }
    }
    let part = |maker: &Workload| {
        parts.get(&(maker.kind.as_str(), maker.key.namespace.as_str(), maker.key.name.as_str())).copied()
    };
    let one = |(from, pod)| {
        let maker = maker(pod);
        Moving { pod, from, maker, part: maker.and_then(part) }
    };
    let mut all: Vec<Moving<'_>> = there.into_iter().map(one).collect();
    all.sort_by_key(|one| (one.from, &one.pod.key));
    all
}

/// Takes a pod away and puts its successor, if one is made, among the pods that wait.
fn replace(ahead: &mut Ahead<'_>, moving: &Moving<'_>, ordinal: Option<u64>, now: Timestamp) {
    let pod = moving.pod;
    let snapshot = ahead.snapshot.to_mut();
    snapshot.pods.remove(&pod.key);
    let key = ordinal.zip(moving.owner()).map(|(ordinal, owner)| {
        let key = PodKey::Expected { owner, ordinal };
        let next = Pod {
            uid: Uid(format!("successor:{key}")),
            key: key.clone(),
            replaces: Some(Box::new(pod.key.clone())),
            phase: PodPhase::Unschedulable { since: now, message: String::new() },
            reserved_for: Vec::new(),
            nominated_node: None,
            deleting_since: None,
            ..pod.clone()
        };
        snapshot.pods.insert(key.clone(), Arc::new(next));
        key
    });
    ahead.successors.push(Successor { pod: pod.key.clone(), from: moving.from.clone(), key });
}
