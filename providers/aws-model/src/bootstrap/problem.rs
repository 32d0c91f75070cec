//! Why there is no user data.

use super::MAX_BYTES;

/// Why there is no user data for an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct BootstrapError {
    /// Whose it would have been: `EC2NodeClass gpu`.
    pub object: String,
    /// Why.
    pub problem: Problem,
}

/// Why there is no user data. Nothing of the user's own is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// More than EC2 takes.
    #[error(
        "its user data has {bytes} bytes, of which {user_data} are spec.userData, and EC2 takes {MAX_BYTES}; make spec.userData shorter, for \
         example by a script that loads the rest from S3, or give the pool fewer labels and taints"
    )]
    TooLarge {
        /// How many bytes.
        bytes: usize,
        /// How many of them the user's own text has.
        user_data: usize,
    },
    /// A fact about the cluster that no node could use.
    #[error("the cluster's {what} is not {expected}; correct it in the controller's configuration")]
    Cluster {
        /// Which.
        what: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A fact about the cluster that this family needs.
    #[error(
        "nodes of the family AL2023 must be told the cluster's service CIDR and it is not known; set it in the controller's configuration"
    )]
    NoServiceCidr,
    /// Not a label that Kubernetes has.
    #[error("`{0}` is not a label that Kubernetes accepts; correct it in the NodePool")]
    Label(String),
    /// Not a taint that Kubernetes has.
    #[error("`{0}` is not a taint that Kubernetes accepts; correct it in the NodePool")]
    Taint(String),
    /// A setting of the kubelet with characters that none has.
    #[error("the value of `{0}` in spec.kubelet is not one that a kubelet takes; correct it")]
    Kubelet(String),
    /// A setting that the family lacks.
    #[error("Bottlerocket has no setting for podsPerCore; use spec.kubelet.maxPods, or another family")]
    PodsPerCore,
    /// A setting that the family lacks.
    #[error(
        "nodes of the family Ubuntu have no instanceStorePolicy; make one disk of the instance's own in spec.userData, which runs first"
    )]
    NoRaid,
    /// Not a bootstrap token.
    #[error(
        "the bootstrap token is not six characters, a dot and sixteen, lower-case letters and digits; make one with `kubeadm token create`"
    )]
    Token,
    /// The user's MIME archive has no parts.
    #[error(
        "spec.userData begins like a MIME archive and has no parts that can be told apart; give it a boundary, and each part a line of it"
    )]
    Mime,
    /// The user's text is in no form that the family reads.
    #[error("spec.userData is in no form that the family {family} reads: {forms}")]
    Form {
        /// The family.
        family: &'static str,
        /// What it reads.
        forms: &'static str,
    },
    /// The user's TOML is none.
    #[error("spec.userData is not TOML from line {line} on; correct it, or use another amiFamily")]
    Toml {
        /// The first line that is none, from 1.
        line: usize,
    },
    /// A table of the user's TOML that is none.
    #[error("`{0}` in spec.userData is not a table; Poolwright has to set keys in it")]
    NoTable(String),
}
