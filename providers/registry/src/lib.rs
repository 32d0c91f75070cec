//! The list of clouds.
//!
//! This crate holds one line for each cloud of the build, and one for each cloud that a build can have. The rest of Poolwright
//! reads a cloud's [`Registration`] and names no cloud. A build has the clouds whose features are on; by default it has all.
//!
//! It must not contain anything else.

use poolwright_provider_contract::Registration;

/// The clouds of this build. If several match, the first one counts.
pub static CLOUDS: &[Registration] = &[
    #[cfg(feature = "kwok")]
    poolwright_provider_kwok::REGISTRATION,
    #[cfg(feature = "aws")]
    poolwright_provider_aws::REGISTRATION,
];

/// Every cloud that a build can have, in the order of [`CLOUDS`].
pub static SUPPORTED: [Supported; 2] = [
    Supported { name: "kwok", node_class: "KwokNodeClass", karpenter_groups: &[] },
    Supported {
        name: "aws",
        node_class: "EC2NodeClass",
        karpenter_groups: &["karpenter.k8s.aws", "eks.amazonaws.com"],
    },
];

/// What a build says about a cloud that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supported {
    /// The name of the cloud and of its feature. Its flags begin with `--name-`, their variables with `POOLWRIGHT_NAME_`.
    pub name: &'static str,
    /// The kind of its node class.
    pub node_class: &'static str,
    /// The API groups of the node classes that `convert` reads.
    pub karpenter_groups: &'static [&'static str],
}

/// Returns the clouds that a build with these clouds does not have.
pub fn left_out(clouds: &[Registration]) -> impl Iterator<Item = &'static Supported> {
    SUPPORTED.iter().filter(move |one| clouds.iter().all(|cloud| cloud.name != one.name))
}
