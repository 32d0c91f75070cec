//! Which label of ours a label of Karpenter is.
//!
//! Karpenter's labels: <https://karpenter.sh/docs/concepts/scheduling/#well-known-labels>. Ours: `poolwright_terms::labels`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use poolwright_catalog::builtin;
use poolwright_terms::labels;

/// What stands for a label of Karpenter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// This label, with the same values.
    Same(&'static str),
    /// vCPUs of the machine; ours counts whole allocatable cores.
    Cpu,
    /// The letters a family's name begins with: `g` of `g5`.
    Category,
    /// The number in a family's name: `5` of `g5`.
    Generation,
    /// What follows the dot of an instance type: `xlarge`.
    Size,
    /// Who makes the GPUs; there are those of NVIDIA only.
    GpuManufacturer,
    /// Nothing, and this is what to do instead.
    Nothing(&'static str),
    /// A label that the user made up.
    Own,
}

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
            "Leave it out: no offering decides it. Pods can choose a pool by `poolwright.dev/nodepool`.",
        ),
        "topology.k8s.aws/zone-id" => {
            Label::Nothing("Choose zones by their names with `topology.kubernetes.io/zone`.")
        }
        "node.kubernetes.io/windows-build" => Label::Nothing("Poolwright buys Linux nodes only."),
        _ => match key.strip_prefix("karpenter.k8s.aws/") {
            Some(name) => aws(name),
            None if key.contains("karpenter") && key.contains('/') => {
                Label::Nothing("Choose by the labels of docs/nodepool.md instead.")
            }
            None if key.starts_with("poolwright.dev/") => {
                Label::Nothing("Poolwright sets its own labels; choose by those of docs/nodepool.md.")
            }
            None => Label::Own,
        },
    }
}

fn aws(name: &str) -> Label {
    match name {
        "instance-family" => Label::Same(labels::INSTANCE_FAMILY),
        "instance-gpu-name" => Label::Same(labels::GPU_MODEL),
        "instance-gpu-count" => Label::Same(labels::GPU_COUNT),
        "instance-gpu-memory" => Label::Same(labels::GPU_MEMORY),
        "instance-gpu-manufacturer" => Label::GpuManufacturer,
        "instance-cpu" => Label::Cpu,
        "instance-category" => Label::Category,
        "instance-generation" => Label::Generation,
        "instance-size" => Label::Size,
        "instance-memory" => Label::Nothing(
            "Write `poolwright.dev/instance-memory`, which counts allocatable MiB; that is less than the memory of the machine.",
        ),
        "instance-cpu-manufacturer" => Label::Nothing(
            "Choose processors with `kubernetes.io/arch` or by `poolwright.dev/instance-family`.",
        ),
        _ if name.starts_with("capacity-reservation") => Label::Nothing(
            "Choose reserved capacity with `poolwright.dev/capacity-type: reserved` and by instance type and zone.",
        ),
        _ => Label::Nothing(
            "Name the types that have it with `node.kubernetes.io/instance-type` or `poolwright.dev/instance-family`.",
        ),
    }
}

/// What the built-in catalogue has of AWS.
pub(super) struct Known {
    pub types: BTreeSet<String>,
    pub families: BTreeSet<String>,
    pub gpu_models: BTreeSet<String>,
}

/// The built-in catalogue's instance types of AWS; read once.
pub(super) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let catalogue = builtin();
    let aws = || catalogue.types().values().filter(|kind| kind.provider.as_str() == "aws");
    Known {
        types: aws().map(|kind| kind.name.to_string()).collect(),
        families: aws().map(|kind| kind.family().to_owned()).collect(),
        gpu_models: aws().filter_map(|kind| Some(kind.gpu.as_ref()?.model.to_string())).collect(),
    }
});

/// Category and generation of a family, as Karpenter reads them from its name: `g` and `6` of `g6e`, `p` and `6` of `p6-b200`.
pub(super) fn parts(family: &str) -> (&str, &str) {
    let digits = family.find(|one: char| one.is_ascii_digit()).unwrap_or(family.len());
    let (category, rest) = family.split_at(digits);
    let end = rest.find(|one: char| !one.is_ascii_digit()).unwrap_or(rest.len());
    (category, &rest[..end])
}
