//! The status of node classes: what a provider found in the cloud for each field, and whether the class can be used.

use std::collections::BTreeMap;

use async_trait::async_trait;
use poolwright_terms::{NodeClassRef, RegisteredReason};
use serde_json::Value;

use crate::provider::ProviderError;

/// The status of one node class. The controller writes it to the object.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeClassStatus {
    /// The UID of the object that the provider read.
    pub uid: Option<String>,
    /// The generation of the spec that the provider read.
    pub generation: Option<i64>,
    /// The status fields other than the conditions. A null value removes the field. A field that is missing here keeps its value,
    /// because the provider has no newer one.
    pub fields: BTreeMap<String, Value>,
    /// All conditions except `Ready`, most important first: `Ready` repeats the first one that is false.
    pub conditions: Vec<NodeClassCondition>,
}

/// One condition of a node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeClassCondition {
    /// The type of the condition: `SubnetsReady`.
    pub kind: &'static str,
    /// Whether the condition is met.
    pub outcome: ConditionOutcome,
    /// The reason, from the table of the provider.
    pub reason: RegisteredReason,
    /// The message: what the provider found, or what the user must do.
    pub message: String,
}

/// Whether a condition of a node class is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionOutcome {
    /// The condition is met.
    True,
    /// The condition is not met: a person must change something.
    False,
    /// The provider cannot check the condition until the conditions before it are met.
    Unknown,
    /// The cloud did not answer. The condition keeps the status that it has.
    NoAnswer,
}

/// A provider that can report the status of its node classes.
#[async_trait]
pub trait NodeClassStatusSource: Send + Sync {
    /// Returns the current status of a node class; `None` if the class does not exist. The call fails only if the class itself
    /// cannot be read. Faults of the class, and lookups that failed, are in the status.
    async fn status(&self, class: &NodeClassRef) -> Result<Option<NodeClassStatus>, ProviderError>;

    /// Returns the reasons of the conditions: the table of the registration. With it, the controller recognizes the reason of a
    /// condition that keeps its status.
    fn reasons(&self) -> &'static [RegisteredReason];

    /// Reports whether the provider receives interruption events of the cloud; `None` if no source of events is configured. The
    /// controller writes the condition to every class of the provider. It has no effect on `Ready`, because a provider without
    /// events can still launch. The method makes no call, so you may call it at any time.
    fn interruption_condition(&self) -> Option<NodeClassCondition> {
        None
    }
}
