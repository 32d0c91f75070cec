//! Ubuntu, or another system with cloud-init where kubeadm and a kubelet are installed: a script joins the cluster with a
//! JoinConfiguration (<https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/>).
//!
//! What only the instance knows (its id, zone and name) the script asks cloud-init for. It is the last part of the archive, so that
//! the user's own scripts have run before.

use serde_json::{Value, json};

use super::facts::{ClusterFacts, KubeadmFacts, NodeFacts};
use super::mime::{Part, archive, users_parts};
use super::problem::Problem;
use super::{kubelet_configuration, label_flag, pretty, taints};

pub(super) fn write(
    cluster: &ClusterFacts,
    node: &NodeFacts,
    facts: &KubeadmFacts,
    own: &str,
) -> Result<String, Problem> {
    if facts.ca_hashes.is_empty() {
        return Err(Problem::NoCaHash);
    }
    if node.instance_store_raid {
        return Err(Problem::NoRaid);
    }
    let forms = "a MIME archive, a script that begins with #!, or a text that begins with #cloud-config";
    let mut all = users_parts(own)?.ok_or(Problem::Form { family: "Ubuntu", forms })?;
    all.push(Part::new("text/x-shellscript", &script(cluster, node, facts)));
    Ok(archive(&all))
}

/// Where the script keeps what it tells kubeadm. It is gone after the join, token and all.
const FOLDER: &str = "/run/poolwright";

/// The values between `@` are replaced on the instance; no label, taint or setting can have that character.
fn script(cluster: &ClusterFacts, node: &NodeFacts, facts: &KubeadmFacts) -> String {
    let join = pretty(&join_configuration(cluster, node, facts));
    let kubelet = pretty(&kubelet_configuration(node).into());
    format!(
        r#"#!/bin/bash
set -euo pipefail
umask 077
trap 'rm -rf {FOLDER}' EXIT
mkdir -p {FOLDER}/patches
cat > {FOLDER}/join.json <<'POOLWRIGHT'
{join}POOLWRIGHT
cat > {FOLDER}/patches/kubeletconfiguration+merge.json <<'POOLWRIGHT'
{kubelet}POOLWRIGHT
zone="$(cloud-init query v1.availability_zone)"
instance="$(cloud-init query v1.instance_id)"
name="$(cloud-init query ds.meta_data.local_hostname)"
sed -i -e "s|@ZONE@|$zone|g" -e "s|@INSTANCE@|$instance|g" -e "s|@NAME@|$name|g" {FOLDER}/join.json
kubeadm join --config {FOLDER}/join.json
"#
    )
}

fn join_configuration(cluster: &ClusterFacts, node: &NodeFacts, facts: &KubeadmFacts) -> Value {
    let host = cluster.endpoint.strip_prefix("https://").unwrap_or(&cluster.endpoint);
    // Without a port kubeadm would take 6443, and a URL means 443. An address of version 6 is in brackets.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    let endpoint = if has_port { host.to_owned() } else { format!("{host}:443") };
    let hashes: Vec<String> = facts.ca_hashes.iter().map(ToString::to_string).collect();
    let mut arguments = vec![json!({"name": "provider-id", "value": "aws:///@ZONE@/@INSTANCE@"})];
    if facts.external_cloud_provider {
        arguments.push(json!({"name": "cloud-provider", "value": "external"}));
    }
    if let Some(labels) = label_flag(node) {
        arguments.push(json!({"name": "node-labels", "value": labels}));
    }
    json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": endpoint,
                "token": facts.token.reveal(),
                "caCertHashes": hashes,
            },
        },
        "nodeRegistration": {
            "name": "@NAME@",
            "kubeletExtraArgs": arguments,
            "taints": taints(node),
        },
        "patches": {"directory": format!("{FOLDER}/patches")},
    })
}
