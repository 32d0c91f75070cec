//! User data for Amazon Linux 2023 for EKS: nodeadm reads a NodeConfig from a part of a MIME archive
//! (<https://awslabs.github.io/amazon-eks-ami/nodeadm/>).
//!
//! nodeadm merges several NodeConfigs: a later field wins, and flags are concatenated. Poolwright's NodeConfig is the last.

use serde_json::{Value, json};

use super::facts::{ClusterFacts, NodeFacts};
use super::mime::{Part, archive, archive_parts};
use super::problem::Problem;
use super::{kubelet_configuration, label_flag, pretty, taints};

const NODE_CONFIG: &str = "application/node.eks.aws";

pub(super) fn write(cluster: &ClusterFacts, node: &NodeFacts, user_data: &str) -> Result<String, Problem> {
    let mut all = user_data_parts(user_data)?;
    all.push(Part::new(NODE_CONFIG, &pretty(&node_config(cluster, node)?)));
    Ok(archive(&all))
}

fn node_config(cluster: &ClusterFacts, node: &NodeFacts) -> Result<Value, Problem> {
    let cidr = cluster.service_cidr.as_deref().ok_or(Problem::NoServiceCidr)?;
    let mut spec = json!({
        "cluster": {
            "name": cluster.name,
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.ca,
            "cidr": cidr,
        },
    });
    let mut config = kubelet_configuration(node);
    if !node.taints.is_empty() {
        config.insert("registerWithTaints".to_owned(), taints(node));
    }
    let mut kubelet = json!({});
    if !config.is_empty() {
        kubelet["config"] = config.into();
    }
    if let Some(labels) = label_flag(node) {
        kubelet["flags"] = json!([format!("--node-labels={labels}")]);
    }
    if kubelet != json!({}) {
        spec["kubelet"] = kubelet;
    }
    if node.instance_store_raid {
        spec["instance"] = json!({"localStorage": {"strategy": "RAID0"}});
    }
    Ok(json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}))
}

/// Returns the user's own text as parts of an archive.
fn user_data_parts(user_data: &str) -> Result<Vec<Part>, Problem> {
    if let Some(parts) = archive_parts(user_data)? {
        return Ok(parts);
    }
    if user_data.lines().any(|line| line.starts_with("apiVersion: node.eks.aws/")) {
        return Ok(vec![Part::new(NODE_CONFIG, user_data)]);
    }
    let forms = "a MIME archive, a script that begins with #!, a text that begins with #cloud-config, or a NodeConfig with its apiVersion";
    Err(Problem::Form { family: "AL2023", forms })
}
