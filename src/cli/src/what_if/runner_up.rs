//! The next best way to buy: what would be bought without the type that costs most.

use std::collections::BTreeMap;

use poolwright_catalog::UsdPerHour;
use poolwright_core::Snapshot;
use poolwright_report::plan::Document;

use super::answer::RunnerUp;
use super::delta::Delta;
use super::market;

/// Returns the type of the nodes to buy that cost most together; `None` if nothing is bought.
pub fn main_type(plan: &Document) -> Option<String> {
    let mut types: BTreeMap<&str, UsdPerHour> = BTreeMap::new();
    for node in &plan.nodes {
        *types.entry(&node.instance_type).or_default() += node.usd_per_hour.unwrap_or_default();
    }
    // Of equal ones, the first by name.
    let most = types.into_iter().rev().max_by_key(|(_, cost)| *cost);
    most.map(|(name, _)| name.to_owned())
}

/// Returns a snapshot in which a type may not be bought; `None` if none may be bought then.
pub fn without(snapshot: &Snapshot, name: &str) -> Option<Snapshot> {
    let mut other = snapshot.clone();
    market::without(&mut other, name).ok()?;
    market::sells(&other).then_some(other)
}

/// Describes the plan without a type. It stands beside the plan that it is compared with.
pub fn described(name: String, chosen: &Document, other: &Document) -> RunnerUp {
    let buys = other.purchases();
    let buys = buys
        .iter()
        .map(|one| format!("{} x {} in {} ({})", one.nodes, one.instance_type, one.zone, one.capacity_type));
    RunnerUp {
        without: name,
        usd_per_hour_more: Delta::between(chosen.cost_usd_per_hour, other.cost_usd_per_hour),
        waits_more: other.pods.unplaced.saturating_sub(chosen.pods.unplaced),
        buys: buys.collect(),
    }
}

#[cfg(test)]
mod tests {
    use poolwright_terms::CapacityType;

    use super::super::market::tests::world;
    use super::*;

    #[test]
    fn the_last_type_cannot_be_left_out() {
        let mut world = world(&[CapacityType::OnDemand]);
        assert!(without(&world, "g5.xlarge").is_some());
        market::in_catalogues(&mut world, |catalogue| {
            catalogue.filtered(|kind, _| kind.name.as_str() == "g5.xlarge")
        });
        assert!(without(&world, "g5.xlarge").is_none());
        assert!(without(&world, "g6.xlarge").is_none(), "it is not sold");
    }
}
