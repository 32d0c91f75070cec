//! A cloud in which each node class sells its own part of the catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{
    CloudProvider, Instance, InterruptionMessage, LaunchError, LaunchRequest, LaunchedInstance,
    NodeClassKind, ProviderError,
};
use poolwright_terms::NodeClassRef;

use crate::cloud::CloudOf;

pub(super) struct Seller {
    pub cloud: CloudOf,
    pub sold: BTreeMap<NodeClassRef, Arc<Catalogue>>,
}

#[async_trait]
impl CloudProvider for Seller {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn node_class_kinds(&self) -> &[NodeClassKind] {
        self.cloud.node_class_kinds()
    }

    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        let all = self.cloud.catalogue(class).await?;
        Ok(self.sold.get(class).cloned().unwrap_or(all))
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError> {
        self.cloud.launch(request).await
    }

    async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        self.cloud.list().await
    }

    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        self.cloud.get(provider_id).await
    }

    async fn terminate(&self, key: &str) -> Result<bool, ProviderError> {
        self.cloud.terminate(key).await
    }

    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        self.cloud.interruptions().await
    }

    async fn acknowledge(&self, receipts: &[String]) -> Result<(), ProviderError> {
        self.cloud.acknowledge(receipts).await
    }
}
