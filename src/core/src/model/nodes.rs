//! All nodes, indexed by provider id.

use std::ops::Deref;
use std::sync::Arc;

use crate::model::node::Node;
use crate::model::persistent_map::{PersistentMap, insert_name, remove_name};

/// Nodes by name. Cloning is cheap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nodes {
    all: PersistentMap<String, Arc<Node>>,
    /// Node names by provider id, ascending. Normally there is one.
    by_provider_id: PersistentMap<String, Vec<String>>,
}

impl Deref for Nodes {
    type Target = PersistentMap<String, Arc<Node>>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Nodes {
    /// Inserts a node and returns the previous one.
    pub fn insert(&mut self, name: String, node: Arc<Node>) -> Option<Arc<Node>> {
        let before = self.remove(&name);
        if let Some(id) = &node.provider_id {
            insert_name(&mut self.by_provider_id, id, &name);
        }
        self.all.insert(name, node);
        before
    }

    /// Removes a node.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Node>> {
        let node = self.all.remove(name)?;
        if let Some(id) = &node.provider_id {
            remove_name(&mut self.by_provider_id, id, name);
        }
        Some(node)
    }

    /// Keeps the nodes for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &Arc<Node>) -> bool) {
        let gone: Vec<String> =
            self.iter().filter(|(name, node)| !keep(name, node)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.remove(&name);
        }
    }

    /// Returns the node with a provider id. If there are several, the last by name.
    pub fn with_provider_id(&self, id: &str) -> Option<&Arc<Node>> {
        self.all.get(self.by_provider_id.get(id)?.last()?)
    }
}

impl Extend<(String, Arc<Node>)> for Nodes {
    fn extend<T: IntoIterator<Item = (String, Arc<Node>)>>(&mut self, all: T) {
        for (name, node) in all {
            self.insert(name, node);
        }
    }
}

impl FromIterator<(String, Arc<Node>)> for Nodes {
    fn from_iter<T: IntoIterator<Item = (String, Arc<Node>)>>(all: T) -> Self {
        let mut nodes = Self::default();
        nodes.extend(all);
        nodes
    }
}
