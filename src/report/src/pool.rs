//! The sums over the nodes of a pool. Its status and the metrics show them.

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{PoolName, Snapshot};

use crate::Cost;

/// The sums of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolSums {
    /// The number of its nodes, including starting ones.
    pub nodes: i64,
    /// The resources that its nodes promise to pods.
    pub resources: ResourceList,
    /// The cost of its nodes.
    pub cost: Cost,
    /// The planned cost of its nodes.
    pub planned: Cost,
}

impl PoolSums {
    /// Computes the sums of a pool in a snapshot.
    pub fn of(pool: &PoolName, snapshot: &Snapshot) -> Self {
        let mut sums = Self::default();
        for claim in snapshot.claims.values().filter(|claim| claim.pool == *pool) {
            let ranked = claim.current_offering();
            sums.nodes += 1;
            sums.resources.add(&ranked.allocatable);
            sums.cost.add(ranked.price);
            // The planned cost leaves out a node that was bought again: an earlier plan counted its pods and did not foresee this
            // node.
            if !claim.bought_again {
                sums.planned.add(claim.offerings[0].price);
            }
        }
        // The sum of pod slots is of no use to anybody.
        sums.resources.set(ResourceName::PODS, 0);
        sums
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_catalog::{OfferingId, RankedOffering, Zone};
    use poolwright_core::{Claim, ClaimName, Uid};
    use poolwright_terms::{CapacityType, NodeClassRef};

    use super::*;

    fn claim(name: &str, pool: &str, price: Option<&str>) -> Arc<Claim> {
        let offering = OfferingId {
            instance_type: "g5.xlarge".into(),
            zone: Zone::new("a"),
            capacity_type: CapacityType::OnDemand,
        };
        Arc::new(Claim {
            name: ClaimName(name.into()),
            uid: Uid(name.into()),
            pool: PoolName(pool.into()),
            node_class: NodeClassRef { group: "g".into(), kind: "k".into(), name: "n".into() },
            offerings: vec![RankedOffering {
                offering,
                price: price.map(|price| price.parse().unwrap()),
                allocatable: ResourceList::new().with("nvidia.com/gpu", 1).with("pods", 110),
            }],
            labels: [].into(),
            annotations: [].into(),
            taints: vec![],
            startup_taints: vec![],
            readiness_gates: vec![],
            reason: String::new(),
            planned_pods: vec![],
            do_not_disrupt: false,
            bought_again: false,
            deadlines: poolwright_core::Deadlines::default(),
            created: "2026-01-01T00:00:00Z".parse().unwrap(),
            interruption: None,
            deleting_since: None,
            launched: None,
            node_name: None,
            conditions: [].into(),
        })
    }

    #[test]
    fn a_pool_costs_what_its_nodes_cost_and_says_when_a_price_is_unknown() {
        let claims =
            [claim("a", "gpu", Some("1.006")), claim("b", "gpu", Some("1.006")), claim("c", "cpu", None)];
        let snapshot = Snapshot {
            claims: claims.map(|claim| (claim.name.clone(), claim)).into(),
            ..Snapshot::default()
        };
        let gpu = PoolSums::of(&PoolName("gpu".into()), &snapshot);
        assert_eq!((gpu.nodes, gpu.cost.to_string().as_str()), (2, "2.012"));
        assert_eq!(gpu.resources, ResourceList::new().with("nvidia.com/gpu", 2));
        let cpu = PoolSums::of(&PoolName("cpu".into()), &snapshot);
        assert_eq!((cpu.nodes, cpu.cost.to_string().as_str()), (1, "0.00+"));
        assert_eq!(PoolSums::of(&PoolName("none".into()), &snapshot), PoolSums::default());
    }

    #[test]
    fn repeated_and_more_expensive_purchases_count_as_unplanned() {
        let again = Claim { bought_again: true, ..(*claim("again", "gpu", Some("1.006"))).clone() };
        let mut dearer = (*claim("dearer", "gpu", Some("1.006"))).clone();
        let mut taken = dearer.offerings[0].clone();
        taken.offering.zone = Zone::new("b");
        taken.price = Some("1.2".parse().unwrap());
        dearer.launched =
            Some(poolwright_core::Launched { provider_id: "i-1".into(), offering: taken.offering.clone() });
        dearer.offerings.push(taken);
        let claims = [Arc::new(again), Arc::new(dearer), claim("plain", "gpu", Some("1.006"))];
        let snapshot = Snapshot {
            claims: claims.map(|claim| (claim.name.clone(), claim)).into(),
            ..Snapshot::default()
        };
        let sums = PoolSums::of(&PoolName("gpu".into()), &snapshot);
        assert_eq!((sums.cost.to_string().as_str(), sums.planned.to_string().as_str()), ("3.212", "2.012"));
    }
}
