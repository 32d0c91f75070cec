//! The Node object of an instance, with everything that a kubelet would register.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Node, NodeAddress, NodeCondition, NodeSpec, NodeStatus, NodeSystemInfo, Taint,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use poolwright_catalog::ResourceList;
use poolwright_terms::{RegisteredReason, labels};

use crate::reason::KwokReason;
use crate::record::Record;

/// The label with the namespace in which the instances are stored.
pub(crate) const HOME_LABEL: &str = "kwok.poolwright.dev/instances";
/// The annotation of nodes that KWOK manages.
const KWOK_ANNOTATION: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// Makes the node of an instance that joins at `now`.
pub(crate) fn node(record: &Record, namespace: &str, now: Timestamp) -> Node {
    let mut own_labels = record.node.labels.clone();
    own_labels.insert(labels::HOSTNAME.to_owned(), record.claim.clone());
    own_labels.insert(HOME_LABEL.to_owned(), namespace.to_owned());
    let mut annotations = record.node.annotations.clone();
    annotations.insert(KWOK_ANNOTATION.0.to_owned(), KWOK_ANNOTATION.1.to_owned());
    let label = |key| record.node.labels.get(key).cloned().unwrap_or_default();
    Node {
        metadata: ObjectMeta {
            name: Some(record.claim.clone()),
            labels: Some(own_labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(record.provider_id()),
            taints: Some(record.node.taints.iter().map(taint).collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            capacity: Some(quantities(&record.node.capacity)),
            allocatable: Some(quantities(&record.node.allocatable)),
            addresses: Some(vec![NodeAddress {
                type_: "Hostname".to_owned(),
                address: record.claim.clone(),
            }]),
            conditions: Some(vec![NodeCondition {
                type_: "Ready".to_owned(),
                status: "True".to_owned(),
                reason: Some(RegisteredReason::from(KwokReason::NodeWithoutMachine).to_string()),
                message: Some("made by the kwok provider; there is no machine".to_owned()),
                last_heartbeat_time: Some(Time(now)),
                last_transition_time: Some(Time(now)),
            }]),
            node_info: Some(NodeSystemInfo {
                architecture: label(labels::ARCH),
                operating_system: label(labels::OS),
                kubelet_version: "none".to_owned(),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

/// Returns whether the node belongs to the instance, by its provider id.
pub(crate) fn is_of(node: &Node, record: &Record) -> bool {
    provider_id(node) == Some(&record.provider_id())
}

/// Returns the provider id of the node.
pub(crate) fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

fn taint(taint: &poolwright_terms::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: (!taint.value.is_empty()).then(|| taint.value.clone()),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}

fn quantities(list: &ResourceList) -> BTreeMap<String, Quantity> {
    list.iter().map(|(name, amount)| (name.to_string(), Quantity(name.quantity(amount)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn a_node_joins_with_everything_it_was_launched_with() {
        let record = record();
        let node = node(&record, "poolwright-kwok", record.due);
        assert!(is_of(&node, &record));
        assert_eq!(node.metadata.name.as_deref(), Some("gpu-1"));
        let labels = node.metadata.labels.expect("labels");
        assert_eq!(labels["team"], "research");
        assert_eq!(labels[poolwright_terms::labels::HOSTNAME], "gpu-1");
        let annotations = node.metadata.annotations.expect("annotations");
        assert_eq!(annotations["kwok.x-k8s.io/node"], "fake");
        assert_eq!(annotations["example.com/owner"], "us");
        let taints = node.spec.expect("a spec").taints.expect("taints");
        assert_eq!(
            (taints[0].key.as_str(), taints[0].effect.as_str()),
            ("poolwright.dev/unregistered", "NoExecute")
        );
        let allocatable = node.status.expect("a status").allocatable.expect("allocatable");
        assert_eq!(allocatable["cpu"].0, "3920m");
        assert_eq!(allocatable["nvidia.com/gpu"].0, "1");
    }

    #[test]
    fn a_node_of_the_same_name_is_not_the_instance_s_unless_its_provider_id_is() {
        let record = record();
        let mut other = node(&record, "poolwright-kwok", record.due);
        other.spec = Some(NodeSpec {
            provider_id: Some("kwok://us-east-1a/i-other".to_owned()),
            ..NodeSpec::default()
        });
        assert!(!is_of(&other, &record));
        other.spec = None;
        assert!(!is_of(&other, &record));
    }
}
