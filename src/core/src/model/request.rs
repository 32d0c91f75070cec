//! What makes up the requests of a pod, where that is not only its containers.

use poolwright_catalog::ResourceName;
use serde::{Deserialize, Serialize};

/// The parts of a pod's request for one resource that its containers do not show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestOrigin {
    /// The resource.
    pub resource: ResourceName,
    /// The parts; never empty.
    pub parts: Vec<RequestPart>,
}

/// A part of a request. Amounts are in the units of [`poolwright_catalog::ResourceList`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RequestPart {
    /// An init container that asks for more than all containers together.
    Init {
        /// Its name.
        container: String,
        /// The amount.
        amount: u64,
    },
    /// A sidecar: an init container that keeps running.
    Sidecar {
        /// Its name.
        container: String,
        /// The amount.
        amount: u64,
    },
    /// `spec.resources`: the request of the pod as a whole, which replaces those of its containers.
    Whole {
        /// The amount.
        amount: u64,
    },
    /// `spec.overhead`: what the runtime takes.
    Overhead {
        /// The name of the RuntimeClass, if the pod has one.
        runtime_class: Option<String>,
        /// The amount.
        amount: u64,
    },
    /// The default of a LimitRange for containers that state nothing.
    Default {
        /// The name of the LimitRange.
        limit_range: String,
        /// The amount, of all such containers together.
        amount: u64,
    },
}
