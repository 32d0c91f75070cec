//! Who defines a key: Karpenter, another autoscaler, a cloud, or the user.

use crate::{keys, labels};

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

/// Returns whether Karpenter or one of its providers defines the key.
pub fn is_karpenters(key: &str) -> bool {
    domain(key).is_some_and(|domain| domain.split('.').any(|part| part == "karpenter"))
}

/// Returns whether another autoscaler or a cloud defines the key.
pub fn is_foreign(key: &str) -> bool {
    let is_under = |domain: &str, parent: &str| {
        domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    domain(key).is_some_and(|domain| OTHERS.iter().any(|parent| is_under(domain, parent)))
}

/// Returns Poolwright's label with the meaning of a label that another autoscaler, a cloud or a device plugin sets.
///
/// Sources: <https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>,
/// <https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html>,
/// <https://cloud.google.com/kubernetes-engine/docs/how-to/gpus>,
/// <https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery>.
pub fn counterpart(key: &str) -> Option<&'static str> {
    let (domain, name) = key.split_once('/')?;
    match (domain, name) {
        ("karpenter.sh", "capacity-type")
        | ("eks.amazonaws.com", "capacityType")
        | ("cloud.google.com", "gke-spot" | "gke-provisioning") => Some(labels::CAPACITY_TYPE),
        ("karpenter.sh", "nodepool" | "provisioner-name")
        | ("eks.amazonaws.com", "nodegroup")
        | ("cloud.google.com", "gke-nodepool")
        | ("alpha.eksctl.io", "nodegroup-name") => Some(keys::NODEPOOL_LABEL),
        ("cloud.google.com", "machine-family") => Some(labels::INSTANCE_FAMILY),
        ("cloud.google.com", "gke-accelerator") | ("nvidia.com", "gpu.product") => Some(labels::GPU_MODEL),
        ("cloud.google.com", "gke-accelerator-count") | ("nvidia.com", "gpu.count") => {
            Some(labels::GPU_COUNT)
        }
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
