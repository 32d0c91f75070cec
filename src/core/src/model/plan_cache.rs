//! What plans worked out about nodes and offerings, for the next plan: almost all of it is the same then.
//!
//! Everything is kept beside the objects that it was worked out from, and holds only while a snapshot has these very
//! objects. So nothing here can be out of date, and a plan without it is the same plan, a little later.
//! `supply::cached` reads and fills it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use poolwright_catalog::{Catalogue, ResourceList};
use poolwright_terms::Taint;

use crate::model::plan::Target;
use crate::model::{Claim, Claims, DaemonSet, Node, Nodes, ObjectKey, OnNode, Pods, Pool, Shared};

/// What plans from a snapshot, and from others made from it, tell each other. It saves time and changes no plan. Clones share
/// one content.
#[derive(Clone, Default)]
pub struct PlanCache(Arc<Mutex<Content>>);

/// Two snapshots do not differ by what was worked out from them.
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

/// All that is known.
#[derive(Default)]
pub(crate) struct Content {
    pub rooms: CachedRooms,
    pub tables: Vec<CachedLabels>,
    pub meeting: Vec<CachedMatches>,
}

/// Rooms, by name.
#[derive(Default)]
pub(crate) struct CachedRooms {
    pub daemonsets: Shared<ObjectKey, Arc<DaemonSet>>,
    /// What all of them were worked out from, when they were the last time.
    pub basis: Option<Basis>,
    pub claims: Vec<CacheEntry>,
    pub nodes: Vec<CacheEntry>,
}

/// All that rooms depend on besides DaemonSets.
pub(crate) struct Basis {
    pub claims: Claims,
    pub nodes: Nodes,
    pub pods: Pods,
    pub catalogues: Vec<Option<Arc<Catalogue>>>,
}

/// A room, or that there is none, and what that was worked out from.
pub(crate) type CacheEntry = (Origin, Option<CachedRoom>);

/// The labels of nodes by offering.
pub(crate) type OfferingLabels = Arc<Vec<BTreeMap<String, String>>>;

pub(crate) type CachedLabels = (Arc<Catalogue>, OfferingLabels);

/// Which offerings of a catalogue meet the requirements of a pool, ascending.
pub(crate) type CachedMatches = (Arc<Catalogue>, Arc<Pool>, Arc<Vec<usize>>);

/// What does not change about a room as long as its claim, its node, the pods there and the DaemonSets are the same.
#[derive(Debug)]
pub(crate) struct CachedRoom {
    pub(crate) site: Arc<NodeFacts>,
    pub(crate) free: Arc<ResourceList>,
    pub(crate) leaving: ResourceList,
    pub(crate) left_by: Option<Timestamp>,
    /// DaemonSets whose pods are still to come, as `DaemonSets` of `supply` numbers them.
    pub(crate) outstanding: Vec<u16>,
}

/// What a room is worked out from. What is equal here is one and the same object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) claim: Option<Arc<Claim>>,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) pods: Option<Arc<OnNode>>,
    pub(crate) catalogue: Option<Arc<Catalogue>>,
    /// What nodes of its type had.
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

    /// The claim's name, or the node's.
    pub fn name(&self) -> &str {
        let claim = self.claim.as_ref().map(|claim| claim.name.0.as_str());
        claim.or_else(|| self.node.as_ref().map(|node| node.name.as_str())).unwrap_or_default()
    }
}

/// What a node is to those who ask whether they may be there.
#[derive(Debug)]
pub(crate) struct NodeFacts {
    pub target: Target,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}
