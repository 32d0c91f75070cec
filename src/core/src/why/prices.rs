//! The age of the prices at which pools buy.

use std::sync::Arc;

use jiff::civil::Date;
use poolwright_catalog::Price;

use crate::model::{Pool, Snapshot};
use crate::supply::offerings;

/// Returns the date of the oldest price of what the pools may buy: the offerings that meet their requirements. `None` if no price has a
/// date. The catalogue may have older ones, such as those of spot capacity that no pool buys.
pub fn oldest_price(snapshot: &Snapshot) -> Option<Date> {
    let of_pool = |pool: &Arc<Pool>| {
        let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class) else { return None };
        let labels = snapshot.plan_cache.labels(catalogue);
        let meeting = snapshot.plan_cache.meeting(catalogue, pool, || offerings::meeting(pool, &labels));
        let dates = meeting.iter().filter_map(|index| match &catalogue.offerings()[*index].price {
            Price::Known(quote) => quote.as_of,
            Price::Unknown(_) => None,
        });
        dates.min()
    };
    snapshot.pools.values().filter_map(of_pool).min()
}
