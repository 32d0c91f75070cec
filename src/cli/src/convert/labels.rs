//! Maps Karpenter's labels to Poolwright's.
//!
//! Karpenter's labels: <https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>. Ours: `poolwright_terms::labels`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use poolwright_api::meant;
use poolwright_catalog::{InstanceType, Offering, builtin};
use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::domains::{is_foreign, is_karpenters};
use poolwright_terms::labels;

use crate::clouds::clouds;

/// Returns the counterpart of the label `key`.
pub(super) fn label(key: &str) -> LabelMapping {
    if let Some(same) = labels::DECIDED_BY_OFFERING.into_iter().find(|known| *known == key) {
        return LabelMapping::Renamed(same);
    }
    match key {
        "karpenter.sh/capacity-type" => LabelMapping::Renamed(labels::CAPACITY_TYPE),
        // Karpenter treats these old keys as the stable ones.
        "beta.kubernetes.io/arch" => LabelMapping::Renamed(labels::ARCH),
        "beta.kubernetes.io/os" => LabelMapping::Renamed(labels::OS),
        "beta.kubernetes.io/instance-type" => LabelMapping::Renamed(labels::INSTANCE_TYPE),
        "failure-domain.beta.kubernetes.io/zone" => LabelMapping::Renamed(labels::ZONE),
        "failure-domain.beta.kubernetes.io/region" => LabelMapping::Renamed(labels::REGION),
        "karpenter.sh/nodepool" | labels::HOSTNAME => LabelMapping::NoCounterpart(
            "Offerings do not have it. Pods can select a pool by `poolwright.dev/nodepool`.",
        ),
        "karpenter.sh/registered" | "karpenter.sh/initialized" => LabelMapping::Unneeded(
            "true",
            "Karpenter sets it to `true` on all of its nodes after they start.",
        ),
        "node.kubernetes.io/windows-build" => LabelMapping::Only(None, "Poolwright buys Linux nodes only."),
        _ => match of_a_cloud(key) {
            Some(label) => label,
            None if is_karpenters(key) => {
                LabelMapping::NoCounterpart("Use the labels of docs/nodepool.md instead.")
            }
            None if is_foreign(key) => LabelMapping::Absent(
                "It belongs to another autoscaler or cloud. Use the labels of docs/nodepool.md instead.",
            ),
            None if key.starts_with("poolwright.dev/") => {
                LabelMapping::NoCounterpart("Poolwright sets its own labels; use those of docs/nodepool.md.")
            }
            None => LabelMapping::UserDefined,
        },
    }
}

/// Returns whether Karpenter's label has the name of the node's pool.
pub(super) fn names_pool(key: &str) -> bool {
    matches!(key, "karpenter.sh/nodepool" | "karpenter.sh/provisioner-name")
}

/// Returns the counterpart of a label of Karpenter's provider for one of the clouds.
fn of_a_cloud(key: &str) -> Option<LabelMapping> {
    clouds().iter().filter_map(|cloud| cloud.karpenter).find_map(|karpenter| karpenter.label(key))
}

/// The part of the built-in catalogue that Karpenter can buy too.
pub(super) struct KarpenterCatalogue {
    /// The clouds that sell it, as part of a sentence.
    pub clouds: String,
    pub kinds: Vec<InstanceType>,
    pub types: BTreeSet<String>,
    pub families: BTreeSet<String>,
    pub gpu_models: BTreeSet<String>,
    pub zones: BTreeSet<String>,
    pub regions: BTreeSet<String>,
    /// The resources that their nodes have.
    pub resources: BTreeSet<String>,
}

/// The built-in catalogue's instance types of the clouds that `convert` supports; computed once.
pub(super) static KARPENTER_CATALOGUE: LazyLock<KarpenterCatalogue> = LazyLock::new(|| {
    let catalogue = builtin();
    let converted: Vec<_> = clouds().iter().filter(|cloud| cloud.karpenter.is_some()).collect();
    let is_known = |kind: &&InstanceType| converted.iter().any(|cloud| cloud.name == kind.provider.as_str());
    let known = || catalogue.types().values().filter(is_known);
    let of_known = |one: &&Offering| is_known(&&catalogue.types()[&one.id.instance_type]);
    let offerings = || catalogue.offerings().iter().filter(of_known);
    KarpenterCatalogue {
        kinds: known().cloned().collect(),
        clouds: converted.iter().map(|cloud| cloud.short).collect::<Vec<_>>().join(" and "),
        types: known().map(|kind| kind.name.to_string()).collect(),
        families: known().map(|kind| kind.family().to_owned()).collect(),
        gpu_models: known().filter_map(|kind| Some(kind.gpu.as_ref()?.model.to_string())).collect(),
        zones: offerings().map(|one| one.id.zone.to_string()).collect(),
        regions: offerings().filter_map(|one| one.region.clone()).collect(),
        resources: known()
            .flat_map(|kind| kind.allocatable.iter().map(|(name, _)| name.to_string()))
            .collect(),
    }
});

/// Returns the value that nodes of a type have for a label of Karpenter that its provider decides by the type.
pub(super) fn value_of(key: &str, kind: &InstanceType) -> Option<String> {
    clouds().iter().filter_map(|cloud| cloud.karpenter).find_map(|karpenter| karpenter.value_of(key, kind))
}

/// Returns the label that a misspelt one probably means, if a provider defines labels under its domain.
pub(super) fn meant_label(key: &str) -> Option<String> {
    let (domain, name) = key.split_once('/')?;
    let providers = clouds().iter().filter_map(|cloud| cloud.karpenter);
    let known =
        providers.filter(|one| one.label(key).is_some()).flat_map(|one| one.label_names().iter().copied());
    let near = meant(name, known).filter(|near| *near != name)?;
    Some(format!("{domain}/{near}"))
}

/// Returns the category and the generation of a family, as Karpenter reads them from its name: `g` and `6` of `g6e`, `p` and `6`
/// of `p6-b200`.
pub(super) fn parts(family: &str) -> (&str, &str) {
    let digits = family.find(|one: char| one.is_ascii_digit()).unwrap_or(family.len());
    let (category, rest) = family.split_at(digits);
    let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
    (category, &rest[..end])
}
