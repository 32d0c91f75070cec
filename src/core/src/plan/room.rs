//! Room that is there or on its way: nodes, and claims that were bought and have not come up yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::labels::HOSTNAME;
use poolwright_catalog::{ResourceList, ResourceName, labels};

use super::Target;
use super::company::{Company, Present, join};
use super::daemons::Daemons;
use super::volumes::Attachable;
use crate::action::ConditionType;
use crate::model::{Claim, Node, Pod, PodPhase, Snapshot, Taint};
use crate::rules::{self, CORDON_TAINT, NODE_NAME_FIELD, NODEPOOL_LABEL, NOT_READY_TAINT, UNREACHABLE_TAINT};
use crate::{DISRUPTED_TAINT, RESERVED_TAINT, UNREGISTERED_TAINT};

/// Label on nodes of ours: the claim they belong to.
const NODECLAIM_LABEL: &str = "poolwright.dev/nodeclaim";

/// A node with free room.
#[derive(Clone, Debug)]
pub(super) struct Room<'a> {
    pub target: Target,
    /// The node, where it is there.
    pub node: Option<&'a str>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub free: ResourceList,
    /// What pods that are being deleted still hold.
    pub leaving: ResourceList,
    /// When the last of those must be gone.
    pub left_by: Option<Timestamp>,
    /// Who is there, or will be: pods that others may not meet.
    pub present: Present,
    /// The same without pods that are being deleted.
    pub staying: Present,
}

/// Rooms, and where each node's and each claim's is.
#[derive(Clone, Debug, Default)]
pub(super) struct Rooms<'a> {
    pub all: Vec<Room<'a>>,
    /// By claim name or node name.
    by_target: BTreeMap<String, usize>,
    by_node: BTreeMap<&'a str, usize>,
}

impl<'a> Rooms<'a> {
    /// The room of a claim or of a node without one, by name.
    pub fn of_target(&self, name: &str) -> Option<usize> {
        self.by_target.get(name).copied()
    }

    /// The room of a node.
    pub fn of_node(&self, name: &str) -> Option<usize> {
        self.by_node.get(name).copied()
    }

    /// A pod is to go there.
    pub fn take(&mut self, at: usize, requests: &ResourceList, profile: usize) {
        let room = &mut self.all[at];
        room.free.saturating_sub(requests);
        join(&mut room.present, profile, 1);
        join(&mut room.staying, profile, 1);
    }

    fn push(&mut self, room: Room<'a>) {
        let at = self.all.len();
        let (Target::Claim(crate::ClaimName(name)) | Target::Node(name)) = &room.target;
        self.by_target.insert(name.clone(), at);
        if let Some(node) = room.node {
            self.by_node.insert(node, at);
        }
        self.all.push(room);
    }
}

/// All room that pods may count on.
pub(super) fn collect<'a>(
    snapshot: &'a Snapshot,
    daemons: &Daemons<'_>,
    company: &Company<'_>,
    attachable: &Attachable,
) -> Rooms<'a> {
    let mut on_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in snapshot.pods.values() {
        if let PodPhase::Bound { node } = &pod.phase {
            on_node.entry(node).or_default().push(pod);
        }
    }
    let by_provider_id: BTreeMap<&str, &Node> = snapshot
        .nodes
        .values()
        .filter_map(|node| node.provider_id.as_deref().map(|id| (id, node.as_ref())))
        .collect();
    let found = Found { on_node, daemons, company, attachable };
    let mut rooms = Rooms::default();
    let mut claimed: BTreeSet<&str> = BTreeSet::new();
    for claim in snapshot.claims.values().map(Arc::as_ref) {
        let launched = claim.launched.as_ref();
        let node = launched
            .and_then(|launched| by_provider_id.get(launched.provider_id.as_str()).copied())
            .or_else(|| snapshot.nodes.get(claim.node_name.as_ref()?).map(Arc::as_ref));
        if let Some(node) = node {
            claimed.insert(&node.name);
        }
        if claim.deleting_since.is_none()
            && claim.since(ConditionType::Disrupting).is_none()
            && let Some(room) = of_claim(snapshot, claim, node, &found)
        {
            rooms.push(room);
        }
    }
    for node in snapshot.nodes.values().map(Arc::as_ref) {
        if !claimed.contains(node.name.as_str())
            && let Some(room) = of_foreign(node, &found)
        {
            rooms.push(room);
        }
    }
    rooms
}

/// What is known of all nodes.
struct Found<'f, 'a> {
    on_node: BTreeMap<&'a str, Vec<&'a Pod>>,
    daemons: &'f Daemons<'f>,
    company: &'f Company<'f>,
    attachable: &'f Attachable,
}

fn of_claim<'a>(
    snapshot: &'a Snapshot,
    claim: &'a Claim,
    node: Option<&'a Node>,
    found: &Found<'_, 'a>,
) -> Option<Room<'a>> {
    let initialized = claim.since(ConditionType::Initialized).is_some();
    if node.is_none() && claim.node_name.is_some() {
        // The node was there and is gone.
        return None;
    }
    let promised = claim.current_offering();
    let (mut node_labels, taints, total) = match node {
        Some(node) if initialized => {
            if !is_open(node) {
                return None;
            }
            (node.labels.clone(), lasting_taints(node), &node.allocatable)
        }
        _ => {
            if node.is_some_and(|node| node.deleting_since.is_some() || (node.cordoned && !node.gated)) {
                return None;
            }
            (labels_of_claim(snapshot, claim, node), claim.taints.clone(), &promised.allocatable)
        }
    };
    node_labels.entry(NODEPOOL_LABEL.to_owned()).or_insert_with(|| claim.pool.0.clone());
    // Its CSI drivers start last: their labels may still be on their way.
    rules::add_repeated(&mut node_labels);
    node_labels.extend(node.map(named));
    let room = found.room(node, total, &node_labels, &taints);
    Some(Room { target: Target::Claim(claim.name.clone()), labels: node_labels, taints, ..room })
}

/// The labels that a claim's node has, or will have as far as is known.
pub(super) fn labels_of_claim(
    snapshot: &Snapshot,
    claim: &Claim,
    node: Option<&Node>,
) -> BTreeMap<String, String> {
    let mut labels = offering_labels(snapshot, claim);
    labels.extend(claim.labels.clone());
    labels.entry(NODEPOOL_LABEL.to_owned()).or_insert_with(|| claim.pool.0.clone());
    labels.extend(node.into_iter().flat_map(|node| node.labels.clone()));
    // Every node is a host of its own, also one whose name nobody knows yet: no label value can be equal to this.
    labels.entry(HOSTNAME.to_owned()).or_insert_with(|| format!("(claim {})", claim.name));
    labels
}

/// A node that no claim stands behind.
fn of_foreign<'a>(node: &'a Node, found: &Found<'_, 'a>) -> Option<Room<'a>> {
    // A node of ours without a claim will be given back.
    let orphan = node.labels.contains_key(NODECLAIM_LABEL)
        || node.taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT || taint.key == DISRUPTED_TAINT);
    if orphan || !is_open(node) {
        return None;
    }
    let taints = lasting_taints(node);
    let mut labels = node.labels.clone();
    labels.extend([named(node)]);
    let room = found.room(Some(node), &node.allocatable, &labels, &taints);
    Some(Room { target: Target::Node(node.name.clone()), labels, taints, ..room })
}

/// The node's name, as rules ask for it.
fn named(node: &Node) -> (String, String) {
    (NODE_NAME_FIELD.to_owned(), node.name.clone())
}

/// A cordon of ours on a node that is initialized is about to be lifted.
fn is_open(node: &Node) -> bool {
    node.ready && (!node.cordoned || node.gated) && node.deleting_since.is_none()
}

/// The node's taints without those that the node controller derives, a moment later, from what was asked already: whether
/// the node is ready and cordoned. A node that has just opened still has them, and counting it as closed for that moment
/// would buy its pods a second one. A reservation does not last either: pods that are planned there are let in.
fn lasting_taints(node: &Node) -> Vec<Taint> {
    let passing = [NOT_READY_TAINT, UNREACHABLE_TAINT, CORDON_TAINT, RESERVED_TAINT];
    node.taints.iter().filter(|taint| !passing.contains(&taint.key.as_str())).cloned().collect()
}

impl<'a> Found<'_, 'a> {
    /// What is left of a node, and who is there.
    fn room(
        &self,
        node: Option<&'a Node>,
        total: &ResourceList,
        labels: &BTreeMap<String, String>,
        taints: &[Taint],
    ) -> Room<'a> {
        let pods = node.and_then(|node| self.on_node.get(node.name.as_str())).map_or(&[][..], Vec::as_slice);
        let outstanding = self.daemons.outstanding(labels, taints, pods);
        let mut used = self.daemons.requests(&outstanding);
        let mut present = self.daemons.present(&outstanding, self.company);
        let mut staying = present.clone();
        let mut leaving = ResourceList::new();
        let mut left_by = None;
        for pod in pods {
            used.add(&pod.spec.requests);
            let profile = self.company.of(&pod.key);
            join(&mut present, profile, 1);
            if let Some(gone) = pod.deleting_since {
                left_by = left_by.max(Some(gone));
                leaving.add(&pod.spec.requests);
            } else {
                join(&mut staying, profile, 1);
            }
        }
        let mut free = total.clone();
        free.add(&self.attachable.of(node.map(|node| node.name.as_str()), labels));
        free.saturating_sub(&used);
        Room {
            target: Target::Node(String::new()),
            node: node.map(|node| node.name.as_str()),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            free,
            leaving,
            left_by,
            present,
            staying,
        }
    }
}

/// The labels that the claim's offering will give its node.
fn offering_labels(snapshot: &Snapshot, claim: &Claim) -> BTreeMap<String, String> {
    let id = &claim.current_offering().offering;
    if let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class)
        && let Some(offering) = catalogue.offering(id)
    {
        return catalogue.node_labels(offering);
    }
    // The catalogue does not list it any more: what the claim itself knows must do.
    let mut known = BTreeMap::from([
        (labels::INSTANCE_TYPE.to_owned(), id.instance_type.to_string()),
        (labels::ZONE.to_owned(), id.zone.to_string()),
        (labels::CAPACITY_TYPE.to_owned(), id.capacity_type.to_string()),
        (labels::OS.to_owned(), "linux".to_owned()),
    ]);
    let gpus = claim.current_offering().allocatable.get(ResourceName::NVIDIA_GPU);
    if gpus > 0 {
        known.insert(labels::GPU_COUNT.to_owned(), gpus.to_string());
    }
    known
}
