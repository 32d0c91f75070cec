//! Nodes bought for pods that wait, on one control plane with one controller that has no flags: packing, gangs and volumes. Each test
//! has pools of its own.

mod gangs;
mod packing;
mod volumes;

use poolwright_plane::trial::{Cluster, Trial};

/// The cluster of the trial that all tests here share.
async fn cluster() -> Cluster {
    Trial::shared(&[]).await.unwrap().cluster().unwrap()
}
