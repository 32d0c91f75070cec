//! Helpers of measurement programs: settings from environment variables, metrics of the controller, and an exit status.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;

use crate::trial::Controller;

/// Reads an environment variable. Returns `otherwise` if it is unset or empty.
///
/// # Errors
/// If it cannot be parsed.
pub fn variable<T: FromStr<Err: Error + Send + Sync + 'static>>(
    name: &str,
    otherwise: T,
) -> anyhow::Result<T> {
    match env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().with_context(|| format!("{name} is `{text}`")),
        _ => Ok(otherwise),
    }
}

/// Returns the exit status of a measurement that reached its goals, missed them, or failed. Prints the error of a failure.
pub fn end(reached: anyhow::Result<bool>) -> ExitCode {
    match reached {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("The measurement failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// How often the controller did something and how many seconds it took, from a histogram of its metrics.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The number of times.
    pub count: f64,
    /// The mean.
    pub mean: f64,
    /// An upper bound of the 99th percentile.
    pub p99: f64,
}

impl Times {
    /// Reads the histogram of this name.
    pub async fn of(controller: &Controller, name: &str) -> anyhow::Result<Self> {
        let count = controller.metric(&format!("{name}_count")).await?;
        let mean = controller.metric(&format!("{name}_sum")).await? / count.max(1.0);
        Ok(Self { count, mean, p99: percentile(controller, name, count * 0.99).await? })
    }
}

/// Returns the upper bound of the bucket that holds the value of rank `wanted`.
async fn percentile(controller: &Controller, name: &str, wanted: f64) -> anyhow::Result<f64> {
    let bounds =
        [1e-5, 1e-4, 5e-4, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
    for bound in bounds {
        if controller.metric(&format!("{name}_bucket{{le=\"{bound}\"}}")).await? >= wanted {
            return Ok(bound);
        }
    }
    Ok(f64::INFINITY)
}

/// Returns the memory that a process uses now, in MiB, as Linux counts it.
pub fn resident_mib(pid: u32) -> anyhow::Result<u64> {
    mib(pid, "VmRSS:")
}

/// Returns the most memory it has used so far.
pub fn peak_mib(pid: u32) -> anyhow::Result<u64> {
    mib(pid, "VmHWM:")
}

fn mib(pid: u32, line: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let found = status.lines().find_map(|text| text.strip_prefix(line)).context("no such line")?;
    let kib: u64 = found.trim().split(' ').next().unwrap_or_default().parse()?;
    Ok(kib / 1024)
}
