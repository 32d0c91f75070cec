//! The connection step: it turns the flags of a cloud into a provider.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use kube::{Client, Config};
use poolwright_catalog::Catalogue;

use crate::{Clock, CloudProvider, FlagValues};

/// Everything that a cloud needs to make its provider.
#[derive(Clone)]
pub struct Site {
    /// The flags that the user set.
    pub flags: FlagValues,
    /// A client of the cluster.
    pub client: Client,
    /// The configuration of that client. A provider needs it to call the API server under another user agent.
    pub cluster: Config,
    /// The catalogue from the command line. A cloud without prices of its own sells the offerings of this catalogue.
    pub catalogue: Arc<Catalogue>,
    /// The clock.
    pub clock: Clock,
}

/// A connected provider.
pub struct Connected {
    /// The provider.
    pub provider: Arc<dyn CloudProvider>,
    /// A background task that the controller runs while it uses the provider. It never ends by itself: a controller whose task ends or
    /// panics ends too. You may drop it at any point without losing state.
    pub background: Option<BoxFuture<'static, ()>>,
}

/// The error of [`Connect::connect`].
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A flag is wrong. The message names the flag and says what to do.
    #[error("{0}")]
    BadFlag(String),
    /// The cluster did not answer.
    #[error("{0}")]
    Cluster(String),
}

/// Makes the provider of a cloud.
#[async_trait]
pub trait Connect: Send + Sync {
    /// Makes the provider that the flags describe; `None` if the flags do not enable this cloud.
    ///
    /// # Errors
    ///
    /// See [`ConnectError`].
    async fn connect(&self, site: &Site) -> Result<Option<Connected>, ConnectError>;
}
