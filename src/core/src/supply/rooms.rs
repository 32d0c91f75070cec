//! Rooms: the free capacity of existing nodes, and of claims whose nodes have not joined yet.

use crate::model::plan_cache::{CacheEntry, CachedRoom, CachedRooms, NodeFacts, Origin};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{CORDON_TAINT, DISRUPTED_TAINT, NODECLAIM_LABEL, UNREGISTERED_TAINT};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::ResourceList;

use crate::demand::volumes::attach::Attachable;
use crate::model::plan::Target;
use crate::model::{Claim, ClaimName, Node, OnNode, Snapshot};
use crate::rules::claim_node::{foreign_cordon, labels_and_taints, lasting_taints, named, node_of};
use crate::rules::colocation::{Colocation, Present, join};
use crate::supply::cached::CacheWalk;
use crate::supply::daemonsets::DaemonSets;
use crate::supply::offerings::as_measured;

/// The free capacity of one node or claim.
#[derive(Clone, Debug)]
pub(crate) struct Room<'a> {
    site: Arc<NodeFacts>,
    /// The name of the node, if it has joined.
    pub node: Option<&'a str>,
    pub free: Arc<ResourceList>,
    /// The resources that pods being deleted still use.
    pub leaving: ResourceList,
    /// The time by which the last of these pods must have ended.
    pub left_by: Option<Timestamp>,
    /// The pods that are or will be there, as colocation rules count them.
    pub present: Present,
    /// The pods of `present` that are not being deleted.
    pub staying: Present,
}

impl Room<'_> {
    /// Returns the claim that it belongs to.
    pub fn claim(&self) -> Option<&ClaimName> {
        match &self.target {
            Target::Claim(name) => Some(name),
            Target::Node(_) => None,
        }
    }

    /// Returns whether somebody else has cordoned its node, so that only pods that tolerate the cordon may come.
    pub fn is_cordoned(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == CORDON_TAINT)
    }
}

impl Deref for Room<'_> {
    type Target = NodeFacts;

    fn deref(&self) -> &NodeFacts {
        &self.site
    }
}

/// All rooms, indexed by node and claim.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rooms<'a> {
    /// Rooms of claims by name, then rooms of other nodes by name. Each attempt at a plan changes its own copy.
    pub all: Vec<Arc<Room<'a>>>,
    /// The number of rooms that belong to claims.
    of_claims: usize,
    /// Rooms of claims by node name.
    by_node: Vec<(&'a str, usize)>,
}

impl Rooms<'_> {
    /// Returns the index of the room of a claim, or of a node without a claim, by name.
    pub fn of_target(&self, name: &str) -> Option<usize> {
        let (claims, nodes) = self.all.split_at(self.of_claims);
        find(nodes, name).map(|at| self.of_claims + at).or_else(|| find(claims, name))
    }

    /// Returns the index of the room of a node, by name.
    pub fn of_node(&self, name: &str) -> Option<usize> {
        let at = find(&self.all[self.of_claims..], name).map(|at| self.of_claims + at);
        let of_claim = || self.by_node.binary_search_by_key(&name, |(node, _)| node).ok();
        at.or_else(|| of_claim().map(|at| self.by_node[at].1))
    }

    /// Places a pod in a room.
    pub fn take(&mut self, at: usize, requests: &ResourceList, profile: usize) {
        let room = Arc::make_mut(&mut self.all[at]);
        Arc::make_mut(&mut room.free).saturating_sub(requests);
        join(&mut room.present, profile, 1);
        join(&mut room.staying, profile, 1);
    }
}

fn find(rooms: &[Arc<Room<'_>>], name: &str) -> Option<usize> {
    rooms.binary_search_by(|room| room.target.name().cmp(name)).ok()
}

/// Collects all rooms that pods may use.
pub(crate) fn collect<'a>(
    snapshot: &'a Snapshot,
    daemons: &DaemonSets<'_>,
    colocation: &Colocation<'_>,
    attachable: &Attachable,
) -> Rooms<'a> {
    let (mut cached, all_known) = snapshot.plan_cache.rooms(snapshot);
    let mut rooms = Rooms::default();
    let mut numbers: Vec<(u32, usize)> = Vec::new();
    if all_known {
        repeat(&mut rooms, &mut numbers, snapshot, &cached, |known, node| {
            room(known, node, colocation, attachable, daemons)
        });
        snapshot.plan_cache.keep_rooms(cached);
        numbers.sort_unstable();
        meet(&mut rooms, &numbers, snapshot, colocation);
        return rooms;
    }
    let mut claimed: BTreeSet<&str> = BTreeSet::new();
    let mut walk = CacheWalk::new(&mut cached.claims);
    for claim in snapshot.claims.values() {
        let node = node_of(snapshot, claim);
        if let Some(node) = node {
            claimed.insert(&node.name);
        }
        if claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some() {
            continue;
        }
        let catalogue = snapshot.catalogues.get(&claim.node_class).and_then(|known| known.as_ref().ok());
        let pods = node.and_then(|node| snapshot.pods.on_node(&node.name));
        let kind = &claim.current_offering().offering.instance_type;
        let measured = snapshot.measured(&claim.node_class, kind);
        let origin = Origin {
            claim: Some(claim.clone()),
            node: node.cloned(),
            pods: pods.cloned(),
            catalogue: catalogue.cloned(),
            measured: measured.cloned(),
        };
        let work_out = || of_claim(snapshot, claim, node.map(AsRef::as_ref), daemons);
        if let Some(known) = walk.next(origin, work_out) {
            let node = node.map(|node| node.name.as_str());
            rooms.by_node.extend(node.map(|node| (node, rooms.all.len())));
            numbers.extend(pods.map(|there| (there.number, rooms.all.len())));
            rooms.all.push(Arc::new(room(known, node, colocation, attachable, daemons)));
        }
    }
    walk.end();
    rooms.of_claims = rooms.all.len();
    rooms.by_node.sort_unstable();
    let mut walk = CacheWalk::new(&mut cached.nodes);
    let mut beside = snapshot.pods.beside();
    for node in snapshot.nodes.values().filter(|node| !claimed.contains(node.name.as_str())) {
        let pods = beside.on(&node.name);
        let origin = Origin { node: Some(node.clone()), pods: pods.cloned(), ..Origin::default() };
        if let Some(known) = walk.next(origin, || of_foreign(snapshot, node, daemons)) {
            numbers.extend(pods.map(|there| (there.number, rooms.all.len())));
            rooms.all.push(Arc::new(room(known, Some(&node.name), colocation, attachable, daemons)));
        }
    }
    walk.end();
    snapshot.plan_cache.keep_rooms(cached);
    numbers.sort_unstable();
    meet(&mut rooms, &numbers, snapshot, colocation);
    rooms
}

/// Builds all rooms from the cache.
fn repeat<'a>(
    rooms: &mut Rooms<'a>,
    numbers: &mut Vec<(u32, usize)>,
    snapshot: &'a Snapshot,
    cached: &CachedRooms,
    room: impl Fn(&CachedRoom, Option<&'a str>) -> Room<'a>,
) {
    let mut add = |rooms: &mut Rooms<'a>, (origin, known): &CacheEntry, node: Option<&'a str>| {
        if let Some(known) = known {
            numbers.extend(origin.pods.as_ref().map(|there| (there.number, rooms.all.len())));
            rooms.all.push(Arc::new(room(known, node)));
        }
    };
    let mut claims = snapshot.claims.values();
    for known in &cached.claims {
        let is_it = |claim: &&Arc<Claim>| known.0.claim.as_ref().is_some_and(|own| Arc::ptr_eq(own, claim));
        let claim = claims.find(is_it).filter(|_| known.0.node.is_some());
        let node = claim.and_then(|claim| {
            // Most claims know the name of their node.
            let own = known.0.node.as_ref()?;
            let named = claim.node_name.as_deref().filter(|name| *name == own.name);
            named.or_else(|| node_of(snapshot, claim).map(|node| node.name.as_str()))
        });
        if known.1.is_some() {
            rooms.by_node.extend(node.map(|node| (node, rooms.all.len())));
        }
        add(rooms, known, node);
    }
    rooms.of_claims = rooms.all.len();
    rooms.by_node.sort_unstable();
    let mut nodes = snapshot.nodes.values();
    for known in &cached.nodes {
        let is_it = |node: &&Arc<Node>| known.0.node.as_ref().is_some_and(|own| Arc::ptr_eq(own, node));
        let node = nodes.find(is_it).map(|node| node.name.as_str());
        add(rooms, known, node);
    }
}

/// Fills in the pods that colocation rules count. `numbers` are the numbers of nodes with the indices of their rooms, ascending.
fn meet(rooms: &mut Rooms<'_>, numbers: &[(u32, usize)], snapshot: &Snapshot, colocation: &Colocation<'_>) {
    for ((_, nodes), (staying, leaving)) in snapshot.pods.alike().zip(colocation.of_alike()) {
        if staying == 0 && leaving == 0 {
            continue;
        }
        for (node, count) in nodes.iter() {
            let from = numbers.partition_point(|(number, _)| number < node);
            for (_, at) in numbers[from..].iter().take_while(|(number, _)| number == node) {
                let room = Arc::make_mut(&mut rooms.all[*at]);
                join(&mut room.present, leaving, count.all - count.staying);
                join(&mut room.present, staying, count.staying);
                join(&mut room.staying, staying, count.staying);
            }
        }
    }
}

fn room<'a>(
    known: &CachedRoom,
    node: Option<&'a str>,
    colocation: &Colocation<'_>,
    attachable: &Attachable,
    daemons: &DaemonSets<'_>,
) -> Room<'a> {
    let present = daemons.present(&known.outstanding, colocation);
    let mut free = known.free.clone();
    if !attachable.is_empty() {
        Arc::make_mut(&mut free).add(&attachable.of(node, &known.site.labels));
    }
    let (leaving, left_by) = (known.leaving.clone(), known.left_by);
    Room { site: known.site.clone(), node, free, leaving, left_by, staying: present.clone(), present }
}

fn of_claim(
    snapshot: &Snapshot,
    claim: &Claim,
    node: Option<&Node>,
    daemons: &DaemonSets<'_>,
) -> Option<CachedRoom> {
    let initialized = claim.since(ConditionType::Initialized).is_some();
    if node.is_none() && claim.node_name.is_some() {
        // The node had joined and no longer exists.
        return None;
    }
    let promised = claim.current_offering();
    let expected;
    let total = match node {
        Some(node) if initialized => {
            if !is_open(node) {
                return None;
            }
            &node.allocatable
        }
        _ => {
            if node.is_some_and(|node| node.deleting_since.is_some()) {
                return None;
            }
            let kind = &promised.offering.instance_type;
            expected = as_measured(snapshot, &claim.node_class, &promised.allocatable, kind);
            &expected
        }
    };
    let (labels, taints) = labels_and_taints(snapshot, claim, node);
    let site = NodeFacts { target: Target::Claim(claim.name.clone()), labels, taints };
    let pods = node.and_then(|node| snapshot.pods.on_node(&node.name)).map(AsRef::as_ref);
    let outstanding = if initialized {
        daemons.outstanding(&site.labels, &site.taints, pods)
    } else {
        daemons.arriving(&site.labels, &site.taints, pods)
    };
    Some(known(site, total, pods, outstanding, daemons))
}

/// Returns whether plans use the room of a node without a claim, for pods that tolerate its taints.
pub(crate) fn is_used(node: &Node) -> bool {
    // A node that Poolwright launched and that has no claim will be terminated.
    let orphan = node.labels.contains_key(NODECLAIM_LABEL)
        || node.taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT || taint.key == DISRUPTED_TAINT);
    !orphan && is_open(node)
}

/// Returns the room of a node without a claim.
fn of_foreign(snapshot: &Snapshot, node: &Node, daemons: &DaemonSets<'_>) -> Option<CachedRoom> {
    if !is_used(node) {
        return None;
    }
    let mut labels = node.labels.clone();
    labels.extend([named(node)]);
    let site = NodeFacts { target: Target::Node(node.name.clone()), labels, taints: lasting_taints(node) };
    let pods = snapshot.pods.on_node(&node.name).map(AsRef::as_ref);
    let outstanding = daemons.outstanding(&site.labels, &site.taints, pods);
    Some(known(site, &node.allocatable, pods, outstanding, daemons))
}

/// Returns whether pods may come to a node, or soon may. A cordon keeps out only the pods that do not tolerate it, unless
/// Poolwright will terminate the node.
fn is_open(node: &Node) -> bool {
    let ends = || node.taints.iter().any(|taint| taint.key == DISRUPTED_TAINT);
    node.ready && node.deleting_since.is_none() && (foreign_cordon(node).is_none() || !ends())
}

/// Builds the part of a room that is cached: node properties and free capacity.
fn known(
    site: NodeFacts,
    total: &ResourceList,
    pods: Option<&OnNode>,
    outstanding: Vec<u16>,
    daemons: &DaemonSets<'_>,
) -> CachedRoom {
    let mut used = daemons.requests(&outstanding);
    used.add(pods.map_or(&ResourceList::new(), |pods| &pods.requests));
    let mut free = total.clone();
    free.saturating_sub(&used);
    CachedRoom {
        site: Arc::new(site),
        free: Arc::new(free),
        leaving: pods.map(|pods| pods.leaving.clone()).unwrap_or_default(),
        left_by: pods.and_then(|pods| pods.left_by),
        outstanding,
    }
}
