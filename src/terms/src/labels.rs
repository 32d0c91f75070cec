//! The labels that describe an offering. Requirements use them to choose offerings before any node exists.
//!
//! Kubernetes' own keys are from <https://kubernetes.io/docs/reference/labels-annotations-taints/>. Labels that say which
//! pool or claim a node belongs to are among the [`keys`](crate::keys).

/// Instance type name.
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// Zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// Processor architecture.
pub const ARCH: &str = "kubernetes.io/arch";
/// Operating system; always `linux`.
pub const OS: &str = "kubernetes.io/os";
/// Host name; equal to the node's name, and unknown before the node exists.
pub const HOSTNAME: &str = "kubernetes.io/hostname";
/// `reserved`, `spot` or `on-demand`.
pub const CAPACITY_TYPE: &str = "poolwright.dev/capacity-type";
/// The cloud that sells it: `aws`, `gcp`.
pub const PROVIDER: &str = "poolwright.dev/provider";
/// Instance family: `g5`, `a3-highgpu`.
pub const INSTANCE_FAMILY: &str = "poolwright.dev/instance-family";
/// Allocatable CPU in whole cores, rounded down; for `Gt` and `Lt`.
pub const INSTANCE_CPU: &str = "poolwright.dev/instance-cpu";
/// Allocatable memory in MiB, rounded down; for `Gt` and `Lt`.
pub const INSTANCE_MEMORY: &str = "poolwright.dev/instance-memory";
/// GPU model: `h100`. Absent on nodes without GPUs.
pub const GPU_MODEL: &str = "poolwright.dev/gpu-model";
/// Whole GPUs of the node. Absent on nodes without GPUs.
pub const GPU_COUNT: &str = "poolwright.dev/gpu-count";
/// Memory of each GPU in MiB. Absent if it is unknown.
pub const GPU_MEMORY: &str = "poolwright.dev/gpu-memory";
/// How NVIDIA's GPU operator cuts the GPUs of a node
/// (<https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-mig.html>).
pub const MIG_CONFIG: &str = "nvidia.com/mig.config";
/// The value of [`MIG_CONFIG`] with which GPUs stay whole.
pub const MIG_DISABLED: &str = "all-disabled";
/// The configuration of NVIDIA's device plugin for a node, by name. It may share or cut the node's GPUs
/// (<https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html>).
pub const DEVICE_PLUGIN_CONFIG: &str = "nvidia.com/device-plugin.config";

/// Keys that an offering decides. Labels with any other key come from a pool's template.
pub const DECIDED_BY_OFFERING: [&str; 13] = [
    INSTANCE_TYPE,
    ZONE,
    REGION,
    ARCH,
    OS,
    CAPACITY_TYPE,
    PROVIDER,
    INSTANCE_FAMILY,
    INSTANCE_CPU,
    INSTANCE_MEMORY,
    GPU_MODEL,
    GPU_COUNT,
    GPU_MEMORY,
];

/// Keys that a pool's template may not set, because an offering, a node or Poolwright decides them. It may not set keys under
/// [`DOMAIN`](crate::keys::DOMAIN) either.
pub const RESERVED: [&str; 6] = [HOSTNAME, INSTANCE_TYPE, ZONE, REGION, ARCH, OS];

/// Returns whether Kubernetes accepts the text as the value of a label: empty, or at most 63 ASCII letters, digits, `-`, `_` and
/// `.`, beginning and ending with a letter or digit.
pub fn is_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends_well = |end: Option<&u8>| end.is_none_or(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && ends_well(bytes.first())
        && ends_well(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::is_value;

    #[test]
    fn label_values_are_told_from_texts_the_api_server_would_reject() {
        assert!(["", "g5.xlarge", "us-east-1a", "A_1", &"a".repeat(63)].into_iter().all(is_value));
        assert!(!["n1-standard-8+1xT4", "-a", "a.", "a b", "ü", &"a".repeat(64)].into_iter().any(is_value));
    }
}
