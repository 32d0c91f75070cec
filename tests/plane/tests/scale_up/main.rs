//! Scale-up: packing, gangs and volumes. All tests share one control plane and one controller without flags, and each has pools
//! of its own.

mod gangs;
mod packing;
mod volumes;

use poolwright_plane::trial::{Cluster, Trial};

/// Returns the cluster of the trial that all tests here share.
async fn cluster() -> Cluster {
    Trial::shared(&[]).await.unwrap().cluster().unwrap()
}
