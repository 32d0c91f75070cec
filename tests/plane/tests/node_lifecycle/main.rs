//! The life of a node after it opens: consolidation, repair, interruption, removal, static pools and manual edits. All tests
//! share one control plane and one controller, and each has pools of its own.

mod consolidation;
mod interruption;
mod manual_edits;
mod removal;
mod repair;
mod static_pools;

use anyhow::ensure;
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{Cluster, Trial, WITHIN, is_true};
use poolwright_plane::wait_for;

/// Returns the trial that all tests here share.
async fn trial() -> &'static Trial {
    Trial::shared(&["--batch-idle", "300ms", "--list-interval", "1s"]).await.unwrap()
}

/// Returns the cluster of the trial.
async fn cluster() -> Cluster {
    trial().await.cluster().unwrap()
}

/// Waits until a pool has one claim and it is initialized, and returns it.
async fn initialized_claim(cluster: &Cluster, pool: &str) -> NodeClaim {
    wait_for("one claim, initialized", WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        let [claim] = claims.as_slice() else { anyhow::bail!("{} claims", claims.len()) };
        ensure!(is_true(claim, "Initialized"), "{:?}", claim.status);
        Ok(claim.clone())
    })
    .await
    .unwrap()
}
