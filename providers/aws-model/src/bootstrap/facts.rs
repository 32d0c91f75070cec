//! The input of user data: the cluster, the node and the image family.

use std::collections::BTreeMap;
use std::net::IpAddr;

use poolwright_terms::Taint;

use super::bottlerocket::NvidiaPlugin;
use super::secret::BootstrapToken;

/// The cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The name.
    pub name: String,
    /// The address of the API server: `https://host` or `https://host:port`.
    pub endpoint: String,
    /// The CA certificates of the API server as base64-encoded PEM, in the format of EKS's DescribeCluster.
    pub ca: String,
    /// The address range of Services: `10.100.0.0/16`. nodeadm derives the address of the DNS server from it.
    pub service_cidr: Option<String>,
}

/// The planned node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The labels. User data omits labels that a kubelet may not set; the controller adds them once the node has joined.
    pub labels: BTreeMap<String, String>,
    /// The taints, in this order.
    pub taints: Vec<Taint>,
    /// The kubelet settings.
    pub kubelet: Kubelet,
    /// Whether the local disks form a RAID 0 for containers and the kubelet.
    pub instance_store_raid: bool,
}

/// Kubelet settings with the field names of KubeletConfiguration. The image's default applies to absent or empty settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubelet {
    /// The maximum number of pods.
    pub max_pods: Option<u32>,
    /// The maximum number of pods per core.
    pub pods_per_core: Option<u32>,
    /// Resources reserved for the system.
    pub system_reserved: BTreeMap<String, String>,
    /// Resources reserved for Kubernetes components.
    pub kube_reserved: BTreeMap<String, String>,
    /// Hard eviction thresholds by signal: quantities or percentages.
    pub eviction_hard: BTreeMap<String, String>,
    /// Soft eviction thresholds by signal: quantities or percentages.
    pub eviction_soft: BTreeMap<String, String>,
    /// Grace periods of soft evictions by signal.
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// The maximum pod grace period of soft evictions, in seconds.
    pub eviction_max_pod_grace_period: Option<u32>,
    /// The addresses of the cluster DNS servers.
    pub cluster_dns: Vec<IpAddr>,
    /// Whether CPU limits are enforced with CFS quotas.
    pub cpu_cfs_quota: Option<bool>,
    /// The disk usage that starts image garbage collection, in percent.
    pub image_gc_high_threshold_percent: Option<u8>,
    /// The disk usage that ends image garbage collection, in percent.
    pub image_gc_low_threshold_percent: Option<u8>,
}

/// How a node joins the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// Amazon Linux 2023 for EKS, with nodeadm.
    Al2023,
    /// Bottlerocket.
    Bottlerocket {
        /// Settings of the NVIDIA device plugin in the GPU images, if the pool has any.
        nvidia: Option<NvidiaPlugin>,
    },
    /// Ubuntu or another system with cloud-init, kubeadm and a kubelet.
    Ubuntu(KubeadmFacts),
    /// The user's own user data.
    Custom,
}

/// The input of `kubeadm join` besides the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeadmFacts {
    /// A short-lived token by which the node authenticates to the cluster. The node verifies the cluster by its CA certificates.
    pub token: BootstrapToken,
    /// Whether a cloud controller manager runs, so that the kubelet gets `--cloud-provider=external`.
    pub external_cloud_provider: bool,
}
