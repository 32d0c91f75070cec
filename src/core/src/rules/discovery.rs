//! Labels that discovery software sets on nodes with NVIDIA GPUs after they have joined: node-feature-discovery, GPU feature discovery
//! and NVIDIA's GPU operator. DaemonSets select nodes by them, and pods of these DaemonSets take room there.
//!
//! Sources: <https://github.com/NVIDIA/k8s-device-plugin/tree/main/docs/gpu-feature-discovery>,
//! <https://kubernetes-sigs.github.io/node-feature-discovery/stable/usage/features.html>,
//! <https://github.com/NVIDIA/gpu-operator/blob/main/controllers/state_manager.go>.

use std::collections::BTreeSet;

use poolwright_catalog::MigModel;
use poolwright_terms::labels::{DEVICE_PLUGIN_CONFIG, GPU_COUNT, GPU_MEMORY, GPU_MODEL, MIG_CONFIG};

use crate::model::{NodeSelectorTerm, PodSpec};
use crate::rules::labels::Labels;

/// The domain of the labels of node-feature-discovery. Other programs use subdomains of it.
const FEATURES: &str = "feature.node.kubernetes.io";
/// The domains under which other discovery software sets labels.
const DISCOVERIES: [&str; 4] = ["nvidia.com", "amd.com", "beta.amd.com", "gpu.intel.com"];
/// How the label begins by which the GPU operator turns one of its DaemonSets on for a node.
const DEPLOY: &str = "gpu.deploy.";
/// The DaemonSets that the GPU operator turns on for each node with GPUs. Others need a setting of the operator.
const DEPLOYED: [&str; 8] = [
    "container-toolkit",
    "dcgm",
    "dcgm-exporter",
    "device-plugin",
    "driver",
    "gpu-feature-discovery",
    "node-status-exporter",
    "operator-validator",
];
/// Labels under these domains that people set, in templates of pools or on nodes.
const SET_BY_PEOPLE: [&str; 3] = [MIG_CONFIG, DEVICE_PLUGIN_CONFIG, "nvidia.com/gpu.workload.config"];
/// How the device plugin offers MIG instances. The GPU operator has the value below, but its user may choose another.
const MIG_STRATEGY: &str = "nvidia.com/mig.strategy";

/// The labels of a node of Poolwright, with those that discovery software will set on it. Labels that the node has come first.
#[derive(Clone, Copy, Debug)]
pub struct Discovered<'l, L>(pub &'l L);

impl<L: Labels> Labels for Discovered<'_, L> {
    fn label(&self, key: &str) -> Option<&str> {
        self.0.label(key).or_else(|| foreseen(key, self.0))
    }
}

/// Returns the value that a label will have on a node of these labels, if the type of the node decides it. A catalogue has no GPUs of
/// other vendors than NVIDIA.
fn foreseen(key: &str, labels: &impl Labels) -> Option<&'static str> {
    let (domain, name) = key.split_once('/')?;
    let can_be_cut = || {
        let memory = labels.label(GPU_MEMORY).and_then(|memory| memory.parse().ok());
        labels.label(GPU_MODEL).is_some_and(|model| MigModel::named(model, memory).is_some())
    };
    let value = match (domain, name) {
        // NVIDIA's number as a vendor is 10de. 0302 is the class of GPUs without a display.
        (FEATURES, "pci-10de.present" | "pci-0302_10de.present") | ("nvidia.com", "gpu.present") => "true",
        ("nvidia.com", "mig.capable") if can_be_cut() => "true",
        ("nvidia.com", "mig.capable") => "false",
        ("nvidia.com", _) if key == MIG_STRATEGY => "single",
        ("nvidia.com", _) => match name.strip_prefix(DEPLOY)? {
            "mig-manager" if can_be_cut() => "true",
            what if DEPLOYED.contains(&what) => "true",
            _ => return None,
        },
        _ => return None,
    };
    labels.label(GPU_COUNT).map(|_| value)
}

/// Returns whether discovery software sets the label with a value that the type of a node does not decide.
fn is_unforeseen(key: &str) -> bool {
    let Some((domain, name)) = key.split_once('/') else { return false };
    if SET_BY_PEOPLE.contains(&key) {
        return false;
    }
    match (domain, name) {
        (FEATURES, "pci-10de.present" | "pci-0302_10de.present")
        | ("nvidia.com", "gpu.present" | "mig.capable") => false,
        ("nvidia.com", _) if name.starts_with(DEPLOY) => false,
        _ => {
            let is_feature = domain.strip_suffix(FEATURES);
            DISCOVERIES.contains(&domain)
                || is_feature.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        }
    }
}

/// Returns the labels of discovery software by which a DaemonSet selects nodes, and whose values nobody knows in advance.
pub(crate) fn unforeseen(spec: &PodSpec) -> BTreeSet<&str> {
    let required = spec.node_affinity.iter().flatten().flat_map(|term| &term.requirements);
    let keys = required.map(|one| one.key.as_str()).chain(spec.node_selector.keys().map(String::as_str));
    keys.filter(|key| is_unforeseen(key)).collect()
}

/// Returns the spec of a DaemonSet as if every such label had the value that it asks for.
pub fn without_unforeseen(spec: &PodSpec) -> PodSpec {
    let mut relaxed = spec.clone();
    relaxed.node_selector.retain(|key, _| !is_unforeseen(key));
    for term in relaxed.node_affinity.iter_mut().flatten() {
        term.requirements.retain(|one| !is_unforeseen(&one.key));
    }
    // A term without requirements would match nothing.
    let is_met = |term: &NodeSelectorTerm| term.requirements.is_empty();
    if relaxed.node_affinity.as_ref().is_some_and(|terms| terms.iter().any(is_met)) {
        relaxed.node_affinity = None;
    }
    relaxed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn node(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_node_with_gpus_will_have_the_labels_of_gpu_discovery_and_another_none() {
        let h100 = node(&[(GPU_COUNT, "8"), (GPU_MODEL, "h100"), (GPU_MEMORY, "81920")]);
        let t4 = node(&[(GPU_COUNT, "1"), (GPU_MODEL, "t4"), (GPU_MEMORY, "15360")]);
        let plain = node(&[]);
        let of =
            |labels: &BTreeMap<String, String>, key: &str| Discovered(labels).label(key).map(str::to_owned);
        for key in [
            "nvidia.com/gpu.present",
            "nvidia.com/gpu.deploy.device-plugin",
            "feature.node.kubernetes.io/pci-10de.present",
            "feature.node.kubernetes.io/pci-0302_10de.present",
        ] {
            assert_eq!(of(&t4, key).as_deref(), Some("true"), "{key}");
            assert_eq!(of(&plain, key), None, "{key}");
            assert!(!is_unforeseen(key), "{key}");
        }
        assert_eq!(of(&h100, "nvidia.com/gpu.deploy.mig-manager").as_deref(), Some("true"));
        assert_eq!(of(&t4, "nvidia.com/gpu.deploy.mig-manager"), None, "its GPU cannot be cut");
        assert_eq!(of(&h100, "nvidia.com/mig.capable").as_deref(), Some("true"));
        assert_eq!(of(&t4, "nvidia.com/mig.capable").as_deref(), Some("false"));
        assert_eq!(of(&t4, "nvidia.com/gpu.product"), None);
    }

    #[test]
    fn a_label_that_the_node_has_is_as_it_is() {
        let off = node(&[(GPU_COUNT, "1"), ("nvidia.com/gpu.deploy.dcgm", "false")]);
        assert_eq!(Discovered(&off).label("nvidia.com/gpu.deploy.dcgm"), Some("false"));
    }

    #[test]
    fn labels_that_only_discovery_on_the_node_can_know_are_told_from_labels_of_people() {
        for key in [
            "nvidia.com/gpu.product",
            "nvidia.com/cuda.driver.major",
            MIG_STRATEGY,
            "feature.node.kubernetes.io/cpu-cpuid.AVX512F",
            "intel.feature.node.kubernetes.io/gpu",
            "amd.com/gpu.family",
        ] {
            assert!(is_unforeseen(key), "{key}");
        }
        for key in
            ["team", "example.com/a", MIG_CONFIG, "nvidia.com/gpu.present", "xfeature.node.kubernetes.io/a"]
        {
            assert!(!is_unforeseen(key), "{key}");
        }
    }
}
