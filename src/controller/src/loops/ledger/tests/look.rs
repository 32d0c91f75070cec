use std::sync::Arc;

use poolwright_catalog::{
    Catalogue, CatalogueOrigin, OfferingId, Price, Quote, RankedOffering, ResourceList, UnknownPrice, Zone,
    builtin,
};
use poolwright_core::{
    Claim, ClaimName, Condition, Deadlines, Launched, Node, Pod, PodKey, PodPhase, PodSpec, PoolName,
    Snapshot, Uid,
};
use poolwright_terms::{CapacityType, ConditionStatus, ConditionType, NodeClassRef, labels};

use super::super::sight::{Seen, seen};
use super::*;

const TYPE: &str = "g5.12xlarge";

fn class() -> NodeClassRef {
    NodeClassRef { group: "g".into(), kind: "k".into(), name: "n".into() }
}

fn offering() -> OfferingId {
    OfferingId {
        instance_type: TYPE.into(),
        zone: Zone::new("us-east-1a"),
        capacity_type: CapacityType::OnDemand,
    }
}

/// Returns the built-in type with one offering at this price.
fn catalogue(price: Price) -> Arc<Catalogue> {
    let kind = builtin().instance_type(&TYPE.into()).expect("a built-in type").clone();
    let offering = poolwright_catalog::Offering {
        id: offering(),
        region: Some("us-east-1".into()),
        price,
        available: None,
        interruptions: None,
        notice: None,
    };
    let origin = CatalogueOrigin { source: "test".into(), as_of: None };
    Arc::new(Catalogue::new(origin, vec![kind], vec![offering]))
}

fn quote() -> Price {
    let usd_per_hour = "5.672".parse().expect("a price");
    Price::Known(Quote {
        usd_per_hour,
        source: "list".into(),
        as_of: Some("2026-11-01".parse().expect("a day")),
    })
}

pub(super) fn claim() -> Claim {
    let condition = |since| Condition {
        status: ConditionStatus::True,
        since: time(since),
        reason: None,
        message: String::new(),
    };
    let conditions = [
        (ConditionType::Launched, condition("2026-11-30T08:00:10Z")),
        (ConditionType::Initialized, condition("2026-11-30T08:02:00Z")),
    ];
    let allocatable = ResourceList::new().with("cpu", 47_000).with("memory", 1024).with("nvidia.com/gpu", 4);
    Claim {
        name: ClaimName("gpu-1".into()),
        uid: Uid("claim".into()),
        pool: PoolName("gpu".into()),
        node_class: class(),
        offerings: vec![RankedOffering { offering: offering(), price: "5".parse().ok(), allocatable }],
        labels: [].into(),
        annotations: [].into(),
        taints: vec![],
        startup_taints: vec![],
        readiness_gates: vec![],
        planned_pods: vec![],
        reason: String::new(),
        do_not_disrupt: false,
        bought_again: false,
        deadlines: Deadlines::default(),
        created: time("2026-11-30T08:00:00Z"),
        deleting_since: None,
        launched: Some(Launched { provider_id: "cloud://i-1".into(), offering: offering() }),
        node_name: Some("n1".into()),
        interruption: None,
        conditions: conditions.into(),
    }
}

fn node(name: &str, provider_id: &str) -> Node {
    Node {
        name: name.into(),
        provider_id: Some(provider_id.into()),
        labels: [].into(),
        taints: vec![],
        // Each of its GPUs is shared by four pods.
        allocatable: ResourceList::new().with("cpu", 46_000).with("memory", 1000).with("nvidia.com/gpu", 16),
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: vec![],
    }
}

fn snapshot(claims: Vec<Claim>, nodes: Vec<Node>, price: Price) -> Snapshot {
    Snapshot {
        claims: claims.into_iter().map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
        nodes: nodes.into_iter().map(|node| (node.name.clone(), Arc::new(node))).collect(),
        catalogues: [(class(), Ok(catalogue(price)))].into(),
        ..Snapshot::default()
    }
}

fn look(snapshot: &Snapshot) -> Seen {
    seen(snapshot, CLUSTER, |name| Some((format!("uid-{name}"), time("2026-11-30T07:00:00Z"))))
}

fn instance_of(seen: &Seen) -> &InstanceSpan {
    let found = seen.sightings.iter().find_map(|one| match &one.thing {
        Thing::Instance(row) => Some(row),
        Thing::Pod(_) => None,
    });
    found.expect("an instance")
}

#[test]
fn the_row_of_a_claim_has_its_phases_its_price_with_its_source_and_the_gpus_of_the_machine() {
    let all = look(&snapshot(vec![claim()], vec![node("n1", "cloud://i-1")], quote()));
    let row = instance_of(&all);
    assert_eq!((row.uid.as_str(), row.node.as_deref(), row.phase), ("claim", Some("n1"), Phase::Ready));
    assert_eq!((row.price_micros_per_hour, row.price_source.as_deref()), (Some(5_672_000), Some("list")));
    assert_eq!(row.price_at, Some(time("2026-11-01T00:00:00Z")));
    assert_eq!((row.list_micros_per_hour, row.region.as_str()), (Some(5_672_000), "us-east-1"));
    assert_eq!(row.offers, Amounts { gpu_millis: 4000, cpu_millis: 46_000, memory_bytes: 1000 });
    let [one] = all.sightings.as_slice() else { panic!("one sighting") };
    let phases =
        [(time("2026-11-30T08:00:10Z"), Phase::Starting), (time("2026-11-30T08:02:00Z"), Phase::Ready)];
    assert_eq!((one.since, one.phases.as_slice()), (Some(phases[0].0), phases.as_slice()));
    assert_eq!(all.replaced, [(Key::Instance("uid-n1".into()), phases[0].0)]);
}

#[test]
fn a_claim_that_is_deleted_drains_from_then_on_and_one_without_an_instance_costs_nothing() {
    let gone = Claim { deleting_since: Some(time("2026-11-30T09:00:00Z")), ..claim() };
    let all = look(&snapshot(vec![gone], vec![], quote()));
    assert_eq!(all.sightings[0].phases.last(), Some(&(time("2026-11-30T09:00:00Z"), Phase::Draining)));
    assert_eq!(instance_of(&all).offers.gpu_millis, 4000, "as the catalogue says");
    let pending = Claim { launched: None, ..claim() };
    assert!(look(&snapshot(vec![pending], vec![], quote())).sightings.is_empty());
}

#[test]
fn without_a_price_in_the_catalogue_the_claim_says_what_it_was_bought_at() {
    let all = look(&snapshot(vec![claim()], vec![], Price::Unknown(UnknownPrice::Missing)));
    let row = instance_of(&all);
    assert_eq!(
        (row.price_micros_per_hour, row.price_source.as_deref()),
        (Some(5_000_000), Some("NodeClaim"))
    );
    assert!(!all.sightings[0].keeps_price);
    let mut unread = snapshot(vec![claim()], vec![], quote());
    unread.catalogues = [(class(), Err("the cloud does not answer".to_owned()))].into();
    assert!(look(&unread).sightings[0].keeps_price);
}

#[test]
fn a_node_without_a_claim_counts_with_its_gpus_and_has_a_price_only_if_its_labels_say_how_it_is_bought() {
    let mut own = node("n2", "other://i-2");
    let known = [(labels::INSTANCE_TYPE, TYPE), (labels::ZONE, "us-east-1a"), (labels::REGION, "us-east-1")];
    own.labels = known.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let all = look(&snapshot(vec![], vec![own.clone()], quote()));
    let row = instance_of(&all);
    assert_eq!((row.uid.as_str(), row.offers.gpu_millis), ("uid-n2", 4000));
    assert_eq!((row.price_micros_per_hour, row.capacity_type.as_str()), (None, "unknown"));
    own.labels.insert(labels::CAPACITY_TYPE.into(), "on-demand".into());
    let all = look(&snapshot(vec![], vec![own], quote()));
    assert_eq!(instance_of(&all).price_micros_per_hour, Some(5_672_000));
    assert_eq!(all.sightings[0].since, Some(time("2026-11-30T07:00:00Z")));
}

#[test]
fn a_node_of_others_costs_until_it_is_gone_and_one_of_ours_only_as_long_as_its_claim() {
    let mut leaving = node("n2", "other://i-2");
    leaving.deleting_since = Some(time("2026-11-30T09:00:00Z"));
    let all = look(&snapshot(vec![], vec![leaving.clone()], quote()));
    assert_eq!(instance_of(&all).phase, Phase::Draining);
    leaving.labels.insert(poolwright_terms::keys::NODECLAIM_LABEL.into(), "gone".into());
    assert!(look(&snapshot(vec![], vec![leaving], quote())).sightings.is_empty());
}

#[test]
fn a_pod_holds_its_part_of_a_shared_gpu_on_the_instance_of_its_node() {
    let spec = PodSpec {
        requests: ResourceList::new().with("cpu", 500).with("nvidia.com/gpu", 1),
        ..PodSpec::default()
    };
    let mut pod = Pod::waiting(PodKey::new("ml", "train-0"), spec);
    pod.phase = PodPhase::Bound { node: "n1".into() };
    let labels = [("team", "a"), ("pod-template-hash", "x")];
    pod.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let mut snapshot = snapshot(vec![claim()], vec![node("n1", "cloud://i-1")], quote());
    snapshot.pods.insert(pod.key.clone(), Arc::new(pod.clone()));
    // The watch of nodes has not shown the node of this one.
    let early = Pod { key: PodKey::new("ml", "early"), phase: PodPhase::Bound { node: "n3".into() }, ..pod };
    snapshot.pods.insert(early.key.clone(), Arc::new(early));
    let pods: Vec<PodSpan> = look(&snapshot)
        .sightings
        .into_iter()
        .filter_map(|one| match one.thing {
            Thing::Pod(row) => Some(*row),
            Thing::Instance(_) => None,
        })
        .collect();
    let [row] = pods.as_slice() else { panic!("one pod: {pods:?}") };
    assert_eq!((row.instance.as_str(), row.holds.gpu_millis, row.holds.cpu_millis), ("claim", 250, 500));
    assert_eq!(row.labels, BTreeMap::from([("team".to_owned(), "a".to_owned())]));
}
