//! Reads of the API server that something waits for.

use std::time::Duration;

use kube::Error;
use tokio::time::timeout;

/// How long the API server may take to answer one. The client's own patience is minutes: a claim whose read got lost would be
/// left alone for as long.
const LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
#[error("no answer within {LIMIT:?}")]
struct NoAnswer;

/// Waits for the answer to a read, for a while.
pub async fn answer<T>(read: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
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
