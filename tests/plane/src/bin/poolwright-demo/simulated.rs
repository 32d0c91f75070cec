//! The demo in a simulated cluster. Nodes take as long to join there as in a cloud, but in simulated time.

use std::sync::Arc;

use anyhow::{anyhow, ensure};
use poolwright_provider_kwok::REGISTRATION;
use poolwright_sim::sandbox::{Sandbox, play};

use crate::cluster::Cluster;
use crate::{Pace, Place, end, sold, the_pool, waves};

/// Determines how long things take. Any other seed would do as well.
const SEED: u64 = 1;

impl Place for Sandbox {
    const PACE: Pace = Pace { look_every: 10, wave: 900, drain: 600 };

    fn check(&mut self) -> anyhow::Result<()> {
        ensure!(self.is_alive(), "the controller or the world around it has ended");
        Ok(())
    }

    fn tail(&self) -> String {
        format!("{} instances run", self.instances())
    }
}

/// Runs the demo.
pub fn demo() -> anyhow::Result<()> {
    println!("The real controller, in a simulated cluster: its time is told, and passes as fast as it can.");
    println!("(make demo-cluster does the same on a real control plane, in real time.)");
    play(async || {
        let mut sandbox = Sandbox::start(Arc::new(sold()), &[REGISTRATION.node_class], SEED);
        for object in the_pool()? {
            sandbox.create(&object).map_err(|refusal| anyhow!("the pool is refused: {refusal}"))?;
        }
        let cluster = Cluster::new(sandbox.client());
        waves(&cluster, &mut sandbox).await?;
        end(&cluster, &mut sandbox).await?;
        let (instances, seconds) = (sandbox.instances(), sandbox.elapsed().as_secs());
        ensure!(instances == 0, "{instances} instances still run");
        println!(
            "\nDown to zero: no node, no claim, no instance, $0.00/h. {} min {} s have passed there.",
            seconds / 60,
            seconds % 60
        );
        Ok(())
    })?
}
