//! Reads EC2NodeClass objects from the API server.

use async_trait::async_trait;
use kube::api::ListParams;
use kube::{Api, Client};
use poolwright_provider_contract::ProviderError;

use crate::node_class::EC2NodeClass;

/// A source of node classes: the API server, or a fake one in tests.
#[async_trait]
pub trait NodeClassObjects: Send + Sync {
    /// Returns the class of this name; `None` if it does not exist.
    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError>;
    /// Returns the names of all classes; `None` if they cannot be listed.
    async fn names(&self) -> Option<Vec<String>> {
        None
    }
}

/// Reads node classes from a cluster.
#[derive(Clone)]
pub struct KubeNodeClassObjects(pub Client);

#[async_trait]
impl NodeClassObjects for KubeNodeClassObjects {
    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        let api: Api<EC2NodeClass> = Api::all(self.0.clone());
        match api.get(name).await {
            Ok(class) => Ok(Some(class)),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                // The details of the error name the class if only the class is missing. They are absent if the API server does
                // not serve the kind.
                if status.details.as_ref().is_some_and(|details| details.name == name) {
                    return Ok(None);
                }
                Err(ProviderError::Invalid(
                    "the API server does not serve EC2NodeClass: install the CRDs with `poolwright crds | kubectl apply \
                     --server-side -f -`, or correct spec.template.spec.nodeClassRef of the pool"
                        .to_owned(),
                ))
            }
            Err(kube::Error::Api(status)) if status.is_forbidden() => Err(ProviderError::Invalid(format!(
                "EC2NodeClass `{name}` may not be read: grant the verb `get` on `ec2nodeclasses.poolwright.dev`, as \
                 deploy/rbac.yaml does: {status}"
            ))),
            Err(error) => {
                Err(ProviderError::Transient(format!("EC2NodeClass `{name}` could not be read: {error}")))
            }
        }
    }

    async fn names(&self) -> Option<Vec<String>> {
        let api: Api<EC2NodeClass> = Api::all(self.0.clone());
        let listed = api.list_metadata(&ListParams::default()).await.ok()?;
        Some(listed.items.into_iter().filter_map(|object| object.metadata.name).collect())
    }
}
