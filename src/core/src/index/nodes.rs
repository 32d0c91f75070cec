//! Nodes in the index.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_terms::keys::{RESERVED_TAINT, UNREGISTERED_TAINT};

use crate::index::{Change, ClusterIndex};
use crate::model::Node;

impl ClusterIndex {
    /// Adds or replaces a node.
    pub fn apply_node(&mut self, node: Node) -> Change {
        let old = self.state.nodes.get(&node.name);
        if old.is_some_and(|old| **old == node) {
            return Change::None;
        }
        if old.is_some_and(|old| unreserved(old) == unreserved(&node)) {
            self.state.nodes.insert(node.name.clone(), Arc::new(node));
            return Change::Life;
        }
        // Until our node opens, plans use the promised resources of its claim, not those that the node reports.
        let closed = node.cordoned_until_initialized
            || node.taints.iter().any(|taint| taint.key == UNREGISTERED_TAINT);
        let name = node.name.clone();
        self.state.nodes.insert(name.clone(), Arc::new(node));
        let change = if closed { Change::Life } else { Change::Room };
        change.max(self.measure_node(&name))
    }

    /// Removes a node.
    pub fn delete_node(&mut self, name: &str) -> Change {
        self.state.nodes.remove(name).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all nodes.
    pub fn reset_nodes(&mut self, nodes: impl IntoIterator<Item = Node>) -> Change {
        let nodes: BTreeMap<String, Node> = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        let before = self.state.nodes.len();
        self.state.nodes.retain(|key, _| nodes.contains_key(key));
        let gone = if self.state.nodes.len() < before { Change::Room } else { Change::None };
        nodes.into_values().map(|node| self.apply_node(node)).fold(gone, Ord::max)
    }
}

/// Returns the node as the planner sees it, without a reservation, because free capacity on a reserved node counts.
fn unreserved(node: &Node) -> Node {
    let mut node = node.clone();
    node.taints.retain(|taint| taint.key != RESERVED_TAINT);
    node
}
