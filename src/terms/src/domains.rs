//! Who defines a key: Karpenter, another autoscaler, a cloud, or the user.

use crate::{CapacityType, keys, labels};

/// The domains under which other autoscalers and clouds define labels and resources of nodes. Users give nodes no labels under them.
const OTHERS: [&str; 20] = [
    "alibabacloud.com",
    "aliyun.com",
    "azure.com",
    "cast.ai",
    "cloud.google.com",
    "cluster-autoscaler.kubernetes.io",
    "csi.aws.com",
    "digitalocean.com",
    "eks.amazonaws.com",
    "eksctl.io",
    "gke.io",
    "ibm-cloud.kubernetes.io",
    "k8s.aws",
    "linode.com",
    "oraclecloud.com",
    "ovhcloud.com",
    "scaleway.com",
    "spot.io",
    "spotinst.io",
    "vpc.amazonaws.com",
];

/// Further domains under which programs and clouds set labels of nodes. `nvidia.com` and `amd.com` define resources too, which is why
/// these are not among [`OTHERS`].
const LABELLERS: [&str; 14] = [
    "amazonaws.com",
    "amd.com",
    "cattle.io",
    "cluster-api",
    "coreweave.cloud",
    "coreweave.com",
    "habana.ai",
    "intel.com",
    "k8s.io",
    "kubernetes.io",
    "nvidia.com",
    "openshift.io",
    "rancher.io",
    "x-k8s.io",
];

/// The domain of the labels that tell the roles of nodes.
const NODE_ROLE: &str = "node-role.kubernetes.io";
/// The domain that Kubernetes keeps for labels of users which a kubelet may not set.
const NODE_RESTRICTION: &str = "node-restriction.kubernetes.io";
/// The label by which NVIDIA's GPU operator finds nodes with GPUs. Users put it on pools, so that its agents run there.
const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Returns whether Karpenter or one of its providers defines the key.
pub fn is_karpenters(key: &str) -> bool {
    domain(key).is_some_and(|domain| domain.split('.').any(|part| part == "karpenter"))
}

/// Returns whether another autoscaler or a cloud defines the key.
pub fn is_foreign(key: &str) -> bool {
    domain(key).is_some_and(|domain| OTHERS.iter().any(|parent| is_under(domain, parent)))
}

/// Returns whether a program or a cloud sets the label on nodes. On the template of a pool it would claim what they decide.
pub fn is_set_by_others(key: &str) -> bool {
    if [GPU_PRESENT, labels::DEVICE_PLUGIN_CONFIG].contains(&key) {
        return false;
    }
    is_karpenters(key)
        || is_foreign(key)
        || domain(key).is_some_and(|domain| match domain {
            NODE_RESTRICTION => false,
            NODE_ROLE => is_control_plane(key),
            _ => LABELLERS.iter().any(|parent| is_under(domain, parent)),
        })
}

/// Returns whether only nodes of the control plane have the label.
pub fn is_control_plane(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, role)| {
        domain == NODE_ROLE && ["control-plane", "controlplane", "etcd", "master"].contains(&role)
    })
}

/// Returns whether a label of the user's own names a GPU model, as the label `accelerator` does by an old custom of Kubernetes. The
/// instance type decides the model.
pub fn names_gpu_model(key: &str, value: &str) -> bool {
    key == "accelerator" && value.to_lowercase().starts_with("nvidia-")
}

/// Returns the capacity type that a value means, if the label has the meaning of [`labels::CAPACITY_TYPE`].
pub fn capacity_type(key: &str, value: &str) -> Option<CapacityType> {
    if counterpart(key) != Some(labels::CAPACITY_TYPE) {
        return None;
    }
    match (key, value.to_lowercase().replace('_', "-").as_str()) {
        ("cloud.google.com/gke-spot", "true") | (_, "spot" | "ec2spot") => Some(CapacityType::Spot),
        (_, "on-demand" | "ondemand" | "normal" | "regular" | "standard") => Some(CapacityType::OnDemand),
        (_, "reserved") => Some(CapacityType::Reserved),
        _ => None,
    }
}

/// Returns Poolwright's label with the meaning of a label that another autoscaler, a cloud or a device plugin sets.
///
/// Sources: <https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>,
/// <https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html>,
/// <https://cloud.google.com/kubernetes-engine/docs/how-to/gpus>,
/// <https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery>,
/// <https://github.com/kubernetes/autoscaler/tree/master/cluster-autoscaler/cloudprovider>.
pub fn counterpart(key: &str) -> Option<&'static str> {
    let (domain, name) = key.split_once('/')?;
    match (domain, name) {
        ("karpenter.sh", "capacity-type")
        | ("eks.amazonaws.com", "capacityType")
        | ("cloud.google.com", "gke-spot" | "gke-provisioning")
        | ("kubernetes.azure.com", "scalesetpriority")
        | ("node.kubernetes.io", "lifecycle") => Some(labels::CAPACITY_TYPE),
        ("karpenter.sh", "nodepool" | "provisioner-name")
        | ("eks.amazonaws.com", "nodegroup")
        | ("cloud.google.com", "gke-nodepool")
        | ("alpha.eksctl.io", "nodegroup-name")
        | ("kops.k8s.io", "instancegroup")
        | ("kubernetes.azure.com", "agentpool") => Some(keys::NODEPOOL_LABEL),
        ("cloud.google.com", "machine-family") => Some(labels::INSTANCE_FAMILY),
        ("cloud.google.com", "gke-accelerator")
        | ("nvidia.com", "gpu.product")
        | ("gpu.nvidia.com", "model")
        | ("k8s.amazonaws.com" | "cluster-api", "accelerator") => Some(labels::GPU_MODEL),
        ("cloud.google.com", "gke-accelerator-count")
        | ("nvidia.com", "gpu.count")
        | ("gpu.nvidia.com", "count") => Some(labels::GPU_COUNT),
        ("nvidia.com", "gpu.memory") => Some(labels::GPU_MEMORY),
        // Karpenter's providers, and services that run Karpenter, have these names under domains of their own.
        _ if is_karpenters(key) || is_foreign(key) => of_instance(name),
        _ => None,
    }
}

/// Returns whether `poolwright convert` translates a label that [`counterpart`] knows, in the selectors of pods.
pub fn is_converted(key: &str) -> bool {
    match key.split_once('/') {
        Some(("karpenter.sh", name)) => ["capacity-type", "nodepool", "provisioner-name"].contains(&name),
        Some(("karpenter.k8s.aws" | "eks.amazonaws.com", name)) => of_instance(name).is_some(),
        _ => false,
    }
}

/// Returns Poolwright's label with the meaning of a label of an instance type, by its name without the domain.
fn of_instance(name: &str) -> Option<&'static str> {
    match name {
        "instance-family" => Some(labels::INSTANCE_FAMILY),
        "instance-cpu" => Some(labels::INSTANCE_CPU),
        "instance-memory" => Some(labels::INSTANCE_MEMORY),
        "instance-gpu-name" => Some(labels::GPU_MODEL),
        "instance-gpu-count" => Some(labels::GPU_COUNT),
        "instance-gpu-memory" => Some(labels::GPU_MEMORY),
        _ => None,
    }
}

fn is_under(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn domain(key: &str) -> Option<&str> {
    key.split_once('/').map(|(domain, _)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_by_its_domain_and_not_by_its_name() {
        for key in
            ["karpenter.sh/nodepool", "karpenter.k8s.gcp/instance-size", "compatibility.karpenter.k8s.aws/x"]
        {
            assert!(is_karpenters(key), "{key}");
        }
        for key in [
            "cloud.google.com/gke-spot",
            "topology.gke.io/zone",
            "kubernetes.azure.com/mode",
            "eks.amazonaws.com/nodegroup",
            "alpha.eksctl.io/nodegroup-name",
            "topology.k8s.aws/zone-id",
            "topology.ebs.csi.aws.com/zone",
        ] {
            assert!(is_foreign(key) && !is_karpenters(key), "{key}");
        }
        for key in [
            "example.com/karpenter-pool",
            "team",
            "mycloud.google.community/x",
            "notazure.com/x",
            "karpenter",
        ] {
            assert!(!is_foreign(key) && !is_karpenters(key), "{key}");
        }
    }

    #[test]
    fn labels_that_programs_and_clouds_set_are_told_from_those_of_users() {
        for key in [
            "karpenter.sh/initialized",
            "k8s.amazonaws.com/accelerator",
            "kops.k8s.io/instancegroup",
            "feature.node.kubernetes.io/pci-10de.present",
            "node-role.kubernetes.io/control-plane",
            "nvidia.com/mig.strategy",
            "gpu.nvidia.com/model",
            "amd.com/gpu.device-id",
            "habana.ai/gaudi",
            "topology.k8s.aws/network-node-layer-1",
            "node.openshift.io/os_id",
        ] {
            assert!(is_set_by_others(key), "{key}");
        }
        for key in [
            "team",
            "accelerator",
            "example.com/tier",
            "notk8s.io/tier",
            "node-role.kubernetes.io/gpu",
            "node-restriction.kubernetes.io/tenant",
            GPU_PRESENT,
            labels::DEVICE_PLUGIN_CONFIG,
        ] {
            assert!(!is_set_by_others(key), "{key}");
        }
        assert!(!is_control_plane("node-role.kubernetes.io/gpu") && !is_control_plane("example.com/master"));
    }

    #[test]
    fn the_values_of_other_programs_for_capacity_types_are_read() {
        for (key, value, meant) in [
            ("karpenter.sh/capacity-type", "spot", Some(CapacityType::Spot)),
            ("eks.amazonaws.com/capacityType", "ON_DEMAND", Some(CapacityType::OnDemand)),
            ("cloud.google.com/gke-spot", "true", Some(CapacityType::Spot)),
            ("node.kubernetes.io/lifecycle", "Ec2Spot", Some(CapacityType::Spot)),
            ("eks.amazonaws.com/capacityType", "true", None),
            ("example.com/lifecycle", "spot", None),
        ] {
            assert_eq!(capacity_type(key, value), meant, "{key}={value}");
        }
    }

    #[test]
    fn labels_of_instance_types_have_a_counterpart_under_the_domain_of_any_provider() {
        for domain in ["karpenter.k8s.aws", "karpenter.k8s.gcp", "eks.amazonaws.com"] {
            let of = |name: &str| counterpart(&format!("{domain}/{name}"));
            assert_eq!(of("instance-cpu"), Some(labels::INSTANCE_CPU), "{domain}");
            assert_eq!(of("instance-gpu-name"), Some(labels::GPU_MODEL), "{domain}");
            assert_eq!(of("instance-hypervisor"), None, "{domain}");
        }
        assert_eq!(counterpart("example.com/instance-cpu"), None);
        // It says which service runs the node, which is no capacity type.
        assert_eq!(counterpart("eks.amazonaws.com/compute-type"), None);
        assert_eq!(counterpart("eks.amazonaws.com/capacityType"), Some(labels::CAPACITY_TYPE));
    }
}
