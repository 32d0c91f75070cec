//! What a cloud must do for Poolwright, and the suite that checks that it does.
//!
//! Lives here: the [`CloudProvider`] trait, its requests, answers and typed errors, the conformance suite every
//! provider must pass ([`conformance`]), and a cloud that exists in memory only, for tests ([`memory`]).
//!
//! May not live here: any cloud's SDK, any decision about what to buy, Kubernetes clients.

mod class;
pub mod conformance;
pub mod memory;
mod node_class;
mod notice;
pub mod preflight;
mod provider;

use std::sync::Arc;

use jiff::Timestamp;

pub use class::{ClassCondition, ClassReport, ClassReports, Holds};
pub use node_class::NodeClassKind;
pub use notice::{Interruption, Notice, instance_of};
pub use provider::{
    CloudProvider, FailedOffering, Instance, InstanceState, LaunchBatch, LaunchError, LaunchRequest,
    LaunchedInstance, ProviderError,
};

/// Where a provider reads the time: given by the edge, so that a test decides what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;
