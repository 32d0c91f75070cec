//! Random pods with rules about each other, for property tests.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;

use crate::model::{
    HostPort, Namespaces, Operator, Pod, PodAffinityTerm, PodKey, PodSpec, Requirement, Snapshot,
    TopologySpreadConstraint,
};

/// Returns up to a dozen waiting pods. Some have host ports, or pod affinity, anti-affinity and topology spread over this key.
pub(crate) fn pods(topology_key: &'static str) -> impl Strategy<Value = Vec<Pod>> {
    let pod = |(at, (labels, spec)): (usize, (BTreeMap<String, String>, PodSpec))| {
        let namespace = if at % 4 == 3 { "other" } else { "default" };
        Pod { labels: labels.into(), ..Pod::waiting(PodKey::new(namespace, format!("p{at}")), spec) }
    };
    let all = vec((btree_map("[ab]", "[xyz]", 0..3), spec(topology_key)), 0..12);
    all.prop_map(move |all| all.into_iter().enumerate().map(pod).collect::<Vec<Pod>>())
}

/// Returns a cluster with only these pods.
pub(crate) fn snapshot(pods: &[Pod]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for pod in pods {
        snapshot.pods.insert(pod.key.clone(), pod.clone().into());
    }
    snapshot
}

/// Returns a list of requirements on the labels of these pods.
pub(crate) fn requirements() -> impl Strategy<Value = Vec<Requirement>> {
    let one = ("[ab]", 0..5_u8, btree_set("[xyz]", 0..3)).prop_map(|(key, kind, values)| {
        let operator = match kind {
            0..3 => Operator::In(values),
            3 => Operator::NotIn(values),
            _ => Operator::Exists,
        };
        Requirement { key, operator }
    });
    vec(one, 0..3)
}

fn port() -> impl Strategy<Value = HostPort> {
    let of = (80..83_u16, "TCP|UDP", option::of("[pq]"));
    of.prop_map(|(port, protocol, ip)| HostPort { port, protocol, ip })
}

fn term(topology_key: &'static str) -> impl Strategy<Value = PodAffinityTerm> {
    let of = (any::<bool>(), option::of(requirements()));
    of.prop_map(move |(everywhere, selector)| PodAffinityTerm {
        topology_key: topology_key.into(),
        namespaces: if everywhere {
            Namespaces::All
        } else {
            Namespaces::Named(["default".to_owned()].into())
        },
        selector,
    })
}

fn spec(topology_key: &'static str) -> impl Strategy<Value = PodSpec> {
    let spread = (1..3_u32, option::of(requirements())).prop_map(move |(max_skew, selector)| {
        let topology_key = topology_key.into();
        TopologySpreadConstraint { topology_key, max_skew, selector, ..TopologySpreadConstraint::default() }
    });
    let affinity = vec(term(topology_key), 0..3);
    let of = (btree_set(port(), 0..2), affinity, vec(term(topology_key), 0..2), vec(spread, 0..2));
    of.prop_map(|(host_ports, affinity, anti_affinity, spreads)| PodSpec {
        host_ports,
        affinity,
        anti_affinity,
        spreads,
        ..PodSpec::default()
    })
}
