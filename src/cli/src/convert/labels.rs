//! Which label of ours a label of Karpenter is.
//!
//! Karpenter's labels: <https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>. Ours: `poolwright_terms::labels`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use poolwright_catalog::{InstanceType, builtin};
use poolwright_provider_contract::karpenter::Label;
use poolwright_terms::labels;

use crate::clouds::clouds;

/// What stands for `key`.
pub(super) fn label(key: &str) -> Label {
    if let Some(same) = labels::DECIDED_BY_OFFERING.into_iter().find(|known| *known == key) {
        return Label::Same(same);
    }
    match key {
        "karpenter.sh/capacity-type" => Label::Same(labels::CAPACITY_TYPE),
        // Karpenter takes these old keys for the stable ones.
        "beta.kubernetes.io/arch" => Label::Same(labels::ARCH),
        "beta.kubernetes.io/os" => Label::Same(labels::OS),
        "beta.kubernetes.io/instance-type" => Label::Same(labels::INSTANCE_TYPE),
        "failure-domain.beta.kubernetes.io/zone" => Label::Same(labels::ZONE),
        "failure-domain.beta.kubernetes.io/region" => Label::Same(labels::REGION),
        "karpenter.sh/nodepool" | labels::HOSTNAME => Label::Nothing(
            "Leave it out: offerings do not have it. Pods can select a pool by `poolwright.dev/nodepool`.",
        ),
        "node.kubernetes.io/windows-build" => Label::Nothing("Poolwright buys Linux nodes only."),
        _ => match of_a_cloud(key) {
            Some(label) => label,
            None if key.contains("karpenter") && key.contains('/') => {
                Label::Nothing("Use the labels of docs/nodepool.md instead.")
            }
            None if key.starts_with("poolwright.dev/") => {
                Label::Nothing("Poolwright sets its own labels; use those of docs/nodepool.md.")
            }
            None => Label::Own,
        },
    }
}

/// The counterpart of a label that Karpenter's provider for one of the clouds has.
fn of_a_cloud(key: &str) -> Option<Label> {
    clouds().iter().filter_map(|cloud| cloud.karpenter).find_map(|karpenter| karpenter.label(key))
}

/// The part of the built-in catalogue that Karpenter can buy, too.
pub(super) struct Known {
    /// The clouds that sell it, for a sentence.
    pub clouds: String,
    pub types: BTreeSet<String>,
    pub families: BTreeSet<String>,
    pub gpu_models: BTreeSet<String>,
}

/// The built-in catalogue's instance types of the clouds that Karpenter's objects are converted for; read once.
pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let catalogue = builtin();
    let converted: Vec<_> = clouds().iter().filter(|cloud| cloud.karpenter.is_some()).collect();
    let is_known = |kind: &&InstanceType| converted.iter().any(|cloud| cloud.name == kind.provider.as_str());
    let known = || catalogue.types().values().filter(is_known);
    Known {
        clouds: converted.iter().map(|cloud| cloud.short).collect::<Vec<_>>().join(" and "),
        types: known().map(|kind| kind.name.to_string()).collect(),
        families: known().map(|kind| kind.family().to_owned()).collect(),
        gpu_models: known().filter_map(|kind| Some(kind.gpu.as_ref()?.model.to_string())).collect(),
    }
});

/// Category and generation of a family, as Karpenter reads them from its name: `g` and `6` of `g6e`, `p` and `6` of `p6-b200`.
pub(super) fn parts(family: &str) -> (&str, &str) {
    let digits = family.find(|one: char| one.is_ascii_digit()).unwrap_or(family.len());
    let (category, rest) = family.split_at(digits);
    let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
    (category, &rest[..end])
}
