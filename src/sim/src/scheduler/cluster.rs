//! The scheduler's cache: the pods on each node, updated pod by pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::rules::{Labels, NODE_NAME_FIELD};
use poolwright_core::{
    HostPort, NamespaceLabels, Node, NodeDrivers, ObjectKey, PersistentMap, Pod, PodDisruptionBudget,
    PodGroup, PodKey, PodPhase, Requirement, Service, Snapshot, StorageClass, Uid, Volume, VolumeClaim,
    Workload,
};

use super::looks::Looks;

/// The score's default for a pod without a CPU request, in thousandths of a core (`DefaultMilliCPURequest`).
const CPU_OF_NOTHING: u64 = 100;
/// The score's default for a pod without a memory request, in bytes (`DefaultMemoryRequest`).
const MEMORY_OF_NOTHING: u64 = 200 << 20;

/// The kinds of controllers whose selectors define the default spread.
const SELECTING: [&str; 3] = ["ReplicaSet", "StatefulSet", "ReplicationController"];

/// Nodes and their pods, including assumed ones.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// By name, ascending.
    nodes: Vec<NodeInfo>,
    pub(super) looks: Looks,
    /// Pods of unknown nodes, by node name.
    strays: BTreeMap<String, Vec<Filed>>,
    /// The place of each pod.
    places: BTreeMap<PodKey, (Place, usize)>,
    /// Nominated pods, by node.
    nominated: BTreeMap<String, Vec<Filed>>,
    pub(super) around: Around,
}

/// A pod and the number of its look.
#[derive(Clone, Debug)]
pub(super) struct Filed {
    pub pod: Arc<Pod>,
    pub look: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    On(String),
    Nominated(String),
}

/// The other objects that rules depend on.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    pub namespaces: Arc<NamespaceLabels>,
    pub services: PersistentMap<ObjectKey, Arc<Service>>,
    pub pod_groups: PersistentMap<ObjectKey, Arc<PodGroup>>,
    pub budgets: PersistentMap<ObjectKey, Arc<PodDisruptionBudget>>,
    pub volume_claims: PersistentMap<ObjectKey, Arc<VolumeClaim>>,
    pub volumes: PersistentMap<String, Arc<Volume>>,
    pub storage_classes: PersistentMap<String, Arc<StorageClass>>,
    pub node_drivers: PersistentMap<String, Arc<NodeDrivers>>,
    workloads: PersistentMap<(String, ObjectKey), Arc<Workload>>,
    /// Selectors of controllers, by UID.
    of_owners: BTreeMap<Uid, Vec<Requirement>>,
}

/// A node and its pods.
#[derive(Clone, Debug)]
pub(super) struct NodeInfo {
    pub node: Arc<Node>,
    /// In the order of arrival.
    pub pods: Vec<Filed>,
    /// Host ports of the pods. Like the kube-scheduler, a port that two pods share becomes free as soon as one of them is gone.
    pub ports: BTreeSet<HostPort>,
    /// Pods with required anti-affinity.
    pub with_anti_affinity: Vec<Arc<Pod>>,
    /// Pods with rules or preferences about other pods.
    pub with_affinity: Vec<Filed>,
    /// The sum of the pods' requests.
    pub used: ResourceList,
    /// The sum for scoring.
    pub scored: Scored,
}

/// CPU and memory for scoring. Pods without requests count with defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scored {
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
}

impl Scored {
    /// Returns the amounts of a pod. The kube-scheduler applies defaults for each container. Only the sum of a pod is known here,
    /// so a container without requests beside others counts as zero.
    pub fn of(pod: &Pod) -> Self {
        let or =
            |name: &str, nothing| Some(pod.spec.requests.get(name)).filter(|n| *n > 0).unwrap_or(nothing);
        Self {
            cpu: or(ResourceName::CPU, CPU_OF_NOTHING),
            memory: or(ResourceName::MEMORY, MEMORY_OF_NOTHING),
        }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { cpu: self.cpu.saturating_add(other.cpu), memory: self.memory.saturating_add(other.memory) }
    }
}

impl NodeInfo {
    fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            pods: Vec::new(),
            ports: BTreeSet::new(),
            with_anti_affinity: Vec::new(),
            with_affinity: Vec::new(),
            used: ResourceList::new(),
            scored: Scored::default(),
        }
    }

    pub fn add(&mut self, filed: &Filed) {
        let pod = &filed.pod;
        self.used.add(&pod.spec.requests);
        self.scored = self.scored.plus(Scored::of(pod));
        self.ports.extend(pod.spec.host_ports.iter().cloned());
        if !pod.spec.anti_affinity.is_empty() {
            self.with_anti_affinity.push(pod.clone());
        }
        let preferences = pod.spec.preferences.as_deref();
        let preferences =
            preferences.is_some_and(|all| !all.affinity.is_empty() || !all.anti_affinity.is_empty());
        if preferences || !pod.spec.affinity.is_empty() || !pod.spec.anti_affinity.is_empty() {
            self.with_affinity.push(filed.clone());
        }
        self.pods.push(filed.clone());
    }

    pub fn remove(&mut self, key: &PodKey) {
        let Some(at) = self.pods.iter().position(|other| other.pod.key == *key) else { return };
        for port in &self.pods.remove(at).pod.spec.host_ports {
            self.ports.remove(port);
        }
        self.with_anti_affinity.retain(|other| other.key != *key);
        self.with_affinity.retain(|other| other.pod.key != *key);
        // Computed anew, because saturated sums cannot be decreased.
        self.used = ResourceList::new();
        self.scored = Scored::default();
        for Filed { pod, .. } in &self.pods {
            self.used.add(&pod.spec.requests);
            self.scored = self.scored.plus(Scored::of(pod));
        }
    }
}

/// The labels of a node, and its name as the field `metadata.name` of node affinity.
pub(super) struct NodeLabels<'a>(pub &'a Node);

impl Labels for NodeLabels<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        if key == NODE_NAME_FIELD { Some(&self.0.name) } else { self.0.labels.get(key).map(String::as_str) }
    }
}

impl Cluster {
    /// Makes the cluster of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut cluster = Self::default();
        cluster.set_around(snapshot);
        for node in snapshot.nodes.values() {
            cluster.set_node(node.clone());
        }
        for pod in snapshot.pods.values() {
            cluster.set_pod(pod.clone());
        }
        cluster
    }

    /// Replaces everything except pods and nodes: namespaces, Services, controllers, budgets, volumes.
    pub fn set_around(&mut self, snapshot: &Snapshot) {
        let around = &mut self.around;
        around.namespaces = snapshot.namespaces.clone();
        around.services = snapshot.services.clone();
        around.pod_groups = snapshot.pod_groups.clone();
        around.budgets = snapshot.budgets.clone();
        around.volume_claims = snapshot.volume_claims.clone();
        around.volumes = snapshot.volumes.clone();
        around.storage_classes = snapshot.storage_classes.clone();
        around.node_drivers = snapshot.node_drivers.clone();
        if !around.workloads.is_same(&snapshot.workloads) {
            around.workloads = snapshot.workloads.clone();
            let selecting = around.workloads.values().filter(|one| SELECTING.contains(&one.kind.as_str()));
            around.of_owners =
                selecting.filter_map(|one| Some((one.uid.clone(), one.selector.clone()?))).collect();
        }
    }

    /// Adds or updates a node.
    pub fn set_node(&mut self, node: Arc<Node>) {
        match self.find(&node.name) {
            Ok(at) => self.nodes[at].node = node,
            Err(at) => {
                let pods = self.strays.remove(&node.name).unwrap_or_default();
                let mut info = NodeInfo::new(node);
                for filed in &pods {
                    info.add(filed);
                }
                self.nodes.insert(at, info);
            }
        }
    }

    /// Removes a node. Its pods return with it if it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Ok(at) = self.find(name) {
            let info = self.nodes.remove(at);
            if !info.pods.is_empty() {
                self.strays.insert(name.to_owned(), info.pods);
            }
        }
    }

    /// Adds or updates a pod: on its node, or as nominated. Other pods are not stored.
    pub fn set_pod(&mut self, pod: Arc<Pod>) {
        self.remove_pod(&pod.key);
        let place = match (&pod.phase, &pod.nominated_node) {
            (PodPhase::Finished, _) => return,
            (PodPhase::Bound { node }, _) => Place::On(node.clone()),
            (_, Some(node)) if pod.deleting_since.is_none() => Place::Nominated(node.clone()),
            _ => return,
        };
        let look = self.looks.take(&pod);
        self.places.insert(pod.key.clone(), (place.clone(), look));
        let filed = Filed { pod, look };
        match place {
            Place::Nominated(node) => self.nominated.entry(node).or_default().push(filed),
            Place::On(node) => match self.find(&node) {
                Ok(at) => self.nodes[at].add(&filed),
                Err(_) => self.strays.entry(node).or_default().push(filed),
            },
        }
    }

    /// Removes a pod.
    pub fn remove_pod(&mut self, key: &PodKey) {
        let drop_from = |map: &mut BTreeMap<String, Vec<Filed>>, node: &str| {
            if let Some(pods) = map.get_mut(node) {
                pods.retain(|filed| filed.pod.key != *key);
                if pods.is_empty() {
                    map.remove(node);
                }
            }
        };
        let Some((place, look)) = self.places.remove(key) else { return };
        self.looks.drop(look);
        match place {
            Place::Nominated(node) => drop_from(&mut self.nominated, &node),
            Place::On(node) => match self.find(&node) {
                Ok(at) => self.nodes[at].remove(key),
                Err(_) => drop_from(&mut self.strays, &node),
            },
        }
    }

    /// Counts a pod on a node as soon as the scheduler has chosen the node.
    pub fn assume(&mut self, pod: &Pod, node: &str) {
        let phase = PodPhase::Bound { node: node.to_owned() };
        self.set_pod(Arc::new(Pod { phase, nominated_node: None, ..pod.clone() }));
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns all nodes, by name.
    pub(super) fn nodes(&self) -> &[NodeInfo] {
        &self.nodes
    }

    pub(super) fn node(&self, name: &str) -> Option<&NodeInfo> {
        self.find(name).ok().map(|at| &self.nodes[at])
    }

    /// Returns the pods nominated for a node.
    pub(super) fn nominated(&self, node: &str) -> &[Filed] {
        self.nominated.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.nodes.binary_search_by(|info| info.node.name.as_str().cmp(name))
    }
}

impl Around {
    /// Returns the selector of a pod's controller, if the default spread uses it.
    pub fn selector_of(&self, owner: &Uid) -> Option<&[Requirement]> {
        self.of_owners.get(owner).map(Vec::as_slice)
    }
}
