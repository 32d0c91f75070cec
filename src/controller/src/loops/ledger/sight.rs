//! What a snapshot shows of instances and pods, in the words of the ledger. A pure function.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use poolwright_catalog::{
    Catalogue, InstanceType, OfferingId, Price, ResourceList, ResourceName, UsdPerHour,
};
use poolwright_core::rules::held_gpus;
use poolwright_core::{Claim, Node, Pod, PodPhase, PodRole, PodSpec, Snapshot, Uid, Workload};
use poolwright_report::ledger::row::{Amounts, InstanceSpan, Phase, PodSpan};
use poolwright_terms::keys::{NODECLAIM_LABEL, NODEPOOL_LABEL};
use poolwright_terms::{CapacityType, ConditionType, labels};

use super::recorder::Sighting;
use super::thing::{Key, Thing, unknown_times};

/// The source of a price that the catalogue does not have any more.
const OF_CLAIM: &str = "NodeClaim";
/// What is written where a label of a node does not say it.
const UNKNOWN: &str = "unknown";
/// The label with the number of GPUs of a machine, by NVIDIA's feature discovery.
const GPU_COUNT: &str = "nvidia.com/gpu.count";
/// Labels that controllers generate for each of their pods. They are left out, for nobody asks for money by them.
const GENERATED: [&str; 10] = [
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-name",
    "controller-revision-hash",
    "controller-uid",
    "job-name",
    "pod-template-generation",
    "pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// The UID and the creation time of a Node.
pub type Birth = (String, Timestamp);

/// What one snapshot shows.
#[derive(Debug, Default)]
pub struct Seen {
    /// Instances and pods.
    pub sightings: Vec<Sighting>,
    /// Nodes that seemed to have no claim and have one, with the start of its instance.
    pub replaced: Vec<(Key, Timestamp)>,
    /// The latest time that the API server has written into a claim or a pod.
    pub witness: Option<Timestamp>,
}

/// An instance, for the pods on it.
struct Host<'a> {
    uid: String,
    node: &'a Node,
    kind: Option<&'a InstanceType>,
    machine: ResourceList,
}

/// Returns the instances and pods of a snapshot. `birth` returns the UID and the creation time of a Node, if it is known.
pub fn seen(snapshot: &Snapshot, cluster: &str, birth: impl Fn(&str) -> Option<Birth>) -> Seen {
    let mut all = Seen::default();
    let mut hosts: BTreeMap<&str, Host<'_>> = BTreeMap::new();
    for claim in snapshot.claims.values() {
        all.witness = all.witness.max(Some(claim.created));
        let Some(launched) = &claim.launched else { continue };
        let by_id = snapshot.nodes.with_provider_id(&launched.provider_id);
        let node: Option<&Node> =
            by_id.or_else(|| snapshot.nodes.get(claim.node_name.as_ref()?)).map(Arc::as_ref);
        let catalogue = snapshot.catalogues.get(&claim.node_class).and_then(|known| known.as_deref().ok());
        let ranked = claim.current_offering();
        let kind = catalogue.and_then(|catalogue| catalogue.instance_type(&ranked.offering.instance_type));
        let machine = machine(kind, node, &ranked.allocatable);
        let phases = phases(claim);
        let mut row = InstanceSpan {
            uid: claim.uid.0.clone(),
            name: claim.name.0.clone(),
            instance_id: Some(launched.provider_id.clone()),
            node: node.map(|node| node.name.clone()).or_else(|| claim.node_name.clone()),
            pool: Some(claim.pool.0.clone()),
            phase: phases.last().map_or(Phase::Starting, |(_, phase)| *phase),
            offers: offers(kind, &machine, node.map_or(&ranked.allocatable, |node| &node.allocatable)),
            ..blank(cluster, &ranked.offering, &launched.provider_id)
        };
        describe(&mut row, catalogue, &ranked.offering);
        if row.price_micros_per_hour.is_none() {
            row.price_micros_per_hour = ranked.price.map(UsdPerHour::micros);
            row.price_source = ranked.price.map(|_| OF_CLAIM.to_owned());
        }
        if let Some(node) = node {
            let replaced = birth(&node.name).zip(phases.first());
            all.replaced.extend(replaced.map(|((uid, _), (since, _))| (Key::Instance(uid), *since)));
            hosts.insert(&node.name, Host { uid: row.uid.clone(), node, kind, machine });
        }
        all.sightings.push(Sighting {
            thing: Thing::Instance(Box::new(row)),
            since: phases.first().map(|(since, _)| *since),
            phases,
            keeps_price: catalogue.is_none(),
        });
    }
    for node in snapshot.nodes.values() {
        // The instance of a node of ours is gone with its claim. That of another node runs until the node is gone.
        let is_left = node.deleting_since.is_some() && node.labels.contains_key(NODECLAIM_LABEL);
        if is_left || snapshot.claims.of_node(node).is_some() {
            continue;
        }
        // Its watch shows it a moment later.
        let Some((uid, created)) = birth(&node.name) else { continue };
        let (sighting, kind, machine) = of_node(snapshot, cluster, node, &uid, created);
        hosts.insert(&node.name, Host { uid, node, kind, machine });
        all.sightings.push(sighting);
    }
    let workloads: BTreeMap<&Uid, &Workload> =
        snapshot.workloads.values().map(|workload| (&workload.uid, workload.as_ref())).collect();
    for pod in snapshot.pods.bound() {
        all.witness = all.witness.max(Some(pod.created));
        let PodPhase::Bound { node } = &pod.phase else { continue };
        let Some(host) = hosts.get(node.as_str()) else { continue };
        all.sightings.push(of_pod(cluster, pod, host, &workloads));
    }
    all
}

/// Returns the phases that the instance of a claim has reached, the earliest first. Conditions keep their times, so each leader finds the
/// same.
fn phases(claim: &Claim) -> Vec<(Timestamp, Phase)> {
    let launched = claim.since(ConditionType::Launched).unwrap_or(claim.created);
    let leaving = claim.stage().is_leaving();
    let disrupted = claim.since(ConditionType::Disrupting).into_iter().chain(claim.deleting_since).min();
    let ready = claim.since(ConditionType::Initialized).map(|at| (at.max(launched), Phase::Ready));
    let mut all: Vec<_> = [(launched, Phase::Starting)].into_iter().chain(ready).collect();
    if let Some(at) = disrupted.filter(|_| leaving) {
        // A node that is disrupted before it opens never opens.
        all.retain(|(reached, phase)| *phase == Phase::Starting || *reached <= at);
        all.push((at.max(launched), Phase::Draining));
    }
    all
}

/// Returns the row of an instance of which only the offering is known.
fn blank(cluster: &str, offering: &OfferingId, provider_id: &str) -> InstanceSpan {
    InstanceSpan {
        span: unknown_times(cluster),
        uid: String::new(),
        name: String::new(),
        instance_id: None,
        node: None,
        pool: None,
        provider: provider_id.split_once("://").map_or(UNKNOWN, |(cloud, _)| cloud).to_owned(),
        region: UNKNOWN.to_owned(),
        zone: offering.zone.to_string(),
        instance_type: offering.instance_type.to_string(),
        capacity_type: offering.capacity_type.to_string(),
        phase: Phase::Ready,
        price_micros_per_hour: None,
        list_micros_per_hour: None,
        price_source: None,
        price_at: None,
        commitment: None,
        offers: Amounts::default(),
    }
}

/// Fills in what the catalogue says: cloud, region and prices. What it does not say stays as it is.
fn describe(row: &mut InstanceSpan, catalogue: Option<&Catalogue>, id: &OfferingId) {
    let Some(catalogue) = catalogue else { return };
    if let Some(kind) = catalogue.instance_type(&id.instance_type) {
        row.provider = kind.provider.to_string();
    }
    let on_demand = OfferingId { capacity_type: CapacityType::OnDemand, ..id.clone() };
    let list = catalogue.offering(&on_demand).and_then(|offering| offering.price.known());
    row.list_micros_per_hour = list.map(UsdPerHour::micros);
    let Some(offering) = catalogue.offering(id) else { return };
    if let Some(region) = &offering.region {
        row.region.clone_from(region);
    }
    if let Price::Known(quote) = &offering.price {
        row.price_micros_per_hour = Some(quote.usd_per_hour.micros());
        row.price_source = Some(quote.source.to_string());
        row.price_at = quote.as_of.and_then(start_of);
    }
}

/// Returns the start of a day.
fn start_of(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Returns the sighting of a node without a claim, with its type in the catalogue and the resources of its machine.
fn of_node<'a>(
    snapshot: &'a Snapshot,
    cluster: &str,
    node: &Node,
    uid: &str,
    created: Timestamp,
) -> (Sighting, Option<&'a InstanceType>, ResourceList) {
    let label = |key: &str| node.labels.get(key).map_or(UNKNOWN, String::as_str);
    let capacity_type = node.labels.get(labels::CAPACITY_TYPE).and_then(|value| value.parse().ok());
    let id = OfferingId {
        instance_type: label(labels::INSTANCE_TYPE).into(),
        zone: label(labels::ZONE).into(),
        capacity_type: capacity_type.unwrap_or(CapacityType::OnDemand),
    };
    let catalogues = || snapshot.catalogues.values().filter_map(|known| known.as_deref().ok());
    let has_type = |catalogue: &&Catalogue| catalogue.instance_type(&id.instance_type).is_some();
    let catalogue =
        catalogues().find(|one| one.offering(&id).is_some()).or_else(|| catalogues().find(has_type));
    let kind = catalogue.and_then(|catalogue| catalogue.instance_type(&id.instance_type));
    let machine = machine(kind, Some(node), &node.allocatable);
    let provider_id = node.provider_id.as_deref().unwrap_or_default();
    let mut row = InstanceSpan {
        uid: uid.to_owned(),
        name: node.name.clone(),
        instance_id: node.provider_id.clone(),
        node: Some(node.name.clone()),
        pool: node.labels.get(NODEPOOL_LABEL).cloned(),
        phase: match node.deleting_since {
            Some(_) => Phase::Draining,
            None if node.ready => Phase::Ready,
            None => Phase::Starting,
        },
        offers: offers(kind, &machine, &node.allocatable),
        ..blank(cluster, &id, provider_id)
    };
    label(labels::REGION).clone_into(&mut row.region);
    describe(&mut row, catalogue, &id);
    if capacity_type.is_none() {
        // Whether it is spot is not said, so neither is its price.
        UNKNOWN.clone_into(&mut row.capacity_type);
        (row.price_micros_per_hour, row.price_source, row.price_at) = (None, None, None);
    }
    let thing = Thing::Instance(Box::new(row));
    let keeps_price = snapshot.catalogues.values().any(Result::is_err) && catalogue.is_none();
    (Sighting { thing, since: Some(created), phases: Vec::new(), keeps_price }, kind, machine)
}

/// Returns the resources of a machine with all its GPUs, however its node advertises them.
fn machine(kind: Option<&InstanceType>, node: Option<&Node>, promised: &ResourceList) -> ResourceList {
    let known = kind.map(|kind| kind.gpu.as_ref().map_or(0, |gpu| u64::from(gpu.count)));
    let told = || node?.labels.get(GPU_COUNT)?.parse::<u64>().ok();
    let gpus = known.or_else(told).unwrap_or_else(|| promised.get(ResourceName::NVIDIA_GPU));
    ResourceList::new().with(ResourceName::NVIDIA_GPU, gpus)
}

/// Returns what a node offers to pods.
fn offers(kind: Option<&InstanceType>, machine: &ResourceList, allocatable: &ResourceList) -> Amounts {
    let whole = machine.get(ResourceName::NVIDIA_GPU).saturating_mul(1000);
    let gpu_millis = if whole > 0 {
        whole
    } else {
        let all = PodSpec { requests: allocatable.clone(), ..PodSpec::default() };
        held_gpus(kind.and_then(|kind| kind.gpu.as_ref()), machine, allocatable, &all)
    };
    let (cpu_millis, memory_bytes) =
        (allocatable.get(ResourceName::CPU), allocatable.get(ResourceName::MEMORY));
    Amounts { gpu_millis, cpu_millis, memory_bytes }
}

fn of_pod(cluster: &str, pod: &Pod, host: &Host<'_>, workloads: &BTreeMap<&Uid, &Workload>) -> Sighting {
    let (requests, gpu) = (&pod.spec.requests, host.kind.and_then(|kind| kind.gpu.as_ref()));
    let workload = pod.owner.as_ref().and_then(|owner| workloads.get(owner));
    let workload = workload.map(|workload| (workload.kind.clone(), workload.key.name.clone()));
    let daemonset = pod.daemonset.clone().map(|name| ("DaemonSet".to_owned(), name));
    let (workload_kind, workload) = workload.or(daemonset).unzip();
    let kept = pod.labels.iter().filter(|(key, _)| !GENERATED.contains(&key.as_str()));
    let row = PodSpan {
        span: unknown_times(cluster),
        uid: pod.uid.0.clone(),
        instance: host.uid.clone(),
        namespace: pod.key.namespace().to_owned(),
        name: pod.key.name().into_owned(),
        workload_kind,
        workload,
        daemon: pod.role != PodRole::Workload,
        labels: kept.map(|(key, value)| (key.clone(), value.clone())).collect(),
        holds: Amounts {
            gpu_millis: held_gpus(gpu, &host.machine, &host.node.allocatable, &pod.spec),
            cpu_millis: requests.get(ResourceName::CPU),
            memory_bytes: requests.get(ResourceName::MEMORY),
        },
    };
    let thing = Thing::Pod(Box::new(row));
    Sighting { thing, since: pod.duration.started, phases: Vec::new(), keeps_price: false }
}
