//! The nodes of a pool by capacity type, for its rules on spot nodes ([`SpotRules`](crate::model::SpotRules)).
//!
//! Nodes that are about to go do not count, because the rules are about the nodes that are left then.

use std::collections::BTreeMap;

use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_terms::{CapacityType, ConditionType};

use crate::model::{Claim, CountOrPercent, PoolName, Snapshot};
use crate::supply::commitments;
use crate::supply::offerings::Supply;
use crate::supply::unclaimed;
use crate::supply::unclaimed::UnclaimedNode;

/// The nodes of a pool by capacity type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpotMix {
    /// The number of nodes that are not spot.
    pub on_demand: u64,
    /// The number of spot nodes by offering.
    pub spot: BTreeMap<OfferingId, u64>,
}

impl SpotMix {
    /// Counts the nodes of a pool that stay, and those on their way.
    pub fn of(snapshot: &Snapshot, pool: &PoolName) -> Self {
        Self::of_all(&commitments::staying(snapshot), &unclaimed::nodes(snapshot), pool)
    }

    fn of_all(staying: &[&Claim], unclaimed: &[UnclaimedNode], pool: &PoolName) -> Self {
        let mut mix = Self::default();
        let stays = |claim: &&&Claim| claim.since(ConditionType::Disrupting).is_none();
        for claim in staying.iter().filter(|claim| claim.pool == *pool).filter(stays) {
            mix.add(counted(claim.launched.as_ref().map(|launched| &launched.offering), &claim.offerings), 1);
        }
        for node in unclaimed.iter().filter(|node| node.pool == *pool) {
            mix.add(&node.offering.offering, 1);
        }
        mix
    }

    /// Adds nodes.
    pub fn add(&mut self, offering: &OfferingId, nodes: u64) {
        if is_spot(offering) {
            *self.spot.entry(offering.clone()).or_default() += nodes;
        } else {
            self.on_demand += nodes;
        }
    }

    /// Returns the number of spot nodes.
    pub fn all_spot(&self) -> u64 {
        self.spot.values().sum()
    }

    /// Returns by how much the on-demand nodes are below a floor, in hundredths of a node. Without spot nodes, no floor is
    /// broken.
    pub fn shortfall(&self, floor: CountOrPercent) -> u64 {
        let spot = self.all_spot();
        if spot == 0 {
            return 0;
        }
        match floor {
            CountOrPercent::Count(nodes) => nodes.saturating_sub(self.on_demand).saturating_mul(100),
            CountOrPercent::Percent(percent) => {
                (percent * (self.on_demand + spot)).saturating_sub(100 * self.on_demand)
            }
        }
    }

    /// Returns the number of on-demand nodes that it lacks before a floor allows one more spot node.
    pub fn lacks(&self, floor: CountOrPercent) -> u64 {
        match floor {
            CountOrPercent::Count(nodes) => nodes.saturating_sub(self.on_demand),
            CountOrPercent::Percent(100..) => u64::MAX,
            CountOrPercent::Percent(percent) => {
                let nodes = self.on_demand + self.all_spot() + 1;
                (percent * nodes).saturating_sub(100 * self.on_demand).div_ceil(100 - percent)
            }
        }
    }
}

/// Returns whether an offering is spot.
pub(crate) fn is_spot(offering: &OfferingId) -> bool {
    offering.capacity_type == CapacityType::Spot
}

/// Returns the offering that a claim counts as: the launched one, or else a spot offering that may be launched.
pub(crate) fn counted<'o>(launched: Option<&'o OfferingId>, listed: &'o [RankedOffering]) -> &'o OfferingId {
    let spot = || listed.iter().map(|ranked| &ranked.offering).find(|offering| is_spot(offering));
    launched.or_else(spot).unwrap_or(&listed[0].offering)
}

/// Returns the nodes of each pool that has rules on spot nodes, by index of the pool.
pub(crate) fn of_pools(supply: &Supply<'_>, snapshot: &Snapshot) -> BTreeMap<usize, SpotMix> {
    let ruled = || supply.pools.iter().enumerate().filter(|(_, offered)| !offered.pool.spot.is_empty());
    if ruled().next().is_none() {
        return BTreeMap::new();
    }
    let (staying, unclaimed) = (commitments::staying(snapshot), unclaimed::nodes(snapshot));
    ruled().map(|(at, offered)| (at, SpotMix::of_all(&staying, &unclaimed, &offered.pool.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(on_demand: u64, spot: u64) -> SpotMix {
        let offering =
            OfferingId { instance_type: "a".into(), zone: "z".into(), capacity_type: CapacityType::Spot };
        SpotMix { on_demand, spot: BTreeMap::from([(offering, spot)]) }
    }

    #[test]
    fn a_pool_lacks_as_many_on_demand_nodes_as_make_one_more_spot_node_keep_the_floor() {
        for percent in 1..100 {
            let floor = CountOrPercent::Percent(percent);
            for (on_demand, spot) in [(0, 0), (1, 0), (0, 9), (1, 4), (3, 7), (40, 2)] {
                let lacks = mix(on_demand, spot).lacks(floor);
                assert_eq!(
                    mix(on_demand + lacks, spot + 1).shortfall(floor),
                    0,
                    "{percent} {on_demand} {spot}"
                );
                let fewer = lacks == 0 || mix(on_demand + lacks - 1, spot + 1).shortfall(floor) > 0;
                assert!(fewer, "{percent} {on_demand} {spot}: {lacks} is more than needed");
            }
        }
        assert_eq!(mix(1, 4).lacks(CountOrPercent::Count(3)), 2);
        assert_eq!(mix(9, 0).lacks(CountOrPercent::Percent(100)), u64::MAX, "no spot node is allowed");
    }

    #[test]
    fn a_pool_without_spot_nodes_breaks_no_floor() {
        assert_eq!(mix(0, 0).shortfall(CountOrPercent::Count(3)), 0);
        assert_eq!(mix(2, 0).shortfall(CountOrPercent::Count(3)), 0);
        assert_eq!(mix(2, 1).shortfall(CountOrPercent::Count(3)), 100);
        assert_eq!(mix(1, 4).shortfall(CountOrPercent::Percent(20)), 0);
        assert_eq!(mix(1, 5).shortfall(CountOrPercent::Percent(20)), 20);
    }
}
