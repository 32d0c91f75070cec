//! What the best plan may buy: what the pools say, those of Karpenter after their conversion, or else more of what runs today.

use std::collections::BTreeSet;

use poolwright_catalog::Catalogue;
use poolwright_terms::CapacityType;
use serde_json::Value;

use super::converted::{Summary, command, converted};
use super::price::{self, Priced};
use super::read::{self, Objects};
use crate::args::SavingsFlags;
use crate::exit::Failure;
use crate::print::counted;
use crate::source::{self, Source};

/// What may be bought, with the objects to plan for.
pub struct Market {
    /// The objects.
    pub sources: Vec<Source>,
    /// The offerings that plans choose from, as far as pools allow.
    pub catalogue: Catalogue,
    /// Whether a plan without a pool may buy spot nodes.
    pub spot: bool,
    /// Says what may be bought: a sentence.
    pub said: String,
    /// What `convert` makes of Karpenter's pools; `None` without them.
    pub convert: Option<Summary>,
}

/// Chooses what may be bought.
///
/// # Errors
///
/// There is no pool, and no node that runs has a known price.
pub fn market(objects: &mut Objects, flags: &SavingsFlags) -> Result<Market, Failure> {
    let prices = objects.catalogue.clone();
    let has_karpenter = objects.karpenter.iter().any(|object| object["kind"] == "NodePool");
    let made = has_karpenter.then(|| {
        let next = command(flags, &objects.karpenter);
        converted(&objects.karpenter, &mut objects.running, next)
    });
    let convert = made.as_ref().map(|made| made.summary.clone());
    let is_pool = |object: &&Value| object["kind"] == "NodePool";
    if objects.has_own_pools() {
        let pools = objects.own.iter().filter(is_pool).count();
        let said = format!("The best plan buys what {} of Poolwright may buy.", counted(pools, "NodePool"));
        let sources = sources(&objects.running, &objects.own);
        return Ok(Market { sources, catalogue: prices, spot: false, said, convert });
    }
    if let Some(made) = made.filter(|made| made.summary.pools > 0) {
        let said = format!(
            "The best plan buys what {} of Karpenter may buy, after `poolwright convert`.",
            counted(made.summary.pools, "NodePool")
        );
        let own: Vec<Value> = objects.own.iter().chain(&made.objects).cloned().collect();
        return Ok(Market {
            sources: sources(&objects.running, &own),
            catalogue: prices,
            spot: false,
            said,
            convert,
        });
    }
    let sources = sources(&objects.running, &objects.own);
    let (nodes, _) = source::parsed(&sources, &[]);
    let priced = nodes.nodes.iter().map(|node| price::of_node(node, None, &prices));
    let (running, unknown): (Vec<_>, Vec<_>) = priced.partition(Result::is_ok);
    let running: Vec<Priced> = running.into_iter().flatten().collect();
    if running.is_empty() {
        let why = unknown.into_iter().find_map(Result::err);
        let why = why.unwrap_or_else(|| "no Node can be read".to_owned());
        return Err(Failure::bad_input(format!(
            "no node has a known price, for instance because {why}; --catalogue takes types and prices (docs/catalogue.md)"
        )));
    }
    let spot = running.iter().any(|one| one.offering.capacity_type == CapacityType::Spot);
    let none =
        if has_karpenter { "No NodePool of Karpenter can be converted" } else { "There is no NodePool" };
    let (catalogue, said) = like(&running, spot, &prices, none);
    Ok(Market { sources, catalogue, spot, said, convert })
}

fn sources(running: &[Value], own: &[Value]) -> Vec<Source> {
    let all: Vec<Value> = running.iter().chain(own).cloned().collect();
    vec![read::file(&all)]
}

/// Returns the offerings of the families and regions that run, and says so. `none` says that no pool counts.
fn like(running: &[Priced], spot: bool, prices: &Catalogue, none: &str) -> (Catalogue, String) {
    let kinds = running.iter().filter_map(|one| prices.instance_type(&one.offering.instance_type));
    let families: BTreeSet<(&str, &str)> =
        kinds.map(|kind| (kind.provider.as_str(), kind.family())).collect();
    let regions: BTreeSet<Option<&str>> = running.iter().map(|one| one.region.as_deref()).collect();
    let catalogue = prices.filtered(|kind, offering| {
        families.contains(&(kind.provider.as_str(), kind.family()))
            && regions.contains(&offering.region.as_deref())
    });
    let names: BTreeSet<&str> = families.iter().map(|(_, family)| *family).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let places: Vec<&str> = regions.into_iter().flatten().collect();
    let places = if places.is_empty() { String::new() } else { format!(" in {}", places.join(", ")) };
    let how = if spot { "on demand and as spot" } else { "on demand, because no spot node runs" };
    let said = format!(
        "{none}, so the best plan buys types of the families that run today, as far as node classes sell them by default: \
         {}{places}, {how}.",
        names.join(", ")
    );
    (catalogue, said)
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::InstanceTypeName;

    use super::super::testing::{catalogue, node};
    use super::*;

    #[test]
    fn without_a_pool_the_families_that_run_may_be_bought() {
        let prices = catalogue();
        let small = price::of_node(&node("a", "small", 4), None, &prices).expect("a price");
        let (sold, said) = like(&[small], false, &prices, "There is no NodePool");
        let kinds: Vec<&str> = sold.types().keys().map(InstanceTypeName::as_str).collect();
        assert_eq!(kinds, ["small"]);
        assert!(said.ends_with("by default: small in z, on demand, because no spot node runs."), "{said}");
    }
}
