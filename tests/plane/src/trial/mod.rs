//! Trials of the real product: `poolwright controller` on a control plane, as its users see it.

mod cluster;
mod controller;
mod hold;
mod manifests;
mod scale_up;
mod witness;

pub use cluster::{Cluster, Said, condition, is_running, is_true, taint_keys, usd_per_hour};
pub use controller::{Controller, sum};
pub use hold::{Hold, Writes};
pub use manifests::{node_class, node_pool, pod, run_plan};
pub use scale_up::{Random, Realised, ScaleUp};
pub use witness::{Account, Seen, Witness};

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::OnceCell;

use crate::objects::install_crds;
use crate::plane::{ControlPlane, Options};

/// The time after which a test gives up waiting. Far longer than needed on an idle machine, because two cores may be compiling
/// meanwhile.
pub const WITHIN: Duration = Duration::from_secs(90);

/// A control plane with our CRDs and a controller, shared by all tests of a binary.
///
/// Each test has its own pools, which its pods select with a node selector ([`pod`]), so tests do not affect each other, except
/// that their pods may share a batch window.
#[derive(Debug)]
pub struct Trial {
    // Before the plane: fields are dropped in this order, and a controller without an API server would fill its log with errors.
    controller: Mutex<Controller>,
    plane: ControlPlane,
}

impl Trial {
    /// Starts all five programs, installs the CRDs and runs a controller with its address and these flags.
    pub async fn start(flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_on(Options::everything(), flags).await
    }

    /// Does the same on a control plane with these options.
    pub async fn start_on(options: Options, flags: &[&str]) -> anyhow::Result<Self> {
        let plane = Self::plane_with(options).await?;
        let controller = Controller::start(&plane, "controller", flags)?;
        Ok(Self { controller: Mutex::new(controller), plane })
    }

    /// Returns the trial that all tests of this binary share. The first caller's flags are used.
    pub async fn shared(flags: &[&str]) -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<Trial> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(flags)).await
    }

    /// Starts a control plane with our CRDs and no controller, for tests that start controllers themselves.
    pub async fn plane_without_controller() -> anyhow::Result<ControlPlane> {
        Self::plane_with(Options::everything()).await
    }

    /// Starts a control plane with these options and our CRDs.
    pub async fn plane_with(options: Options) -> anyhow::Result<ControlPlane> {
        let plane = ControlPlane::start(options).await?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
        install_crds(&plane.client()?, &crds).await?;
        Ok(plane)
    }

    /// Returns the control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// Returns the cluster through a new client. Call it once per test: a client lives as long as its test's runtime.
    pub fn cluster(&self) -> anyhow::Result<Cluster> {
        Ok(Cluster::new(self.plane.client()?))
    }

    /// Returns an error with the end of its log if the controller has ended.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        self.controller.lock().unwrap_or_else(std::sync::PoisonError::into_inner).ensure_running()
    }

    /// Returns a metric of the controller, by name and labels as `/metrics` writes them, or 0 if it does not exist yet.
    pub async fn metric(&self, series: &str) -> anyhow::Result<f64> {
        let address = self.controller.lock().unwrap_or_else(std::sync::PoisonError::into_inner).address();
        controller::metric(address, series).await
    }
}
