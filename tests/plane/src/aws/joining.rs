//! The user data with which an EC2 instance joins a cluster.

use std::collections::BTreeMap;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Front;

/// The kubelet settings of a machine with AL2023.
#[derive(Clone, Debug)]
pub struct JoinConfig {
    /// `--node-labels`.
    pub labels: BTreeMap<String, String>,
    /// `registerWithTaints`, as in the kubelet's configuration.
    pub taints: Value,
}

impl Front {
    /// Returns the kubelet settings of an instance with AL2023. They come from its user data, which EC2 is asked for.
    pub async fn joining(&self, instance: &str) -> anyhow::Result<JoinConfig> {
        let query = format!(
            "Action=DescribeInstanceAttribute&Attribute=userData&InstanceId={instance}&Version=2016-11-15"
        );
        let answer = self.call("ec2", &query).await?;
        let told = answer.split("<value>").nth(1).and_then(|rest| rest.split('<').next());
        let told = told.with_context(|| format!("{instance} has no user data: {answer}"))?;
        read(&String::from_utf8(STANDARD.decode(told.trim())?)?)
    }
}

/// Reads the NodeConfig in user data. Like nodeadm, it takes the last part of that type.
fn read(user_data: &str) -> anyhow::Result<JoinConfig> {
    let parts = user_data.split("application/node.eks.aws").last().context("no NodeConfig")?;
    let begin = parts.find('{').context("no NodeConfig as JSON")?;
    let mut documents = serde_json::Deserializer::from_str(&parts[begin..]).into_iter::<Value>();
    let config = documents.next().context("no NodeConfig")?.context("the NodeConfig cannot be read")?;
    let kubelet = &config["spec"]["kubelet"];
    let flags = kubelet["flags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let labels = flags
        .filter_map(|flag| flag.strip_prefix("--node-labels="))
        .flat_map(|list| list.split(','))
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Ok(JoinConfig { labels, taints: kubelet["config"]["registerWithTaints"].clone() })
}
