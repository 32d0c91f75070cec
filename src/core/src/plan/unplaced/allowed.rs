//! The instance types that the requirements of a pool allow, whatever its node class says.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, InstanceType};
use poolwright_terms::labels::{CAPACITY_TYPE, DECIDED_BY_OFFERING, REGION, ZONE};

use crate::model::plan_cache::OfferingLabels;
use crate::model::{Pool, PoolName, Snapshot};
use crate::rules;

/// A type that a pool allows.
pub(crate) struct Allowed {
    catalogue: Arc<Catalogue>,
    /// The labels of the catalogue's offerings.
    labels: OfferingLabels,
    /// The first offering of the type.
    offering: usize,
}

impl Allowed {
    /// Returns the type.
    pub fn kind(&self) -> &InstanceType {
        &self.catalogue.types()[&self.catalogue.offerings()[self.offering].id.instance_type]
    }

    /// Returns the labels of its first offering.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels[self.offering]
    }
}

/// The types that pools allow, of the pools that were asked for: they are the same for all unplaced pods.
#[derive(Default)]
pub(crate) struct AllowedTypes {
    by_pool: RefCell<BTreeMap<PoolName, Rc<[Allowed]>>>,
}

impl AllowedTypes {
    /// Returns the types that a pool allows.
    pub fn of(&self, snapshot: &Snapshot, pool: &Pool) -> Rc<[Allowed]> {
        let mut known = self.by_pool.borrow_mut();
        known.entry(pool.name.clone()).or_insert_with(|| allowed(snapshot, pool).into()).clone()
    }
}

/// Returns the types that the requirements of the pool allow, as far as types decide. They are of the catalogue of its node class, or of
/// all catalogues if that is unknown: the same cloud may sell what they have.
fn allowed(snapshot: &Snapshot, pool: &Pool) -> Vec<Allowed> {
    let own = snapshot.catalogues.get(&pool.node_class).and_then(|own| own.as_ref().ok());
    let catalogues: Vec<&Arc<Catalogue>> = match own {
        Some(own) => vec![own],
        None => snapshot.catalogues.values().flatten().collect(),
    };
    let mut all = Vec::new();
    for catalogue in catalogues {
        let labels = snapshot.plan_cache.labels(catalogue);
        let mut last = None;
        for (offering, of) in catalogue.offerings().iter().enumerate() {
            let name = &of.id.instance_type;
            if last.replace(name) == Some(name) {
                continue;
            }
            let mut own = pool.requirements.iter().filter(|one| is_of_type(&one.key));
            if own.all(|one| rules::matches(one, &labels[offering])) {
                all.push(Allowed { catalogue: catalogue.clone(), labels: labels.clone(), offering });
            }
        }
    }
    all
}

/// Returns whether all offerings of a type have the same value of a label. A node class decides about zones and capacity types.
pub(crate) fn is_of_type(key: &str) -> bool {
    DECIDED_BY_OFFERING.contains(&key) && ![ZONE, REGION, CAPACITY_TYPE].contains(&key)
}
