//! The lower limit: the bound of a plan with fewer rules than the cluster has. No plan that keeps all rules can cost less.
//!
//! All pods may move. The offerings of the nodes that run may be bought again. Rules of pods about other pods, preferences, gangs,
//! and the limits of pools do not count. What is left is a bound for every autoscaler.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, OfferingId, UsdPerHour};
use poolwright_core::plan::{PlanOptions, PreferencePolicy};
use poolwright_core::{
    Claims, Nodes, Pod, PodKey, PodPhase, Pool, PoolLimits, PoolName, Snapshot, SpotRules, Uid,
};

use super::planner::{Planner, bound, change_pools, unbind};
use super::running::Running;
use crate::exit::Failure;

/// The name of the pool that sells what runs. It is longer if the cluster has a pool of this name.
const WHAT_RUNS: &str = "what-runs";

/// Returns the limit; `None` if the plan has no bound for all plans.
pub fn limit(
    planner: &mut Planner<'_>,
    running: &[Running],
    prices: &Catalogue,
) -> Result<Option<UsdPerHour>, Failure> {
    let options = PlanOptions {
        spot_risk: None,
        preferences: PreferencePolicy::Ignore,
        default_usd_per_hour: None,
        ..planner.options.clone()
    };
    let relaxed = relaxed(&planner.input.snapshot, running, prices);
    let document = planner.document(relaxed, &options)?;
    Ok(bound(&document))
}

/// Returns the pods that run on nodes with a price, without nodes and with few rules.
fn relaxed(cluster: &Snapshot, running: &[Running], prices: &Catalogue) -> Snapshot {
    let mut next = cluster.clone();
    let all: BTreeSet<&PodKey> = running.iter().flat_map(|node| &node.pods).collect();
    next.pods.retain(|key, pod| matches!(pod.phase, PodPhase::Bound { .. }) && all.contains(key));
    for key in all {
        next.pods.change(key, relax);
    }
    next.nodes = Nodes::default();
    next.claims = Claims::default();
    next.lives = Arc::default();
    next.namespace_limits = Arc::default();
    sell_what_runs(&mut next, running, prices);
    change_pools(&mut next, |pool| {
        pool.weight = 1;
        pool.limits = PoolLimits::default();
        pool.min_values.clear();
        pool.spot = SpotRules::default();
        pool.allow_unknown_price.clear();
        pool.replicas = None;
        pool.buffer.clear();
    });
    next
}

fn relax(pod: &mut Pod) {
    unbind(pod);
    (pod.priority, pod.group, pod.gang) = (0, None, None);
    pod.spec.affinity.clear();
    pod.spec.anti_affinity.clear();
    pod.spec.spreads.clear();
    pod.spec.preferences = None;
}

/// Adds a pool that sells the offerings of the nodes that run: an autoscaler may keep nodes that the pools would not buy.
fn sell_what_runs(snapshot: &mut Snapshot, running: &[Running], prices: &Catalogue) {
    let Some(mut pool) = snapshot.pools.values().next().map(|pool| Pool::clone(pool)) else { return };
    let mut name = PoolName(WHAT_RUNS.to_owned());
    while snapshot.pools.contains_key(&name) {
        name.0.push('-');
    }
    pool.uid = Uid(name.0.clone());
    pool.node_class.name.clone_from(&name.0);
    pool.labels.clear();
    pool.annotations.clear();
    pool.taints.clear();
    pool.startup_taints.clear();
    pool.requirements.clear();
    (pool.deleting, pool.problem, pool.is_implicit) = (false, None, false);
    let ids: BTreeSet<&OfferingId> = running.iter().map(|node| &node.priced.offering).collect();
    let sold = prices.filtered(|_, offering| ids.contains(&offering.id));
    snapshot.catalogues.insert(pool.node_class.clone(), Ok(Arc::new(sold)));
    pool.name = name.clone();
    snapshot.pools.insert(name, Arc::new(pool));
}

#[cfg(test)]
mod tests {
    use super::super::running;
    use super::super::testing::{catalogue, cluster, node, pod};
    use super::*;

    #[test]
    fn all_pods_wait_without_rules_about_each_other() {
        let mut one = pod("one", "a", 1);
        one.owner = None;
        one.group = Some("gang".to_owned());
        let all = cluster(vec![node("a", "large", 8)], vec![one]);
        let (running, _) = running::of(&all, &catalogue());
        let next = relaxed(&all, &running, &catalogue());
        assert!(next.nodes.is_empty());
        let waiting: Vec<_> =
            next.pods.unbound().map(|pod| (pod.key.to_string(), pod.group.clone())).collect();
        assert_eq!(waiting, [("ml/one".to_owned(), None)], "also a pod that cannot move");
    }
}
