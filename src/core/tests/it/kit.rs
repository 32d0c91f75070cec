//! Helpers for tests, which build small clusters.

use poolwright_catalog::RankedOffering;
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, NodeClassRef, Taint, TaintEffect};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::offering::CatalogueOrigin;
use poolwright_catalog::{
    Arch, Catalogue, Gpu, InstanceType, Offering, OfferingId, Price, PriceSource, Quote, ResourceList,
    ResourceName, UnknownPrice, UsdPerHour,
};
use poolwright_core::lifecycle::{self, Decision, PlacementMode};
use poolwright_core::plan::{Plan, PlanOptions, PlannedClaim, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;

/// Returns the time `seconds` after the beginning of the test.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

pub fn usd(dollars: &str) -> UsdPerHour {
    dollars.parse().unwrap()
}

/// Returns requests of CPU in cores, memory in GiB and GPUs, with one `pods`.
pub fn requests(cpu: u64, memory: u64, gpus: u64) -> ResourceList {
    capacity(cpu, memory, gpus).with(ResourceName::PODS, 1)
}

/// Returns a capacity of CPU in cores, memory in GiB and GPUs, with 110 pods.
pub fn capacity(cpu: u64, memory: u64, gpus: u64) -> ResourceList {
    ResourceList::new()
        .with(ResourceName::CPU, cpu * 1000)
        .with(ResourceName::MEMORY, memory << 30)
        .with(ResourceName::NVIDIA_GPU, gpus)
        .with(ResourceName::PODS, 110)
}

pub fn node_class() -> NodeClassRef {
    NodeClassRef { group: "poolwright.dev".into(), kind: "KwokNodeClass".into(), name: "default".into() }
}

/// Returns a listing of the only cloud.
pub fn listing(at: Timestamp, listed: impl IntoIterator<Item = ListedInstance>) -> Instances {
    Instances::new(&[node_class().kind.as_str()], at, listed)
}

pub fn id(kind: &str, zone: &str) -> OfferingId {
    OfferingId { instance_type: kind.into(), zone: zone.into(), capacity_type: CapacityType::OnDemand }
}

/// One instance type, on demand, in some zones. The price `unknown` stands for an unknown price.
pub struct Kind(
    pub &'static str,
    pub ResourceList,
    pub Option<&'static str>,
    pub &'static [(&'static str, &'static str)],
);

pub fn catalogue(kinds: Vec<Kind>) -> Catalogue {
    let (mut types, mut offerings) = (Vec::new(), Vec::new());
    for Kind(name, allocatable, gpu, prices) in kinds {
        let count = allocatable.get(ResourceName::NVIDIA_GPU) as u32;
        for (zone, price) in prices {
            let price = match *price {
                "unknown" => Price::Unknown(UnknownPrice::Missing),
                price => Price::Known(Quote {
                    usd_per_hour: usd(price),
                    source: PriceSource::new("test"),
                    as_of: None,
                }),
            };
            let region = Some("us-east-1".into());
            offerings.push(Offering {
                id: id(name, zone),
                region,
                price,
                available: None,
                interruptions: None,
                notice: None,
            });
        }
        types.push(InstanceType {
            name: name.into(),
            provider: "aws".into(),
            arch: Arch::Amd64,
            gpu: gpu.map(|model| Gpu { model: model.into(), count, memory_mib: None }),
            allocatable,
        });
    }
    Catalogue::new(CatalogueOrigin { source: "test".into(), as_of: None }, types, offerings)
}

/// Returns a catalogue with g5.xlarge (one GPU), g5.12xlarge (four GPUs), g6.xlarge (one L4) and c7.xlarge (no GPU).
pub fn aws() -> Catalogue {
    catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006"), ("b", "1.006")]),
        Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]),
        Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), &[("a", "1.10")]),
        Kind("c7.xlarge", capacity(4, 8, 0), None, &[("a", "0.17")]),
    ])
}

pub fn pool(name: &str) -> Pool {
    Pool {
        name: PoolName(name.into()),
        uid: Uid(format!("pool-{name}")),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        requirements: vec![],
        min_values: BTreeMap::new(),
        node_class: node_class(),
        weight: 0,
        limits: PoolLimits::default(),
        monthly_budget: None,
        spot: SpotRules::default(),
        allow_unknown_price: BTreeSet::new(),
        scale_to_zero: ScaleToZero::After(SignedDuration::from_secs(300)),
        replicas: None,
        buffer: Vec::new(),
        disruption: Disruption::default(),
        deadlines: Deadlines::default(),
        deleting: false,
        problem: None,
        is_implicit: false,
    }
}

pub fn is_in(key: &str, values: &[&str]) -> Requirement {
    Requirement {
        key: key.into(),
        operator: Operator::In(values.iter().map(|value| (*value).to_owned()).collect()),
    }
}

pub fn taint(key: &str, value: &str) -> Taint {
    Taint { key: key.into(), value: value.into(), effect: TaintEffect::NoSchedule }
}

pub fn tolerate(key: &str) -> Toleration {
    Toleration { key: Some(key.into()), matches: TolerationMatch::Exists, effect: None }
}

pub fn object_key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

pub fn key(name: &str) -> PodKey {
    format!("default/{name}").parse().unwrap()
}

/// Returns an unschedulable pod.
pub fn pod(name: &str, requests: ResourceList) -> Pod {
    Pod {
        key: key(name),
        uid: Uid(format!("pod-{name}")),
        labels: BTreeMap::new().into(),
        spec: PodSpec { requests, ..PodSpec::default() }.into(),
        request_origins: vec![],
        owner: None,
        volumes: vec![],
        priority: 0,
        scheduler: "default-scheduler".into(),
        group: None,
        gang: None,
        role: PodRole::Workload,
        daemonset: None,
        replaces: None,
        phase: PodPhase::Unschedulable { since: at(0), message: "0/0 nodes are available".into() },
        health: PodHealth::default(),
        reserved_for: vec![],
        nominated_node: None,
        deleting_since: None,
        created: at(0),
        ending: Ending::default(),
        duration: PodDuration::default(),
        scopes: PodScopes::default(),
    }
}

pub fn bound(pod: Pod, node: &str) -> Pod {
    Pod { phase: PodPhase::Bound { node: node.into() }, ..pod }
}

/// Returns a ready, open node without a claim.
pub fn node(name: &str, allocatable: ResourceList) -> Node {
    Node {
        name: name.into(),
        provider_id: None,
        labels: BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]),
        taints: vec![],
        allocatable,
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: Vec::new(),
    }
}

/// Returns the ReplicaSet `web` with this number of pods.
pub fn web(total: u64) -> Workload {
    let (kind, uid) = ("ReplicaSet".into(), Uid("web".into()));
    let key = object_key("web");
    Workload {
        kind,
        key,
        uid,
        owner: None,
        total,
        wanted: total,
        current: total,
        scheduling_gated: false,
        selector: None,
    }
}

/// Returns a cluster without pods and nodes, with one catalogue and these pools.
pub fn cluster(catalogue: Catalogue, pools: impl IntoIterator<Item = Pool>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.catalogues.insert(node_class(), Ok(Arc::new(catalogue)));
    for pool in pools {
        snapshot.pools.insert(pool.name.clone(), Arc::new(pool));
    }
    snapshot
}

pub trait Put {
    fn put(self, snapshot: &mut Snapshot);
}

impl Put for Pod {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.pods.insert(self.key.clone(), Arc::new(self));
    }
}

impl Put for Node {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.nodes.insert(self.name.clone(), Arc::new(self));
    }
}

impl Put for Claim {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.claims.insert(self.name.clone(), Arc::new(self));
    }
}

impl Put for DaemonSet {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.daemonsets.insert(self.key.clone(), Arc::new(self));
    }
}

pub fn with<T: Put>(mut snapshot: Snapshot, things: impl IntoIterator<Item = T>) -> Snapshot {
    for thing in things {
        thing.put(&mut snapshot);
    }
    snapshot
}

pub fn planned(snapshot: &Snapshot) -> Plan {
    planned_at(snapshot, 10)
}

pub fn planned_at(snapshot: &Snapshot, seconds: i64) -> Plan {
    let plan = plan(snapshot, at(seconds), &PlanOptions::default(), &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// Returns the nodes that a plan buys, as `type: pods`, sorted.
pub fn bought(plan: &Plan) -> Vec<String> {
    let mut bought: Vec<String> = plan
        .claims
        .iter()
        .map(|claim| {
            let pods: Vec<_> = claim.planned_pods.iter().map(PodKey::name).collect();
            format!("{}: {}", claim.instance_type(), pods.join(" "))
        })
        .collect();
    bought.sort();
    bought
}

/// Returns the claim that the executor creates from a planned claim.
pub fn created(planned: &PlannedClaim, seconds: i64) -> Claim {
    Claim {
        name: planned.name.clone(),
        uid: Uid(format!("uid-{}", planned.name)),
        pool: planned.pool.clone(),
        node_class: planned.node_class.clone(),
        offerings: planned.offerings.clone(),
        labels: planned.labels.clone(),
        annotations: planned.annotations.clone(),
        taints: planned.taints.clone(),
        startup_taints: planned.startup_taints.clone(),
        readiness_gates: planned.readiness_gates.clone(),
        planned_pods: planned.planned_pods.clone(),
        reason: planned.reason.clone(),
        do_not_disrupt: false,
        bought_again: !planned.bought_again.is_empty(),
        deadlines: planned.deadlines,
        created: at(seconds),
        interruption: None,
        deleting_since: None,
        launched: None,
        node_name: None,
        conditions: BTreeMap::new(),
    }
}

/// Returns the cluster after the plan has been carried out, with its claims in flight.
pub fn carried_out(snapshot: &Snapshot, plan: &Plan, seconds: i64) -> Snapshot {
    let mut after = with(snapshot.clone(), plan.claims.iter().map(|claim| created(claim, seconds)));
    after.nominations.clone_from(&plan.nominations);
    after
}

/// Returns a claim `c` for one pod `p` on a g5.xlarge.
pub fn claim() -> Claim {
    Claim {
        name: ClaimName("c".into()),
        uid: Uid("uid-c".into()),
        pool: PoolName("gpu".into()),
        node_class: node_class(),
        offerings: vec![RankedOffering {
            offering: id("g5.xlarge", "a"),
            price: Some(usd("1.006")),
            allocatable: capacity(4, 16, 1),
        }],
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        planned_pods: vec![key("p")],
        reason: String::new(),
        do_not_disrupt: false,
        bought_again: false,
        deadlines: Deadlines::default(),
        created: at(0),
        interruption: None,
        deleting_since: None,
        launched: None,
        node_name: None,
        conditions: BTreeMap::new(),
    }
}

pub fn launched(claim: Claim) -> Claim {
    let offering = claim.offerings[0].offering.clone();
    Claim { launched: Some(Launched { provider_id: format!("kwok://{}", claim.name), offering }), ..claim }
}

/// Records a condition as true.
pub fn true_since(mut claim: Claim, kind: ConditionType, seconds: i64) -> Claim {
    let condition = Condition {
        status: ConditionStatus::True,
        since: at(seconds),
        reason: None,
        message: "as the test says".into(),
    };
    claim.conditions.insert(kind, condition);
    claim
}

/// Returns the claim, launched at 10 s and registered as node `n` at 20 s.
pub fn registered() -> Claim {
    let claim = true_since(launched(claim()), ConditionType::Launched, 10);
    let claim = true_since(claim, ConditionType::Registered, 20);
    Claim { node_name: Some("n".into()), ..claim }
}

/// Returns the claim, initialized at 30 s.
pub fn initialized() -> Claim {
    true_since(registered(), ConditionType::Initialized, 30)
}

/// Returns the node of [`claim`], ready and open, with the promised resources.
pub fn claimed_node() -> Node {
    Node { provider_id: Some("kwok://c".into()), ..node("n", capacity(4, 16, 1)) }
}

/// Makes lifecycle decisions with new nodes reserved for their pods.
pub fn decide(snapshot: &Snapshot, now: Timestamp) -> Decision {
    lifecycle::decide(snapshot, now, PlacementMode::Reserve)
}

/// Returns the pods that are evicted, and the pods that are deleted, with their grace period in seconds.
pub fn asked(snapshot: &Snapshot, seconds: i64) -> Vec<(String, Option<i64>)> {
    let of = |action| match action {
        Action::Evict { pod, .. } => Some((pod.name, None)),
        Action::EndPod { pod, grace, .. } => Some((pod.name, Some(grace.as_secs()))),
        _ => None,
    };
    decide(snapshot, at(seconds)).actions.into_iter().filter_map(of).collect()
}

/// Returns the names of the pods that new nodes are bought for.
pub fn names(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> =
        plan.claims.iter().flat_map(|claim| &claim.planned_pods).map(|pod| pod.name().into_owned()).collect();
    names.sort();
    names
}
