//! The labels of Poolwright for nodes of Karpenter that stay: converted selectors of pods ask for them.

use std::collections::BTreeMap;

use poolwright_api::Operator;
use poolwright_catalog::InstanceTypeName;
use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::{keys, labels as ours};
use serde_json::{Map, Value};

use super::labels::{label, names_pool};
use super::values::{ReservedCpu, whole_cores};

/// Returns labels of Poolwright for a node with these labels. With them, it meets what converted selectors ask for if it met them before.
/// Labels that the node has are not among them.
pub fn labels_of_node(has: &Map<String, Value>) -> BTreeMap<&'static str, String> {
    let family = has.get(ours::INSTANCE_TYPE).and_then(Value::as_str);
    let family = family.map(|name| InstanceTypeName::from(name).family().to_owned());
    let mut more = BTreeMap::new();
    for (key, value) in has {
        let Some((to, value)) = value.as_str().and_then(|value| counterpart(key, value, family.as_deref()))
        else {
            continue;
        };
        if !has.contains_key(to) {
            more.entry(to).or_insert(value);
        }
    }
    // A selector of the manufacturer NVIDIA becomes one of any model.
    let is_of_another =
        |(key, value): (&String, &Value)| label(key) == LabelMapping::GpuManufacturer && value != "nvidia";
    if has.iter().any(is_of_another) {
        more.remove(ours::GPU_MODEL);
    }
    more
}

/// Returns the label with its value that selectors of a label become. `family` is that of the node's type.
fn counterpart(key: &str, value: &str, family: Option<&str>) -> Option<(&'static str, String)> {
    if names_pool(key) {
        return Some((keys::NODEPOOL_LABEL, value.to_owned()));
    }
    match label(key) {
        LabelMapping::Renamed(to) => Some((to, value.to_owned())),
        LabelMapping::Cpu => {
            let (_, cores) = whole_cores(Operator::In, &[value.to_owned()], ReservedCpu::default()).ok()?;
            Some((ours::INSTANCE_CPU, cores.into_iter().next()?))
        }
        LabelMapping::Category | LabelMapping::Generation | LabelMapping::OfType(ours::INSTANCE_FAMILY) => {
            Some((ours::INSTANCE_FAMILY, family?.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mapped::{Mapped, mapped};
    use super::super::values::is_met_by_all;
    use super::*;

    fn object(labels: Value) -> Map<String, Value> {
        let Value::Object(labels) = labels else { panic!("no object") };
        labels
    }

    #[test]
    fn a_node_meets_the_converted_selector_of_each_of_its_labels() {
        let mut node = object(json!({
            "karpenter.k8s.aws/instance-category": "g",
            "karpenter.k8s.aws/instance-cpu": "48",
            "karpenter.k8s.aws/instance-cpu-manufacturer": "amd",
            "karpenter.k8s.aws/instance-family": "g5",
            "karpenter.k8s.aws/instance-generation": "5",
            "karpenter.k8s.aws/instance-gpu-count": "4",
            "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
            "karpenter.k8s.aws/instance-gpu-memory": "24576",
            "karpenter.k8s.aws/instance-gpu-name": "a10g",
            "karpenter.k8s.aws/instance-memory": "196608",
            "karpenter.k8s.aws/instance-size": "12xlarge",
            "karpenter.k8s.aws/instance-tenancy": "default",
            "karpenter.sh/capacity-type": "spot",
            "karpenter.sh/nodepool": "gpu",
            "karpenter.sh/registered": "true",
            "node.kubernetes.io/instance-type": "g5.12xlarge",
        }));
        let more = labels_of_node(&node);
        let expected = [
            (ours::CAPACITY_TYPE, "spot"),
            (ours::GPU_COUNT, "4"),
            (ours::GPU_MEMORY, "24576"),
            (ours::GPU_MODEL, "a10g"),
            (ours::INSTANCE_CPU, "47"),
            (ours::INSTANCE_FAMILY, "g5"),
            (keys::NODEPOOL_LABEL, "gpu"),
        ];
        assert_eq!(more, BTreeMap::from(expected.map(|(key, value)| (key, value.to_owned()))));
        let had = node.clone();
        node.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value.into())));
        for (key, value) in &had {
            let value = value.as_str().expect("text").to_owned();
            if let Mapped::To { key: to, operator, values, .. } = mapped(key, Operator::In, vec![value]) {
                let has = node.get(to).and_then(Value::as_str);
                assert!(is_met_by_all(operator, &values, has), "{key}: {to} {operator:?} {values:?}");
            }
        }
    }

    #[test]
    fn labels_that_a_node_has_stay_and_gpus_of_others_are_no_model() {
        let has = object(json!({
            "karpenter.k8s.aws/instance-gpu-manufacturer": "amd",
            "karpenter.k8s.aws/instance-gpu-name": "radeon-pro-v520",
            "karpenter.sh/capacity-type": "spot",
            "poolwright.dev/capacity-type": "on-demand",
            "team": "ml",
        }));
        assert!(labels_of_node(&has).is_empty(), "{:?}", labels_of_node(&has));
    }
}
