//! The providers there are, found by the kind of node class they launch with.

use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_core::NodeClassRef;
use poolwright_provider_contract::{CloudProvider, NodeClassKey, ProviderError};

/// A provider, as it is shared.
pub type SharedProvider = Arc<dyn CloudProvider>;

/// Providers by kind of node class.
#[derive(Clone, Default)]
pub struct Providers {
    all: Vec<SharedProvider>,
    by_kind: BTreeMap<&'static str, SharedProvider>,
}

impl Providers {
    /// These providers. An error when two of them claim the same kind of node class.
    pub fn new(all: Vec<SharedProvider>) -> anyhow::Result<Self> {
        let mut by_kind: BTreeMap<&'static str, SharedProvider> = BTreeMap::new();
        for provider in &all {
            for kind in provider.node_class_kinds() {
                if let Some(other) = by_kind.insert(kind, provider.clone()) {
                    anyhow::bail!(
                        "the providers {} and {} both launch with {kind}",
                        other.name(),
                        provider.name()
                    );
                }
            }
        }
        Ok(Self { all, by_kind })
    }

    /// Every provider.
    pub fn all(&self) -> &[SharedProvider] {
        &self.all
    }

    /// Whether any provider launches with this kind of node class.
    pub fn has_kind(&self, kind: &str) -> bool {
        self.by_kind.contains_key(kind)
    }

    /// The provider that launches with this node class, or what to do when there is none.
    pub fn for_class(&self, class: &NodeClassRef) -> Result<&SharedProvider, String> {
        self.by_kind.get(class.kind.as_str()).ok_or_else(|| {
            let kinds: Vec<&str> = self.by_kind.keys().copied().collect();
            format!(
                "no provider launches with {class}; nodeClassRef.kind must be one of: {}",
                kinds.join(", ")
            )
        })
    }
}

/// A node class as providers name it.
pub fn class_key(class: &NodeClassRef) -> NodeClassKey {
    NodeClassKey { group: class.group.clone(), kind: class.kind.clone(), name: class.name.clone() }
}

/// A node class as decisions name it.
pub fn class_ref(class: &NodeClassKey) -> NodeClassRef {
    NodeClassRef { group: class.group.clone(), kind: class.kind.clone(), name: class.name.clone() }
}

/// The label of an error in metrics.
pub fn error_label(error: &ProviderError) -> &'static str {
    match error {
        ProviderError::Throttled(_) => "throttled",
        ProviderError::Invalid(_) => "invalid",
        ProviderError::Transient(_) => "transient",
    }
}
