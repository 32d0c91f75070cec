//! `poolwright check`: checks that the cluster and the account have what Poolwright needs, and says how to fix each problem.
//!
//! `cluster` queries the API server; `resources`, `rights`, `readiness` and `controller` evaluate the responses. `work` looks at pods and
//! nodes. The checks of the account are in the provider's crate. No check writes anything.

mod audit;
mod classes;
mod cluster;
mod controller;
mod print;
mod readiness;
mod resources;
mod rights;
mod work;

use std::io::Write;

use anyhow::Context;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_contract::Registration;
use poolwright_provider_contract::preflight::{CheckRequest, CheckResult, Verdict};

use crate::args::{CheckFlags, CheckFormat};
use crate::clouds;
use crate::exit::{ExitStatus, Failure};
use crate::print::TableLayout;

/// Runs the checks and prints the results.
pub fn run(flags: &CheckFlags, out: &mut impl Write) -> Result<ExitStatus, Failure> {
    clouds::refuse_variables(clouds::variables())?;
    if let Some(unused) = unused_flag(flags) {
        return Err(Failure::bad_input(unused));
    }
    let account = flags.provider.as_deref().and_then(clouds::find);
    let account = account.and_then(|cloud| Some((cloud, cloud.preflight?)));
    if let Some(missing) = account.and_then(|(_, preflight)| preflight.missing_flag(&flags.clouds.values)) {
        return Err(Failure::bad_input(missing));
    }
    let mut notes = Vec::new();
    let from_files = classes::read(&flags.filename, account.map(|(cloud, _)| cloud), &mut notes)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let clock = SystemClock::new();
    let results: Vec<CheckResult> = runtime.block_on(async {
        let cluster = cluster::check(flags, &from_files, &clock).await;
        let mut results = cluster.results;
        let is_reached = cluster.kubernetes.is_some();
        if is_reached {
            results.extend(work::run(flags, cluster.now).await);
        }
        let of_files = |note| CheckResult::new("Files", "node classes", Verdict::undetermined(note));
        results.extend(notes.into_iter().map(of_files));
        if flags.audit {
            let is_reached = cluster.kubernetes.is_some();
            results.extend(audit::run(flags, &cluster.classes, is_reached).await);
        }
        if let Some((cloud, preflight)) = account {
            let classes = if flags.filename.is_empty() { cluster.classes } else { from_files };
            let own = classes.into_values().filter(|class| class.cloud.name == cloud.name);
            let request = CheckRequest {
                flags: flags.clouds.values.clone(),
                kubernetes: cluster.kubernetes,
                node_classes: own.map(|class| class.object).collect(),
                now: clock.now(),
            };
            results.extend(preflight.run_checks(request).await);
        }
        results
    });
    let layout = TableLayout::list(flags.output == CheckFormat::Wide);
    print::print(&results, flags.output, layout, out).map_err(Failure::writing)?;
    let is_wrong = results.iter().any(|result| result.verdict.is_wrong());
    Ok(if is_wrong { ExitStatus::SomethingWrong } else { ExitStatus::Done })
}

/// Says that a flag of a cloud has no effect. Only the check of its account and the audit use the flags of a cloud. Variables of the
/// environment are often those of a controller, so they may be there for nothing.
fn unused_flag(flags: &CheckFlags) -> Option<String> {
    let is_used = |cloud: &Registration| flags.audit || flags.provider.as_deref() == Some(cloud.name);
    let (cloud, flag) = flags.clouds.typed.iter().find(|(cloud, _)| !is_used(cloud))?;
    let (with, add) = match cloud.preflight {
        Some(_) => (format!("--provider {} or --audit", cloud.name), "add one of them"),
        None => ("--audit".to_owned(), "add it"),
    };
    Some(format!("--{flag}: only used with {with}; {add}, or remove --{flag}"))
}
