//! Errors of making user data.

use super::MAX_BYTES;

/// The error of making user data, with the object that it concerns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct BootstrapError {
    /// The object: `EC2NodeClass gpu`.
    pub object: String,
    /// The cause and the next step.
    pub problem: Problem,
}

/// The cause of the error. It never quotes `spec.userData`, which may contain secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The user data is larger than EC2 allows.
    #[error(
        "its user data has {bytes} bytes, of which {user_data} are spec.userData, and EC2 allows {MAX_BYTES}; make spec.userData shorter, for \
         example with a script that loads the rest from S3, or give the pool fewer labels and taints"
    )]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
        /// The size of `spec.userData` in bytes.
        user_data: usize,
    },
    /// A fact about the cluster is invalid.
    #[error("the cluster's {what} is not {expected}; correct it in the controller's configuration")]
    Cluster {
        /// The fact.
        what: &'static str,
        /// The expected value.
        expected: &'static str,
    },
    /// The family needs the address range of Services.
    #[error(
        "nodes of the family AL2023 need the address range of Services; start the controller with --aws-service-cidr"
    )]
    NoServiceCidr,
    /// A label is invalid.
    #[error("`{0}` is not a valid label; correct it in the NodePool")]
    Label(String),
    /// A taint is invalid.
    #[error("`{0}` is not a valid taint; correct it in the NodePool")]
    Taint(String),
    /// A kubelet setting contains invalid characters.
    #[error("the value of `{0}` in spec.kubelet is invalid; correct it")]
    Kubelet(String),
    /// The family does not support `podsPerCore`.
    #[error("Bottlerocket has no setting for podsPerCore; use spec.kubelet.maxPods, or another family")]
    PodsPerCore,
    /// The family does not support `instanceStorePolicy`.
    #[error(
        "the family Ubuntu does not support instanceStorePolicy; remove it, and combine the local disks in spec.userData, which runs first"
    )]
    NoRaid,
    /// The bootstrap token is invalid.
    #[error(
        "the bootstrap token is not six lower-case letters or digits, a dot and sixteen more; make one with `kubeadm token create`"
    )]
    Token,
    /// The MIME archive in `spec.userData` has no parts.
    #[error(
        "spec.userData begins like a MIME archive but has no parts; declare a boundary in its header, and begin each part with it"
    )]
    Mime,
    /// The family does not support the format of `spec.userData`.
    #[error("spec.userData has a format that the family {family} does not support; write {forms}")]
    Form {
        /// The family.
        family: &'static str,
        /// The supported formats.
        forms: &'static str,
    },
    /// `spec.userData` is not valid TOML.
    #[error("line {line} of spec.userData is not valid TOML; correct it, or use another amiFamily")]
    Toml {
        /// The number of the first invalid line, from 1.
        line: usize,
    },
    /// A key in the TOML of `spec.userData` must be a table.
    #[error("`{0}` in spec.userData is not a table, and Poolwright must set keys in it; make it a table")]
    NoTable(String),
}
