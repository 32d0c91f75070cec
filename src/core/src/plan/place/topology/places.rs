//! Where in the cluster nodes are: their values of the labels that rules about other pods use.

use std::collections::BTreeMap;

use poolwright_terms::labels::HOSTNAME;

use crate::model::{Node, Snapshot};
use crate::rules::labels::Labels;
use crate::rules::new_node::UNNAMED;
use crate::supply::offerings::Supply;
use crate::supply::rooms::Rooms;

/// No value: the node has no such label.
pub(crate) const NONE: u32 = u32::MAX;

/// The values of one node, by key: indices into [`Places::values`], or [`NONE`].
pub(crate) type Place = Box<[u32]>;

/// Where everything is.
#[derive(Debug, Default)]
pub(crate) struct Places<'a> {
    /// By key: the values that some node has or could have.
    pub values: Vec<Vec<String>>,
    known: Vec<BTreeMap<String, u32>>,
    /// All nodes there are, open or not.
    pub nodes: Vec<(&'a Node, Place)>,
    /// By room.
    pub rooms: Vec<Place>,
    /// By pool and position in its list of offers.
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

    /// Where a node with these labels is. What a node that is not there yet will be called nobody knows.
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

    /// The number of a value that is known.
    pub fn value(&self, key: usize, value: &str) -> Option<u32> {
        self.known[key].get(value).copied()
    }
}
