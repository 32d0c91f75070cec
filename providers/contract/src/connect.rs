//! From flags to a provider.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use kube::{Client, Config};
use poolwright_catalog::Catalogue;

use crate::{Clock, CloudProvider, FlagValues};

/// Where a provider is to work.
#[derive(Clone)]
pub struct Site {
    /// The flags that were set.
    pub flags: FlagValues,
    /// A client of the cluster.
    pub client: Client,
    /// How the cluster is reached, for a call under another name.
    pub cluster: Config,
    /// The catalogue of the command line, for a cloud that sells what a catalogue lists.
    pub catalogue: Arc<Catalogue>,
    /// The time.
    pub clock: Clock,
}

/// A provider, ready to be asked.
pub struct Connected {
    /// The provider.
    pub provider: Arc<dyn CloudProvider>,
    /// What must run beside it while the controller does. Dropping it at any point loses nothing.
    pub background: Option<BoxFuture<'static, ()>>,
}

/// Why a provider cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A flag is wrong; the sentence names it and says what to do.
    #[error("{0}")]
    BadFlag(String),
    /// The cluster did not answer.
    #[error("{0}")]
    Cluster(String),
}

/// Makes the provider of a cloud.
#[async_trait]
pub trait Connect: Send + Sync {
    /// The provider that the flags ask for; `None` where they ask for none.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    async fn connect(&self, site: &Site) -> Result<Option<Connected>, ConnectError>;
}
