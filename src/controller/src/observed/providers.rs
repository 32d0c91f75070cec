//! The providers by kind of node class, for reading.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use poolwright_catalog::Catalogue;
use poolwright_provider_contract::{
    CloudProvider, Instance, InterruptionMessage, NodeClassKind, NodeClassStatusSource, ProviderError,
};
use poolwright_terms::NodeClassRef;

use crate::leader::writer::Permit;

/// One provider, for reading. Calls that change something need a [`Permit`]. Clones share the doubt.
#[derive(Clone)]
pub struct Cloud {
    provider: Arc<dyn CloudProvider>,
    doubt: Arc<Mutex<Option<String>>>,
    /// Whether a listing was judged since the start.
    judged: Arc<AtomicBool>,
}

impl Cloud {
    fn new(provider: Arc<dyn CloudProvider>) -> Self {
        Self { provider, doubt: Arc::default(), judged: Arc::default() }
    }

    /// Returns why its listings cannot be right; `None` if they can.
    pub fn doubt(&self) -> Option<String> {
        self.doubt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether a listing was judged since the start. Before, it is unknown whether they can be right.
    pub fn is_judged(&self) -> bool {
        self.judged.load(Ordering::Acquire)
    }

    /// Notes why its listings cannot be right, or that they can. Returns whether a doubt began or ended.
    pub fn set_doubt(&self, doubt: Option<String>) -> bool {
        let mut known = self.doubt.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *known, doubt);
        self.judged.store(true, Ordering::Release);
        before.is_some() != known.is_some()
    }

    /// See [`CloudProvider::name`].
    pub fn name(&self) -> &'static str {
        self.provider.name()
    }

    /// See [`CloudProvider::node_class_kinds`].
    pub fn node_class_kinds(&self) -> &[NodeClassKind] {
        self.provider.node_class_kinds()
    }

    /// See [`CloudProvider::catalogue`].
    pub async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError> {
        self.provider.catalogue(class).await
    }

    /// See [`CloudProvider::list`].
    pub async fn list(&self) -> Result<Vec<Instance>, ProviderError> {
        self.provider.list().await
    }

    /// See [`CloudProvider::get`].
    pub async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError> {
        self.provider.get(provider_id).await
    }

    /// See [`CloudProvider::interruptions`].
    pub async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        self.provider.interruptions().await
    }

    /// See [`CloudProvider::failures`].
    pub fn failures(&self) -> Vec<ProviderError> {
        self.provider.failures()
    }

    /// See [`CloudProvider::unreadable`].
    pub fn unreadable(&self) -> u64 {
        self.provider.unreadable()
    }

    /// See [`CloudProvider::node_class_status_source`].
    pub fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        self.provider.node_class_status_source()
    }

    /// Returns the whole provider, for one call of the writer.
    pub fn writable<'a>(&'a self, _: &'a Permit) -> &'a dyn CloudProvider {
        self.provider.as_ref()
    }
}

/// Providers by kind of node class.
#[derive(Clone, Default)]
pub struct Providers {
    all: Vec<Cloud>,
    by_kind: BTreeMap<&'static str, Cloud>,
    /// The kinds of node class of clouds that are not enabled, each with what enables its cloud.
    disabled: BTreeMap<&'static str, String>,
}

impl Providers {
    /// Creates the map of providers by kind. Returns an error if two of them serve the same kind of node class.
    pub fn new(all: Vec<Arc<dyn CloudProvider>>) -> anyhow::Result<Self> {
        let all: Vec<Cloud> = all.into_iter().map(Cloud::new).collect();
        let mut by_kind: BTreeMap<&'static str, Cloud> = BTreeMap::new();
        for provider in &all {
            for NodeClassKind { kind, .. } in provider.node_class_kinds() {
                if let Some(other) = by_kind.insert(kind, provider.clone()) {
                    anyhow::bail!(
                        "the providers {} and {} both launch with {kind}",
                        other.name(),
                        provider.name()
                    );
                }
            }
        }
        Ok(Self { all, by_kind, disabled: BTreeMap::new() })
    }

    /// Names the kinds of node class of clouds that are not enabled, each with what enables its cloud.
    pub fn without(self, disabled: BTreeMap<&'static str, String>) -> Self {
        Self { disabled, ..self }
    }

    /// Returns every provider.
    pub fn all(&self) -> &[Cloud] {
        &self.all
    }

    /// Returns every kind of node class that a provider launches with.
    pub fn node_class_kinds(&self) -> impl Iterator<Item = NodeClassKind> {
        self.all.iter().flat_map(Cloud::node_class_kinds).copied()
    }

    /// Returns the provider of this node class, or a message that says what to do if there is none.
    pub fn for_class(&self, class: &NodeClassRef) -> Result<&Cloud, String> {
        self.by_kind.get(class.kind.as_str()).ok_or_else(|| {
            let kinds: Vec<&str> = self.by_kind.keys().copied().collect();
            let kinds = kinds.join(", ");
            match self.disabled.get(class.kind.as_str()) {
                Some(remedy) => format!(
                    "this controller launches no nodes with {class}; {remedy}, or correct \
                     spec.template.spec.nodeClassRef of the pool to a kind that it launches with: {kinds}"
                ),
                None => {
                    format!("no provider launches with {class}; nodeClassRef.kind must be one of: {kinds}")
                }
            }
        })
    }
}

/// Returns the label of an error in metrics.
pub fn error_label(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::Throttled(_) => "throttled",
        ProviderError::Invalid(_) => "invalid",
        ProviderError::Transient(_) => "transient",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_of_a_cloud_that_is_not_enabled_names_what_enables_it() {
        let class = |kind: &str| NodeClassRef {
            group: poolwright_terms::GROUP.to_owned(),
            kind: kind.to_owned(),
            name: "gpu".to_owned(),
        };
        let none = Providers::new(Vec::new()).expect("no two for one kind");
        let remedy = "start the controller with --mist-cluster".to_owned();
        let providers = none.without([("MistNodeClass", remedy)].into());
        let why = providers.for_class(&class("MistNodeClass")).err().expect("no provider serves it");
        assert!(
            why.starts_with(
                "this controller launches no nodes with MistNodeClass `gpu`; start the controller with --mist-cluster"
            ),
            "{why}"
        );
        let why = providers.for_class(&class("FogNodeClass")).err().expect("no provider serves it");
        assert!(why.starts_with("no provider launches with FogNodeClass `gpu`"), "{why}");
    }
}
