//! A real control plane on loopback, for tests and for the demo: etcd, kube-apiserver and, where asked for,
//! kube-scheduler, kube-controller-manager and KWOK, started in a directory of their own and gone when their
//! owner is gone, however it ends.
//!
//! Here live: starting and stopping those programs, spawning Poolwright's own binary against them, and the helpers
//! that tests of a cluster need (wait for a condition, apply YAML, a namespace of one's own, and in [`trial`] what users
//! of Poolwright write and see). What may not live
//! here: decisions of Poolwright. This room sees the product as its users do, through the API server and the binary.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use poolwright_plane::{ControlPlane, Options};
//! let plane = ControlPlane::start(Options::everything()).await?;
//! let client = plane.client()?;
//! let namespace = poolwright_plane::create_namespace(&client, "example").await?;
//! # Ok(())
//! # }
//! ```
//!
//! One server per test binary and one namespace or name prefix per test: [`ControlPlane::shared`] and [`unique`].

mod assets;
pub mod aws;
mod leash;
pub mod measurement;
mod objects;
mod plane;
mod process;
mod seed;
pub mod trace;
pub mod trial;
mod wait;

pub use assets::{Assets, Program};
pub use objects::{apply, create_namespace, install_crds, unique};
pub use plane::{ControlPlane, Options};
pub use process::{Process, poolwright_binary};
pub use seed::seed;
pub use wait::wait_for;
