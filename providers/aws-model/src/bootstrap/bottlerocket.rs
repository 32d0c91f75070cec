//! User data for Bottlerocket, in TOML (<https://bottlerocket.dev/en/os/latest/#/api/settings/>).
//!
//! The user's own settings stay, except those that Poolwright must set so that the node joins as planned.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::facts::{ClusterFacts, NodeFacts};
use super::names;
use super::problem::Problem;

/// The settings of the NVIDIA device plugin in Bottlerocket's GPU images
/// (<https://bottlerocket.dev/en/os/latest/#/api/settings/kubelet-device-plugins/>).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NvidiaPlugin {
    /// How pods share a GPU.
    pub sharing: DeviceSharing,
    /// The MIG profile of each GPU model, by the plugin's name of the model: `a100.40gb` with `1g.5gb`. An empty map disables
    /// MIG.
    pub mig_profiles: BTreeMap<String, String>,
}

/// How pods share a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceSharing {
    /// Each pod has whole GPUs.
    #[default]
    None,
    /// Time slicing, with this number of pods per GPU.
    TimeSlicing(u32),
    /// MPS, with this number of pods per GPU.
    Mps(u32),
}

pub(super) fn write(
    cluster: &ClusterFacts,
    node: &NodeFacts,
    nvidia: Option<&NvidiaPlugin>,
    user_data: &str,
) -> Result<String, Problem> {
    if node.kubelet.pods_per_core.is_some() {
        return Err(Problem::PodsPerCore);
    }
    // The parser's message quotes the line, which may contain a secret.
    let mut document: Table = user_data.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start).min(user_data.len());
        Problem::Toml { line: user_data.get(..at).unwrap_or(user_data).matches('\n').count() + 1 }
    })?;
    kubernetes(table(&mut document, &["settings", "kubernetes"])?, cluster, node)?;
    if node.instance_store_raid {
        let commands = table(&mut document, &["settings", "bootstrap-commands"])?;
        commands.insert("000-mount-instance-storage".to_owned(), raid());
    }
    if let Some(nvidia) = nvidia {
        plugin(table(&mut document, &["settings", "kubelet-device-plugins", "nvidia"])?, nvidia)?;
    }
    // Every parsed TOML document can be written.
    Ok(toml::to_string(&document).expect("what was read as TOML can be written as TOML"))
}

/// Returns the table at this path and creates it if necessary.
fn table<'a>(document: &'a mut Table, path: &[&str]) -> Result<&'a mut Table, Problem> {
    let mut table = document;
    for (depth, key) in path.iter().enumerate() {
        let inner = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
        table = inner.as_table_mut().ok_or_else(|| Problem::NoTable(path[..=depth].join(".")))?;
    }
    Ok(table)
}

fn kubernetes(settings: &mut Table, cluster: &ClusterFacts, node: &NodeFacts) -> Result<(), Problem> {
    let kubelet = &node.kubelet;
    let mut set = |key: &str, value: Value| drop(settings.insert(key.to_owned(), value));
    set("cluster-name", cluster.name.as_str().into());
    set("api-server", cluster.endpoint.as_str().into());
    set("cluster-certificate", cluster.ca.as_str().into());
    if let Some(dns) = kubelet.cluster_dns.first() {
        set("cluster-dns-ip", dns.to_string().into());
    }
    let numbers = [
        ("max-pods", kubelet.max_pods),
        ("eviction-max-pod-grace-period", kubelet.eviction_max_pod_grace_period),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            set(key, i64::from(number).into());
        }
    }
    // Bottlerocket takes percentages as strings.
    let percentages = [
        ("image-gc-high-threshold-percent", kubelet.image_gc_high_threshold_percent),
        ("image-gc-low-threshold-percent", kubelet.image_gc_low_threshold_percent),
    ];
    for (key, percent) in percentages {
        if let Some(percent) = percent {
            set(key, percent.to_string().into());
        }
    }
    if let Some(quota) = kubelet.cpu_cfs_quota {
        set("cpu-cfs-quota-enforced", quota.into());
    }
    let maps = [
        ("system-reserved", &kubelet.system_reserved),
        ("kube-reserved", &kubelet.kube_reserved),
        ("eviction-hard", &kubelet.eviction_hard),
        ("eviction-soft", &kubelet.eviction_soft),
        ("eviction-soft-grace-period", &kubelet.eviction_soft_grace_period),
    ];
    for (key, values) in maps {
        if !values.is_empty() {
            let values: Table =
                values.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
            set(key, values.into());
        }
    }
    // Remove the user's taints: the pods that are planned for the node may not tolerate them.
    settings.remove("node-taints");
    if !node.taints.is_empty() {
        let mut taints = Table::new();
        for taint in &node.taints {
            let values = taints.entry(taint.key.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(values) = values {
                values.push(format!("{}:{}", taint.value, taint.effect.as_str()).into());
            }
        }
        settings.insert("node-taints".to_owned(), taints.into());
    }
    let labels = node.labels.iter().filter(|(key, _)| names::kubelet_may_set(key));
    let labels: Vec<_> = labels.collect();
    if !labels.is_empty() {
        let into = table(settings, &["node-labels"])
            .map_err(|_| Problem::NoTable("settings.kubernetes.node-labels".to_owned()))?;
        for (key, value) in labels {
            into.insert(key.clone(), value.as_str().into());
        }
    }
    Ok(())
}

/// Returns the commands that combine the local disks.
fn raid() -> Value {
    let command = |words: &[&str]| Value::Array(words.iter().map(|word| Value::from(*word)).collect());
    let dirs = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"];
    let bind = [&["apiclient", "ephemeral-storage", "bind", "--dirs"][..], &dirs].concat();
    let commands = vec![command(&["apiclient", "ephemeral-storage", "init"]), command(&bind)];
    let entries: [(&str, Value); 3] =
        [("commands", commands.into()), ("essential", true.into()), ("mode", "always".into())];
    Value::Table(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn plugin(settings: &mut Table, nvidia: &NvidiaPlugin) -> Result<(), Problem> {
    let (strategy, replicas) = match nvidia.sharing {
        DeviceSharing::None => ("none", None),
        DeviceSharing::TimeSlicing(replicas) => ("time-slicing", Some(replicas)),
        DeviceSharing::Mps(replicas) => ("mps", Some(replicas)),
    };
    settings.insert("device-sharing-strategy".to_owned(), strategy.into());
    if let Some(replicas) = replicas {
        let into = table(settings, &[strategy])?;
        into.insert("replicas".to_owned(), i64::from(replicas).into());
    }
    let partitioning = if nvidia.mig_profiles.is_empty() { "none" } else { "mig" };
    settings.insert("device-partitioning-strategy".to_owned(), partitioning.into());
    settings.remove("mig");
    if !nvidia.mig_profiles.is_empty() {
        let into = table(settings, &["mig", "profile"])?;
        for (model, profile) in &nvidia.mig_profiles {
            into.insert(model.clone(), profile.as_str().into());
        }
    }
    Ok(())
}
