//! The offerings that may be bought: those that the node classes of the pools sell or, without a pool, those that the flags
//! select.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::{
    Deadlines, Disruption, PersistentMap, Pool, PoolLimits, PoolName, ScaleToZero, Snapshot, Uid,
};
use poolwright_terms::{CapacityType, NodeClassRef};

use super::Offers;
use crate::catalogue::default_provider;
use crate::exit::Failure;
use crate::node_classes::NodeClasses;

/// The name of the pool that Poolwright invents if the user gives none.
const IMPLICIT: &str = "any";

/// The catalogue of each node class, and the part of the whole catalogue that they sell together.
pub type Sold = (BTreeMap<NodeClassRef, Result<Arc<Catalogue>, String>>, Catalogue);

/// Lets `snapshot` buy all offerings that the flags select: by default the on-demand offerings of one provider. Returns these
/// offerings.
pub fn without_pool(
    snapshot: &mut Snapshot,
    offers: &Offers,
    notes: &mut Vec<String>,
) -> Result<Catalogue, Failure> {
    let mut wanted = offers.wanted.clone();
    wanted.provider = provider(offers, notes);
    if wanted.capacity_types.is_empty() {
        wanted.capacity_types.push(CapacityType::OnDemand);
        if offers.prepaid {
            wanted.capacity_types.push(CapacityType::Reserved);
        }
    }
    let catalogue = wanted.of(&offers.catalogue)?;
    let pool = implicit();
    snapshot.catalogues.insert(pool.node_class.clone(), Ok(Arc::new(catalogue.clone())));
    snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    Ok(catalogue)
}

/// Returns the catalogues of the node classes of `pools`.
///
/// A missing class sells nothing if `strict` is set, as in a cluster. Otherwise, for manifests, it sells what a plan without a
/// pool could buy, and a note says so.
pub fn sold(
    pools: &PersistentMap<PoolName, Arc<Pool>>,
    classes: &NodeClasses,
    strict: bool,
    offers: &Offers,
    notes: &mut Vec<String>,
) -> Sold {
    let mut catalogues = BTreeMap::new();
    let mut sellers: BTreeSet<Option<String>> = BTreeSet::new();
    let used: BTreeSet<&NodeClassRef> = pools.values().map(|pool| &pool.node_class).collect();
    for class in used {
        let provider = match classes.get(class) {
            Some(known) => {
                if let Some(unread) = known.facts.unread {
                    notes.push(format!(
                        "{class}: {unread} are not read; its pools may buy everything that the catalogue has of {}",
                        known.cloud.short
                    ));
                }
                offers.wanted.provider.clone().or_else(|| known.facts.provider.clone())
            }
            None if strict => {
                let message =
                    format!("{class} does not exist; create it, or correct nodeClassRef of the pool");
                catalogues.insert(class.clone(), Err(message));
                continue;
            }
            None => {
                notes.push(format!(
                    "{class} is not in the files; its pools may buy everything in the catalogue"
                ));
                provider(offers, notes)
            }
        };
        sellers.insert(provider.clone());
        let sells = part(offers, |name| provider.as_deref().is_none_or(|wanted| wanted == name));
        let result = if sells.offerings().is_empty() {
            let what = provider.map_or_else(String::new, |provider| format!(" of provider `{provider}`"));
            Err(format!("{class} sells nothing: the catalogue has no offering{what} that the flags allow"))
        } else {
            Ok(Arc::new(sells))
        };
        catalogues.insert(class.clone(), result);
    }
    // A class without a provider sells the whole catalogue.
    let all = part(offers, |name| sellers.contains(&None) || sellers.contains(&Some(name.to_owned())));
    (catalogues, all)
}

/// Returns the offerings of the wanted providers and of the capacity types that the flags select.
fn part(offers: &Offers, is_wanted: impl Fn(&str) -> bool) -> Catalogue {
    let capacity_types = &offers.wanted.capacity_types;
    offers.catalogue.filtered(|kind, offering| {
        is_wanted(kind.provider.as_str())
            && (capacity_types.is_empty() || capacity_types.contains(&offering.id.capacity_type))
    })
}

/// Returns the provider that the flags name, or the default one. Adds a note if there was a choice.
fn provider(offers: &Offers, notes: &mut Vec<String>) -> Option<String> {
    if offers.wanted.provider.is_some() {
        return offers.wanted.provider.clone();
    }
    let (provider, is_choice) = default_provider(&offers.catalogue)?;
    let note = format!(
        "the catalogue has several providers; this plan buys from {provider} (--provider chooses another)"
    );
    if is_choice && !notes.contains(&note) {
        notes.push(note);
    }
    Some(provider)
}

fn implicit() -> Pool {
    Pool {
        name: PoolName(IMPLICIT.to_owned()),
        uid: Uid(IMPLICIT.to_owned()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        readiness_gates: Vec::new(),
        requirements: Vec::new(),
        node_class: NodeClassRef {
            group: poolwright_terms::GROUP.to_owned(),
            kind: "NodeClass".to_owned(),
            name: IMPLICIT.to_owned(),
        },
        weight: 1,
        limits: PoolLimits::default(),
        min_values: std::collections::BTreeMap::new(),
        allow_unknown_price: BTreeSet::new(),
        scale_to_zero: ScaleToZero::Never,
        replicas: None,
        buffer: Vec::new(),
        disruption: Disruption::default(),
        deadlines: Deadlines::default(),
        deleting: false,
        problem: None,
    }
}
