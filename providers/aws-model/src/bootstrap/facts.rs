//! What a node must be told.

use std::collections::BTreeMap;
use std::net::IpAddr;

use poolwright_terms::Taint;

use super::bottlerocket::NvidiaPlugin;
use super::secret::BootstrapToken;

/// The cluster that nodes join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// Its name.
    pub name: String,
    /// Where its API server is: `https://host` or `https://host:port`.
    pub endpoint: String,
    /// The certificates of its authority, PEM in base64, as EKS's DescribeCluster gives them.
    pub ca: String,
    /// The addresses of its Services: `10.100.0.0/16`. nodeadm finds the name server by it.
    pub service_cidr: Option<String>,
}

/// The node, as it was planned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its labels. Those that a kubelet may not give itself are left out: the controller writes them when the node is there.
    pub labels: BTreeMap<String, String>,
    /// Its taints, in this order.
    pub taints: Vec<Taint>,
    /// Settings of its kubelet.
    pub kubelet: Kubelet,
    /// Whether the disks that its instance type brings along are one RAID 0 for what containers and the kubelet write.
    pub instance_store_raid: bool,
}

/// Settings of a kubelet, by the names of KubeletConfiguration. What is absent or empty is as the image has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubelet {
    /// The most pods.
    pub max_pods: Option<u32>,
    /// The most pods per core.
    pub pods_per_core: Option<u32>,
    /// Quantities kept from pods for the system, by resource.
    pub system_reserved: BTreeMap<String, String>,
    /// Quantities kept from pods for Kubernetes, by resource.
    pub kube_reserved: BTreeMap<String, String>,
    /// Quantities or percentages, by signal.
    pub eviction_hard: BTreeMap<String, String>,
    /// Quantities or percentages, by signal.
    pub eviction_soft: BTreeMap<String, String>,
    /// Durations, by signal.
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// Seconds.
    pub eviction_max_pod_grace_period: Option<u32>,
    /// Name servers.
    pub cluster_dns: Vec<IpAddr>,
    /// Whether limits on CPU are enforced by quota.
    pub cpu_cfs_quota: Option<bool>,
    /// Percent.
    pub image_gc_high_threshold_percent: Option<u8>,
    /// Percent.
    pub image_gc_low_threshold_percent: Option<u8>,
}

/// How a node joins the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// Amazon Linux 2023 for EKS: nodeadm.
    Al2023,
    /// Bottlerocket.
    Bottlerocket {
        /// Settings of the NVIDIA device plugin that is part of its images for GPUs, where the pool has any.
        nvidia: Option<NvidiaPlugin>,
    },
    /// Ubuntu with kubeadm, or any other system with cloud-init, kubeadm and a kubelet.
    Ubuntu(KubeadmFacts),
    /// The user's own text.
    Custom,
}

/// What `kubeadm join` needs beside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeadmFacts {
    /// The token that proves to the cluster that the node may join. Short-lived. The cluster proves itself to the node by its
    /// certificates.
    pub token: BootstrapToken,
    /// Whether a cloud controller manager completes nodes: the kubelet is told `--cloud-provider=external`.
    pub external_cloud_provider: bool,
}
