//! Maps the labels of Karpenter's provider for AWS and of EKS to Poolwright's.

use poolwright_catalog::InstanceType;
use poolwright_provider_aws_model::instance::{Hypervisor, described};
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
        "instance-memory"
        | "instance-local-nvme"
        | "instance-hypervisor"
        | "instance-network-bandwidth"
        | "instance-ebs-bandwidth"
        | "instance-encryption-in-transit-supported" => LabelMapping::OfType(labels::INSTANCE_TYPE),
        "instance-cpu-manufacturer"
        | "instance-cpu-sustained-clock-speed-mhz"
        | "instance-capability-flex" => LabelMapping::OfType(labels::INSTANCE_FAMILY),
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

/// The names of the labels that Karpenter's provider sets on nodes.
pub(super) const NAMES: &[&str] = &[
    "capacity-reservation-id",
    "capacity-reservation-interruptible",
    "capacity-reservation-type",
    "ec2nodeclass",
    "instance-accelerator-count",
    "instance-accelerator-manufacturer",
    "instance-accelerator-name",
    "instance-capability-flex",
    "instance-category",
    "instance-cpu",
    "instance-cpu-manufacturer",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-ebs-bandwidth",
    "instance-encryption-in-transit-supported",
    "instance-family",
    "instance-generation",
    "instance-gpu-count",
    "instance-gpu-manufacturer",
    "instance-gpu-memory",
    "instance-gpu-name",
    "instance-hypervisor",
    "instance-local-nvme",
    "instance-memory",
    "instance-network-bandwidth",
    "instance-size",
    "instance-tenancy",
    "placement-group-id",
    "placement-group-partition",
];

/// Labels of Karpenter that EC2's description in the binary does not have, by type of the built-in catalogue. The first line has their
/// names.
const LISTED: &str = include_str!("../../../../fixtures/aws/karpenter-labels.csv");

/// Returns the value of a label that is [`LabelMapping::OfType`] on nodes of a type.
pub(super) fn value_of(key: &str, kind: &InstanceType) -> Option<String> {
    let facts = described(&kind.name)?;
    let (_, name) = key.split_once('/')?;
    match name {
        "instance-memory" => Some(facts.memory_mib.to_string()),
        // Karpenter labels only types that have such disks.
        "instance-local-nvme" => {
            Some(facts.local_nvme_gb).filter(|size| *size > 0).map(|size| size.to_string())
        }
        "instance-hypervisor" => {
            let name = match facts.hypervisor {
                Hypervisor::Nitro => "nitro",
                Hypervisor::Xen => "xen",
                Hypervisor::None => "",
            };
            Some(name.to_owned())
        }
        _ => listed(name, kind),
    }
}

/// Returns the value of a label in the list; `None` if the list does not have the label, or the type lacks it.
fn listed(name: &str, kind: &InstanceType) -> Option<String> {
    let mut lines = LISTED.lines();
    let column = lines.next()?.split(',').skip(1).position(|label| label == name)?;
    let values = lines.find_map(|line| line.strip_prefix(kind.name.as_str())?.strip_prefix(','))?;
    values.split(',').nth(column).filter(|value| !value.is_empty()).map(str::to_owned)
}
