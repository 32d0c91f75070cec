//! `--scheduler-config`: the rules that kube-scheduler adds to its pods.

use std::path::Path;

use poolwright_intake::{SchedulerConfig, scheduler_config};

use crate::exit::Failure;
use crate::problems::Problems;
use crate::source;

/// Reads the file. Returns the default if there is none.
pub fn read(path: Option<&Path>) -> Result<SchedulerConfig, Failure> {
    let Some(path) = path else { return Ok(SchedulerConfig::default()) };
    let source =
        source::file(path).map_err(|problem| Failure::bad_input(format!("--scheduler-config: {problem}")))?;
    scheduler_config(&source.name, &source.text).map_err(|errors| {
        let mut problems = Problems::new();
        for error in &errors {
            problems.push(error);
        }
        Failure::bad_input(format!("the scheduler's configuration cannot be used: {problems}"))
    })
}

/// Returns the schedulers whose pods are planned: `anyway`, and those in the file.
pub fn names(config: &SchedulerConfig, anyway: Vec<String>) -> Vec<String> {
    let mut names = anyway;
    let more: Vec<String> = config.profiles.keys().filter(|name| !names.contains(name)).cloned().collect();
    names.extend(more);
    names
}
