//! Pods on nodes that are emptied, although they are well or because their cloud takes them: those that their controllers will make in
//! their place are demand before anybody is evicted.
//!
//! So the nodes that they need are bought first, and room that they count on is taken. They stand in the plan under keys that no
//! pod can have, as all pods that are still to come do (`ml/ReplicaSet:web-7c#2`): claims that are bought for them list these, and
//! the pods that come take their places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::plan::{Moved, MovedTo, Plan, Target};
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

/// The UIDs of what stands for pods that are made in place of others begin so.
const SUCCESSOR: &str = "successor:";

/// Whether this stands for a pod that is made in place of another, which is there.
pub(crate) fn is_successor(pod: &Pod) -> bool {
    pod.uid.0.starts_with(SUCCESSOR)
}

/// What stands for the pod that is made in place of another.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    pub pod: PodKey,
    from: ClaimName,
    /// Its own key; `None` where nobody makes one.
    key: Option<PodKey>,
}

/// All work on nodes that are emptied, by claim and pod; those aside that end already and whose successor is there.
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

/// Takes a pod away and puts its successor, if one is made, among those that wait.
pub(crate) fn replace(
    snapshot: &mut Snapshot,
    moving: &Moving<'_>,
    number: Option<u64>,
    now: Timestamp,
) -> Successor {
    let pod = moving.pod;
    snapshot.pods.remove(&pod.key);
    let key = number.zip(moving.owner()).map(|(ordinal, owner)| {
        let key = PodKey::Expected { owner, ordinal };
        let next = Pod {
            uid: Uid(format!("{SUCCESSOR}{key}")),
            key: key.clone(),
            phase: PodPhase::Unschedulable { since: now, message: String::new() },
            reserved_for: Vec::new(),
            nominated_node: None,
            deleting_since: None,
            ..pod.clone()
        };
        snapshot.pods.insert(key.clone(), Arc::new(next));
        key
    });
    Successor { pod: pod.key.clone(), from: moving.from.clone(), key }
}

/// Where a plan puts them.
pub(crate) fn moved(successors: &[Successor], plan: &Plan) -> Vec<Moved> {
    let mut places: BTreeMap<&PodKey, MovedTo> = BTreeMap::new();
    if !successors.is_empty() {
        let rooms = plan.placements.iter();
        places.extend(rooms.map(|placement| (&placement.pod, MovedTo::Room(placement.target.clone()))));
        for claim in &plan.claims {
            places.extend(claim.planned_pods.iter().map(|pod| (pod, MovedTo::New(claim.name.clone()))));
        }
        places.extend(plan.unplaced.iter().map(|left| (&left.pod, MovedTo::Nowhere(left.message.clone()))));
    }
    let to = |key: &PodKey| {
        places.get(key).cloned().unwrap_or_else(|| MovedTo::Nowhere("it is in no plan".to_owned()))
    };
    let one = |successor: &Successor| Moved {
        pod: successor.pod.clone(),
        from: successor.from.clone(),
        stands_as: successor.key.clone(),
        to: successor.key.as_ref().map_or(MovedTo::NotMade, to),
    };
    let mut all: Vec<Moved> = successors.iter().map(one).collect();
    all.sort();
    all
}

impl Moved {
    /// Whether it counts on the node of this claim, or of this name.
    pub fn goes_to(&self, name: &str) -> bool {
        match &self.to {
            MovedTo::Room(Target::Claim(ClaimName(target)) | Target::Node(target))
            | MovedTo::New(ClaimName(target)) => target == name,
            MovedTo::Nowhere(_) | MovedTo::NotMade => false,
        }
    }
}
