//! What tests of this command share: a catalogue with prices for sums in the head, and nodes with pods.

use std::sync::Arc;

use poolwright_catalog::{Catalogue, ResourceList, ResourceName, UsdPerHour, read_csv};
use poolwright_core::{Node, Pod, PodKey, PodPhase, PodSpec, Snapshot, Uid};
use poolwright_terms::labels;

/// Two types in one zone: `small` for $1 an hour, or $0.40 as spot, and `large` for $1.50.
const PRICES: &str = include_str!("../../tests/savings.csv");

/// Returns the catalogue of these prices.
pub fn catalogue() -> Catalogue {
    read_csv(&[("prices.csv", PRICES)]).expect("a catalogue")
}

/// Returns an amount.
pub fn usd(text: &str) -> UsdPerHour {
    text.parse().expect("an amount")
}

/// Returns a node of a type of the catalogue with this many cores.
pub fn node(name: &str, instance_type: &str, cores: u64) -> Node {
    let labels = [(labels::INSTANCE_TYPE, instance_type), (labels::ZONE, "za")];
    Node {
        name: name.to_owned(),
        provider_id: None,
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        taints: Vec::new(),
        allocatable: ResourceList::new().with(ResourceName::CPU, cores * 1000).with(ResourceName::PODS, 110),
        ready: true,
        cordoned: false,
        cordoned_until_initialized: false,
        do_not_disrupt: false,
        deleting_since: None,
        unhealthy_conditions: Vec::new(),
    }
}

/// Returns a pod of a controller on a node, which asks for this many cores.
pub fn pod(name: &str, node: &str, cores: u64) -> Pod {
    let requests = ResourceList::new().with(ResourceName::CPU, cores * 1000).with(ResourceName::PODS, 1);
    let mut pod = Pod::waiting(PodKey::new("ml", name), PodSpec { requests, ..PodSpec::default() });
    pod.owner = Some(Uid("controller".to_owned()));
    pod.phase = PodPhase::Bound { node: node.to_owned() };
    pod
}

/// Returns a cluster of these nodes and pods.
pub fn cluster(nodes: Vec<Node>, pods: Vec<Pod>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for node in nodes {
        snapshot.nodes.insert(node.name.clone(), Arc::new(node));
    }
    for pod in pods {
        snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    snapshot
}
