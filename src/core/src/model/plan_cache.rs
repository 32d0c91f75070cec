//! The plan cache: results about nodes and offerings that the next plan can reuse, because most of them do not change.
//!
//! Each result is kept with the objects that it was computed from, and is valid only while a snapshot holds the same objects.
//! So no result can be stale, and a plan without the cache is the same plan, only slower. `supply::cached` reads and fills it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, ResourceList};
use poolwright_terms::Taint;

use crate::model::plan::Target;
use crate::model::{Claim, Claims, DaemonSet, Node, Nodes, ObjectKey, OnNode, PersistentMap, Pods, Pool};

/// A cache that the plans from a snapshot and its clones share. It saves time and changes no plan.
#[derive(Clone, Default)]
pub struct PlanCache(Arc<Mutex<Content>>);

/// All caches are equal, because the cache is not part of a snapshot's value.
impl PartialEq for PlanCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for PlanCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlanCache")
    }
}

impl PlanCache {
    /// Lets `act` read and change the content.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Content) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The contents of the cache.
#[derive(Default)]
pub(crate) struct Content {
    pub rooms: CachedRooms,
    pub tables: Vec<CachedLabels>,
    pub meeting: Vec<CachedMatches>,
}

/// Cached rooms, by name.
#[derive(Default)]
pub(crate) struct CachedRooms {
    pub daemonsets: PersistentMap<ObjectKey, Arc<DaemonSet>>,
    /// The inputs of all rooms at the last plan.
    pub basis: Option<Basis>,
    pub claims: Vec<CacheEntry>,
    pub nodes: Vec<CacheEntry>,
}

/// All inputs of rooms besides DaemonSets.
pub(crate) struct Basis {
    pub claims: Claims,
    pub nodes: Nodes,
    pub pods: Pods,
    pub catalogues: Vec<Option<Arc<Catalogue>>>,
}

/// A room, or `None` if there is none, and its inputs.
pub(crate) type CacheEntry = (Origin, Option<CachedRoom>);

/// The labels of nodes by offering.
pub(crate) type OfferingLabels = Arc<Vec<BTreeMap<String, String>>>;

pub(crate) type CachedLabels = (Arc<Catalogue>, OfferingLabels);

/// The offerings of a catalogue that meet the requirements of a pool, ascending.
pub(crate) type CachedMatches = (Arc<Catalogue>, Arc<Pool>, Arc<Vec<usize>>);

/// The part of a room that depends only on its claim, its node, the pods there and the DaemonSets.
#[derive(Debug)]
pub(crate) struct CachedRoom {
    pub(crate) site: Arc<NodeFacts>,
    pub(crate) free: Arc<ResourceList>,
    pub(crate) leaving: ResourceList,
    pub(crate) left_by: Option<Timestamp>,
    /// DaemonSets whose pods are not there yet: indices into `supply`'s `DaemonSets`.
    pub(crate) outstanding: Vec<u16>,
}

/// The inputs of a room. They are compared by identity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) claim: Option<Arc<Claim>>,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) pods: Option<Arc<OnNode>>,
    pub(crate) catalogue: Option<Arc<Catalogue>>,
    /// The resources that nodes of its type lacked ([`crate::model::Snapshot::measured`]).
    pub(crate) measured: Option<Arc<ResourceList>>,
}

impl Origin {
    pub fn is_same(&self, other: &Self) -> bool {
        fn same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
            match (one, other) {
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                (one, other) => one.is_none() && other.is_none(),
            }
        }
        same(self.claim.as_ref(), other.claim.as_ref())
            && same(self.node.as_ref(), other.node.as_ref())
            && same(self.pods.as_ref(), other.pods.as_ref())
            && same(self.catalogue.as_ref(), other.catalogue.as_ref())
            && same(self.measured.as_ref(), other.measured.as_ref())
    }

    /// Returns the claim's name, or the node's.
    pub fn name(&self) -> &str {
        let claim = self.claim.as_ref().map(|claim| claim.name.0.as_str());
        claim.or_else(|| self.node.as_ref().map(|node| node.name.as_str())).unwrap_or_default()
    }
}

/// The properties of a node that scheduling rules look at.
#[derive(Debug)]
pub(crate) struct NodeFacts {
    pub target: Target,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}
