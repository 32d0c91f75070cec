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
use tower::service_fn;

use super::lists;
use super::received::Received;
use crate::leader::writer::Permit;

/// The timeout of one read. The client's own timeout is minutes, and an action on a claim would hang that long.
const LIMIT: Duration = Duration::from_secs(15);

/// The time in which the answer to a request must begin, a watch's too. A watch that is never answered would otherwise keep the
/// controller from seeing changes for the five minutes of the client's own timeout.
const BEGINS: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

/// Reads the API server.
#[derive(Clone)]
pub struct Reader {
    client: Client,
}

impl Reader {
    /// Creates a reader of this API server. It gives up each request whose answer does not begin within half a minute.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub fn new(client: Client) -> Self {
        let namespace = client.default_namespace().to_owned();
        let send = move |request| {
            let client = client.clone();
            async move { within(BEGINS, client.send(request)).await }
        };
        Self { client: Client::new(service_fn(send), namespace) }
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

    /// Returns the objects of one kind in the whole cluster as they are sent, so that a malformed one does not affect the others.
    pub fn received<K: Resource<DynamicType = ()>>(&self) -> Objects<Received> {
        Objects(Api::all_with(self.client.clone(), &ApiResource::erase::<K>(&())))
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
    within(LIMIT, read).await
}

async fn within<T>(limit: Duration, read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(limit, read).await.unwrap_or_else(|_| Err(Error::Service(Box::new(NoAnswer(limit)))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::http::{Request, Response};
    use futures::StreamExt;
    use k8s_openapi::api::core::v1::Pod;
    use kube::client::Body;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_never_answered_is_given_up() {
        let error = answer(std::future::pending::<Result<(), Error>>()).await.unwrap_err();
        assert!(error.to_string().contains("15"), "{error}");
        assert!(answer(async { Ok(1) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_never_answered_starts_again_within_a_minute() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = asked.clone();
        let silent = service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Result<Response<Body>, Error>>()
        });
        let pods = Reader::new(Client::new(silent, "default")).all::<Pod>();
        let mut events = pods.watch(watcher::Config::default(), "test");
        let error = events.next().await.expect("an event").unwrap_err();
        assert!(format!("{error:?}").contains("30s"), "{error:?}");
        let again = timeout(Duration::from_mins(1), events.next()).await;
        assert!(again.is_ok_and(|event| event.is_some_and(|event| event.is_err())));
        assert!(asked.load(Ordering::Relaxed) >= 2);
    }
}
