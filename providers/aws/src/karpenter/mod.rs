//! Converts Karpenter's EC2NodeClass (`karpenter.k8s.aws/v1`, <https://karpenter.sh/docs/concepts/nodeclasses/>) and its labels
//! (<https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>).

mod class;
mod disks;
mod entries;
mod labels;
mod sentences;
#[cfg(test)]
mod tests;
mod user_data;

use poolwright_catalog::InstanceType;
use poolwright_provider_contract::karpenter::{FromKarpenter, LabelMapping, Managed, Report};
use serde_json::Value;

use crate::resolve::KIND;

/// Karpenter's provider for AWS.
pub(crate) struct Karpenter;

impl FromKarpenter for Karpenter {
    fn group(&self) -> &'static str {
        "karpenter.k8s.aws"
    }

    fn kind(&self) -> &'static str {
        KIND
    }

    fn managed(&self) -> Option<Managed> {
        Some(AUTO_MODE)
    }

    fn node_class(&self, object: &Value, report: &mut Report) -> Option<Value> {
        class::convert(object, report)
    }

    fn label(&self, key: &str) -> Option<LabelMapping> {
        labels::label(key)
    }

    fn label_names(&self) -> &'static [&'static str] {
        labels::NAMES
    }

    fn value_of(&self, key: &str, kind: &InstanceType) -> Option<String> {
        labels::value_of(key, kind)
    }
}

/// EKS Auto Mode (<https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html>).
const AUTO_MODE: Managed = Managed {
    name: "EKS Auto Mode",
    group: "eks.amazonaws.com",
    kind: "NodeClass",
    plural: "nodeclasses",
    also: "Nodes of EKS Auto Mode need no DaemonSets for pod networking, so the cluster may lack them: install the add-ons vpc-cni and \
           kube-proxy, and CoreDNS, before Poolwright buys nodes.",
    field: of_auto_mode,
};

/// Says what to do about a field of a NodeClass of Auto Mode.
fn of_auto_mode(field: &str) -> &'static str {
    match field {
        "subnetSelectorTerms" | "securityGroupSelectorTerms" => {
            "Copy it into the EC2NodeClass, where it selects the same."
        }
        // What the role of Auto Mode has: <https://docs.aws.amazon.com/eks/latest/userguide/auto-create-node-role.html>. What other
        // nodes need: <https://docs.aws.amazon.com/eks/latest/userguide/create-node-role.html>. A role has one access entry, and the
        // type of an entry cannot change: <https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html>.
        "role" | "instanceProfile" => {
            "Write another role in `role` of the EC2NodeClass. A role of EKS Auto Mode usually has only AmazonEKSWorkerNodeMinimalPolicy and \
             an access entry of type EC2, with which nodes of Poolwright cannot join the cluster. Theirs needs AmazonEKSWorkerNodePolicy, \
             AmazonEKS_CNI_Policy, AmazonEC2ContainerRegistryPullOnly and an access entry of type EC2_LINUX, as the template in \
             docs/aws.md creates them."
        }
        "tags" | "capacityReservationSelectorTerms" => {
            "Copy it into the EC2NodeClass, where it has the same name."
        }
        "ephemeralStorage" => {
            "Write `blockDeviceMappings` in the EC2NodeClass, with the disk that kubelet uses on your image."
        }
        _ => "The EC2NodeClass has no such field. Check whether your own image and CNI need it.",
    }
}
