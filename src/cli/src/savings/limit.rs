//! The lower limit: the bound of a plan with fewer rules than the cluster has. No plan that keeps all rules can cost less.
//!
//! All pods may move. The offerings of the nodes that run may be bought again, as many as one likes. Rules of pods about other pods and
//! about labels of users, preferences, gangs, volumes, DaemonSets, and the limits of pools do not count. What is left is a bound for every
//! autoscaler at the known prices. What an offering without a price costs, no bound can say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::{
    Catalogue, InstanceType, InstanceTypeName, Offering, OfferingId, ResourceList, ResourceName, UsdPerHour,
};
use poolwright_core::plan::{PlanOptions, PreferencePolicy};
use poolwright_core::{
    Claims, Nodes, Pod, PodKey, PodPhase, Pool, PoolLimits, PoolName, Snapshot, SpotRules, Uid,
};
use poolwright_terms::labels::DECIDED_BY_OFFERING;

use super::planner::{Planner, bound, change_pools, unbind};
use super::running::Running;
use crate::exit::Failure;
use crate::job::model::keep_rules;
use crate::what_if::market::in_catalogues;

/// The name of the pool that sells what runs. It is longer if the cluster has a pool of this name.
const WHAT_RUNS: &str = "what-runs";

/// Returns the limit; `None` if the plan has no bound for all plans, or if nodes have more room than the catalogue knows of.
pub fn limit(
    planner: &mut Planner<'_>,
    running: &[Running],
    prices: &Catalogue,
) -> Result<Option<UsdPerHour>, Failure> {
    if running.iter().any(|node| has_more_room(node, &planner.input.snapshot, prices)) {
        return Ok(None);
    }
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

/// What every machine has. A node may have a little more of it than the catalogue promises.
const OF_EVERY_MACHINE: [&str; 4] =
    [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];

/// Returns whether a node advertises more devices than the catalogue promises, of a kind that a pod on it requests. Nodes that share GPUs
/// do.
fn has_more_room(running: &Running, cluster: &Snapshot, prices: &Catalogue) -> bool {
    let kind = prices.instance_type(&running.priced.offering.instance_type);
    let (Some(node), Some(kind)) = (cluster.nodes.get(&running.name), kind) else { return false };
    let pods = running.pods.iter().filter_map(|key| cluster.pods.get(key));
    let mut requested = pods.flat_map(|pod| pod.spec.requests.iter());
    requested.any(|(name, _)| {
        let name = name.as_str();
        !OF_EVERY_MACHINE.contains(&name) && node.allocatable.get(name) > kind.allocatable.get(name)
    })
}

/// Returns the most CPU, memory, disk and pods that a running node of each type advertises.
fn most_room(cluster: &Snapshot, running: &[Running]) -> BTreeMap<InstanceTypeName, ResourceList> {
    let mut most: BTreeMap<InstanceTypeName, ResourceList> = BTreeMap::new();
    for one in running {
        let Some(node) = cluster.nodes.get(&one.name) else { continue };
        let room = most.entry(one.priced.offering.instance_type.clone()).or_default();
        for name in OF_EVERY_MACHINE {
            room.set(name, node.allocatable.get(name).max(room.get(name)));
        }
    }
    most
}

/// Returns a catalogue whose types have at least this room.
fn with_room(catalogue: &Catalogue, room: &BTreeMap<InstanceTypeName, ResourceList>) -> Catalogue {
    let raised = |kind: &InstanceType| {
        let mut kind = kind.clone();
        if let Some(room) = room.get(&kind.name) {
            kind.allocatable = ResourceList::max(&kind.allocatable, room);
        }
        kind
    };
    let types = catalogue.types().values().map(raised).collect();
    Catalogue::new(catalogue.origin().clone(), types, catalogue.offerings().to_vec())
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
    // They are larger than some of their pods, and not every node has one.
    next.daemonsets.retain(|_, _| false);
    next.held_back.clear();
    next.reclaims.clear();
    next.measured.clear();
    sell_what_runs(&mut next, running, prices);
    let room = most_room(cluster, running);
    in_catalogues(&mut next, |catalogue| with_room(&without_end(catalogue), &room));
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

/// Returns a catalogue with enough nodes of each offering.
fn without_end(catalogue: &Catalogue) -> Catalogue {
    let offerings = catalogue.offerings().iter();
    let offerings = offerings.map(|offering| Offering { available: None, ..offering.clone() });
    catalogue.with_offerings(offerings.collect())
}

fn relax(pod: &mut Pod) {
    unbind(pod);
    (pod.priority, pod.group, pod.gang) = (0, None, None);
    pod.volumes.clear();
    // What runs is sold without labels of users.
    keep_rules(&mut pod.spec, |key| DECIDED_BY_OFFERING.contains(&key));
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
    use poolwright_core::{DaemonSet, NodeSelectorTerm, ObjectKey, Operator, PodSpec, Requirement};
    use poolwright_terms::labels;

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

    #[test]
    fn pods_keep_rules_that_offerings_decide_and_no_daemonset_takes_room() {
        let requirement =
            |key: &str| Requirement { key: key.to_owned(), operator: Operator::In(["x".to_owned()].into()) };
        let mut one = pod("one", "a", 1);
        one.spec.node_selector = [labels::ARCH, "team"].map(|key| (key.to_owned(), "x".to_owned())).into();
        let requirements = vec![requirement("rack"), requirement(labels::ZONE)];
        one.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements }]);
        let mut all = cluster(vec![node("a", "large", 8)], vec![one]);
        let key = ObjectKey::new("ml", "agent");
        let agent = DaemonSet { key: key.clone(), labels: BTreeMap::new(), spec: PodSpec::default() };
        all.daemonsets.insert(key, Arc::new(agent));
        let (running, _) = running::of(&all, &catalogue());
        let next = relaxed(&all, &running, &catalogue());
        assert!(next.daemonsets.is_empty());
        let spec = next.pods.unbound().next().expect("the pod").spec.clone();
        assert_eq!(spec.node_selector.keys().collect::<Vec<_>>(), [labels::ARCH]);
        let requirements = vec![requirement(labels::ZONE)];
        assert_eq!(spec.node_affinity, Some(vec![NodeSelectorTerm { requirements }]));
    }

    #[test]
    fn offerings_have_no_end() {
        let mut few = catalogue().offerings().to_vec();
        for offering in &mut few {
            offering.available = Some(1);
        }
        assert_eq!(without_end(&catalogue().with_offerings(few)).offerings(), catalogue().offerings());
    }

    #[test]
    fn a_node_that_shares_its_gpus_has_more_room_than_the_catalogue_knows_of() {
        let has_more = |requested: &str| {
            let mut sliced = node("a", "large", 8);
            sliced.allocatable.set("nvidia.com/gpu", 4);
            let mut one = pod("one", "a", 1);
            one.spec.requests.set(requested, 1);
            let all = cluster(vec![sliced], vec![one]);
            let (running, _) = running::of(&all, &catalogue());
            has_more_room(&running[0], &all, &catalogue())
        };
        assert!(has_more("nvidia.com/gpu"), "the type has none");
        assert!(!has_more("cpu"), "no pod uses what is more");
    }

    #[test]
    fn a_type_has_as_much_memory_as_the_largest_of_its_nodes() {
        let mut one = node("a", "large", 8);
        let promised =
            catalogue().instance_type(&InstanceTypeName::new("large")).expect("it").allocatable.clone();
        one.allocatable.set(ResourceName::MEMORY, promised.get(ResourceName::MEMORY) + 1);
        let all = cluster(vec![one], vec![]);
        let (running, _) = running::of(&all, &catalogue());
        let raised = with_room(&catalogue(), &most_room(&all, &running));
        let large = raised.instance_type(&InstanceTypeName::new("large")).expect("the type");
        assert_eq!(large.allocatable.get(ResourceName::MEMORY), promised.get(ResourceName::MEMORY) + 1);
        assert_eq!(large.allocatable.get(ResourceName::CPU), promised.get(ResourceName::CPU).max(8_000));
    }
}
