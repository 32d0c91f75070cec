//! The contract between Poolwright and a cloud.
//!
//! This crate holds the [`Registration`] that describes a cloud, the [`CloudProvider`] trait with its requests, answers and typed
//! errors, the [`conformance`] suite that every provider must pass, and an in-memory cloud for tests ([`memory`]).
//!
//! It must not name a cloud, depend on a cloud SDK, decide anything about what to buy, or call an API server.

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
pub use flags::{Flag, FlagValues, Validate};
pub use interruption::{Interruption, InterruptionMessage, instance_of};
pub use node_class::{
    ClassOffers, NodeClass, NodeClassFacts, NodeClassKind, crds, leaves_out_nothing, missing_class,
    sells_all, with_other_kinds,
};
pub use node_class_status::{ConditionOutcome, NodeClassCondition, NodeClassStatus, NodeClassStatusSource};
pub use provider::{
    CloudProvider, FailedOffering, Instance, InstanceState, LaunchBatch, LaunchError, LaunchRequest,
    LaunchedInstance, ProviderError,
};
pub use registration::{Example, MarketRegistration, Registration};

/// The clock of a provider. The caller passes it in, so that tests can control the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
