//! Settings of the kubelet, by the names of Kubernetes' own KubeletConfiguration
//! (<https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>).

use std::collections::BTreeMap;

use kube::KubeSchema;
use poolwright_api::{Amount, DurationText};
use serde::{Deserialize, Serialize};

/// Settings of the kubelet. What is absent is as the image has it.
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
    .message("each signal of evictionSoft has a time in evictionSoftGracePeriod, and no other has")
)]
pub struct KubeletSettings {
    /// The most pods that a node holds. What the instance type and its network allow when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_pods: Option<i32>,
    /// The most pods per core, within `maxPods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub pods_per_core: Option<i32>,
    /// What is kept from pods for the system: `cpu`, `memory`, `ephemeral-storage`, `pid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 4))]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'] && isQuantity(string(self[k])) && \
             !string(self[k]).startsWith('-'))"
        )
        .message("systemReserved holds quantities, none negative, of cpu, memory, ephemeral-storage and pid")
    )]
    pub system_reserved: BTreeMap<String, Amount>,
    /// What is kept from pods for Kubernetes, instead of what the image keeps: `cpu`, `memory`, `ephemeral-storage`, `pid`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 4))]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'] && isQuantity(string(self[k])) && \
             !string(self[k]).startsWith('-'))"
        )
        .message("kubeReserved holds quantities, none negative, of cpu, memory, ephemeral-storage and pid")
    )]
    pub kube_reserved: BTreeMap<String, Amount>,
    /// How little may be left before pods are evicted at once: a quantity or a percentage of `memory.available`,
    /// `nodefs.available`, `nodefs.inodesFree`, `imagefs.available`, `imagefs.inodesFree`, `pid.available`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds_schema")]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', \
             'pid.available'])"
        )
        .message("evictionHard knows memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and \
                  pid.available")
    )]
    pub eviction_hard: BTreeMap<String, String>,
    /// How little may be left for the time that `evictionSoftGracePeriod` gives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "thresholds_schema")]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', \
             'pid.available'])"
        )
        .message("evictionSoft knows memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and \
                  pid.available")
    )]
    pub eviction_soft: BTreeMap<String, String>,
    /// For how long, by the signals of `evictionSoft`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 6))]
    pub eviction_soft_grace_period: BTreeMap<String, DurationText>,
    /// The most seconds that a pod gets to end when a soft threshold is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 86_400))]
    pub eviction_max_pod_grace_period: Option<i32>,
    /// Addresses of the cluster's name server, where nodes cannot find them out.
    #[serde(default, rename = "clusterDNS", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3), inner(length(min = 2, max = 45), regex(pattern = r"^[0-9A-Fa-f:.]+$")))]
    pub cluster_dns: Vec<String>,
    /// Whether limits on CPU are enforced by quota. Kubernetes' default is yes.
    #[serde(default, rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// How full the disk may get, in percent, before images are removed.
    #[serde(default, rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Down to how full, in percent, images are removed then.
    #[serde(default, rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
}

/// Thresholds of evictions: quantities that are not negative, or percentages.
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
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
