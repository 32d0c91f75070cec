//! Reads EC2NodeClass objects from the API server.

use async_trait::async_trait;
use kube::{Api, Client};
use poolwright_provider_contract::ProviderError;

use crate::node_class::EC2NodeClass;

/// A source of node classes: the API server, or a fake one in tests.
#[async_trait]
pub trait NodeClassObjects: Send + Sync {
    /// Returns the class of this name; `None` if it does not exist.
    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError>;
}

/// Reads node classes from a cluster.
#[derive(Clone)]
pub struct KubeNodeClassObjects(pub Client);

#[async_trait]
impl NodeClassObjects for KubeNodeClassObjects {
    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        let api: Api<EC2NodeClass> = Api::all(self.0.clone());
        api.get_opt(name).await.map_err(|error| {
            let forbidden = matches!(&error, kube::Error::Api(status) if status.is_forbidden());
            if forbidden {
                ProviderError::Invalid(format!(
                    "EC2NodeClass `{name}` may not be read: grant the verb `get` on `ec2nodeclasses.poolwright.dev`, as \
                     deploy/rbac.yaml does: {error}"
                ))
            } else {
                ProviderError::Transient(format!("EC2NodeClass `{name}` could not be read: {error}"))
            }
        })
    }
}
