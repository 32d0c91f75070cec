//! Converts a case and its plan to objects for the API server: new nodes, DaemonSet pods, and pods that are held to their nodes.

use std::collections::BTreeMap;

use poolwright_catalog::{Catalogue, Offering};
use poolwright_core::plan::PlannedClaim;
use poolwright_core::rules::{self, NewNodeLabels};
use poolwright_core::{Pool, Snapshot};
use poolwright_intake as intake;
use poolwright_terms::Taint;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::HOSTNAME;
use serde_json::{Value, json};

use crate::case::{Case, name, node_class};

/// The taint that keeps a node for its planned pods.
const RESERVED: &str = "poolwright.dev/reserved";

/// Returns the catalogue of a case.
pub fn catalogue(snapshot: &Snapshot) -> &Catalogue {
    snapshot.catalogues[&node_class()].as_ref().expect("every case has a catalogue")
}

/// Returns the node that a claim promises.
pub fn node_of(case: &Case, snapshot: &Snapshot, claim: &PlannedClaim) -> Value {
    let ranked = if case.last_offering { claim.offerings.last() } else { claim.offerings.first() };
    let id = &ranked.expect("a claim has offerings").offering;
    let offering = catalogue(snapshot).offering(id).expect("claims are made from the catalogue");
    new_node(snapshot, &snapshot.pools[&claim.pool], offering, &claim.name.0)
}

/// Returns an empty node of every kind that the pools may buy, regardless of limits, with its zone.
pub fn one_of_each(snapshot: &Snapshot) -> Vec<(String, Value)> {
    let catalogue = catalogue(snapshot);
    let mut nodes = Vec::new();
    for pool in snapshot.pools.values() {
        for offering in catalogue.offerings() {
            let decided = catalogue.node_labels(offering);
            let labels = NewNodeLabels { offering: &decided, template: &pool.labels, pool: &pool.name };
            if pool.requirements.iter().all(|requirement| rules::matches(requirement, &labels)) {
                let name = format!("extra{}", nodes.len());
                nodes.push((offering.id.zone.to_string(), new_node(snapshot, pool, offering, &name)));
            }
        }
    }
    nodes
}

fn new_node(snapshot: &Snapshot, pool: &Pool, offering: &Offering, name: &str) -> Value {
    let catalogue = catalogue(snapshot);
    let mut labels = pool.labels.clone();
    labels.extend(catalogue.node_labels(offering));
    labels.insert(NODEPOOL_LABEL.to_owned(), pool.name.0.clone());
    labels.insert(HOSTNAME.to_owned(), name.to_owned());
    let kind = &catalogue.types()[&offering.id.instance_type];
    let room = intake::allocatable_amounts(&kind.allocatable);
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": pool.taints.iter().map(taint).collect::<Vec<_>>()},
        "status": {
            "allocatable": room, "capacity": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Case", "message": "as promised"}],
        },
    })
}

fn taint(taint: &Taint) -> Value {
    json!({"key": taint.key, "value": taint.value, "effect": taint.effect})
}

/// Returns the pods of DaemonSets on these nodes, already bound, as their controller and the scheduler would do.
pub fn daemons(case: &Case, snapshot: &Snapshot, nodes: &[Value]) -> Vec<Value> {
    let mut pods = Vec::new();
    for object in nodes {
        let read = serde_json::from_value(object.clone()).expect("nodes of cases are nodes");
        let node = intake::node(&read).expect("nodes of cases can be read");
        let labels: &BTreeMap<String, String> = &node.labels;
        for (at, set) in case.daemonsets.iter().enumerate() {
            let template = &set["spec"]["template"];
            let namespace = set["metadata"]["namespace"].as_str().unwrap_or_default();
            let known = snapshot
                .daemonsets
                .values()
                .find(|one| one.key.name == name(set) && one.key.namespace == namespace);
            let spec = &known.expect("every DaemonSet was read").spec;
            if !rules::daemonset_lands(spec, labels, &node.taints) {
                continue;
            }
            let mut pod = template.clone();
            pod["metadata"]["name"] = json!(format!("{}-{:03}{at:02}", name(set), pods.len()));
            pod["metadata"]["namespace"] = json!(namespace);
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1", "kind": "DaemonSet", "name": name(set), "uid": "none", "controller": true,
            }]);
            pod["spec"]["nodeName"] = json!(node.name);
            pods.push(pod);
        }
    }
    pods
}

/// Adds the taint that keeps a node for its own pods.
pub fn reserve(mut node: Value) -> Value {
    let taint = json!({"key": RESERVED, "value": name(&node), "effect": "NoSchedule"});
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    node["spec"]["taints"] = json!(taints.into_iter().chain([taint]).collect::<Vec<_>>());
    node
}

/// Adds the toleration that lets a pod on its reserved node, or on all of them.
pub fn admit(mut pod: Value, node: Option<&str>) -> Value {
    let toleration = match node {
        Some(node) => json!({"key": RESERVED, "operator": "Equal", "value": node, "effect": "NoSchedule"}),
        None => json!({"key": RESERVED, "operator": "Exists"}),
    };
    let tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    pod["spec"]["tolerations"] = json!(tolerations.into_iter().chain([toleration]).collect::<Vec<_>>());
    pod
}
