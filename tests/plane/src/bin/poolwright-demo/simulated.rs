//! In a cluster that exists in memory. Nodes take as long to join there as they do in a cloud, and nobody waits for them.

use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use poolwright_catalog::builtin;
use poolwright_provider_kwok::REGISTRATION;
use poolwright_sim::sandbox::{Sandbox, play};

use crate::cluster::Cluster;
use crate::{Pace, Place, end, the_pool, waves};

/// What decides how long things take; any other will do as well.
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

/// Plays it.
pub fn demo() -> anyhow::Result<()> {
    println!("The real controller, in a simulated cluster: its time is told, and passes as fast as it can.");
    println!("(make demo-cluster does the same on a real control plane, in real time.)");
    let workload = std::env::temp_dir().join(format!("poolwright-demo-{}.yaml", std::process::id()));
    let played = play(async || {
        let sold = builtin().filtered(|kind, _| kind.provider.as_str() == "aws");
        let mut sandbox = Sandbox::start(Arc::new(sold), &[REGISTRATION.node_class], SEED);
        let objects: Vec<serde_json::Value> =
            serde_saphyr::from_multiple(&the_pool()?).context("the pool cannot be read")?;
        for object in objects {
            sandbox.create(&object).map_err(|refusal| anyhow!("the pool is refused: {refusal}"))?;
        }
        let cluster = Cluster::new(sandbox.client());
        waves(&cluster, &mut sandbox, &workload).await?;
        end(&cluster, &mut sandbox).await?;
        let (instances, seconds) = (sandbox.instances(), sandbox.elapsed().as_secs());
        ensure!(instances == 0, "{instances} instances still run");
        println!(
            "\nDown to zero: no node, no claim, no instance, 0.00 $/h. {} min {} s have passed there.",
            seconds / 60,
            seconds % 60
        );
        Ok(())
    })?;
    // It is not there where the demo ended before it.
    let _ = std::fs::remove_file(&workload);
    played
}
