//! What keeps existing nodes alive: the nodes whose further pods cost money, because they postpone the node's end.

use std::collections::BTreeSet;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_terms::ConditionType;

use crate::model::{Ends, Life, Pod, PodRole, ScaleToZero, Snapshot};
use crate::plan::pack::kept_room::Captives;
use crate::supply::rooms::{Room, Rooms};

/// The end of an existing node.
#[derive(Clone, Debug)]
pub(crate) struct RoomLife {
    /// The node's price.
    pub price: UsdPerHour,
    /// The end of the pods that are there or planned for it.
    pub ends: Ends,
    /// The pods on it that have no much cheaper home, if any has been noted.
    pub captives: Option<Captives>,
    /// The classes of pods that would take the room kept for such pods.
    pub kept_off: BTreeSet<usize>,
}

/// Returns the end of each room from which pods can be kept; `None` for all others, where the scheduler may put any pod at any
/// time.
pub(crate) fn collect(
    snapshot: &Snapshot,
    rooms: &Rooms<'_>,
    placed: &[(usize, &Pod)],
    now: Timestamp,
) -> Vec<Option<RoomLife>> {
    let mut all: Vec<Option<RoomLife>> = rooms.all.iter().map(|room| of_room(snapshot, room, now)).collect();
    for (at, pod) in placed {
        if let Some(room) = &mut all[*at] {
            room.ends.add(&life(snapshot, pod, now));
        }
    }
    all
}

fn of_room(snapshot: &Snapshot, room: &Room<'_>, now: Timestamp) -> Option<RoomLife> {
    let claim = snapshot.claims.get(room.claim()?)?;
    let there = room.node.and_then(|node| snapshot.nodes.get(node));
    let opened = claim.since(ConditionType::Initialized).is_some();
    let closed = !opened || there.is_some_and(|node| node.is_reserved());
    of_any_room(snapshot, room, now).filter(|_| closed)
}

/// Returns the end of a room whose node is terminated when its pods have ended, even if it is open; `None`
/// for other rooms, and for pools whose nodes never retire.
pub(crate) fn of_any_room(snapshot: &Snapshot, room: &Room<'_>, now: Timestamp) -> Option<RoomLife> {
    let claim = snapshot.claims.get(room.claim()?)?;
    let price = claim.current_offering().price?;
    let pool = snapshot.pools.get(&claim.pool)?;
    if !pool.disruption.retires || pool.replicas.is_some() || pool.scale_to_zero == ScaleToZero::Never {
        return None;
    }
    let lives: Vec<Life> = staying(snapshot, room).into_iter().map(|pod| life(snapshot, pod, now)).collect();
    Some(RoomLife { price, ends: Ends::of(&lives), captives: None, kept_off: BTreeSet::new() })
}

/// Returns the pods that keep the node of a room.
pub(crate) fn staying<'s>(snapshot: &'s Snapshot, room: &Room<'_>) -> Vec<&'s Pod> {
    let pods = room.node.and_then(|node| snapshot.pods.on_node(node));
    let pods = pods.into_iter().flat_map(|there| &there.pods).map(AsRef::as_ref);
    pods.filter(|pod: &&Pod| pod.role == PodRole::Workload && pod.deleting_since.is_none()).collect()
}

fn life(snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> Life {
    snapshot.lives.of(pod, now).life
}
