//! Conversion between API objects and the model: the intake room does it, this is how the controller asks for it.

use k8s_openapi::api::{apps, core::v1 as k8s};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_core::{Claim, DaemonSet, Namespace, Node, Pod, Pool};

/// A pod.
pub fn pod(object: &k8s::Pod) -> Result<Pod, String> {
    poolwright_intake::pod(object).map_err(|error| error.to_string())
}

/// A namespace.
pub fn namespace(object: &k8s::Namespace) -> Namespace {
    poolwright_intake::namespace(object)
}

/// A node.
pub fn node(object: &k8s::Node) -> Result<Node, String> {
    poolwright_intake::node(object).map_err(|error| error.to_string())
}

/// A claim.
pub fn claim(object: &NodeClaim) -> Result<Claim, String> {
    poolwright_intake::node_claim(object).map_err(|error| error.to_string())
}

/// A pool.
pub fn pool(object: &NodePool) -> Pool {
    poolwright_intake::node_pool(object)
}

/// A DaemonSet.
pub fn daemonset(object: &apps::v1::DaemonSet) -> Result<DaemonSet, String> {
    poolwright_intake::daemonset(object).map_err(|error| error.to_string())
}
