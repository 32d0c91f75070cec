//! Measures whether plans come true: runs seeded scale-ups of the real trace on a real control plane, and compares the price paid
//! with the price planned. Runs `RUNS` scale-ups from seed `SEED` on, with `PLACEMENT` as the controller's `--placement`.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use poolwright_plane::trial::{Random, Realised, ScaleUp, Trial, run_plan};
use poolwright_plane::{measurement, wait_for};
use serde_json::Value;

const POOL: &str = "realise";
/// The smallest and the largest number of pods in a scale-up.
const PODS: (u64, u64) = (100, 400);
/// A hundred nodes go within half a minute. The rest is for machines that compile at the same time.
const GONE_WITHIN: Duration = Duration::from_mins(10);
/// The goal: how much more than planned may be paid, on average.
const MOST_PERCENT: f64 = 1.0;

#[tokio::main]
async fn main() -> ExitCode {
    measurement::end(measure().await)
}

/// Runs one scale-up after the other, each when nothing is left of the one before. Returns whether the goal was reached.
async fn measure() -> anyhow::Result<bool> {
    let runs: u64 = measurement::variable("RUNS", 20)?;
    let first: u64 = measurement::variable("SEED", 1)?;
    let placement: String = measurement::variable("PLACEMENT", "reserve".to_owned())?;
    let trial = Trial::start(&["--placement", &placement]).await?;
    let cluster = trial.cluster()?;
    cluster.apply("", &ScaleUp::definitions(POOL)).await?;
    println!("{runs} scale-ups of the trace, seeds {first} and on, --placement {placement}");
    let mut all: Vec<(Realised, u64)> = Vec::new();
    for seed in first..first + runs {
        let namespace = cluster.namespace("scale-up").await?;
        let pods = PODS.0 + Random::new(seed ^ 0x5eed).below(PODS.1 - PODS.0 + 1);
        let scale_up = ScaleUp::new(seed, pods as usize, &namespace, POOL)?;
        let realised = scale_up.run(&cluster, &namespace).await?;
        trial.ensure_running()?;
        let at_once = at_once(&scale_up, trial.plane().dir())?;
        println!("{realised}  at once ${:.2}/h", at_once as f64 / 1e6);
        cluster.delete_pods(&namespace).await?;
        wait_for("nothing to be left of it", GONE_WITHIN, async || {
            let left = cluster.claims(POOL).await?.len() + cluster.nodes(POOL).await?.len();
            ensure!(left == 0, "{left} claims and nodes");
            Ok(())
        })
        .await?;
        all.push((realised, at_once));
    }
    Ok(summary(&all))
}

/// Returns the cost of a plan for all pods at once.
fn at_once(scale_up: &ScaleUp, directory: &Path) -> anyhow::Result<u64> {
    let definitions = ScaleUp::definitions(POOL);
    let documents: Vec<String> = definitions.iter().chain(scale_up.pods()).map(Value::to_string).collect();
    let file = directory.join("scale-up.yaml");
    fs::write(&file, documents.join("\n---\n"))?;
    let plan = run_plan(&["--time-limit", "5s", "-f", &file.display().to_string()], &[])?;
    let cost = plan["costUsdPerHour"].as_f64().context("the plan has no cost")?;
    Ok((cost * 1e6).round() as u64)
}

fn summary(all: &[(Realised, u64)]) -> bool {
    let count = all.len().max(1) as f64;
    let beyond: Vec<f64> = all.iter().map(|(run, _)| run.beyond_percent()).collect();
    let mean = beyond.iter().sum::<f64>() / count;
    let largest = beyond.iter().copied().fold(0.0, f64::max);
    let stuck: usize = all.iter().map(|(run, _)| run.stuck).sum();
    let exact = all.iter().filter(|(run, _)| run.realised <= run.planned).count();
    let to_at_once =
        all.iter().map(|(run, at_once)| run.realised as f64 / *at_once as f64 - 1.0).sum::<f64>() / count;
    let waited = all.iter().map(|(run, _)| run.waited.as_secs_f64()).sum::<f64>() / count;
    println!(
        "\n{} runs: paid beyond the plan {mean:+.2} % in the mean, {largest:+.2} % at most, nothing in {exact}; {stuck} pods \
         stuck; {waited:.1} s in the mean from the last pod to the last binding; {:+.2} % in the mean against one plan for all \
         pods at once",
        all.len(),
        to_at_once * 100.0,
    );
    let reached = mean <= MOST_PERCENT && stuck == 0;
    println!(
        "Goal (at most +{MOST_PERCENT} % in the mean, nothing stuck): {}",
        if reached { "reached" } else { "missed" }
    );
    reached
}
