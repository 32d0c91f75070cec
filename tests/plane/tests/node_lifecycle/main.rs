//! The life of a node after it opens: consolidation, repair, interruption, removal, static pools and manual edits. All tests
//! share one control plane and one controller, and each has pools of its own.

mod consolidation;
mod interruption;
mod manual_edits;
mod removal;
mod repair;
mod static_pools;

use poolwright_plane::trial::{Cluster, Trial};

/// Returns the trial that all tests here share.
async fn trial() -> &'static Trial {
    Trial::shared(&["--batch-idle", "300ms", "--list-interval", "1s"]).await.unwrap()
}

/// Returns the cluster of the trial.
async fn cluster() -> Cluster {
    trial().await.cluster().unwrap()
}
