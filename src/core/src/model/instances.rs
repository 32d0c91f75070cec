//! Instances that the providers list.

use std::collections::BTreeMap;
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

/// All instances of the last listing of each cloud, without instances that are known to have terminated since.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instances {
    /// The time at which the last listing began, by kind of node class.
    at: BTreeMap<String, Timestamp>,
    by_id: PersistentMap<String, Arc<ListedInstance>>,
}

impl Instances {
    /// Creates a listing that began at `at`, of the instances of these kinds of node classes.
    pub fn new(kinds: &[&str], at: Timestamp, listed: impl IntoIterator<Item = ListedInstance>) -> Self {
        let mut all = Self::default();
        all.replace(kinds, at, listed);
        all
    }

    /// Replaces the instances of these kinds of node classes by those of a listing that began at `at`. Each cloud is listed by
    /// itself, so the instances of the others stay.
    pub fn replace(
        &mut self,
        kinds: &[&str],
        at: Timestamp,
        listed: impl IntoIterator<Item = ListedInstance>,
    ) {
        let others = self.by_id.iter().filter(|(_, one)| !kinds.contains(&one.node_class.kind.as_str()));
        let others = others.map(|(id, one)| (id.clone(), one.clone()));
        let listed = listed.into_iter().map(|one| (one.provider_id.clone(), Arc::new(one)));
        self.by_id = others.chain(listed).collect();
        self.at.extend(kinds.iter().map(|kind| ((*kind).to_owned(), at)));
    }

    /// Returns when the last listing of the instances of this kind of node class began; `None` if there was none.
    pub fn listed_at(&self, kind: &str) -> Option<Timestamp> {
        self.at.get(kind).copied()
    }

    /// Returns when the oldest of these listings began.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        self.at.values().min().copied()
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
