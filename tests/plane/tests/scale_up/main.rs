//! Scale-up: packing, gangs, volumes, and a Job of a million pods. All tests share one control plane and one controller without
//! flags, and each has pools of its own.

mod gangs;
mod million;
mod packing;
mod volumes;

use poolwright_plane::trial::{Cluster, Trial};

/// Returns the cluster of the trial that all tests here share.
async fn cluster() -> Cluster {
    Trial::shared(&[]).await.unwrap().cluster().unwrap()
}
