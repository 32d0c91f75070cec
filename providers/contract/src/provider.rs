//! The trait, its requests and answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use poolwright_catalog::{Catalogue, OfferingId, RankedOffering};
use poolwright_terms::{NodeClassRef, Taint};

use crate::interruption::InterruptionMessage;
use crate::node_class::NodeClassKind;
use crate::node_class_status::NodeClassStatusSource;

/// What to launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// The idempotency key: the NodeClaim's UID. Two launches with one key make one instance, across restarts of us and
    /// of the provider, and however the first one ended.
    pub key: String,
    /// Name of the NodeClaim; the node is named after it where the cloud lets us choose.
    pub claim: String,
    /// Node class.
    pub node_class: NodeClassRef,
    /// What to order, best first. Never empty.
    pub offerings: Vec<RankedOffering>,
    /// Labels the node must carry from its first moment (those of the offering launched are added by the provider).
    pub labels: BTreeMap<String, String>,
    /// Annotations the node must carry.
    pub annotations: BTreeMap<String, String>,
    /// Taints the node must carry from its first moment.
    pub taints: Vec<Taint>,
    /// The launches that this one is bought together with; `None` where it is alone.
    pub batch: Option<LaunchBatch>,
}

/// Launches that differ in key and claim alone, and that a provider may order in one call. Who asks says it of every one of them, each
/// time it asks, and asks for all of them at about the same time; a provider may do with it what it likes, but one key makes one
/// instance all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchBatch {
    /// What its launches have in common, and no others: at most 64 characters.
    pub id: String,
    /// How many they are.
    pub size: usize,
}

/// An offering that could not be had on the way to the one that could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOffering {
    /// Which.
    pub offering: OfferingId,
    /// Why: a stock-out or a quota.
    pub error: LaunchError,
}

/// A launch that worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedInstance {
    /// The instance, new or found by its key.
    pub instance: Instance,
    /// Offerings tried before it that failed; the caller remembers them.
    pub failed: Vec<FailedOffering>,
}

/// An instance of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The cloud's id, equal to `spec.providerID` of its node: `kwok://...`, `aws:///us-east-1a/i-...`.
    pub provider_id: String,
    /// The key it was launched with.
    pub key: String,
    /// Name of the claim it was launched for.
    pub claim: String,
    /// What was ordered.
    pub offering: OfferingId,
    /// Node class.
    pub node_class: NodeClassRef,
    /// When, by the cloud's clock; in the answer to a launch it may be by ours, where the cloud does not say it there.
    pub launched: Timestamp,
    /// Where it stands.
    pub state: InstanceState,
}

/// Where an instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// Starting or running: it costs money.
    Running,
    /// Being terminated.
    Terminating,
}

/// Why one offering, or a whole launch, failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The cloud has none of it now.
    #[error("out of stock: {0}")]
    StockOut(String),
    /// Our quota does not allow it.
    #[error("quota: {0}")]
    Quota(String),
    /// Every offering of the request failed by stock-out or quota, one by one.
    #[error("none of {} offerings can be had now: {}", .0.len(), list(.0))]
    AllFailed(Vec<FailedOffering>),
    /// Anything that is not about one offering.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

fn list(failed: &[FailedOffering]) -> String {
    failed.iter().map(|one| format!("{} ({})", one.offering, one.error)).collect::<Vec<_>>().join(", ")
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Too many calls: try again later.
    #[error("throttled: {0}")]
    Throttled(String),
    /// The request can never work: a person must change something.
    #[error("invalid: {0}")]
    Invalid(String),
    /// It may work next time; whether it had an effect is not known.
    #[error("transient: {0}")]
    Transient(String),
}

/// A cloud. All calls are safe to repeat. Implementations hold no decisions: they do what they are told and say what
/// happened.
#[async_trait]
pub trait CloudProvider: Send + Sync {
    /// Its name: `kwok`, `aws`, `gcp`.
    fn name(&self) -> &'static str;

    /// The kinds of node class that it launches with.
    fn node_class_kinds(&self) -> &[NodeClassKind];

    /// What can be bought with this node class, prices included. Offerings out of stock are listed all the same.
    /// [`ProviderError::Invalid`] when the class does not exist or cannot be used, saying what to do.
    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError>;

    /// Launches one instance, trying the offerings in order; or finds the one launched with this key before, whatever
    /// the request now says, unless that one is terminating, which is [`ProviderError::Invalid`]: a key is never used for a
    /// second instance.
    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError>;

    /// Every instance of this cluster, terminating ones included, in order of their provider ids.
    async fn list(&self) -> Result<Vec<Instance>, ProviderError>;

    /// One instance; `None` when it is gone.
    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError>;

    /// Terminates the instance launched with this key, if there is one. `true` when it is gone (or never was), `false`
    /// while it is still going: ask again. The caller never launches a key again once it asked to terminate it.
    async fn terminate(&self, key: &str) -> Result<bool, ProviderError>;

    /// What the cloud says about machines, of this cluster or of others: returns when there is something to hear, and with nothing
    /// after some twenty seconds. A notice may come twice, late and after one that was sent later; one with a receipt that is not
    /// given back comes again. Any number of callers may ask at a time, and each notice goes to one of them. Clouds that say
    /// nothing never return, which is what this does where it is not implemented.
    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        std::future::pending().await
    }

    /// What went wrong beside the calls that were asked for, since this was asked last: looks that a provider takes of its own accord
    /// while it is asked for notices. Whoever hears counts them. They keep nothing back that there is to hear.
    fn failures(&self) -> Vec<ProviderError> {
        Vec::new()
    }

    /// How many messages were received that cannot be read or believed, since this was asked last; one that comes again counts again.
    /// Whoever hears counts them. They are not given back, and keep nothing back that there is to hear.
    fn unreadable(&self) -> u64 {
        0
    }

    /// Gives receipts back: what they belong to is durably recorded and does not come again. Receipts that are not known (any more) are
    /// no error.
    async fn acknowledge(&self, _receipts: &[String]) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Who says what its node classes were found to mean, where it can: that is written to their status. Clouds whose classes name
    /// nothing that must be looked up say nothing.
    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        None
    }
}
