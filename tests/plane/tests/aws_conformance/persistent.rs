//! A provider that repeats transient errors, as the controller does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{
    CloudProvider, Instance, InterruptionMessage, LaunchError, LaunchRequest, LaunchedInstance,
    NodeClassKind, NodeClassStatusSource, ProviderError,
};
use poolwright_terms::NodeClassRef;

/// The number of tries before it gives up.
const TRIES: usize = 200;
/// The pause before the next try.
const PAUSE: Duration = Duration::from_millis(20);

pub struct Persistent<P>(pub P);

/// Tells whether a failed call should be repeated.
trait MayPass {
    fn may_pass(&self) -> bool;
}

impl MayPass for ProviderError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Throttled(_) | Self::Transient(_))
    }
}

impl MayPass for LaunchError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Provider(error) if error.may_pass())
    }
}

macro_rules! until_it_passes {
    ($call:expr) => {{
        for _ in 1..TRIES {
            match $call.await {
                Err(error) if error.may_pass() => tokio::time::sleep(PAUSE).await,
                answer => return answer,
            }
        }
        $call.await
    }};
}

#[async_trait]
impl<P: CloudProvider> CloudProvider for Persistent<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        self.0.node_class_kinds()
    }

    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        until_it_passes!(self.0.catalogue(class))
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        until_it_passes!(self.0.launch(request))
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        until_it_passes!(self.0.list())
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        until_it_passes!(self.0.get(provider_id))
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        until_it_passes!(self.0.terminate(key))
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        until_it_passes!(self.0.interruptions())
    }

    fn failures(&self) -> Vec<ProviderError> {
        self.0.failures()
    }

    fn unreadable(&self) -> u64 {
        self.0.unreadable()
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        until_it_passes!(self.0.acknowledge(receipts))
    }

    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        self.0.node_class_status_source()
    }
}
