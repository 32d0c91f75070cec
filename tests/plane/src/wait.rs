//! Waits on conditions, never for a fixed time. The only time limit is the one after which a test gives up.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::anyhow;

/// The pause between two looks: short compared with anything a control plane does, long compared with the cost of a look.
const PAUSE: Duration = Duration::from_millis(50);

/// Repeats `look` until it succeeds, and returns its result.
///
/// An `Err` of `look` means "not yet", whatever its cause. After `limit`, the returned error holds the last one:
///
/// ```no_run
/// # async fn example(nodes: kube::Api<k8s_openapi::api::core::v1::Node>) -> anyhow::Result<()> {
/// # use std::time::Duration;
/// let node = poolwright_plane::wait_for("node a to have a provider id", Duration::from_secs(10), async || {
///     let node = nodes.get("a").await?;
///     let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_ref());
///     anyhow::ensure!(id.is_some(), "it has none");
///     Ok(node)
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
pub async fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let last = Mutex::new(anyhow!("not a single look was finished"));
    let looking = async {
        loop {
            match look().await {
                Ok(found) => return found,
                Err(error) => *last.lock().unwrap_or_else(PoisonError::into_inner) = error,
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    if let Ok(found) = tokio::time::timeout(limit, looking).await {
        return Ok(found);
    }
    let last = last.into_inner().unwrap_or_else(PoisonError::into_inner);
    crate::plane::keep_logs();
    Err(anyhow!("waited {}s for {what}; last seen: {last:#}", limit.as_secs_f32()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;

    #[tokio::test]
    async fn waiting_returns_what_the_last_look_found() {
        let mut looks = 0;
        let found = wait_for("three looks", Duration::from_secs(10), async || {
            looks += 1;
            ensure!(looks == 3, "only {looks}");
            Ok(looks)
        });
        assert_eq!(found.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn giving_up_tells_what_was_awaited_and_what_was_last_seen() {
        let gave_up = wait_for("pigs to fly", Duration::from_millis(10), async || -> anyhow::Result<()> {
            Err(anyhow!("pigs walk").context("looked at the pigs"))
        });
        let message = gave_up.await.unwrap_err().to_string();
        assert!(message.contains("pigs to fly") && message.contains("pigs walk"), "{message}");
    }
}
