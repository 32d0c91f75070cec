//! Captives: the pods on existing nodes that have no much cheaper home. Room is kept for more of them
//! ([`crate::plan::pack::kept_room`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, UsdPerHour};

use crate::model::{Pod, PodSpec};
use crate::plan::context::PlanContext;
use crate::plan::own_nodes;
use crate::plan::pack::kept_room::{Captives, needs};
use crate::plan::pack::room_lives::{self, RoomLife};
use crate::supply::limits::Limits;
use crate::supply::offerings::Supply;
use crate::supply::rooms::{Room, Rooms};

/// The number of kinds of pods on existing nodes whose own nodes are priced: those on the dearest nodes.
const KINDS: usize = 32;

impl PlanContext<'_> {
    /// Returns the end of each room from which pods can be kept, with its captives if room is kept. `placed` are the pods that have a
    /// place in a room.
    pub(crate) fn lives_of_rooms(
        &self,
        supply: &Supply<'_>,
        limits: &Limits,
        (rooms, placed): (&Rooms<'_>, &[(usize, &Pod)]),
        keeps_room: bool,
    ) -> Vec<Option<RoomLife>> {
        if !self.horizons.is_known() {
            return vec![None; rooms.all.len()];
        }
        let mut lives = room_lives::collect(self.snapshot, rooms, placed, self.now);
        if keeps_room {
            let known = rooms.all.iter().zip(&mut lives).enumerate();
            let known = known.filter_map(|(at, (room, life))| Some((at, room.as_ref(), life.as_mut()?)));
            self.note_captives(supply, limits, known, placed);
        }
        lives
    }

    /// Notes the captives of existing nodes. `rooms` are the nodes with their index; `placed` are pods that are planned for them, by
    /// this index.
    pub(crate) fn note_captives<'r, 'n: 'r, 'l>(
        &self,
        supply: &Supply<'_>,
        limits: &Limits,
        rooms: impl Iterator<Item = (usize, &'r Room<'n>, &'l mut RoomLife)>,
        placed: &[(usize, &Pod)],
    ) {
        let mut planned: BTreeMap<usize, Vec<&Pod>> = BTreeMap::new();
        for (at, pod) in placed {
            planned.entry(*at).or_default().push(pod);
        }
        let mut all: Vec<(Vec<&Pod>, &Room<'_>, &mut RoomLife)> = rooms
            .map(|(at, room, life)| {
                let mut pods: Vec<&Pod> = room_lives::staying(self.snapshot, room);
                pods.extend(planned.remove(&at).unwrap_or_default());
                (pods, room, life)
            })
            .collect();
        all.sort_by_key(|(_, _, life)| Reverse(life.price));
        let mut known: BTreeSet<&PodSpec> = BTreeSet::new();
        for pod in all.iter().flat_map(|(pods, ..)| pods) {
            if known.len() < KINDS {
                known.insert(&pod.spec);
            }
        }
        let specs: Vec<&PodSpec> = known.into_iter().collect();
        let prices = own_nodes::by_pool(supply, limits, &specs).into_iter();
        let prices = prices.map(|pools| pools.into_iter().map(|(_, price)| price).min());
        let own: BTreeMap<&PodSpec, Option<UsdPerHour>> = specs.iter().copied().zip(prices).collect();
        for (pods, room, life) in all {
            let is_captive = |pod: &&&Pod| own.get(&*pod.spec).is_some_and(|own| needs(*own, life.price));
            let requests: Vec<ResourceList> =
                pods.iter().filter(is_captive).map(|pod| pod.spec.requests.clone()).collect();
            let claim = room.claim().and_then(|name| self.snapshot.claims.get(name));
            if let Some(claim) = claim
                && !requests.is_empty()
            {
                let capacity = claim.current_offering().allocatable.clone();
                life.captives = Some(Captives { capacity, requests });
            }
        }
    }
}
