//! Trials of the real product: `poolwright controller` on a control plane, and what its users see of it.

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

/// How long a test waits for anything before it gives up: far longer than it takes on an idle machine, because two cores
/// may be compiling meanwhile.
pub const WITHIN: Duration = Duration::from_secs(90);

/// A control plane with our CRDs and one controller that all tests of a binary share.
///
/// Each test has pools of its own, which its pods choose with a node selector ([`pod`]); so they do not meet, except in
/// one batch window.
#[derive(Debug)]
pub struct Trial {
    // Before the plane: a controller without API server would log its despair.
    controller: Mutex<Controller>,
    plane: ControlPlane,
}

impl Trial {
    /// Starts all five programs, installs the CRDs and runs a controller with these flags besides its address.
    pub async fn start(flags: &[&str]) -> anyhow::Result<Self> {
        Self::start_on(Options::everything(), flags).await
    }

    /// The same on a control plane with these options.
    pub async fn start_on(options: Options, flags: &[&str]) -> anyhow::Result<Self> {
        let plane = Self::plane_with(options).await?;
        let controller = Controller::start(&plane, "controller", flags)?;
        Ok(Self { controller: Mutex::new(controller), plane })
    }

    /// The one trial of this test binary, with the flags of whoever asks first.
    pub async fn shared(flags: &[&str]) -> anyhow::Result<&'static Self> {
        static SHARED: OnceCell<Trial> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(flags)).await
    }

    /// The control plane with our CRDs alone: for tests that start controllers when they like.
    pub async fn plane_without_controller() -> anyhow::Result<ControlPlane> {
        Self::plane_with(Options::everything()).await
    }

    /// A control plane with these programs, and our CRDs.
    pub async fn plane_with(options: Options) -> anyhow::Result<ControlPlane> {
        let plane = ControlPlane::start(options).await?;
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
        install_crds(&plane.client()?, &crds).await?;
        Ok(plane)
    }

    /// The control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The cluster through a client of one's own: one per test, since it lives as long as the test's runtime.
    pub fn cluster(&self) -> anyhow::Result<Cluster> {
        Ok(Cluster::new(self.plane.client()?))
    }

    /// An error with the end of its log, unless the controller runs.
    pub fn ensure_running(&self) -> anyhow::Result<()> {
        self.controller.lock().unwrap_or_else(std::sync::PoisonError::into_inner).ensure_running()
    }

    /// A metric of the controller, by name and labels as `/metrics` writes them; 0 while it is not there.
    pub async fn metric(&self, series: &str) -> anyhow::Result<f64> {
        let address = self.controller.lock().unwrap_or_else(std::sync::PoisonError::into_inner).address();
        controller::metric(address, series).await
    }
}
