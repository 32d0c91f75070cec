//! The kubelet settings, with the field names of KubeletConfiguration
//! (<https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>).

use std::collections::BTreeMap;

use kube::KubeSchema;
use poolwright_api::{Amount, DurationText};
use serde::{Deserialize, Serialize};

/// Settings of the kubelet. The image's default applies to each setting that is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!has(self.imageGCHighThresholdPercent) || !has(self.imageGCLowThresholdPercent) || \
         self.imageGCHighThresholdPercent > self.imageGCLowThresholdPercent"
    )
    .message("imageGCHighThresholdPercent must be more than imageGCLowThresholdPercent"),
    validation = Rule::new(
        "has(self.evictionSoft) == has(self.evictionSoftGracePeriod) && (!has(self.evictionSoft) || \
         (self.evictionSoft.all(k, k in self.evictionSoftGracePeriod) && self.evictionSoftGracePeriod.all(k, k in self.evictionSoft)))"
    )
    .message("evictionSoft and evictionSoftGracePeriod must have the same signals")
)]
pub struct KubeletSettings {
    /// The maximum number of pods on a node. The default is what the instance type and its network allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_pods: Option<i32>,
    /// The maximum number of pods per core. `maxPods` still applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub pods_per_core: Option<i32>,
    /// Resources reserved for the system: `cpu`, `memory`, `ephemeral-storage`, `pid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 4))]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'] && isQuantity(string(self[k])) && \
             !string(self[k]).startsWith('-'))"
        )
        .message("systemReserved takes non-negative quantities of cpu, memory, ephemeral-storage and pid")
    )]
    pub system_reserved: BTreeMap<String, Amount>,
    /// Resources reserved for Kubernetes components, instead of the image's default: `cpu`, `memory`, `ephemeral-storage`, `pid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 4))]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'] && isQuantity(string(self[k])) && \
             !string(self[k]).startsWith('-'))"
        )
        .message("kubeReserved takes non-negative quantities of cpu, memory, ephemeral-storage and pid")
    )]
    pub kube_reserved: BTreeMap<String, Amount>,
    /// Hard eviction thresholds: a quantity or a percentage for `memory.available`, `nodefs.available`, `nodefs.inodesFree`,
    /// `imagefs.available`, `imagefs.inodesFree`, `pid.available`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds_schema")]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', \
             'pid.available'])"
        )
        .message("evictionHard takes memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and \
                  pid.available")
    )]
    pub eviction_hard: BTreeMap<String, String>,
    /// Soft eviction thresholds. The kubelet evicts pods after the grace period in `evictionSoftGracePeriod`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds_schema")]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', \
             'pid.available'])"
        )
        .message("evictionSoft takes memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and \
                  pid.available")
    )]
    pub eviction_soft: BTreeMap<String, String>,
    /// The grace period of each signal in `evictionSoft`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 6))]
    pub eviction_soft_grace_period: BTreeMap<String, DurationText>,
    /// The maximum termination grace period of pods that a soft threshold evicts, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// IP addresses of the cluster DNS server. Set it if nodes cannot determine them.
    #[serde(default, rename = "clusterDNS", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), inner(length(min = 2, max = 45), regex(pattern = r"^[0-9A-Fa-f:.]+$")))]
    pub cluster_dns: Vec<String>,
    /// Whether the kubelet enforces CPU limits with CFS quotas. The default of Kubernetes is true.
    #[serde(default, rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// The disk usage, in percent, above which the kubelet removes images.
    #[serde(default, rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage, in percent, down to which the kubelet removes images.
    #[serde(default, rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
}

/// Returns the schema of eviction thresholds: non-negative quantities, or percentages.
fn thresholds_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 6,
        "additionalProperties": {
            "type": "string", "minLength": 1, "maxLength": 40,
            "pattern": "^[0-9]+([.][0-9]+)?(%|m|k|Ki|M|Mi|G|Gi|T|Ti)?$",
        },
    })
}

impl KubeletSettings {
    /// Returns whether no setting is present.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
