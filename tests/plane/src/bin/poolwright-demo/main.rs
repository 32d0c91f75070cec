//! A demonstration of the main job: pods of a real GPU trace arrive in two waves, nodes are bought for them, and everything is
//! given back.
//!
//! Without arguments the real controller runs in a simulated cluster, in the simulation's own time. With `--cluster` it runs on a
//! real control plane on loopback, and `KEEP=1` leaves that running.

mod bill;
mod cluster;
mod real;
mod simulated;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, bail};
use poolwright_catalog::{Catalogue, builtin};
use poolwright_plane::trace::{self, TracePod};
use serde_json::Value;

use crate::bill::{judge, print_bill};
use crate::cluster::{Cluster, Counts};

/// The number of pods in each wave.
const WAVES: [usize; 2] = [150, 150];

fn main() -> ExitCode {
    match demo() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nThe demo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => simulated::demo(),
        ["--cluster"] => real::demo(),
        _ => bail!("unknown arguments {arguments:?}: there is `--cluster`, and nothing else"),
    }
}

/// A cluster in which the demo runs.
trait Place {
    /// The interval between looks, and the time limits.
    const PACE: Pace;
    /// Checks that everything still runs. An error names what does not.
    fn check(&mut self) -> anyhow::Result<()>;
    /// Returns what to print when something takes too long.
    fn tail(&self) -> String;
}

/// Times in seconds.
struct Pace {
    look_every: u64,
    /// The limit for all pods of a wave to run.
    wave: u64,
    /// The limit for the cluster to become empty.
    drain: u64,
}

/// Returns the file with the pool and its node class.
fn pool_file() -> anyhow::Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pool.yaml");
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

fn the_pool() -> anyhow::Result<Vec<Value>> {
    serde_saphyr::from_multiple(&pool_file()?).context("the pool cannot be read")
}

/// Returns what the node class of the pool sells.
fn sold() -> Catalogue {
    builtin().filtered(|kind, _| kind.provider.as_str() == "aws")
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates the waves, one after the other, and prints what was bought.
async fn waves(cluster: &Cluster, place: &mut impl Place) -> anyhow::Result<()> {
    let pods: Vec<TracePod> = trace::read(WAVES.iter().sum::<usize>())?;
    println!("Ready: NodePool `gpu` may buy any on-demand AWS type, at most $2,000/h; nothing runs yet.");
    let mut sent = 0;
    for (number, size) in WAVES.into_iter().enumerate() {
        let wave = &pods[sent..sent + size];
        println!("\nWave {}: {}", number + 1, trace::describe(wave));
        cluster.create(wave).await?;
        sent += size;
        follow(cluster, place, false, |now| now.running == sent && now.opening == 0).await?;
    }
    let paid = cluster.bill().await?;
    print_bill(&paid, &judge(sold(), &pods, &the_pool()?)?);
    Ok(())
}

/// Deletes the pods, and waits until nothing is left.
async fn end(cluster: &Cluster, place: &mut impl Place) -> anyhow::Result<()> {
    println!("\nRemoving the workload; empty nodes go after 10 s.");
    cluster.delete_pods().await?;
    follow(cluster, place, true, Counts::nothing_left).await
}

/// Prints a line for every change until `done`.
async fn follow<P: Place>(
    cluster: &Cluster,
    place: &mut P,
    drains: bool,
    done: impl Fn(&Counts) -> bool,
) -> anyhow::Result<()> {
    let Pace { look_every, wave, drain } = P::PACE;
    let limit = if drains { drain } else { wave };
    let mut looks = tokio::time::interval(std::time::Duration::from_secs(look_every));
    let mut last = None;
    for look in 0..limit / look_every {
        looks.tick().await;
        place.check()?;
        let now = cluster.counts().await?;
        if last.as_ref() != Some(&now) {
            println!("  {:>3}s  {now}", look * look_every);
        }
        if done(&now) {
            return Ok(());
        }
        last = Some(now);
    }
    let last = last.map(|now| now.to_string()).unwrap_or_default();
    bail!("after {limit}s it still is: {last}\n{}", place.tail())
}
