//! Instances that the providers list.

use std::sync::Arc;

use jiff::Timestamp;
use poolwright_terms::NodeClassRef;
use serde::{Deserialize, Serialize};

use crate::model::names::Uid;
use crate::model::persistent_map::PersistentMap;

/// An instance that a provider runs for this cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedInstance {
    /// The cloud's id.
    pub provider_id: String,
    /// UID of the claim that it was launched for.
    pub claim_uid: Uid,
    /// The node class that it was launched with.
    pub node_class: NodeClassRef,
    /// The launch time.
    pub launched: Timestamp,
}

/// All instances of one listing, without instances that are known to have terminated since.
#[derive(Clone, Debug, PartialEq)]
pub struct Instances {
    /// The time at which the listing began.
    pub at: Timestamp,
    by_id: PersistentMap<String, Arc<ListedInstance>>,
}

impl Instances {
    /// Creates a listing that began at `at`.
    pub fn new(at: Timestamp, listed: impl IntoIterator<Item = ListedInstance>) -> Self {
        let by_id = listed.into_iter().map(|one| (one.provider_id.clone(), Arc::new(one))).collect();
        Self { at, by_id }
    }

    /// Returns all instances, by provider id.
    pub fn iter(&self) -> impl Iterator<Item = &ListedInstance> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Returns the instance with this provider id.
    pub fn get(&self, provider_id: &str) -> Option<&ListedInstance> {
        self.by_id.get(provider_id).map(Arc::as_ref)
    }

    /// Removes an instance that has terminated. Returns whether it was listed.
    pub fn remove(&mut self, provider_id: &str) -> bool {
        self.by_id.remove(provider_id).is_some()
    }
}
