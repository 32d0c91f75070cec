//! The sums in the status of pools: nodes, what they hold, what they cost. The executor writes the conditions.

use std::time::Duration;

use poolwright_api::NodePool;
use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_core::{PoolName, Snapshot};
use poolwright_intake::allocatable_amounts;
use tracing::debug;

use super::leader_loop::LeaderLoop;
use crate::acts::context::Context;
use crate::acts::executor::status::{Changed, change_status};
use crate::edge::signal::Receiver;
use crate::sees::reader::Objects;

/// The sums of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Nodes, those on their way included.
    pub nodes: i64,
    /// What they promise together.
    pub resources: ResourceList,
    /// What they cost together, as far as is known.
    pub cost: UsdPerHour,
    /// What they were to cost by the plans that bought them, as far as was known.
    pub planned: UsdPerHour,
    /// How many of them were planned at an unknown price.
    pub planned_unknown: usize,
    /// How many of them have an unknown price.
    pub unknown: usize,
}

impl Sums {
    /// The sums of a pool in a snapshot.
    pub fn of(pool: &PoolName, snapshot: &Snapshot) -> Self {
        let mut sums = Self::default();
        for claim in snapshot.claims.values().filter(|claim| claim.pool == *pool) {
            let ranked = claim.current_offering();
            sums.nodes += 1;
            sums.resources.add(&ranked.allocatable);
            match ranked.price {
                Some(price) => sums.cost += price,
                None => sums.unknown += 1,
            }
            // Its pods were planned for before: their first plan did not foresee it.
            if !claim.bought_again {
                match claim.offerings[0].price {
                    Some(price) => sums.planned += price,
                    None => sums.planned_unknown += 1,
                }
            }
        }
        // How many pods fit is no sum anybody asks for.
        sums.resources.set(ResourceName::PODS, 0);
        sums
    }

    fn cost_text(&self) -> String {
        text(self.cost, self.unknown)
    }

    fn planned_text(&self) -> String {
        text(self.planned, self.planned_unknown)
    }
}

/// A sum, with a `+` where some prices are not known.
fn text(known: UsdPerHour, unknown: usize) -> String {
    if unknown > 0 { format!("{known}+") } else { known.to_string() }
}

/// Keeps the sums in the status of pools.
pub struct PoolStatus {
    context: Context,
}

impl PoolStatus {
    /// A loop that writes them.
    pub fn new(context: Context) -> Self {
        Self { context }
    }

    async fn write(&self, api: &Objects<NodePool>, pool: &PoolName, sums: &Sums) {
        let resources = allocatable_amounts(&sums.resources);
        let (cost, planned) = (sums.cost_text(), sums.planned_text());
        let changed = change_status(api, &self.context.writer, &pool.0, None, |object| {
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            status.nodes = Some(sums.nodes);
            status.resources.clone_from(&resources);
            status.usd_per_hour = Some(cost.clone());
            status.planned_usd_per_hour = Some(planned.clone());
            *status != before
        });
        if let Changed::Not(outcome) = changed.await {
            debug!(pool = %pool, ?outcome, "the status was not written; it is when something changes next");
        }
    }
}

impl LeaderLoop for PoolStatus {
    const NAME: &'static str = "the status of pools";
    const PAUSE: Duration = Duration::from_secs(1);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        let api = self.context.reader.all::<NodePool>();
        let snapshot = self.context.world.snapshot();
        for pool in snapshot.pools.keys() {
            self.write(&api, pool, &Sums::of(pool, &snapshot)).await;
        }
        None
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
            kept: false,
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
        let gpu = Sums::of(&PoolName("gpu".into()), &snapshot);
        assert_eq!((gpu.nodes, gpu.cost_text().as_str()), (2, "2.012"));
        assert_eq!(gpu.resources, ResourceList::new().with("nvidia.com/gpu", 2));
        let cpu = Sums::of(&PoolName("cpu".into()), &snapshot);
        assert_eq!((cpu.nodes, cpu.cost_text().as_str()), (1, "0.00+"));
        assert_eq!(Sums::of(&PoolName("none".into()), &snapshot), Sums::default());
    }

    #[test]
    fn what_was_bought_twice_for_a_pod_or_dearer_than_planned_was_not_planned() {
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
        let sums = Sums::of(&PoolName("gpu".into()), &snapshot);
        assert_eq!((sums.cost_text().as_str(), sums.planned_text().as_str()), ("3.212", "2.012"));
    }
}
