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
use poolwright_provider_contract::preflight::{Finding, Question};

use crate::args::CheckFlags;
use crate::clouds;
use crate::exit::{ExitStatus, Failure};

/// Looks, and says what was found.
pub fn run(flags: &CheckFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    let account = flags.provider.as_deref().and_then(clouds::find);
    let account = account.and_then(|cloud| Some((cloud, cloud.preflight?)));
    if let Some(missing) = account.and_then(|(_, preflight)| preflight.missing_flag(&flags.clouds.values)) {
        return Err(Failure::bad_input(missing));
    }
    let from_files = classes::read(&flags.filename, account.map(|(cloud, _)| cloud))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let clock = SystemClock::new();
    let findings: Vec<Finding> = runtime.block_on(async {
        let cluster = cluster::look(flags, &from_files, &clock).await;
        let mut findings = cluster.findings;
        if let Some((cloud, preflight)) = account {
            let classes = if flags.filename.is_empty() { cluster.classes } else { from_files };
            let own = classes.into_values().filter(|class| class.cloud.name == cloud.name);
            let question = Question {
                flags: flags.clouds.values.clone(),
                kubernetes: cluster.kubernetes,
                node_classes: own.map(|class| class.object).collect(),
                now: clock.now(),
            };
            findings.extend(preflight.look(question).await);
        }
        findings
    });
    print::print(&findings, flags.output, out).map_err(Failure::writing)?;
    let is_wrong = findings.iter().any(|finding| finding.verdict.is_wrong());
    Ok(if is_wrong { ExitStatus::SomethingWrong } else { ExitStatus::Done })
}
