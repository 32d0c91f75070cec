//! What a cloud must do for Poolwright, and the suite that checks that it does.
//!
//! Lives here: the [`Registration`] by which a cloud makes itself known, the [`CloudProvider`] trait with its requests, answers
//! and typed errors, the conformance suite that every provider must pass ([`conformance`]), and a cloud that exists in memory
//! only, for tests ([`memory`]).
//!
//! May not live here: the name or SDK of any cloud, any decision about what to buy, any call to an API server.

pub mod conformance;
mod connect;
mod flags;
mod interruption;
pub mod karpenter;
pub mod market;
pub mod memory;
mod node_class;
mod node_class_status;
pub mod preflight;
mod provider;
mod registration;

use std::sync::Arc;

use jiff::Timestamp;

pub use connect::{Connect, ConnectError, Connected, Site};
pub use flags::{Check, Flag, FlagValues};
pub use interruption::{Interruption, InterruptionMessage, instance_of};
pub use node_class::{NodeClass, NodeClassFacts, NodeClassKind, crds};
pub use node_class_status::{ConditionOutcome, NodeClassCondition, NodeClassStatus, NodeClassStatusSource};
pub use provider::{
    CloudProvider, FailedOffering, Instance, InstanceState, LaunchBatch, LaunchError, LaunchRequest,
    LaunchedInstance, ProviderError,
};
pub use registration::{Example, MarketRegistration, Registration};

/// Where a provider reads the time: given by the edge, so that a test decides what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
