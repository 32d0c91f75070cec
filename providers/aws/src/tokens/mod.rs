//! Bootstrap tokens, with which nodes of the family Ubuntu authenticate when they join the cluster
//! (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>).
//!
//! This module holds the interface that makes tokens ([`Tokens`]) and the token in use ([`SharedToken`]). `kube.rs` makes tokens
//! in a cluster.
//!
//! Poolwright creates a token when it launches a node that needs one, and uses it for half an hour, because a token is part of
//! the launch template. Only this process stores the token; after a restart Poolwright creates a new one.

mod kube;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use poolwright_provider_aws_model::bootstrap::BootstrapToken;
use poolwright_provider_contract::{Clock, ProviderError};
use tokio::sync::Mutex;

pub use self::kube::KubeTokens;

/// The lifetime of a token.
const LIFE: SignedDuration = SignedDuration::from_mins(60);
/// How long nodes are launched with it. The last node has the same time again to boot and join, which takes minutes.
const USED_FOR: SignedDuration = SignedDuration::from_mins(30);
/// The wait after a failed creation. Launches at the same time share the failure.
const FAILED_FOR: SignedDuration = SignedDuration::from_secs(10);

/// A source of bootstrap tokens: the API server, or a fake one in tests.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Creates a token that the cluster accepts from now until this time.
    async fn make(&self, expires: Timestamp) -> Result<BootstrapToken, ProviderError>;
}

/// The token for launches.
pub(crate) struct SharedToken {
    tokens: Arc<dyn Tokens>,
    now: Clock,
    /// The last token, or the last error, and the time of that attempt. The holder of the lock creates the next token.
    last: Mutex<Option<(Result<BootstrapToken, ProviderError>, Timestamp)>>,
}

impl SharedToken {
    pub fn new(tokens: Arc<dyn Tokens>, now: Clock) -> Self {
        Self { tokens, now, last: Mutex::default() }
    }

    /// Returns a token that is valid for long enough to launch a node, created now if needed.
    pub async fn token(&self) -> Result<BootstrapToken, ProviderError> {
        let mut last = self.last.lock().await;
        let now = (self.now)();
        if let Some((outcome, at)) = &*last {
            let holds_for = if outcome.is_ok() { USED_FOR } else { FAILED_FOR };
            // Use the absolute difference, because the clock may be set back.
            if now.duration_since(*at).abs() < holds_for {
                return outcome.clone();
            }
        }
        let outcome = self.tokens.make(now + LIFE).await;
        *last = Some((outcome.clone(), now));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    /// Counts created tokens; fails on demand.
    #[derive(Default)]
    struct Counted {
        made: StdMutex<Vec<Timestamp>>,
        fails: StdMutex<bool>,
    }

    #[async_trait]
    impl Tokens for Counted {
        async fn make(&self, expires: Timestamp) -> Result<BootstrapToken, ProviderError> {
            // Let other callers arrive during the creation.
            tokio::task::yield_now().await;
            let mut made = self.made.lock().unwrap();
            made.push(expires);
            if *self.fails.lock().unwrap() {
                return Err(ProviderError::Transient("not now".to_owned()));
            }
            Ok(format!("abcdef.{:016}", made.len()).parse().unwrap())
        }
    }

    fn in_use() -> (SharedToken, Arc<Counted>, Arc<AtomicI64>) {
        let (tokens, minutes) = (Arc::new(Counted::default()), Arc::new(AtomicI64::new(0)));
        let clock = Arc::clone(&minutes);
        let now = move || Timestamp::UNIX_EPOCH + SignedDuration::from_mins(clock.load(Ordering::Relaxed));
        (SharedToken::new(tokens.clone(), Arc::new(now)), tokens, minutes)
    }

    #[tokio::test]
    async fn a_token_is_made_once_for_all_who_come_together_and_again_when_it_has_half_an_hour_left() {
        let (in_use, tokens, minutes) = in_use();
        let together = futures::future::join_all((0..20).map(|_| in_use.token())).await;
        assert!(together.iter().all(|one| one == &together[0] && one.is_ok()));
        minutes.store(29, Ordering::Relaxed);
        assert_eq!(in_use.token().await, together[0]);
        minutes.store(30, Ordering::Relaxed);
        assert_ne!(in_use.token().await, together[0]);
        let made = tokens.made.lock().unwrap().clone();
        let expire: Vec<_> = made.iter().map(|expires| expires.as_second() / 60).collect();
        assert_eq!(expire, [60, 90]);
        // A clock that was set back by hours says nothing about how old a token is.
        minutes.store(-600, Ordering::Relaxed);
        in_use.token().await.unwrap();
        assert_eq!(tokens.made.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_token_that_could_not_be_made_is_not_tried_again_by_everybody_and_soon_by_somebody() {
        let (in_use, tokens, minutes) = in_use();
        *tokens.fails.lock().unwrap() = true;
        let together = futures::future::join_all((0..20).map(|_| in_use.token())).await;
        assert!(together.iter().all(|one| matches!(one, Err(ProviderError::Transient(_)))));
        assert_eq!(tokens.made.lock().unwrap().len(), 1);
        *tokens.fails.lock().unwrap() = false;
        minutes.store(1, Ordering::Relaxed);
        assert!(in_use.token().await.is_ok());
    }
}
