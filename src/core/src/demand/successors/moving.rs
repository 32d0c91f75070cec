//! Pods on disrupted nodes and pods that give way, and their successors.

use crate::model::Claim;
use crate::model::ClaimName;
use crate::model::Gang;
use crate::model::GangPart;
use crate::model::OwnerKey;
use crate::model::Pod;
use crate::model::PodKey;
use crate::model::PodRole;
use crate::model::Snapshot;
use crate::model::Uid;
use crate::model::Workload;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pod on a disrupted node, or a pod that gives way.
pub(crate) struct LeavingPod<'a> {
    pub pod: &'a Pod,
    /// The claim of its node.
    pub from: &'a ClaimName,
    /// The controller that will create its successor; `None` if it is unknown, or if the successor would have scheduling gates
    /// and need no node.
    pub(crate) maker: Option<&'a Workload>,
    /// The part of a gang that its controller belongs to.
    pub(crate) part: Option<(&'a Gang, &'a GangPart)>,
}

impl LeavingPod<'_> {
    /// Returns the owner in the key of its successor.
    pub fn owner(&self) -> Option<Arc<OwnerKey>> {
        let maker = self.maker?;
        Some(Arc::new(self.part.map_or_else(|| maker.owner_key(), |(gang, part)| gang.owner_key(part))))
    }
}

/// A leaving pod and its successor.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    /// The pod.
    pub pod: PodKey,
    /// The claim of its node.
    pub from: ClaimName,
    /// The key of its successor; `None` if there is none.
    pub key: Option<PodKey>,
}

/// Returns all workload pods on disrupted nodes and all pods that give way, by claim and pod.
pub(crate) fn moving(snapshot: &Snapshot) -> Vec<LeavingPod<'_>> {
    let leaving: Vec<&Claim> = snapshot.claims.leaving().map(AsRef::as_ref).collect();
    if leaving.is_empty() && snapshot.giving_way.is_empty() {
        return Vec::new();
    }
    let mut there: Vec<(&ClaimName, &Pod)> = Vec::new();
    for claim in leaving {
        let on_node = claim.node_name.as_deref().and_then(|node| snapshot.pods.on_node(node));
        let pods = on_node.into_iter().flat_map(|on_node| &on_node.pods).map(AsRef::as_ref);
        there.extend(pods.filter(|pod| pod.role == PodRole::Workload).map(|pod| (&claim.name, pod)));
    }
    let gives_way =
        snapshot.giving_way.iter().filter_map(|(key, claim)| Some((claim, snapshot.pods.get(key)?)));
    there.extend(gives_way.map(|(claim, pod)| (claim, pod.as_ref())));
    let owners: BTreeSet<&Uid> = there.iter().filter_map(|(_, pod)| pod.owner.as_ref()).collect();
    let workloads = snapshot.workloads.values().filter(|workload| owners.contains(&workload.uid));
    let makers: BTreeMap<&Uid, &Workload> =
        workloads.map(|workload| (&workload.uid, workload.as_ref())).collect();
    let maker = |pod: &Pod| {
        pod.owner.as_ref().and_then(|uid| makers.get(uid).copied()).filter(|maker| !maker.scheduling_gated)
    };
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
        LeavingPod { pod, from, maker, part: maker.and_then(part) }
    };
    let mut all: Vec<LeavingPod<'_>> = there.into_iter().map(one).collect();
    all.sort_by_key(|one| (one.from, &one.pod.key));
    all
}
