//! Readiness: whether all watches are synced, so that decisions may begin.

use crate::edge::signal::Receiver;

/// Whether everything was listed once.
#[derive(Clone)]
pub struct Ready {
    unsynced: Receiver<Vec<&'static str>>,
}

impl Ready {
    /// Creates a readiness that is reached when the list is empty.
    pub fn new(unsynced: Receiver<Vec<&'static str>>) -> Self {
        Self { unsynced }
    }

    /// Waits until everything was listed once.
    pub async fn wait(&self) {
        let mut unsynced = self.unsynced.clone();
        while !unsynced.view(Vec::is_empty) {
            if unsynced.changed().await.is_err() {
                // The watches have ended, so this will never be ready.
                std::future::pending::<()>().await;
            }
        }
    }
}
