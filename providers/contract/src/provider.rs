//! The [`CloudProvider`] trait, with its requests, answers and errors.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use poolwright_catalog::{Catalogue, OfferingId, RankedOffering};
use poolwright_terms::{NodeClassRef, Taint};

use crate::interruption::InterruptionMessage;
use crate::node_class::NodeClassKind;
use crate::node_class_status::NodeClassStatusSource;

/// A request to launch one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchRequest {
    /// The idempotency key, which is the UID of the NodeClaim. Two launches with the same key make one instance, across restarts
    /// of the controller and the provider, and whatever the outcome of the first launch.
    pub key: String,
    /// The name of the NodeClaim. The provider names the node after it if the cloud allows that.
    pub claim: String,
    /// The node class.
    pub node_class: NodeClassRef,
    /// The offerings to try, best first. The list is never empty.
    pub offerings: Vec<RankedOffering>,
    /// The number of offerings, from the first on, that the first call to the cloud must name together. Their capacity type is the
    /// same, and the cloud may launch any of them. With zero, the provider divides the offerings as it likes.
    pub together: usize,
    /// The labels of the node from the moment it registers. The provider adds the labels of the launched offering.
    pub labels: BTreeMap<String, String>,
    /// The annotations of the node.
    pub annotations: BTreeMap<String, String>,
    /// The taints of the node from the moment it registers.
    pub taints: Vec<Taint>,
    /// The batch of launches that this request belongs to; `None` if it is launched alone.
    pub batch: Option<LaunchBatch>,
}

/// A group of launches that differ only in key and claim. A provider may send them to the cloud in one call. The caller puts the
/// same batch on each of its requests, also when it retries, and sends them at about the same time. Every key still makes at most
/// one instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaunchBatch {
    /// The id of the batch, with at most 64 characters. All launches of the batch share it, and no others do.
    pub id: String,
    /// The number of launches in the batch.
    pub size: usize,
}

/// An offering that the provider tried and could not launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOffering {
    /// The offering.
    pub offering: OfferingId,
    /// The error: a stock-out or a quota.
    pub error: LaunchError,
}

/// The result of a successful launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchedInstance {
    /// The instance, which is new or was found by its key.
    pub instance: Instance,
    /// The offerings that failed before. The caller avoids them for a while.
    pub failed: Vec<FailedOffering>,
}

/// An instance of this cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The id of the instance, equal to `spec.providerID` of the node: `kwok://...`, `aws:///us-east-1a/i-...`.
    pub provider_id: String,
    /// The key of the launch.
    pub key: String,
    /// The name of the NodeClaim that it was launched for.
    pub claim: String,
    /// The offering that was launched.
    pub offering: OfferingId,
    /// The node class.
    pub node_class: NodeClassRef,
    /// The launch time by the cloud's clock. In the answer to a launch it may be the time of the controller's clock.
    pub launched: Timestamp,
    /// The state.
    pub state: InstanceState,
}

/// The state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// The instance is starting or running, and costs money.
    Running,
    /// The instance is terminating.
    Terminating,
}

/// The error of one offering or of a whole launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The cloud has no capacity for the offering.
    #[error("out of stock: {0}")]
    StockOut(String),
    /// The quota of the account does not allow the offering.
    #[error("quota: {0}")]
    Quota(String),
    /// Every offering of the request failed with a stock-out or a quota error.
    #[error("none of {} offerings can be had now: {}", .0.len(), list(.0))]
    AllFailed(Vec<FailedOffering>),
    /// An error that does not concern one offering.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

fn list(failed: &[FailedOffering]) -> String {
    failed.iter().map(|one| format!("{} ({})", one.offering, one.error)).collect::<Vec<_>>().join(", ")
}

/// The error of a call to a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The cloud throttled the call. Try again later.
    #[error("throttled: {0}")]
    Throttled(String),
    /// The request can never succeed. A person must change something.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The call failed and may succeed next time. It may have had an effect.
    #[error("transient: {0}")]
    Transient(String),
}

impl ProviderError {
    /// Returns the message without the class of the error.
    pub fn message(&self) -> &str {
        match self {
            Self::Throttled(message) | Self::Invalid(message) | Self::Transient(message) => message,
        }
    }
}

/// A cloud. You may repeat every call safely. A provider makes no decisions: it executes requests and reports results.
#[async_trait]
pub trait CloudProvider: Send + Sync {
    /// Returns the name of the cloud: `kwok`, `aws`, `gcp`.
    fn name(&self) -> &'static str;

    /// Returns the kinds of node class that the provider supports.
    fn node_class_kinds(&self) -> &[NodeClassKind];

    /// Returns the offerings and prices of a node class, including offerings that are out of stock. The call fails with
    /// [`ProviderError::Invalid`] if the class does not exist or cannot be used; the message says what to do.
    async fn catalogue(&self, class: &NodeClassRef) -> Result<Arc<Catalogue>, ProviderError>;

    /// Launches one instance and tries the offerings in order. If an instance with this key exists, the call returns that
    /// instance, even if the rest of the request has changed. If that instance is terminating, the call fails with
    /// [`ProviderError::Invalid`], because a key never makes a second instance.
    async fn launch(&self, request: &LaunchRequest) -> Result<LaunchedInstance, LaunchError>;

    /// Lists all instances of this cluster, including terminating ones, in the order of their provider ids.
    async fn list(&self) -> Result<Vec<Instance>, ProviderError>;

    /// Returns one instance; `None` if it is gone.
    async fn get(&self, provider_id: &str) -> Result<Option<Instance>, ProviderError>;

    /// Terminates the instance with this key, if there is one. It returns `true` once the instance is gone, or if it never
    /// existed, and `false` while it is still terminating; then call again. After the first call the caller never launches this
    /// key again.
    async fn terminate(&self, key: &str) -> Result<bool, ProviderError>;

    /// Terminates an instance that [`CloudProvider::get`] shows and that [`CloudProvider::terminate`] does not find, because somebody
    /// changed its tags. The caller has recorded that it launched this instance with this key. It returns `true` once the
    /// instance is gone. The call fails with [`ProviderError::Invalid`] if the instance shows that it belongs to another key or
    /// cluster, or if the cloud does not allow the call. The default implementation always fails. It suffices for clouds whose
    /// instances cannot lose their keys.
    async fn terminate_by_id(&self, provider_id: &str, _key: &str) -> Result<bool, ProviderError> {
        Err(ProviderError::Invalid(format!("this cloud cannot terminate {provider_id} by its id alone")))
    }

    /// Waits for interruption messages. The call returns as soon as there are messages, or an empty list after about twenty
    /// seconds. The messages may concern instances of other clusters. Messages may arrive twice, late and out of order, and the
    /// cloud redelivers a message until you acknowledge its receipt. Several callers may wait at the same time; each message goes
    /// to one of them. The default implementation never returns, which is right for clouds without such messages.
    async fn interruptions(&self) -> Result<Vec<InterruptionMessage>, ProviderError> {
        std::future::pending().await
    }

    /// Returns the errors of background polling since the last call, so that the caller can count them. These errors do not
    /// affect [`CloudProvider::interruptions`].
    fn failures(&self) -> Vec<ProviderError> {
        Vec::new()
    }

    /// Returns how many messages could not be parsed or trusted since the last call, so that the caller can count them. A
    /// redelivered message counts again. Such messages are not acknowledged and do not affect [`CloudProvider::interruptions`].
    fn unreadable(&self) -> u64 {
        0
    }

    /// Acknowledges messages whose interruptions are stored, so that the cloud does not redeliver them. Unknown receipts are
    /// ignored.
    async fn acknowledge(&self, _receipts: &[String]) -> Result<(), ProviderError> {
        Ok(())
    }

    /// Returns the source of the node class status; `None` if the node classes of this cloud refer to nothing in the cloud, so
    /// that there is nothing to look up.
    fn node_class_status_source(&self) -> Option<&dyn NodeClassStatusSource> {
        None
    }
}
