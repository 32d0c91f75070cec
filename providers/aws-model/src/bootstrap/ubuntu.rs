//! User data for Ubuntu, or another system with cloud-init, kubeadm and a kubelet. A script joins the cluster with a
//! JoinConfiguration (<https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/>).
//!
//! The script uses kubeadm's file discovery: a kubeconfig with the address of the API server, its CA certificates and the token.
//! The node therefore verifies the API server, the token needs no signing permission, and the cluster needs no `cluster-info`
//! that anonymous users can read.
//!
//! The script asks cloud-init for the id, zone and name of the instance. It is the last part of the archive, so that the user's
//! own scripts run first.

use serde_json::{Value, json};

use super::facts::{ClusterFacts, KubeadmFacts, NodeFacts};
use super::mime::{Part, archive, archive_parts};
use super::problem::Problem;
use super::{kubelet_configuration, label_flag, pretty, taints};

pub(super) fn write(
    cluster: &ClusterFacts,
    node: &NodeFacts,
    facts: &KubeadmFacts,
    user_data: &str,
) -> Result<String, Problem> {
    if node.instance_store_raid {
        return Err(Problem::NoRaid);
    }
    let forms = "a MIME archive, a script that begins with #!, or a text that begins with #cloud-config";
    let mut all = archive_parts(user_data)?.ok_or(Problem::Form { family: "Ubuntu", forms })?;
    all.push(Part::new("text/x-shellscript", &script(cluster, node, facts)));
    Ok(archive(&all))
}

/// The directory of the configuration for kubeadm. The script deletes it after the join, because it contains the token.
const FOLDER: &str = "/run/poolwright";
/// The user name in the kubeconfig. kubeadm uses the same name.
const USER: &str = "tls-bootstrap-token-user";

/// Makes the script. It replaces the placeholders between `@` on the instance. No label, taint or setting contains that
/// character.
fn script(cluster: &ClusterFacts, node: &NodeFacts, facts: &KubeadmFacts) -> String {
    let join = pretty(&join_configuration(node, facts));
    let kubeconfig = pretty(&kubeconfig(cluster, facts));
    let kubelet = pretty(&kubelet_configuration(node).into());
    format!(
        r#"#!/bin/bash
set -euo pipefail
umask 077
trap 'rm -rf {FOLDER}' EXIT
mkdir -p {FOLDER}/patches
cat > {FOLDER}/join.json <<'POOLWRIGHT'
{join}POOLWRIGHT
cat > {FOLDER}/cluster.json <<'POOLWRIGHT'
{kubeconfig}POOLWRIGHT
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

/// Makes the kubeconfig: the address of the API server, its CA certificates, and the bootstrap token.
fn kubeconfig(cluster: &ClusterFacts, facts: &KubeadmFacts) -> Value {
    let ClusterFacts { name, endpoint, ca, .. } = cluster;
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": endpoint, "certificate-authority-data": ca}}],
        "users": [{"name": USER, "user": {"token": facts.token.reveal()}}],
        "contexts": [{"name": USER, "context": {"cluster": name, "user": USER}}],
        "current-context": USER,
    })
}

fn join_configuration(node: &NodeFacts, facts: &KubeadmFacts) -> Value {
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
        "discovery": {"file": {"kubeConfigPath": format!("{FOLDER}/cluster.json")}},
        "nodeRegistration": {
            "name": "@NAME@",
            "kubeletExtraArgs": arguments,
            "taints": taints(node),
        },
        "patches": {"directory": format!("{FOLDER}/patches")},
    })
}
