//! Watch streams that start with all existing objects: as a streaming list if the API server supports it, otherwise listed in
//! pages.
//!
//! Streaming lists (KEP-3157) spare the API server's memory. Before Kubernetes 1.34 it refuses them, unless its feature gate
//! `WatchList` is on.

use std::fmt::Debug;

use futures::stream::{BoxStream, StreamExt, unfold};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tracing::debug;

use crate::observed::backoff::WatchBackoff;

/// Watches objects for ever, and restarts the watch with back-off.
pub(crate) fn watch<K>(
    api: Api<K>,
    config: watcher::Config,
    identity: &str,
) -> BoxStream<'static, watcher::Result<watcher::Event<K>>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let plural = api.resource_url().rsplit('/').next().unwrap_or_default();
    let backoff = WatchBackoff::new(identity, plural);
    let in_pages = WatchBackoff::new(identity, plural);
    let streamed = watcher(api.clone(), config.clone().streaming_lists()).backoff(backoff).boxed();
    let step = |(mut events, mut in_pages): (BoxStream<'static, _>, Option<_>)| async move {
        loop {
            let event = events.next().await?;
            if let Err(error) = &event
                && is_refusal(error)
                && let Some((api, config, backoff)) = in_pages.take()
            {
                debug!(%error, "the API server does not stream lists; reading them in pages");
                events = watcher(api, config).backoff(backoff).boxed();
                continue;
            }
            return Some((event, (events, in_pages)));
        }
    };
    unfold((streamed, Some((api, config, in_pages))), step).boxed()
}

/// Returns whether the API server does not support streaming lists.
fn is_refusal(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status))
        if status.code == 422 && status.message.contains("sendInitialEvents"))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn failed(code: u16, message: &str) -> watcher::Error {
        let status = Status::failure(message, "Invalid").with_code(code);
        watcher::Error::WatchStartFailed(kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn only_the_answer_of_an_api_server_that_does_not_stream_lists_is_its_refusal() {
        // The message of Kubernetes 1.33.
        let refusal = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        assert!(is_refusal(&failed(422, refusal)));
        assert!(!is_refusal(&failed(422, "fieldSelector: Invalid value")));
        assert!(!is_refusal(&failed(503, refusal)));
    }
}
