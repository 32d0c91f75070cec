//! What plans worked out about nodes and offerings, for the next plan: almost all of it is the same then.
//!
//! Everything is kept beside the objects that it was worked out from, and holds only while a snapshot has these very
//! objects. So nothing here can be out of date, and a plan without it is the same plan, a little later.

use crate::model::plan::Target;
use crate::model::{Claim, Node, OnNode};
use jiff::Timestamp;
use poolwright_catalog::ResourceList;
use poolwright_terms::Taint;
use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::Catalogue;

use crate::model::memory::Memory;
use crate::model::{Claims, DaemonSet, Nodes, ObjectKey, Pods, Pool, Shared, Snapshot};

#[derive(Default)]
struct Content {
    rooms: KnownRooms,
    tables: Vec<KnownTable>,
    meeting: Vec<KnownMeeting>,
}

/// Rooms, by name.
#[derive(Default)]
pub(crate) struct KnownRooms {
    daemonsets: Shared<ObjectKey, Arc<DaemonSet>>,
    /// What all of them were worked out from, when they were the last time.
    basis: Option<Basis>,
    pub claims: Vec<KnownRoom>,
    pub nodes: Vec<KnownRoom>,
}

/// All that rooms depend on besides DaemonSets.
struct Basis {
    claims: Claims,
    nodes: Nodes,
    pods: Pods,
    catalogues: Vec<Option<Arc<Catalogue>>>,
}

impl Basis {
    fn new(snapshot: &Snapshot) -> Self {
        let catalogues = snapshot.catalogues.values().map(|known| known.as_ref().ok().cloned()).collect();
        let Snapshot { claims, nodes, pods, .. } = snapshot;
        Self { claims: claims.clone(), nodes: nodes.clone(), pods: pods.clone(), catalogues }
    }

    fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Option<Arc<Catalogue>>, &Option<Arc<Catalogue>>)| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.claims.is_same(&other.claims)
            && self.nodes.is_same(&other.nodes)
            && self.pods.is_bound_alike(&other.pods)
            && self.catalogues.len() == other.catalogues.len()
            && self.catalogues.iter().zip(&other.catalogues).all(same)
    }
}

/// A room, or that there is none, and what that was worked out from.
pub(crate) type KnownRoom = (Origin, Option<Known>);

/// The labels of nodes by offering.
pub(crate) type OfferingLabels = Arc<Vec<BTreeMap<String, String>>>;

type KnownTable = (Arc<Catalogue>, OfferingLabels);

/// Which offerings of a catalogue meet the requirements of a pool, ascending.
type KnownMeeting = (Arc<Catalogue>, Arc<Pool>, Arc<Vec<usize>>);

impl Memory {
    /// Takes what is known of rooms, and whether all of it still holds: then nothing has changed since but pods without a
    /// node. Another plan at the same time starts from nothing.
    pub(crate) fn rooms(&self, snapshot: &Snapshot) -> (KnownRooms, bool) {
        let mut known = self.with(|content: &mut Content| std::mem::take(&mut content.rooms));
        if !known.daemonsets.is_same(&snapshot.daemonsets) {
            known = KnownRooms { daemonsets: snapshot.daemonsets.clone(), ..KnownRooms::default() };
        }
        let basis = Basis::new(snapshot);
        let all = known.basis.as_ref().is_some_and(|known| known.is_same(&basis));
        known.basis = Some(basis);
        (known, all)
    }

    /// Keeps it for the next plan.
    pub(crate) fn keep_rooms(&self, rooms: KnownRooms) {
        self.with(|content: &mut Content| content.rooms = rooms);
    }

    /// The labels that nodes of each offering get.
    pub(crate) fn labels(&self, catalogue: &Arc<Catalogue>) -> OfferingLabels {
        self.with(|content: &mut Content| {
            // Catalogues that nobody sells from any more.
            content.tables.retain(|(known, _)| Arc::strong_count(known) > 1 || Arc::ptr_eq(known, catalogue));
            if let Some((_, labels)) = content.tables.iter().find(|(known, _)| Arc::ptr_eq(known, catalogue))
            {
                return labels.clone();
            }
            let labels = catalogue.offerings().iter().map(|offering| catalogue.node_labels(offering));
            let labels: OfferingLabels = Arc::new(labels.collect());
            content.tables.push((catalogue.clone(), labels.clone()));
            labels
        })
    }

    /// The offerings of a catalogue that meet the requirements of a pool.
    pub(crate) fn meeting(
        &self,
        catalogue: &Arc<Catalogue>,
        pool: &Arc<Pool>,
        work_out: impl FnOnce() -> Vec<usize>,
    ) -> Arc<Vec<usize>> {
        self.with(|content: &mut Content| {
            let same = |one: &KnownMeeting| Arc::ptr_eq(&one.0, catalogue) && Arc::ptr_eq(&one.1, pool);
            if let Some((.., meeting)) = content.meeting.iter().find(|one| same(one)) {
                return meeting.clone();
            }
            // Pools and catalogues that are not there any more.
            content.meeting.retain(|(catalogue, pool, _)| {
                Arc::strong_count(catalogue) > 1 && Arc::strong_count(pool) > 1
            });
            let meeting = Arc::new(work_out());
            content.meeting.push((catalogue.clone(), pool.clone(), meeting.clone()));
            meeting
        })
    }
}

/// Goes through what is known beside what there is, both by name.
pub(crate) struct Walk<'k> {
    known: &'k mut Vec<KnownRoom>,
    at: usize,
}

impl<'k> Walk<'k> {
    pub fn new(known: &'k mut Vec<KnownRoom>) -> Self {
        Self { known, at: 0 }
    }

    /// The next one: what is known of it, or what is worked out now.
    pub fn next(&mut self, origin: Origin, work_out: impl FnOnce() -> Option<Known>) -> Option<&Known> {
        let at = self.at;
        self.at += 1;
        let gone = self.known[at.min(self.known.len())..]
            .iter()
            .take_while(|(known, _)| known.name() < origin.name())
            .count();
        if gone > 0 {
            self.known.drain(at..at + gone);
        }
        match self.known.get_mut(at) {
            Some((known, _)) if known.is_same(&origin) => {}
            Some(entry) if entry.0.name() == origin.name() => *entry = (origin, work_out()),
            _ => self.known.insert(at, (origin, work_out())),
        }
        self.known[at].1.as_ref()
    }

    /// Forgets the rest.
    pub fn end(self) {
        self.known.truncate(self.at);
    }
}

/// What does not change about a room as long as its claim, its node, the pods there and the DaemonSets are the same.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) site: Arc<Site>,
    pub(crate) free: Arc<ResourceList>,
    pub(crate) leaving: ResourceList,
    pub(crate) left_by: Option<Timestamp>,
    /// DaemonSets whose pods are still to come, as [`Daemons`] numbers them.
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
pub(crate) struct Site {
    pub target: Target,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}
