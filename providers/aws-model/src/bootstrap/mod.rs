//! User data: the configuration with which an EC2 instance joins the cluster as the planned node.
//!
//! Each image family has its own format, in a file of its own: nodeadm's NodeConfig (Amazon Linux 2023), TOML (Bottlerocket), a
//! script around `kubeadm join` (Ubuntu), and the user's own text without additions (Custom). The same facts give the same bytes,
//! so that a change of the user data is detected as drift.
//!
//! User data often contains secrets. Errors and debug output therefore never contain any of it.

mod al2023;
mod bottlerocket;
mod facts;
mod mime;
mod names;
mod problem;
mod secret;
mod ubuntu;

use serde_json::{Map, Value, json};

pub use bottlerocket::{DeviceSharing, NvidiaPlugin};
pub use facts::{ClusterFacts, Family, KubeadmFacts, Kubelet, NodeFacts};
pub use problem::{BootstrapError, Problem};
pub use secret::{BootstrapToken, UserData};

/// The maximum size of user data before base64 encoding, in bytes
/// (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html>).
pub const MAX_BYTES: usize = 16 * 1024;

/// Makes the user data of a node. Errors name `object`: `EC2NodeClass gpu`.
pub fn user_data(
    object: &str,
    cluster: &ClusterFacts,
    node: &NodeFacts,
    family: &Family,
    user_data: Option<&UserData>,
) -> Result<UserData, BootstrapError> {
    let user_data = user_data.map_or("", UserData::as_str);
    write(cluster, node, family, user_data)
        .and_then(|text| {
            let (bytes, user_data) = (text.len(), user_data.len());
            if bytes > MAX_BYTES {
                Err(Problem::TooLarge { bytes, user_data })
            } else {
                Ok(UserData::from(text))
            }
        })
        .map_err(|problem| BootstrapError { object: object.to_owned(), problem })
}

fn write(
    cluster: &ClusterFacts,
    node: &NodeFacts,
    family: &Family,
    user_data: &str,
) -> Result<String, Problem> {
    if matches!(family, Family::Custom) {
        return Ok(user_data.to_owned());
    }
    names::check(cluster, node)?;
    match family {
        Family::Al2023 => al2023::write(cluster, node, user_data),
        Family::Bottlerocket { nvidia } => bottlerocket::write(cluster, node, nvidia.as_ref(), user_data),
        Family::Ubuntu(facts) => ubuntu::write(cluster, node, facts, user_data),
        Family::Custom => Ok(user_data.to_owned()),
    }
}

/// Returns the labels that a kubelet may set, in the format of its flag `--node-labels`; `None` if there are none.
fn label_flag(node: &NodeFacts) -> Option<String> {
    let labels: Vec<String> = node
        .labels
        .iter()
        .filter(|(key, _)| names::kubelet_may_set(key))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!labels.is_empty()).then(|| labels.join(","))
}

/// Returns the taints in the format of the Kubernetes API.
fn taints(node: &NodeFacts) -> Value {
    let one = |taint: &poolwright_terms::Taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect.as_str()});
    node.taints.iter().map(one).collect::<Vec<_>>().into()
}

/// Returns the fields of a KubeletConfiguration that are set
/// (<https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>).
fn kubelet_configuration(node: &NodeFacts) -> Map<String, Value> {
    let kubelet = &node.kubelet;
    let dns: Vec<String> = kubelet.cluster_dns.iter().map(ToString::to_string).collect();
    let fields = [
        ("clusterDNS", (!dns.is_empty()).then(|| json!(dns))),
        ("cpuCFSQuota", kubelet.cpu_cfs_quota.map(Value::from)),
        ("evictionHard", map(&kubelet.eviction_hard)),
        ("evictionMaxPodGracePeriod", kubelet.eviction_max_pod_grace_period.map(Value::from)),
        ("evictionSoft", map(&kubelet.eviction_soft)),
        ("evictionSoftGracePeriod", map(&kubelet.eviction_soft_grace_period)),
        ("imageGCHighThresholdPercent", kubelet.image_gc_high_threshold_percent.map(Value::from)),
        ("imageGCLowThresholdPercent", kubelet.image_gc_low_threshold_percent.map(Value::from)),
        ("kubeReserved", map(&kubelet.kube_reserved)),
        ("maxPods", kubelet.max_pods.map(Value::from)),
        ("podsPerCore", kubelet.pods_per_core.map(Value::from)),
        ("systemReserved", map(&kubelet.system_reserved)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn map(values: &std::collections::BTreeMap<String, String>) -> Option<Value> {
    (!values.is_empty()).then(|| json!(values))
}

/// Formats a value as JSON in several lines. JSON is also valid YAML, without ambiguous strings.
fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
