//! What a cloud must do for Poolwright, and the suite that checks that it does.
//!
//! Lives here: the [`CloudProvider`] trait, its requests, answers and typed errors, and the conformance suite every
//! provider must pass.
//!
//! May not live here: any cloud's SDK, any decision about what to buy, Kubernetes clients.

mod provider;

pub use provider::{
    CloudProvider, FailedOffering, Instance, InstanceState, LaunchError, LaunchRequest, LaunchedInstance, NodeClassKey,
    ProviderError, RankedOffering, Taint, TaintEffect,
};
