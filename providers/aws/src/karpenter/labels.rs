//! Maps the labels of Karpenter's provider for AWS and of EKS to Poolwright's.

use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::labels;

/// Returns the counterpart of a label under a domain of AWS; `None` for other keys.
///
/// EKS Auto Mode has the labels of Karpenter's provider under a domain of its own
/// (<https://docs.aws.amazon.com/eks/latest/userguide/create-node-pool.html#auto-supported-labels>).
pub(super) fn label(key: &str) -> Option<LabelMapping> {
    let (domain, name) = key.split_once('/')?;
    match domain {
        "karpenter.k8s.aws" => Some(of_instance(name)),
        "eks.amazonaws.com" => Some(of_eks(name)),
        "topology.k8s.aws" if name == "zone-id" => Some(LabelMapping::NoCounterpart(
            "Choose zones by their names with `topology.kubernetes.io/zone`.",
        )),
        "topology.ebs.csi.aws.com" if name == "zone" => Some(LabelMapping::Renamed(labels::ZONE)),
        _ if is_under(domain, "k8s.aws") || is_under(domain, "amazonaws.com") => {
            Some(LabelMapping::NoCounterpart(
                "AWS or a tool for AWS sets it on nodes, and Poolwright does not know its values. Use the labels of docs/nodepool.md instead.",
            ))
        }
        _ => None,
    }
}

fn is_under(domain: &str, parent: &str) -> bool {
    domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn of_eks(name: &str) -> LabelMapping {
    match name {
        _ if name.starts_with("instance-") => of_instance(name),
        "compute-type" => LabelMapping::Unneeded(
            "auto",
            "All nodes of EKS Auto Mode have the value `auto`, and no node of Poolwright does. Select nodes by other labels.",
        ),
        "capacityType" => {
            LabelMapping::Absent("Write `poolwright.dev/capacity-type`, with `spot` or `on-demand`.")
        }
        "nodeclass" => {
            LabelMapping::NoCounterpart("A pool names its node class in `nodeClassRef`, not by a label.")
        }
        _ => LabelMapping::Absent(
            "EKS sets it on nodes of its own. Use the labels of docs/nodepool.md instead.",
        ),
    }
}

fn of_instance(name: &str) -> LabelMapping {
    match name {
        "instance-family" => LabelMapping::Renamed(labels::INSTANCE_FAMILY),
        "instance-gpu-name" => LabelMapping::Renamed(labels::GPU_MODEL),
        "instance-gpu-count" => LabelMapping::Renamed(labels::GPU_COUNT),
        "instance-gpu-memory" => LabelMapping::Renamed(labels::GPU_MEMORY),
        "instance-gpu-manufacturer" => LabelMapping::GpuManufacturer,
        "instance-cpu" => LabelMapping::Cpu,
        "instance-category" => LabelMapping::Category,
        "instance-generation" => LabelMapping::Generation,
        "instance-size" => LabelMapping::Size,
        "instance-memory" => LabelMapping::NoCounterpart(
            "Write `poolwright.dev/instance-memory`, which counts allocatable MiB; that is less than the memory of the machine.",
        ),
        "instance-cpu-manufacturer" => LabelMapping::NoCounterpart(
            "Choose processors with `kubernetes.io/arch` or by `poolwright.dev/instance-family`.",
        ),
        "instance-tenancy" => {
            LabelMapping::Only(Some("default"), "Poolwright launches with shared tenancy only.")
        }
        _ if name.starts_with("instance-accelerator-") => {
            LabelMapping::Only(None, "Poolwright buys no accelerators but NVIDIA GPUs.")
        }
        "ec2nodeclass" => {
            LabelMapping::NoCounterpart("A pool names its node class in `nodeClassRef`, not by a label.")
        }
        _ if name.starts_with("placement-group") => LabelMapping::NoCounterpart(
            "Name the group, and its partition, in `placementGroup` of the EC2NodeClass.",
        ),
        _ if name.starts_with("capacity-reservation") => LabelMapping::NoCounterpart(
            "Select reservations in `capacityReservationSelectorTerms` of the EC2NodeClass, and let the pool buy in them with \
             `poolwright.dev/capacity-type: reserved`.",
        ),
        _ => LabelMapping::NoCounterpart(
            "Name the types that have it with `node.kubernetes.io/instance-type` or `poolwright.dev/instance-family`.",
        ),
    }
}
