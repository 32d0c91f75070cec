//! All pods, with an index for each question that decisions ask, so that no decision scans all pods.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::ResourceList;

use crate::model::daemon_sizes::DaemonSizes;
use crate::model::marked_gangs::MarkedGangs;
use crate::model::names::Uid;
use crate::model::persistent_map::PersistentMap;
use crate::model::pod::{Pod, PodPhase, PodRole};
use crate::model::pod_affinity::{HostPort, PodAffinityTerm};
use crate::model::pod_key::{ObjectKey, PodKey};

/// Pods by key, including finished ones. Cloning is cheap. The indexes depend only on the pods, not on the order of changes.
#[derive(Clone, Debug, Default)]
pub struct Pods {
    all: PersistentMap<PodKey, Arc<Pod>>,
    unbound: PersistentMap<PodKey, Arc<Pod>>,
    with_volumes: PersistentMap<PodKey, Arc<Pod>>,
    owned: PersistentMap<(Uid, PodKey), Arc<Pod>>,
    /// The pods of each PodGroup.
    grouped: PersistentMap<(ObjectKey, PodKey), Arc<Pod>>,
    pub(crate) marked: MarkedGangs,
    nodes: PersistentMap<String, Arc<OnNode>>,
    /// The number of pods by traits and node. Nodes are named by [`OnNode::number`].
    alike: PersistentMap<PodTraits, PersistentMap<u32, Count>>,
    pub(crate) daemons: DaemonSizes,
    /// The next node's number.
    next: u32,
}

/// The pods that are bound to one node.
#[derive(Clone, Debug, Default)]
pub struct OnNode {
    /// A number that identifies this node while it has pods.
    pub number: u32,
    /// All pods, by key.
    pub pods: Vec<Arc<Pod>>,
    /// DaemonSet pods, by key.
    pub daemons: Vec<Arc<Pod>>,
    /// The sum of their requests.
    pub requests: ResourceList,
    /// The sum of the requests of pods that are being deleted.
    pub leaving: ResourceList,
    /// The time by which the last of these pods must have ended.
    pub left_by: Option<Timestamp>,
}

/// The number of pods on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All pods.
    pub all: u32,
    /// Pods that are not being deleted.
    pub staying: u32,
}

/// The traits of a bound pod that rules of other pods look at: namespace, labels, required anti-affinity and host ports. Two pods
/// with the same traits compare as equal, so nothing else of the pod may be used.
#[derive(Clone, Debug)]
pub struct PodTraits(Arc<Pod>);

impl PodTraits {
    /// Returns a pod with these traits. It may no longer exist.
    pub fn example(&self) -> &Pod {
        &self.0
    }

    fn parts(&self) -> impl Ord + '_ {
        let pod = &*self.0;
        let parts: (&str, _, &Vec<PodAffinityTerm>, &BTreeSet<HostPort>) =
            (pod.key.namespace(), &pod.labels, &pod.spec.anti_affinity, &pod.spec.host_ports);
        parts
    }
}

impl PartialEq for PodTraits {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PodTraits {}

impl PartialOrd for PodTraits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PodTraits {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.parts().cmp(&other.parts()) }
    }
}

impl PartialEq for OnNode {
    fn eq(&self, other: &Self) -> bool {
        let parts = |all: &Self| (all.requests.clone(), all.leaving.clone(), all.left_by);
        self.pods == other.pods && self.daemons == other.daemons && parts(self) == parts(other)
    }
}

/// Numbers of nodes may differ between equal maps.
impl PartialEq for Pods {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
            && self.unbound == other.unbound
            && self.with_volumes == other.with_volumes
            && self.owned == other.owned
            && self.grouped == other.grouped
            && self.nodes == other.nodes
            && self.daemons == other.daemons
            && self.alike_by_name() == other.alike_by_name()
    }
}

impl Deref for Pods {
    type Target = PersistentMap<PodKey, Arc<Pod>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Pods {
    /// Inserts a pod and returns the previous one.
    pub fn insert(&mut self, key: PodKey, pod: Arc<Pod>) -> Option<Arc<Pod>> {
        let before = self.all.insert(key, pod.clone());
        if let Some(before) = &before {
            self.unindex_pod(before);
        }
        self.index_pod(pod);
        before
    }

    /// Removes a pod.
    pub fn remove(&mut self, key: &PodKey) -> Option<Arc<Pod>> {
        let pod = self.all.remove(key)?;
        self.unindex_pod(&pod);
        Some(pod)
    }

    /// Changes a pod, if it exists. The key must not change.
    pub fn change(&mut self, key: &PodKey, change: impl FnOnce(&mut Pod)) {
        if let Some(mut pod) = self.remove(key) {
            change(Arc::make_mut(&mut pod));
            self.insert(key.clone(), pod);
        }
    }

    /// Keeps the pods for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&PodKey, &Arc<Pod>) -> bool) {
        let gone: Vec<PodKey> =
            self.iter().filter(|(key, pod)| !keep(key, pod)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// Returns a pod that exists.
    pub fn existing(&self, key: &ObjectKey) -> Option<&Arc<Pod>> {
        self.all.get(&PodKey::Existing(key.clone()))
    }

    /// Returns the pods without a node that have not ended, by key: waiting, gated or unschedulable.
    pub fn unbound(&self) -> impl DoubleEndedIterator<Item = &Pod> + Clone {
        self.unbound.values().map(AsRef::as_ref)
    }

    /// Returns the bound pods with volumes that not every node can provide, by key.
    pub fn bound_with_volumes(&self) -> impl Iterator<Item = &Pod> {
        self.with_volumes.values().map(AsRef::as_ref)
    }

    /// Returns the workload pods of a controller that have not ended, by key.
    pub fn of_owner<'a>(&'a self, owner: &Uid) -> impl Iterator<Item = &'a Pod> {
        let owner = owner.clone();
        let first = (owner.clone(), PodKey::new("", ""));
        let theirs = self.owned.range_from(&first).take_while(move |((uid, _), _)| *uid == owner);
        theirs.map(|(_, pod)| pod.as_ref())
    }

    /// Returns the pods of a PodGroup that have not ended, by key.
    pub fn of_group<'a>(&'a self, group: &ObjectKey) -> impl Iterator<Item = &'a Pod> {
        let group = group.clone();
        let first = (group.clone(), PodKey::new("", ""));
        let theirs = self.grouped.range_from(&first).take_while(move |((of, _), _)| *of == group);
        theirs.map(|(_, pod)| pod.as_ref())
    }

    /// Returns the bound pods, by node.
    pub fn bound(&self) -> impl Iterator<Item = &Pod> {
        self.nodes.values().flat_map(|node| &node.pods).map(AsRef::as_ref)
    }

    /// Returns the pods on a node.
    pub fn on_node(&self, name: &str) -> Option<&Arc<OnNode>> {
        self.nodes.get(name)
    }

    /// Returns the bound pods, grouped by traits, with the number of each group on each node. Nodes are named by
    /// [`OnNode::number`].
    pub fn alike(&self) -> impl Iterator<Item = (&PodTraits, &PersistentMap<u32, Count>)> + Clone {
        self.alike.iter()
    }

    /// Returns whether the same pods are bound to the same nodes. This is a quick check: it may return false for equal maps.
    pub fn is_bound_alike(&self, other: &Self) -> bool {
        self.nodes.is_same(&other.nodes)
    }

    /// Returns a cursor over the nodes with pods, for lookups in ascending order of names.
    pub fn beside(&self) -> Beside<'_, impl Iterator<Item = (&String, &Arc<OnNode>)>> {
        Beside { left: self.nodes.iter().peekable() }
    }

    fn alike_by_name(&self) -> BTreeMap<(&PodTraits, &str), Count> {
        let names: BTreeMap<u32, &str> =
            self.nodes.iter().map(|(name, there)| (there.number, name.as_str())).collect();
        let of = |(look, nodes): (_, &'_ PersistentMap<u32, Count>)| {
            let counts: Vec<_> = nodes.iter().map(|(number, count)| (*number, *count)).collect();
            counts.into_iter().map(move |(number, count)| (look, number, count))
        };
        self.alike.iter().flat_map(of).map(|(look, number, count)| ((look, names[&number]), count)).collect()
    }

    fn index_pod(&mut self, pod: Arc<Pod>) {
        if pod.phase == PodPhase::Finished {
            return;
        }
        if let Some(owner) = pod.owner.as_ref().filter(|_| pod.role == PodRole::Workload) {
            self.owned.insert((owner.clone(), pod.key.clone()), pod.clone());
        }
        if let Some(group) = pod.group_key() {
            self.grouped.insert((group, pod.key.clone()), pod.clone());
            self.marked.add(&pod);
        }
        self.daemons.add(&pod);
        let PodPhase::Bound { node } = &pod.phase else {
            self.unbound.insert(pod.key.clone(), pod);
            return;
        };
        if !pod.volumes.is_empty() {
            self.with_volumes.insert(pod.key.clone(), pod.clone());
        }
        let staying = u32::from(pod.deleting_since.is_none());
        let look = PodTraits(pod.clone());
        if !self.alike.contains_key(&look) {
            self.alike.insert(look.clone(), PersistentMap::new());
        }
        if !self.nodes.contains_key(node.as_str()) {
            self.nodes.insert(node.clone(), Arc::new(OnNode { number: self.next, ..OnNode::default() }));
            self.next = self.next.wrapping_add(1);
        }
        let Some(on_node) = self.nodes.get_mut(node.as_str()) else { return };
        Arc::make_mut(on_node).add(pod.clone());
        if let Some(nodes) = self.alike.get_mut(&look) {
            let before = nodes.get(&on_node.number).copied().unwrap_or_default();
            let after = Count { all: before.all + 1, staying: before.staying + staying };
            nodes.insert(on_node.number, after);
        }
    }

    fn unindex_pod(&mut self, pod: &Arc<Pod>) {
        if let Some(owner) = pod.owner.as_ref().filter(|_| pod.role == PodRole::Workload) {
            self.owned.remove(&(owner.clone(), pod.key.clone()));
        }
        if let Some(group) = pod.group_key() {
            self.grouped.remove(&(group, pod.key.clone()));
            self.marked.remove(pod);
        }
        self.daemons.remove(pod);
        let PodPhase::Bound { node } = &pod.phase else {
            self.unbound.remove(&pod.key);
            return;
        };
        self.with_volumes.remove(&pod.key);
        let Some(on_node) = self.nodes.get_mut(node.as_str()) else { return };
        Arc::make_mut(on_node).remove(&pod.key);
        let look = PodTraits(pod.clone());
        if let Some(nodes) = self.alike.get_mut(&look) {
            let Count { all, staying } = nodes.get(&on_node.number).copied().unwrap_or_default();
            if all > 1 {
                let staying = staying - u32::from(pod.deleting_since.is_none());
                nodes.insert(on_node.number, Count { all: all - 1, staying });
            } else {
                nodes.remove(&on_node.number);
            }
            if nodes.is_empty() {
                self.alike.remove(&look);
            }
        }
        if on_node.pods.is_empty() {
            self.nodes.remove(node.as_str());
        }
    }
}

impl OnNode {
    fn add(&mut self, pod: Arc<Pod>) {
        self.count(&pod);
        let put = |pods: &mut Vec<Arc<Pod>>, pod: Arc<Pod>| {
            let at = pods.partition_point(|other| other.key < pod.key);
            pods.insert(at, pod);
        };
        if pod.role == PodRole::DaemonSet {
            put(&mut self.daemons, pod.clone());
        }
        put(&mut self.pods, pod);
    }

    fn remove(&mut self, key: &PodKey) {
        // The sums are computed again, because a saturated sum cannot be decreased.
        let mut left = Self { number: self.number, ..Self::default() };
        for pod in self.pods.iter().filter(|pod| pod.key != *key) {
            left.count(pod);
        }
        left.pods = std::mem::take(&mut self.pods);
        left.daemons = std::mem::take(&mut self.daemons);
        left.pods.retain(|pod| pod.key != *key);
        left.daemons.retain(|pod| pod.key != *key);
        *self = left;
    }

    fn count(&mut self, pod: &Pod) {
        self.requests.add(&pod.spec.requests);
        if pod.deleting_since.is_some() {
            self.leaving.add(&pod.spec.requests);
            self.left_by = self.left_by.max(pod.deleting_since);
        }
    }
}

/// A cursor over the nodes with pods: looks up nodes in ascending order of names.
pub struct Beside<'a, I: Iterator<Item = (&'a String, &'a Arc<OnNode>)>> {
    left: Peekable<I>,
}

impl<'a, I: Iterator<Item = (&'a String, &'a Arc<OnNode>)>> Beside<'a, I> {
    /// Returns the pods on a node. Later calls must ask for later names.
    pub fn on(&mut self, name: &str) -> Option<&'a Arc<OnNode>> {
        while self.left.next_if(|(known, _)| known.as_str() < name).is_some() {}
        self.left.next_if(|(known, _)| known.as_str() == name).map(|(_, there)| there)
    }
}

impl Extend<(PodKey, Arc<Pod>)> for Pods {
    fn extend<T: IntoIterator<Item = (PodKey, Arc<Pod>)>>(&mut self, all: T) {
        for (key, pod) in all {
            self.insert(key, pod);
        }
    }
}

impl FromIterator<(PodKey, Arc<Pod>)> for Pods {
    fn from_iter<T: IntoIterator<Item = (PodKey, Arc<Pod>)>>(all: T) -> Self {
        let mut pods = Self::default();
        pods.extend(all);
        pods
    }
}
