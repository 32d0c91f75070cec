//! Reads the API server. Besides the elector, only this module holds a client.
//!
//! The client is private: neither a [`Reader`] nor its [`Objects`] have methods that write. Writing needs a [`Permit`], which
//! only the [writer](crate::leader::writer) creates.

use std::fmt::Debug;
use std::time::Duration;

use futures::stream::BoxStream;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectList};
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client, Error, Resource};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::lists;
use crate::leader::writer::Permit;

/// The timeout of one read. The client's own timeout is minutes, and an action on a claim would hang that long.
const LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {LIMIT:?}")]
struct NoAnswer;

/// Reads the API server.
#[derive(Clone)]
pub struct Reader {
    client: Client,
}

impl Reader {
    /// Creates a reader of this API server.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns the objects of one kind in the whole cluster.
    pub fn all<K: Resource<DynamicType = ()>>(&self) -> Objects<K> {
        Objects(Api::all(self.client.clone()))
    }

    /// Returns the objects of one kind in one namespace.
    pub fn namespaced<K>(&self, namespace: &str) -> Objects<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Objects(Api::namespaced(self.client.clone(), namespace))
    }

    /// Returns the objects in the whole cluster of a kind that is known only at run time.
    pub fn dynamic(&self, resource: &ApiResource) -> Objects<DynamicObject> {
        Objects(Api::all_with(self.client.clone(), resource))
    }

    /// Returns the metadata of the objects in the whole cluster of a kind that is known only at run time.
    pub fn dynamic_metadata(&self, resource: &ApiResource) -> Objects<PartialObjectMeta<DynamicObject>> {
        Objects(Api::all_with(self.client.clone(), resource))
    }

    /// Returns whether the API server has this kind.
    pub async fn serves<K: Resource<DynamicType = ()>>(&self) -> Result<bool, Error> {
        match answer(self.client.list_api_group_resources(&K::api_version(&()))).await {
            Ok(all) => Ok(all.resources.iter().any(|one| one.name == K::plural(&()))),
            Err(Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The objects of one kind, for reading.
#[derive(Clone)]
pub struct Objects<K>(Api<K>);

impl<K: Clone + Debug + DeserializeOwned> Objects<K> {
    /// Returns the object of this name, if there is one.
    pub async fn get(&self, name: &str) -> Result<Option<K>, Error> {
        answer(self.0.get_opt(name)).await
    }

    /// Returns the objects that match these parameters.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        answer(self.0.list(params)).await
    }

    /// Returns the metadata of the objects that match these parameters.
    pub async fn metadata(&self, params: &ListParams) -> Result<ObjectList<PartialObjectMeta<K>>, Error> {
        answer(self.0.list_metadata(params)).await
    }

    /// Watches the objects for ever, starting with the existing ones.
    pub fn watch(
        self,
        config: watcher::Config,
        identity: &str,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<K>>>
    where
        K: Resource + Send + 'static,
    {
        lists::watch(self.0, config, identity)
    }

    /// Gives access to writing methods, for one call of the writer. With a permit, a write compiles:
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Node;
    /// use kube::api::DeleteParams;
    /// use poolwright_controller::{Objects, Permit};
    ///
    /// async fn delete(nodes: &Objects<Node>, permit: &Permit) {
    ///     let _ = nodes.writable(permit).delete("n", &DeleteParams::default()).await;
    /// }
    /// ```
    ///
    /// Without one, it does not compile, and only the writer can create one:
    ///
    /// ```compile_fail,E0423
    /// use k8s_openapi::api::core::v1::Node;
    /// use kube::api::DeleteParams;
    /// use poolwright_controller::{Objects, Permit};
    ///
    /// async fn delete(nodes: &Objects<Node>) {
    ///     let _ = nodes.writable(&Permit(())).delete("n", &DeleteParams::default()).await;
    /// }
    /// ```
    pub fn writable<'a>(&'a self, _: &'a Permit) -> &'a Api<K> {
        &self.0
    }
}

/// Waits for the answer to a read, with a timeout.
async fn answer<T>(read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(LIMIT, read).await.unwrap_or_else(|_| Err(Error::Service(Box::new(NoAnswer))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_never_answered_is_given_up() {
        let error = answer(std::future::pending::<Result<(), Error>>()).await.unwrap_err();
        assert!(error.to_string().contains("15"), "{error}");
        assert!(answer(async { Ok(1) }).await.is_ok());
    }
}
