//! Places of nodes, which are their values of the topology keys in use.

use std::collections::BTreeMap;

use poolwright_terms::labels::HOSTNAME;

use crate::model::{Node, Snapshot};
use crate::rules::labels::Labels;
use crate::rules::new_node::UNNAMED;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Rooms;

/// The index that stands for no value, because the node does not have the label.
pub(crate) const NONE: u32 = u32::MAX;

/// The values of one node by topology key: indices into [`Places::values`], or [`NONE`].
pub(crate) type Place = Box<[u32]>;

/// The places of all nodes, rooms and offerings.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    /// The values of each key that some node has or could have.
    pub values: Vec<Vec<String>>,
    known: Vec<BTreeMap<String, u32>>,
    /// All nodes, open or not.
    pub nodes: Vec<(&'a Node, Place)>,
    /// Places of rooms.
    pub rooms: Vec<Place>,
    /// Places of offerings, by pool and position in its list.
    pub offers: Vec<Vec<Place>>,
}

impl<'a> Places<'a> {
    pub fn new(keys: &[&str], snapshot: &'a Snapshot, rooms: &Rooms<'_>, supply: &Supply<'_>) -> Self {
        let mut places = Self {
            values: vec![Vec::new(); keys.len()],
            known: vec![BTreeMap::new(); keys.len()],
            ..Self::default()
        };
        for node in snapshot.nodes.values() {
            let place = places.of(keys, &node.labels);
            places.nodes.push((node, place));
        }
        places.rooms = rooms.all.iter().map(|room| places.of(keys, &room.labels)).collect();
        for (pool, offered) in supply.pools.iter().enumerate() {
            let labels = offered.offers.iter().map(|offer| supply.labels(pool, offer.offering));
            let of_pool = labels.map(|labels| places.of(keys, &labels)).collect();
            places.offers.push(of_pool);
        }
        places
    }

    /// Returns the place of a node with these labels. The host name of a new node is unknown.
    fn of(&mut self, keys: &[&str], labels: &impl Labels) -> Place {
        let mut place = Vec::with_capacity(keys.len());
        for (at, key) in keys.iter().enumerate() {
            let value = labels.label(key).filter(|value| *key != HOSTNAME || *value != UNNAMED);
            place.push(value.map_or(NONE, |value| self.number(at, value)));
        }
        place.into()
    }

    fn number(&mut self, key: usize, value: &str) -> u32 {
        if let Some(known) = self.known[key].get(value) {
            return *known;
        }
        let next = self.values[key].len() as u32;
        self.values[key].push(value.to_owned());
        self.known[key].insert(value.to_owned(), next);
        next
    }

    /// Returns the index of a known value.
    pub fn value(&self, key: usize, value: &str) -> Option<u32> {
        self.known[key].get(value).copied()
    }
}
