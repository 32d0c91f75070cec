//! Reads and fills the plan cache: results about rooms and offerings that the next plan can reuse.

use std::sync::Arc;

use poolwright_catalog::Catalogue;

use crate::model::plan_cache::{
    Basis, CacheEntry, CachedMatches, CachedRoom, CachedRooms, OfferingLabels, Origin, PlanCache,
};
use crate::model::{Pool, Snapshot};

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

impl PlanCache {
    /// Takes the cached rooms out of the cache, and returns whether all of them are still valid because only pending pods have
    /// changed. A concurrent plan starts with an empty cache.
    pub(crate) fn rooms(&self, snapshot: &Snapshot) -> (CachedRooms, bool) {
        let mut known = self.with(|content| std::mem::take(&mut content.rooms));
        if !known.daemonsets.is_same(&snapshot.daemonsets) {
            known = CachedRooms { daemonsets: snapshot.daemonsets.clone(), ..CachedRooms::default() };
        }
        let basis = Basis::new(snapshot);
        let all = known.basis.as_ref().is_some_and(|known| known.is_same(&basis));
        known.basis = Some(basis);
        (known, all)
    }

    /// Puts the rooms back into the cache for the next plan.
    pub(crate) fn keep_rooms(&self, rooms: CachedRooms) {
        self.with(|content| content.rooms = rooms);
    }

    /// Returns the node labels of each offering.
    pub(crate) fn labels(&self, catalogue: &Arc<Catalogue>) -> OfferingLabels {
        self.with(|content| {
            // Drops catalogues that are no longer used.
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

    /// Returns the offerings of a catalogue that meet the requirements of a pool.
    pub(crate) fn meeting(
        &self,
        catalogue: &Arc<Catalogue>,
        pool: &Arc<Pool>,
        work_out: impl FnOnce() -> Vec<usize>,
    ) -> Arc<Vec<usize>> {
        self.with(|content| {
            let same = |one: &CachedMatches| Arc::ptr_eq(&one.0, catalogue) && Arc::ptr_eq(&one.1, pool);
            if let Some((.., meeting)) = content.meeting.iter().find(|one| same(one)) {
                return meeting.clone();
            }
            // Drops pools and catalogues that no longer exist.
            content.meeting.retain(|(catalogue, pool, _)| {
                Arc::strong_count(catalogue) > 1 && Arc::strong_count(pool) > 1
            });
            let meeting = Arc::new(work_out());
            content.meeting.push((catalogue.clone(), pool.clone(), meeting.clone()));
            meeting
        })
    }
}

/// A cursor over cached rooms, for lookups in ascending order of names.
pub(crate) struct CacheWalk<'k> {
    known: &'k mut Vec<CacheEntry>,
    at: usize,
}

impl<'k> CacheWalk<'k> {
    pub fn new(known: &'k mut Vec<CacheEntry>) -> Self {
        Self { known, at: 0 }
    }

    /// Returns the room with these inputs, from the cache or computed now.
    pub fn next(
        &mut self,
        origin: Origin,
        work_out: impl FnOnce() -> Option<CachedRoom>,
    ) -> Option<&CachedRoom> {
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

    /// Drops the remaining entries.
    pub fn end(self) {
        self.known.truncate(self.at);
    }
}
