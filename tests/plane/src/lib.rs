//! A real control plane on loopback, for tests and for the demo.
//!
//! This crate starts and stops etcd, kube-apiserver and, on request, kube-scheduler, kube-controller-manager and KWOK, in a
//! directory of their own. It runs Poolwright's binary against them. It also holds the helpers of tests on a cluster: wait for a
//! condition, apply YAML, make a namespace, and, in [`trial`], write and read what users do. All programs end when their owner
//! ends.
//!
//! It must not contain decisions of Poolwright. It sees the product as users do, through the API server and the binary.
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
//! Tests share one control plane per test binary, and use one namespace or name prefix per test: [`ControlPlane::shared`] and
//! [`unique`].

mod assets;
pub mod aws;
#[path = "../../../src/cli/checkout.rs"]
mod checkout;
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
pub use objects::{CONTROLLER_BINDINGS, apply, create_namespace, install_crds, unique};
pub use plane::{ControlPlane, Options};
pub use process::{Process, poolwright_binary};
pub use seed::seed;
pub use wait::wait_for;
