//! The sums of a pool: nodes, what they hold, what they cost. Written to the pool's status when they change; conditions
//! are written by the executor.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use poolwright_api::NodePool;
use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};
use poolwright_core::{Claim, ConditionType, PodPhase, PodRole, PoolName, Snapshot};
use poolwright_intake::allocatable_amounts;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::acts::executor::Executor;
use crate::acts::executor::status::{Changed, change_status};
use crate::edge::metrics::Metrics;
use crate::sees::ready::Ready;
use crate::sees::world::World;

/// Sums are written this often at most.
const PAUSE: Duration = Duration::from_secs(1);

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

/// The stage of a claim, as metrics name it.
fn stage(claim: &Claim) -> &'static str {
    if claim.deleting_since.is_some() {
        "terminating"
    } else if claim.since(ConditionType::Initialized).is_some() {
        "initialized"
    } else if claim.since(ConditionType::Registered).is_some() {
        "registered"
    } else if claim.launched.is_some() {
        "launched"
    } else {
        "pending"
    }
}

/// Gauges that show the cluster as it stands.
pub fn measure(snapshot: &Snapshot, metrics: &Metrics) {
    metrics.claims.reset();
    metrics.pool_cost.reset();
    metrics.pool_planned_cost.reset();
    for claim in snapshot.claims.values() {
        metrics.claims.with_label_values(&[claim.pool.0.as_str(), stage(claim)]).inc();
    }
    for pool in snapshot.pools.keys() {
        let sums = Sums::of(pool, snapshot);
        metrics.pool_cost.with_label_values(&[pool.0.as_str()]).set(sums.cost.as_f64());
        metrics.pool_planned_cost.with_label_values(&[pool.0.as_str()]).set(sums.planned.as_f64());
    }
    let count = |remembered: usize| i64::try_from(remembered).unwrap_or(i64::MAX);
    metrics.offerings_held_back.set(count(snapshot.held_back.len()));
    metrics.offerings_taken_back.set(count(snapshot.taken_back.len()));
    let mut waiting = [("unschedulable", 0), ("waiting", 0), ("gated", 0)];
    for pod in snapshot.pods.unbound().filter(|pod| pod.role == PodRole::Workload) {
        match pod.phase {
            PodPhase::Unschedulable { .. } => waiting[0].1 += 1,
            PodPhase::Waiting => waiting[1].1 += 1,
            PodPhase::Gated => waiting[2].1 += 1,
            PodPhase::Bound { .. } | PodPhase::Finished => {}
        }
    }
    for (state, count) in waiting {
        metrics.pods_waiting.with_label_values(&[state]).set(count);
    }
}

/// Keeps gauges up to date, and, while we lead, the sums in the status of pools.
pub async fn keep(executor: Arc<Executor>, world: Arc<World>, ready: Ready, shutdown: CancellationToken) {
    ready.wait().await;
    let api: Api<NodePool> = Api::all(executor.client.clone());
    let mut changes = world.changes();
    loop {
        changes.mark_seen();
        let snapshot = world.snapshot();
        measure(&snapshot, &executor.metrics);
        if executor.writer.claims().current().is_some() {
            for pool in snapshot.pools.keys() {
                write(&executor, &api, pool, &Sums::of(pool, &snapshot)).await;
            }
        }
        drop(snapshot);
        if !executor.wait_for_change(&mut changes, PAUSE, &shutdown).await {
            return;
        }
    }
}

async fn write(executor: &Executor, api: &Api<NodePool>, pool: &PoolName, sums: &Sums) {
    let resources = allocatable_amounts(&sums.resources);
    let (cost, planned) = (sums.cost_text(), sums.planned_text());
    let changed = change_status(api, &executor.writer, &pool.0, None, |object| {
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

#[cfg(test)]
mod tests {
    use poolwright_catalog::{CapacityType, OfferingId, Zone};
    use poolwright_core::{ClaimName, NodeClassRef, RankedOffering, Uid};

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
