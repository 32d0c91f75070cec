//! What the pods of each namespace use of Poolwright's nodes: nodes, GPUs, and a share of the price of each node.
//!
//! A node counts for every namespace with a pod on it. Its price is shared by the dominant shares of the pods: the largest part of one
//! of its resources that a pod requests. Shares are rounded up, so that together they pay the whole price.
//!
//! GPUs are those of machines, as in limits of pools. So where a node advertises a GPU several times, because pods share it, each pod
//! counts for its part of it.
//!
//! Pods of DaemonSets, static pods, pods without requests and free room for buffers count for nobody, and neither do nodes of
//! static pools, because they are bought whatever pods there are.

use std::collections::BTreeMap;

use poolwright_catalog::{RankedOffering, ResourceList, ResourceName, UsdPerHour};

use crate::model::{NamespaceLimit, Pod, PodRole, PoolName, Snapshot};
use crate::rules::claim_node::node_of;
use crate::rules::gpus::AdvertisedGpus;
use crate::supply::unclaimed;

/// The whole of a resource, in the unit of weights.
const WHOLE: u64 = 1_000_000;

/// What a namespace uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamespaceUse {
    /// Nodes with its pods.
    nodes: u64,
    /// GPUs of its pods, in thousandths.
    gpu_milli: u64,
    /// Its shares of the prices of these nodes. Unknown prices of existing nodes count as zero.
    usd_per_hour: UsdPerHour,
    /// Whether the price of a planned node is unknown.
    pub has_unknown_price: bool,
}

impl NamespaceUse {
    /// Returns the amount that a limit of this kind counts.
    pub fn of(self, kind: NamespaceLimit) -> u64 {
        match kind {
            NamespaceLimit::Nodes => self.nodes,
            NamespaceLimit::Gpus => self.gpu_milli,
            NamespaceLimit::UsdPerHour => self.usd_per_hour.micros(),
        }
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            nodes: self.nodes + other.nodes,
            gpu_milli: self.gpu_milli.saturating_add(other.gpu_milli),
            usd_per_hour: self.usd_per_hour + other.usd_per_hour,
            has_unknown_price: self.has_unknown_price || other.has_unknown_price,
        }
    }

    /// Returns by how much this is more than an earlier use.
    pub fn since(self, before: Self) -> Self {
        Self {
            nodes: self.nodes.saturating_sub(before.nodes),
            gpu_milli: self.gpu_milli.saturating_sub(before.gpu_milli),
            usd_per_hour: self.usd_per_hour.saturating_sub(before.usd_per_hour),
            has_unknown_price: self.has_unknown_price && !before.has_unknown_price,
        }
    }
}

/// The pods of one namespace on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// The sum of their weights, for each offering that the node may be. Empty without pods.
    weights: Vec<u64>,
    gpu_milli: u64,
}

/// A node, and the pods of each namespace on it.
#[derive(Clone, Debug)]
pub(crate) struct SharedNode<'o, 'a> {
    /// The offerings that it may be.
    offerings: Vec<&'o RankedOffering>,
    gpus: AdvertisedGpus,
    parts: BTreeMap<&'a str, Part>,
    /// Whether it is only planned.
    is_planned: bool,
}

impl<'o, 'a> SharedNode<'o, 'a> {
    /// Creates a node that may be each of these offerings. Pods that count for nobody are left out.
    pub fn new(
        offerings: impl IntoIterator<Item = &'o RankedOffering>,
        pods: impl IntoIterator<Item = &'a Pod>,
        is_planned: bool,
    ) -> Self {
        Self::advertising(AdvertisedGpus::default(), offerings, pods, is_planned)
    }

    /// Creates such a node, which advertises its GPUs in this way.
    fn advertising(
        gpus: AdvertisedGpus,
        offerings: impl IntoIterator<Item = &'o RankedOffering>,
        pods: impl IntoIterator<Item = &'a Pod>,
        is_planned: bool,
    ) -> Self {
        let offerings = offerings.into_iter().collect();
        let mut node = Self { offerings, gpus, parts: BTreeMap::new(), is_planned };
        let mut parts: BTreeMap<&'a str, Part> = BTreeMap::new();
        for pod in pods.into_iter().filter(|pod| counts(pod)) {
            node.add(parts.entry(pod.key.namespace()).or_default(), pod);
        }
        node.parts = parts;
        node
    }

    /// Adds a pod to the pods of its namespace.
    pub fn add(&self, part: &mut Part, pod: &Pod) {
        part.weights.resize(self.offerings.len(), 0);
        let gpu_milli = self.gpus.milli(&pod.spec);
        for (sum, offering) in part.weights.iter_mut().zip(&self.offerings) {
            *sum += weight(pod, gpu_milli, &offering.allocatable);
        }
        part.gpu_milli = part.gpu_milli.saturating_add(gpu_milli);
    }

    /// Returns the namespaces with pods on it.
    pub fn namespaces(&self) -> impl Iterator<Item = &'a str> {
        self.parts.keys().copied()
    }

    /// Returns what a namespace uses of it.
    pub fn use_of(&self, namespace: &str) -> NamespaceUse {
        self.parts.get(namespace).map_or_else(NamespaceUse::default, |part| self.use_with(namespace, part))
    }

    /// Returns what a namespace would use of it if it had these pods on it instead of its own.
    pub fn use_with(&self, namespace: &str, part: &Part) -> NamespaceUse {
        if part.weights.is_empty() {
            return NamespaceUse::default();
        }
        let shares: Vec<Option<UsdPerHour>> = self.shares_with(namespace, part).collect();
        NamespaceUse {
            nodes: 1,
            gpu_milli: part.gpu_milli,
            usd_per_hour: shares.iter().flatten().copied().max().unwrap_or_default(),
            has_unknown_price: self.is_planned && shares.contains(&None),
        }
    }

    /// Returns the share of a namespace in the price of each offering that the node may be; `None` for an unknown price.
    pub fn shares(&self, namespace: &str) -> Vec<Option<UsdPerHour>> {
        let part = self.parts.get(namespace);
        part.map_or_else(Vec::new, |part| self.shares_with(namespace, part).collect())
    }

    fn shares_with<'s>(
        &'s self,
        namespace: &'s str,
        part: &'s Part,
    ) -> impl Iterator<Item = Option<UsdPerHour>> {
        self.offerings.iter().zip(&part.weights).enumerate().map(move |(at, (offering, own))| {
            let others = self.parts.iter().filter(|(name, _)| **name != namespace);
            let others: u64 = others.map(|(_, part)| part.weights[at]).sum();
            Some(share(offering.price?, *own, own + others))
        })
    }
}

/// Returns whether a pod counts for its namespace.
pub(crate) fn counts(pod: &Pod) -> bool {
    let is_real = |(name, _): (&ResourceName, u64)| name.as_str() != ResourceName::PODS;
    let asks = pod.spec.gpu_share.is_some() || pod.spec.requests.iter().any(is_real);
    asks && pod.role == PodRole::Workload && !pod.key.is_buffer()
}

/// Returns the share of pods with this weight in a price, among pods with the weight `all`. It is rounded up.
fn share(price: UsdPerHour, own: u64, all: u64) -> UsdPerHour {
    let micros = (u128::from(price.micros()) * u128::from(own)).div_ceil(u128::from(all.max(1)));
    UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Returns the dominant share of a pod on a node: the largest part of one of its resources, in millionths, at least one. `gpu_milli` is
/// how much of the machine's GPUs the pod uses.
///
/// Resources that the node does not list do not count, such as places for volumes.
fn weight(pod: &Pod, gpu_milli: u64, allocatable: &ResourceList) -> u64 {
    let part = |wanted: u64, of: u64| {
        let part = (u128::from(wanted) * u128::from(WHOLE)).checked_div(u128::from(of)).unwrap_or(0);
        u64::try_from(part).unwrap_or(WHOLE)
    };
    // Places for pods never count, and GPUs count below.
    let is_left_out = |name: &str| [ResourceName::PODS, ResourceName::NVIDIA_GPU].contains(&name);
    let requested = pod.spec.requests.iter().filter(|(name, _)| !is_left_out(name.as_str()));
    let largest = requested.map(|(name, wanted)| part(wanted, allocatable.get(name.as_str()))).max();
    let gpus = part(gpu_milli, allocatable.get(ResourceName::NVIDIA_GPU).saturating_mul(1000));
    largest.unwrap_or(0).max(gpus).clamp(1, WHOLE)
}

/// Returns what each namespace uses of the nodes that stand or are on their way. `places` are the pods that have no node yet, by the
/// claim or node that they are planned for.
pub(crate) fn of_standing<'a>(
    snapshot: &'a Snapshot,
    places: &BTreeMap<&str, Vec<&'a Pod>>,
) -> BTreeMap<&'a str, NamespaceUse> {
    let mut uses: BTreeMap<&'a str, NamespaceUse> = BTreeMap::new();
    let mut add = |node: SharedNode<'_, 'a>| {
        for namespace in node.namespaces() {
            let before = uses.entry(namespace).or_default();
            *before = before.plus(node.use_of(namespace));
        }
    };
    let is_static = |pool: &PoolName| snapshot.pools.get(pool).is_some_and(|pool| pool.replicas.is_some());
    let pods = |node: Option<&str>, target: &str| {
        let bound = node.and_then(|node| snapshot.pods.on_node(node)).into_iter().flat_map(|on| &on.pods);
        let planned = places.get(target).into_iter().flatten().copied();
        bound.map(AsRef::as_ref).chain(planned).collect::<Vec<&'a Pod>>()
    };
    for claim in snapshot.claims.values().filter(|claim| !is_static(&claim.pool)) {
        let node = node_of(snapshot, claim);
        let gpus = node.map_or_else(AdvertisedGpus::default, |node| {
            AdvertisedGpus::new(&claim.current_offering().allocatable, &node.allocatable)
        });
        let node = node.map(|node| node.name.as_str()).or(claim.node_name.as_deref());
        // Before launch, the claim may become each of its offerings.
        let offerings: Vec<&RankedOffering> = if claim.launched.is_some() {
            vec![claim.current_offering()]
        } else {
            claim.offerings.iter().collect()
        };
        add(SharedNode::advertising(gpus, offerings, pods(node, &claim.name.0), false));
    }
    for node in unclaimed::nodes(snapshot).iter().filter(|node| !is_static(&node.pool)) {
        let gpus = snapshot.nodes.get(&node.name).map_or_else(AdvertisedGpus::default, |there| {
            AdvertisedGpus::new(&node.offering.allocatable, &there.allocatable)
        });
        let pods = pods(Some(node.name.as_str()), &node.name);
        add(SharedNode::advertising(gpus, [&node.offering], pods, false));
    }
    uses
}

/// Returns what the pods of each namespace cost per hour on the nodes where they are. Unknown prices count as zero.
pub fn rates(snapshot: &Snapshot) -> BTreeMap<String, UsdPerHour> {
    let uses = of_standing(snapshot, &BTreeMap::new()).into_iter();
    uses.map(|(namespace, of)| (namespace.to_owned(), of.usd_per_hour)).collect()
}

/// Returns the prices of nodes that stand or are on their way, by the name of the claim, or of a node without one. Only nodes that count
/// for the namespaces of their pods are listed. An unknown price counts as zero.
pub(crate) fn prices_of_standing(snapshot: &Snapshot) -> BTreeMap<String, UsdPerHour> {
    let is_static = |pool: &PoolName| snapshot.pools.get(pool).is_some_and(|pool| pool.replicas.is_some());
    let claims = snapshot.claims.values().filter(|claim| !is_static(&claim.pool)).map(|claim| {
        // Before launch, the claim may become each of its offerings.
        let prices = claim.offerings.iter().filter_map(|one| one.price);
        (claim.name.0.clone(), prices.max().unwrap_or_default())
    });
    let unclaimed = unclaimed::nodes(snapshot).into_iter().filter(|node| !is_static(&node.pool));
    claims.chain(unclaimed.map(|node| (node.name, node.offering.price.unwrap_or_default()))).collect()
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::OfferingId;
    use poolwright_terms::CapacityType;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{PodKey, PodSpec};

    fn capacity(cpu: u64, gpus: u64) -> ResourceList {
        let all = [(ResourceName::CPU, cpu), (ResourceName::NVIDIA_GPU, gpus), (ResourceName::PODS, 110)];
        all.into_iter().collect()
    }

    fn pod(namespace: &str, name: usize, requests: ResourceList) -> Pod {
        let spec = PodSpec { requests: requests.with(ResourceName::PODS, 1), ..PodSpec::default() };
        Pod::waiting(PodKey::new(namespace, name.to_string()), spec)
    }

    fn offering(price: Option<u64>, allocatable: ResourceList) -> RankedOffering {
        let (instance_type, zone) = ("any".into(), "a".into());
        let offering = OfferingId { instance_type, zone, capacity_type: CapacityType::OnDemand };
        RankedOffering { offering, price: price.map(UsdPerHour::from_micros), allocatable }
    }

    fn micros(node: &SharedNode<'_, '_>, namespace: &str) -> u64 {
        node.use_of(namespace).of(NamespaceLimit::UsdPerHour)
    }

    #[test]
    fn a_price_is_shared_by_the_scarcest_resource_that_each_pod_takes() {
        let node = offering(Some(3_000_000), capacity(100, 4));
        let pods = [
            // Half of the GPUs, and hardly any CPU.
            pod("ml", 0, capacity(1, 2)),
            // A quarter of the CPUs.
            pod("web", 0, capacity(25, 0)),
        ];
        let node = SharedNode::new([&node], &pods, false);
        assert_eq!((micros(&node, "ml"), micros(&node, "web")), (2_000_000, 1_000_000));
        assert_eq!(node.use_of("ml").of(NamespaceLimit::Gpus), 2000);
        assert_eq!(node.use_of("web").of(NamespaceLimit::Nodes), 1);
        assert_eq!(node.use_of("other"), NamespaceUse::default());
    }

    #[test]
    fn a_pod_counts_for_its_part_of_a_gpu_that_a_node_advertises_several_times() {
        let shared = ResourceName::NVIDIA_GPU_SHARED;
        let of = |machine: u64, advertised: ResourceList, wanted: ResourceList| {
            let node = offering(Some(2_000_000), capacity(100, machine));
            let gpus = AdvertisedGpus::new(&node.allocatable, &advertised);
            // The other pod takes a quarter of the processors.
            let pods = [pod("ml", 0, wanted), pod("web", 0, capacity(25, 0))];
            let node = SharedNode::advertising(gpus, [&node], &pods, false);
            (node.use_of("ml").of(NamespaceLimit::Gpus), micros(&node, "ml"))
        };
        let (plain, renamed) = (capacity(1, 1), capacity(1, 0).with(shared, 1));
        assert_eq!(of(1, capacity(100, 4), plain.clone()), (250, 1_000_000), "a quarter of one GPU");
        assert_eq!(of(1, capacity(100, 0).with(shared, 4), renamed.clone()), (250, 1_000_000));
        assert_eq!(of(2, capacity(100, 8), capacity(1, 4)), (1000, 1_333_334), "half of two GPUs");
        assert_eq!(of(1, capacity(100, 1), plain.clone()), (1000, 1_600_000), "a whole GPU");
        assert_eq!(of(1, capacity(100, 0), plain), (1000, 1_600_000), "the node does not report its GPU yet");
        assert_eq!(
            of(0, capacity(100, 0).with(shared, 4), renamed).0,
            0,
            "nobody knows how many GPUs it has"
        );
    }

    #[test]
    fn pods_that_count_for_nobody_pay_nothing_and_leave_the_price_to_the_others() {
        let node = offering(Some(1_000_000), capacity(100, 4));
        let mut agent = pod("kube-system", 0, capacity(10, 0));
        agent.role = PodRole::DaemonSet;
        let unit = PodKey::Buffer { pool: PoolName("gpu".into()), entry: 0, ordinal: 0 };
        let unit = Pod { key: unit, ..pod("poolwright", 0, capacity(10, 1)) };
        let idle = pod("web", 0, ResourceList::new());
        let pods = [agent, unit, idle, pod("ml", 0, capacity(1, 0))];
        let node = SharedNode::new([&node], &pods, false);
        assert_eq!(node.namespaces().collect::<Vec<_>>(), ["ml"]);
        assert_eq!(micros(&node, "ml"), 1_000_000);
    }

    #[test]
    fn a_node_that_is_not_launched_counts_as_the_dearest_share_that_it_may_cost() {
        let alternatives = [
            offering(Some(1_000_000), capacity(100, 1)),
            // The other pod takes less of this one, so the share is larger than by the price alone.
            offering(Some(1_200_000), capacity(400, 1)),
        ];
        let pods = [pod("ml", 0, capacity(1, 1)), pod("web", 0, capacity(100, 0))];
        let node = SharedNode::new(&alternatives, &pods, false);
        assert_eq!((micros(&node, "ml"), micros(&node, "web")), (960_000, 500_000));
    }

    #[test]
    fn an_unknown_price_is_told_of_a_planned_node_only() {
        let node = offering(None, capacity(100, 1));
        let pods = [pod("ml", 0, capacity(1, 1))];
        let has_unknown =
            |is_planned| SharedNode::new([&node], &pods, is_planned).use_of("ml").has_unknown_price;
        assert_eq!((has_unknown(true), has_unknown(false)), (true, false));
    }

    proptest! {
        #[test]
        fn shares_of_a_node_add_up_to_its_price(
            price in 0_u64..10_000_000_000,
            pods in proptest::collection::vec((0_usize..4, 1_u64..5000, 0_u64..3), 1..20),
        ) {
            let node = offering(Some(price), capacity(64_000, 8));
            let pods: Vec<Pod> = pods
                .into_iter()
                .enumerate()
                .map(|(at, (namespace, cpu, gpus))| pod(&format!("team-{namespace}"), at, capacity(cpu, gpus)))
                .collect();
            let node = SharedNode::new([&node], &pods, false);
            let sum: u64 = node.namespaces().map(|namespace| micros(&node, namespace)).sum();
            let namespaces = node.namespaces().count() as u64;
            prop_assert!(price <= sum && sum < price + namespaces, "{sum} of {price}");
        }
    }
}
