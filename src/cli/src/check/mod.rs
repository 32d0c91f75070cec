//! `poolwright check`: whether cluster and account have what Poolwright needs, and what to do where they do not.
//!
//! Lives here: the cluster's side (`cluster` asks; `resources`, `rights` and `readiness` say what the answers mean, as plain
//! functions), node classes from manifests (`classes`), and printing (`print`). The account's side is the provider's.
//!
//! May not live here: any write. What is asked has no effect.

mod classes;
mod cluster;
mod print;
mod readiness;
mod resources;
mod rights;

use std::io::Write;

use anyhow::Context;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_aws::{Access, Question, preflight};
use poolwright_provider_contract::preflight::Finding;

use crate::args::CheckFlags;
use crate::exit::{ExitStatus, Failure};

/// Looks, and says what was found.
pub fn run(flags: &CheckFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let account = match (&flags.provider, &flags.aws.cluster) {
        (None, _) => None,
        (Some(_), Some(cluster)) => Some(cluster),
        (Some(_), None) => {
            return Err(Failure::bad_input(
                "--provider aws: give --aws-cluster NAME as the controller has it: the policy allows what carries the cluster's tag",
            ));
        }
    };
    let from_files = classes::read(&flags.filename)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let clock = SystemClock::new();
    let findings: Vec<Finding> = runtime.block_on(async {
        let cluster = cluster::look(flags, &from_files, &clock).await;
        let mut findings = cluster.findings;
        if let Some(name) = account {
            let question = Question {
                cluster: name.clone(),
                kubernetes: cluster.kubernetes,
                queue: flags.aws.queue.clone(),
                classes: if flags.filename.is_empty() { cluster.classes } else { from_files },
            };
            let access = Access { region: flags.aws.region.clone(), ..Access::default() };
            findings.extend(preflight(&access, &question, clock.now()).await);
        }
        findings
    });
    print::print(&findings, flags.output, out).map_err(Failure::writing)?;
    let is_wrong = findings.iter().any(|finding| finding.verdict.is_wrong());
    Ok(if is_wrong { ExitStatus::SomethingWrong } else { ExitStatus::Done })
}
