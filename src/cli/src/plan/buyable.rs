//! The offerings that pools may buy: those that their node class sells and that meet their requirements.

use poolwright_catalog::{Catalogue, Offering};
use poolwright_core::{Pool, rules};
use poolwright_terms::NodeClassRef;

/// Returns the offerings that pools may buy, once for each pool. `sold` returns what a node class sells.
pub fn offerings<'a>(
    pools: impl Iterator<Item = &'a Pool>,
    sold: impl Fn(&NodeClassRef) -> Option<&'a Catalogue>,
) -> impl Iterator<Item = &'a Offering> {
    let selling = pools.filter_map(move |pool| Some((pool, sold(&pool.node_class)?)));
    selling.flat_map(|(pool, catalogue)| {
        let is_bought =
            |offering: &&Offering| pool.requirements.is_empty() || meets(catalogue, pool, offering, |_| true);
        catalogue.offerings().iter().filter(is_bought).collect::<Vec<_>>()
    })
}

/// Returns whether an offering meets the requirements of a pool, and its labels a further condition.
pub fn meets(
    catalogue: &Catalogue,
    pool: &Pool,
    offering: &Offering,
    further: impl Fn(&rules::NewNodeLabels<'_>) -> bool,
) -> bool {
    let of_offering = catalogue.node_labels(offering);
    let labels = rules::NewNodeLabels { offering: &of_offering, template: &pool.labels, pool: &pool.name };
    pool.requirements.iter().all(|one| rules::matches(one, &labels)) && further(&labels)
}
