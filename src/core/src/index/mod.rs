//! The cluster index: what the watches said last, in one place, changed by synchronous calls alone.

pub(crate) mod budgets;
pub(crate) mod gangs;
pub(crate) mod instances;
pub(crate) mod measured;
pub(crate) mod pod_groups;
pub(crate) mod replacements;
pub(crate) mod services;

use crate::model::Cause;
use poolwright_terms::NodeClassRef;
use poolwright_terms::keys::{RESERVED_TAINT, UNREGISTERED_TAINT};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{Catalogue, OfferingId};

use crate::model::TakenBack;
use crate::model::{
    Attachment, Claim, ClaimName, DaemonSet, Namespace, Node, NodeBudget, NodeDrivers, ObjectKey, Pod,
    PodKey, PodPhase, PodRole, Pool, PoolName, Quota, Shared, Snapshot, StorageClass, Uid, Volume,
    VolumeClaim, Workload,
};

/// How long a claim that we wrote ourselves outlives a list that does not have it.
const EXPECTATION: SignedDuration = SignedDuration::from_secs(60);

/// What a change means for decisions. Ordered: the larger wakes more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing that any decision sees.
    #[default]
    None,
    /// Something for [`crate::lifecycle::decide`], nothing for the planner.
    Life,
    /// Room or rules changed: what is planned for the pods that wait may change.
    Room,
    /// More pods want room, or other room than before.
    Demand,
    /// Pods lose the node that they have to the cloud, or have lost it and want another.
    Pressing,
}

/// Everything known about the cluster. Cheap to take a [`Snapshot`] of.
#[derive(Clone, Debug, Default)]
pub struct ClusterIndex {
    state: Snapshot,
    /// Whether anybody asks for the selectors of controllers.
    keeps_selectors: bool,
    /// Claims that we wrote and no watch has shown yet: their UID, and until when they are believed to exist.
    expected: BTreeMap<ClaimName, (Uid, Timestamp)>,
    instances_gone: Gone,
    /// Controllers of pods on nodes that clouds take, and the claims of those nodes.
    pressed: BTreeSet<(Uid, ClaimName)>,
}

impl ClusterIndex {
    /// Knows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything as it stands now.
    pub fn snapshot(&self) -> Snapshot {
        self.state.clone()
    }

    /// Everything as it stands now, without a copy.
    pub fn view(&self) -> &Snapshot {
        &self.state
    }

    /// A pod was added or changed.
    pub fn apply_pod(&mut self, pod: Pod) -> Change {
        let change = self.pod_change(&pod);
        if change != Change::None {
            self.state.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        change
    }

    /// A pod is gone.
    pub fn delete_pod(&mut self, key: &ObjectKey) -> Change {
        self.state.pods.remove(&PodKey::Existing(key.clone())).map_or(Change::None, |_| Change::Life)
    }

    /// All pods there are.
    pub fn reset_pods(&mut self, pods: impl IntoIterator<Item = Pod>) -> Change {
        let pods: BTreeMap<PodKey, Pod> = pods.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        let before = self.state.pods.len();
        self.state.pods.retain(|key, _| pods.contains_key(key));
        let gone = if self.state.pods.len() < before { Change::Life } else { Change::None };
        pods.into_values().map(|pod| self.apply_pod(pod)).fold(gone, Ord::max)
    }

    /// A node was added or changed.
    pub fn apply_node(&mut self, node: Node) -> Change {
        let old = self.state.nodes.get(&node.name);
        if old.is_some_and(|old| **old == node) {
            return Change::None;
        }
        if old.is_some_and(|old| unreserved(old) == unreserved(&node)) {
            self.state.nodes.insert(node.name.clone(), Arc::new(node));
            return Change::Life;
        }
        // Until it opens, a node of ours counts as what its claim promised, whatever it says itself.
        let closed = node.gated || node.taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT);
        let name = node.name.clone();
        self.state.nodes.insert(name.clone(), Arc::new(node));
        let change = if closed { Change::Life } else { Change::Room };
        change.max(self.measure_node(&name))
    }

    /// A node is gone.
    pub fn delete_node(&mut self, name: &str) -> Change {
        self.state.nodes.remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// All nodes there are.
    pub fn reset_nodes(&mut self, nodes: impl IntoIterator<Item = Node>) -> Change {
        let nodes: BTreeMap<String, Node> = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        let before = self.state.nodes.len();
        self.state.nodes.retain(|key, _| nodes.contains_key(key));
        let gone = if self.state.nodes.len() < before { Change::Room } else { Change::None };
        nodes.into_values().map(|node| self.apply_node(node)).fold(gone, Ord::max)
    }

    /// A watch showed a claim, or the API server returned it to a write.
    pub fn apply_claim(&mut self, claim: Claim) -> Change {
        self.expected.remove(&claim.name);
        self.put_claim(claim)
    }

    /// We created this claim, and the API server returned it so: it is there, even if a list says otherwise that was read
    /// before. It is believed until a watch shows it, for a minute at most.
    pub fn expect_claim(&mut self, claim: Claim, now: Timestamp) -> Change {
        let until = now.checked_add(EXPECTATION).unwrap_or(Timestamp::MAX);
        if self.state.claims.get(&claim.name).is_some_and(|known| known.uid == claim.uid) {
            return Change::None;
        }
        self.expected.insert(claim.name.clone(), (claim.uid.clone(), until));
        self.put_claim(claim)
    }

    /// A claim is gone.
    pub fn delete_claim(&mut self, name: &ClaimName) -> Change {
        self.expected.remove(name);
        let gone = self.state.claims.remove(name).map_or(Change::None, |_| Change::Room);
        self.forget_pressed();
        gone
    }

    /// All claims there are, as far as a list says that may be older than what we wrote.
    pub fn reset_claims(&mut self, claims: impl IntoIterator<Item = Claim>, now: Timestamp) -> Change {
        let mut claims: BTreeMap<ClaimName, Claim> =
            claims.into_iter().map(|claim| (claim.name.clone(), claim)).collect();
        self.expected.retain(|name, (_, until)| *until > now && !claims.contains_key(name));
        for name in self.expected.keys() {
            if let Some(claim) = self.state.claims.get(name) {
                claims.insert(name.clone(), (**claim).clone());
            }
        }
        let before = self.state.claims.len();
        self.state.claims.retain(|key, _| claims.contains_key(key));
        self.forget_pressed();
        let gone = if self.state.claims.len() < before { Change::Room } else { Change::None };
        claims.into_values().map(|claim| self.put_claim(claim)).fold(gone, Ord::max)
    }

    /// A pool was added or changed.
    pub fn apply_pool(&mut self, pool: Pool) -> Change {
        put(&mut self.state.pools, pool.name.clone(), pool)
    }

    /// A pool is gone.
    pub fn delete_pool(&mut self, name: &PoolName) -> Change {
        self.state.pools.remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// How many nodes may be disturbed at a time over all pools.
    pub fn set_disruption_budgets(&mut self, budgets: Arc<[NodeBudget]>) {
        self.state.disruption_budgets = budgets;
    }

    /// The namespaces in which pods may not be given tolerations.
    pub fn set_unpatchable(&mut self, namespaces: BTreeSet<String>) -> Change {
        if self.state.unpatchable == namespaces {
            return Change::None;
        }
        self.state.unpatchable = namespaces;
        Change::Life
    }

    /// All pools there are.
    pub fn reset_pools(&mut self, pools: impl IntoIterator<Item = Pool>) -> Change {
        let pools: BTreeMap<PoolName, Pool> =
            pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect();
        let gone = drop_missing(&mut self.state.pools, &pools, Change::Room);
        pools.into_values().map(|pool| self.apply_pool(pool)).fold(gone, Ord::max)
    }

    /// A DaemonSet was added or changed.
    pub fn apply_daemonset(&mut self, daemonset: DaemonSet) -> Change {
        put(&mut self.state.daemonsets, daemonset.key.clone(), daemonset)
    }

    /// A DaemonSet is gone.
    pub fn delete_daemonset(&mut self, key: &ObjectKey) -> Change {
        self.state.daemonsets.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// All DaemonSets there are.
    pub fn reset_daemonsets(&mut self, daemonsets: impl IntoIterator<Item = DaemonSet>) -> Change {
        let all: BTreeMap<ObjectKey, DaemonSet> =
            daemonsets.into_iter().map(|daemonset| (daemonset.key.clone(), daemonset)).collect();
        let gone = drop_missing(&mut self.state.daemonsets, &all, Change::Room);
        all.into_values().map(|daemonset| self.apply_daemonset(daemonset)).fold(gone, Ord::max)
    }

    /// A namespace was added or changed.
    pub fn apply_namespace(&mut self, namespace: Namespace) -> Change {
        let known = &mut self.state.namespaces;
        if known.get(&namespace.name) == Some(&namespace.labels) {
            return Change::None;
        }
        Arc::make_mut(known).insert(namespace.name, namespace.labels);
        Change::Room
    }

    /// A namespace is gone.
    pub fn delete_namespace(&mut self, name: &str) -> Change {
        Arc::make_mut(&mut self.state.namespaces).remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// All namespaces there are.
    pub fn reset_namespaces(&mut self, namespaces: impl IntoIterator<Item = Namespace>) -> Change {
        let all = Namespace::labels_by_name(namespaces);
        if self.state.namespaces == all {
            return Change::None;
        }
        self.state.namespaces = all;
        Change::Room
    }

    /// A controller of pods was added or changed. Its pods tell of demand; this only says how many more will come.
    pub fn apply_workload(&mut self, mut workload: Workload) -> Change {
        // Clusters keep many ReplicaSets without pods.
        if !self.keeps_selectors || workload.total == 0 {
            workload.selector = None;
        }
        let key = (workload.kind.clone(), workload.key.clone());
        put(&mut self.state.workloads, key, workload).min(Change::Life)
    }

    /// A controller of pods is gone.
    pub fn delete_workload(&mut self, kind: &str, key: &ObjectKey) -> Change {
        let gone = self.state.workloads.remove(&(kind.to_owned(), key.clone()));
        gone.map_or(Change::None, |_| Change::Life)
    }

    /// All controllers of a kind that there are.
    pub fn reset_workloads(&mut self, kind: &str, all: impl IntoIterator<Item = Workload>) -> Change {
        self.state.workloads.retain(|(known, _), _| known != kind);
        all.into_iter().map(|workload| self.apply_workload(workload)).fold(Change::Life, Ord::max)
    }

    /// A ResourceQuota was added or changed.
    pub fn apply_quota(&mut self, quota: Quota) -> Change {
        put(&mut self.state.quotas, quota.key.clone(), quota).min(Change::Life)
    }

    /// A ResourceQuota is gone.
    pub fn delete_quota(&mut self, key: &ObjectKey) -> Change {
        self.state.quotas.remove(key).map_or(Change::None, |_| Change::Life)
    }

    /// Every ResourceQuota there is.
    pub fn reset_quotas(&mut self, all: impl IntoIterator<Item = Quota>) -> Change {
        reset(&mut self.state.quotas, all, |quota| quota.key.clone()).min(Change::Life)
    }

    /// A PersistentVolumeClaim was added or changed.
    pub fn apply_volume_claim(&mut self, claim: VolumeClaim) -> Change {
        put(&mut self.state.volume_claims, claim.key.clone(), claim)
    }

    /// A PersistentVolumeClaim is gone.
    pub fn delete_volume_claim(&mut self, key: &ObjectKey) -> Change {
        self.state.volume_claims.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Every PersistentVolumeClaim there is.
    pub fn reset_volume_claims(&mut self, all: impl IntoIterator<Item = VolumeClaim>) -> Change {
        reset(&mut self.state.volume_claims, all, |claim| claim.key.clone())
    }

    /// A PersistentVolume was added or changed.
    pub fn apply_volume(&mut self, volume: Volume) -> Change {
        put(&mut self.state.volumes, volume.name.clone(), volume)
    }

    /// A PersistentVolume is gone.
    pub fn delete_volume(&mut self, key: &str) -> Change {
        self.state.volumes.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Every PersistentVolume there is.
    pub fn reset_volumes(&mut self, all: impl IntoIterator<Item = Volume>) -> Change {
        reset(&mut self.state.volumes, all, |volume| volume.name.clone())
    }

    /// A StorageClass was added or changed.
    pub fn apply_storage_class(&mut self, class: StorageClass) -> Change {
        put(&mut self.state.storage_classes, class.name.clone(), class)
    }

    /// A StorageClass is gone.
    pub fn delete_storage_class(&mut self, key: &str) -> Change {
        self.state.storage_classes.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Every StorageClass there is.
    pub fn reset_storage_classes(&mut self, all: impl IntoIterator<Item = StorageClass>) -> Change {
        reset(&mut self.state.storage_classes, all, |class| class.name.clone())
    }

    /// A VolumeAttachment was added or changed.
    pub fn apply_attachment(&mut self, attachment: Attachment) -> Change {
        put(&mut self.state.attachments, attachment.name.clone(), attachment).min(Change::Life)
    }

    /// A VolumeAttachment is gone.
    pub fn delete_attachment(&mut self, key: &str) -> Change {
        self.state.attachments.remove(key).map_or(Change::None, |_| Change::Life)
    }

    /// Every VolumeAttachment there is.
    pub fn reset_attachments(&mut self, all: impl IntoIterator<Item = Attachment>) -> Change {
        reset(&mut self.state.attachments, all, |attachment| attachment.name.clone()).min(Change::Life)
    }

    /// A CSINode was added or changed.
    pub fn apply_node_drivers(&mut self, drivers: NodeDrivers) -> Change {
        put(&mut self.state.node_drivers, drivers.node.clone(), drivers)
    }

    /// A CSINode is gone.
    pub fn delete_node_drivers(&mut self, key: &str) -> Change {
        self.state.node_drivers.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Every CSINode there is.
    pub fn reset_all_node_drivers(&mut self, all: impl IntoIterator<Item = NodeDrivers>) -> Change {
        reset(&mut self.state.node_drivers, all, |drivers| drivers.node.clone())
    }

    /// What a node class can buy, or why it cannot be used.
    pub fn set_catalogue(
        &mut self,
        class: NodeClassRef,
        catalogue: Result<Arc<Catalogue>, String>,
    ) -> Change {
        if self.state.catalogues.get(&class) == Some(&catalogue) {
            return Change::None;
        }
        self.state.catalogues.insert(class, catalogue);
        Change::Room
    }

    /// A node class is gone.
    pub fn delete_catalogue(&mut self, class: &NodeClassRef) -> Change {
        self.state.catalogues.remove(class).map_or(Change::None, |_| Change::Room)
    }

    /// All node classes there are.
    pub fn reset_catalogues(
        &mut self,
        catalogues: impl IntoIterator<Item = (NodeClassRef, Result<Arc<Catalogue>, String>)>,
    ) -> Change {
        let all: BTreeMap<_, _> = catalogues.into_iter().collect();
        let before = self.state.catalogues.len();
        self.state.catalogues.retain(|class, _| all.contains_key(class));
        let gone = if self.state.catalogues.len() < before { Change::Room } else { Change::None };
        all.into_iter().map(|(class, catalogue)| self.set_catalogue(class, catalogue)).fold(gone, Ord::max)
    }

    /// What is held back: [`crate::setbacks::Setbacks::held_back`].
    pub fn set_held_back(&mut self, held_back: BTreeMap<(NodeClassRef, OfferingId), Timestamp>) -> Change {
        if self.state.held_back == held_back {
            return Change::None;
        }
        self.state.held_back = held_back;
        Change::Room
    }

    /// What is taken back: [`crate::setbacks::Setbacks::taken_back`].
    pub fn set_taken_back(&mut self, taken_back: BTreeMap<(NodeClassRef, OfferingId), TakenBack>) -> Change {
        if self.state.taken_back == taken_back {
            return Change::None;
        }
        self.state.taken_back = taken_back;
        Change::Room
    }

    /// Where the last plan put pods that are still waiting: [`crate::model::plan::Plan::nominations`].
    pub fn set_nominations(&mut self, nominations: BTreeMap<PodKey, (Uid, String)>, crowded: bool) -> Change {
        if self.state.nominations == nominations && self.state.crowded == crowded {
            return Change::None;
        }
        self.state.nominations = nominations;
        self.state.crowded = crowded;
        Change::Life
    }

    fn put_claim(&mut self, claim: Claim) -> Change {
        let before = self.state.claims.get(&claim.name);
        let change = match before {
            Some(old) if **old == claim => return Change::None,
            // What its pods need is demand from now on.
            Some(old) if is_taken(&claim) && !is_taken(old) => {
                self.press(&claim);
                Change::Pressing
            }
            Some(old) if is_taken(old) && !is_taken(&claim) => {
                self.relieve(&claim.name);
                Change::Room
            }
            Some(old) if old.uid == claim.uid && old.deleting_since == claim.deleting_since => Change::Life,
            None if claim.deleting_since.is_none() => Change::Life,
            _ => Change::Room,
        };
        let name = claim.name.clone();
        self.state.claims.insert(name.clone(), Arc::new(claim));
        change.max(self.measure_claim(&name))
    }

    fn pod_change(&self, pod: &Pod) -> Change {
        let old = self.state.pods.get(&pod.key).map(Arc::as_ref).filter(|old| old.uid == pod.uid);
        if old == Some(pod) {
            return Change::None;
        }
        if wants_node(pod) {
            let as_before = old.is_some_and(|old| {
                wants_node(old)
                    && old.spec == pod.spec
                    && old.volumes == pod.volumes
                    && old.labels == pod.labels
                    && old.priority == pod.priority
                    // A nomination that was taken back came to nothing.
                    && (pod.nominated_node.is_some() || old.nominated_node.is_none())
            });
            return if as_before { Change::Life } else { self.demand_of(pod) };
        }
        if old.is_none() && self.lacks_group(pod) {
            // The scheduler holds it without a word: it is a plan that says what is missing.
            return Change::Demand;
        }
        match (&pod.phase, old.map(|old| &old.phase)) {
            // It took room that may have been meant for another.
            (PodPhase::Bound { node }, before)
                if !matches!(before, Some(PodPhase::Bound { .. }))
                    && pod.role == PodRole::Workload
                    && !self.planned_for(pod, node) =>
            {
                Change::Room
            }
            _ => Change::Life,
        }
    }

    /// Whether the pod waits for a PodGroup that is not there.
    fn lacks_group(&self, pod: &Pod) -> bool {
        pod.phase == PodPhase::Waiting
            && pod.group_key().is_some_and(|key| !self.state.pod_groups.contains_key(&key))
    }

    /// Whether the pod is on the node where it was planned.
    fn planned_for(&self, pod: &Pod, node: &str) -> bool {
        let Some((uid, target)) = self.state.nominations.get(&pod.key) else { return false };
        let claim = self.state.claims.get(&ClaimName(target.clone()));
        *uid == pod.uid && claim.map_or(target == node, |claim| claim.node_name.as_deref() == Some(node))
    }
}

/// The node as the planner sees it: what is left on a reserved node is room.
fn unreserved(node: &Node) -> Node {
    let mut node = node.clone();
    node.taints.retain(|taint| taint.key != RESERVED_TAINT);
    node
}

fn wants_node(pod: &Pod) -> bool {
    pod.role == PodRole::Workload
        && pod.deleting_since.is_none()
        && matches!(pod.phase, PodPhase::Unschedulable { .. })
}

fn put<K: Ord + Clone, V: PartialEq>(map: &mut Shared<K, Arc<V>>, key: K, value: V) -> Change {
    if map.get(&key).is_some_and(|old| **old == value) {
        return Change::None;
    }
    map.insert(key, Arc::new(value));
    Change::Room
}

fn reset<K: Ord + Clone, V: PartialEq>(
    map: &mut Shared<K, Arc<V>>,
    all: impl IntoIterator<Item = V>,
    key: fn(&V) -> K,
) -> Change {
    let all: BTreeMap<K, V> = all.into_iter().map(|one| (key(&one), one)).collect();
    let gone = drop_missing(map, &all, Change::Room);
    all.into_iter().map(|(key, one)| put(map, key, one)).fold(gone, Ord::max)
}

fn drop_missing<K: Ord + Clone, V: Clone, W>(
    map: &mut Shared<K, V>,
    listed: &BTreeMap<K, W>,
    change: Change,
) -> Change {
    let before = map.len();
    map.retain(|key, _| listed.contains_key(key));
    if map.len() < before { change } else { Change::None }
}

/// Instances that have gone, and since when.
pub(crate) type Gone = BTreeMap<String, Timestamp>;

/// Whether the cloud takes the claim's machine back.
pub(crate) fn is_taken(claim: &Claim) -> bool {
    claim.leaving() == Some(Cause::Interrupted)
}
