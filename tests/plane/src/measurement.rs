//! What programs that measure have in common: variables that say how much, what a controller tells about itself, and an
//! exit status that says how it went.

use std::env;
use std::error::Error;
use std::fs;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;

use crate::trial::Controller;

/// A variable of the environment; `otherwise` where it is unset or empty.
///
/// # Errors
/// When it cannot be read as what is wanted.
pub fn variable<T: FromStr<Err: Error + Send + Sync + 'static>>(
    name: &str,
    otherwise: T,
) -> anyhow::Result<T> {
    match env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().with_context(|| format!("{name} is `{text}`")),
        _ => Ok(otherwise),
    }
}

/// The exit status of a measurement that reached its goals, missed them, or failed, which it says.
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

/// How often the controller did something, and how long that took it in seconds, by a histogram of its metrics.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// How often.
    pub count: f64,
    /// In the mean.
    pub mean: f64,
    /// An upper bound for 99 of 100.
    pub p99: f64,
}

impl Times {
    /// By the histogram of this name.
    pub async fn of(controller: &Controller, name: &str) -> anyhow::Result<Self> {
        let count = controller.metric(&format!("{name}_count")).await?;
        let mean = controller.metric(&format!("{name}_sum")).await? / count.max(1.0);
        Ok(Self { count, mean, p99: percentile(controller, name, count * 0.99).await? })
    }
}

/// The upper bound of the bucket that holds the `wanted`th of the values.
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

/// The memory that a process has now, in MiB, as Linux counts it.
pub fn resident_mib(pid: u32) -> anyhow::Result<u64> {
    mib(pid, "VmRSS:")
}

/// The most that it had so far.
pub fn peak_mib(pid: u32) -> anyhow::Result<u64> {
    mib(pid, "VmHWM:")
}

fn mib(pid: u32, line: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let found = status.lines().find_map(|text| text.strip_prefix(line)).context("no such line")?;
    let kib: u64 = found.trim().split(' ').next().unwrap_or_default().parse()?;
    Ok(kib / 1024)
}
