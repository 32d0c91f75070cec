//! Notes on the prices of nodes that run.

use std::collections::BTreeMap;

use poolwright_catalog::Catalogue;
use poolwright_core::Snapshot;

use crate::print::count;
use crate::savings::price;

/// Says how many nodes do not tell how they were bought, and whose price is unknown. Both are about nodes that Poolwright did not buy.
pub fn notes(snapshot: &Snapshot, prices: &Catalogue) -> Vec<String> {
    let mut silent = 0;
    let mut unknown: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for node in snapshot.nodes.values().filter(|node| snapshot.claims.of_node(node).is_none()) {
        match price::of_node(node, None, prices) {
            Ok(priced) => silent += usize::from(priced.is_assumed),
            Err(why) => unknown.entry(why).or_insert((node.name.as_str(), 0)).1 += 1,
        }
    }
    let unknown = unknown.into_iter().map(|(why, (first, nodes))| {
        let which = match nodes {
            1 => format!("node {first} has"),
            more => format!("{} nodes, such as {first}, have", count(more)),
        };
        format!(
            "{which} no known price, because {why}; --catalogue takes types and prices (docs/catalogue.md)"
        )
    });
    price::assumed(silent).into_iter().chain(unknown).collect()
}
