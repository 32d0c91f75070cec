//! `poolwright controller`: turns flags into settings, providers and logs. The crate `controller` does the rest.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_controller::{CommittedFile, Config, causes, run as run_controller};
use poolwright_core::plan::SpotRisk;
use poolwright_intake::SchedulerConfig;
use poolwright_ledger::Store;
use poolwright_provider_contract::{ConnectError, Site};
use tracing::warn;
use tracing_subscriber::EnvFilter;

use crate::args::{ControllerFlags, LogFormat, PlacementMode};
use crate::clouds::{self, clouds};
use crate::credentials::Credentials;
use crate::exit::{ExitStatus, Failure};
use crate::log_fields::OneLineFields;
use crate::plan::commitments;
use crate::plan::limits::{limits, namespace_budgets, namespace_limits};
use crate::{catalogue, connect, print, scheduler};

/// Runs the controller until it is told to stop.
pub fn run(flags: &ControllerFlags) -> Result<ExitStatus, Failure> {
    flags.check().map_err(Failure::bad_input)?;
    clouds::refuse_variables(clouds::variables())?;
    log(&flags.log_level, flags.log_format)?;
    let scheduler = scheduler::read(flags.scheduler_config.as_deref())?;
    let limits = limits(&flags.limit)?;
    let namespace_limits = namespace_limits(&flags.namespace_limit)?;
    let namespace_budgets = namespace_budgets(&flags.namespace_budget)?;
    let commitments = match &flags.commitments {
        Some(path) => {
            Some(CommittedFile { path: path.clone(), commitments: commitments::read_for_controller(path)? })
        }
        None => None,
    };
    let ledger = flags.ledger.as_ref().map(Store::open).transpose();
    let ledger = ledger.map_err(|error| Failure::bad_input(format!("--ledger: {}", causes(&error))))?;
    for note in &scheduler.notes {
        warn!("{note}");
    }
    let catalogue = Arc::new(catalogue::load(&flags.catalogue)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let (client, cluster) = runtime.block_on(connect::configured(
        flags.kubeconfig.as_deref(),
        flags.context.as_deref(),
        connect::Patience::Tells,
    ))?;
    let now = SystemClock::new().now();
    for warning in Credentials::of(&cluster).all().iter().filter_map(|one| one.warning(now)) {
        warn!("{warning}");
    }
    runtime.block_on(async {
        let namespace =
            flags.lease_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let mut config = Config {
            limits,
            namespace_limits,
            namespace_budgets,
            commitments,
            ledger,
            ..config(flags, namespace, scheduler)
        };
        let clock = SystemClock::new();
        let site = Site {
            flags: flags.clouds.values.clone(),
            client: client.clone(),
            cluster,
            catalogue,
            clock: Arc::new(move || clock.now()),
        };
        let mut providers = Vec::new();
        for cloud in clouds() {
            let connected = cloud.connect.connect(&site).await.map_err(|error| match error {
                ConnectError::BadFlag(why) => Failure::bad_input(why),
                ConnectError::Cluster(why) => Failure::Other(anyhow!(why)),
            })?;
            let Some(connected) = connected else {
                let remedy = cloud.enabled_by.map(|flag| format!("start the controller with --{flag}"));
                config.disabled_kinds.extend(remedy.map(|remedy| (cloud.node_class.kind.kind, remedy)));
                continue;
            };
            providers.push(connected);
        }
        config.disabled_kinds.extend(clouds::not_built_kinds());
        run_controller(config, client, providers, told_to_stop()).await.map_err(Failure::from)
    })?;
    Ok(ExitStatus::Done)
}

fn config(flags: &ControllerFlags, namespace: String, scheduler: SchedulerConfig) -> Config {
    let identity = flags.identity.clone().unwrap_or_else(default_identity);
    let defaults = Config::new(identity, namespace);
    Config {
        http: Some(flags.bind),
        lease: defaults.lease.clone().lasting(flags.lease_duration.unsigned_abs()),
        batch_idle: flags.batch_idle.unsigned_abs(),
        batch_max: flags.batch_max.unsigned_abs(),
        solver_limit: flags.time_limit.unsigned_abs(),
        schedulers: scheduler::names(&scheduler, defaults.schedulers.clone()),
        profiles: scheduler.profiles,
        min_priority: flags.min_priority,
        preferences: flags.preferences.into(),
        min_values: flags.pool_rules.min_values_policy.into(),
        default_usd_per_hour: flags.pool_rules.default_limit.usd_per_hour(),
        spot_risk: SpotRisk::losing(flags.at_risk),
        placement: match flags.placement {
            PlacementMode::Reserve => poolwright_controller::PlacementMode::Reserve,
            PlacementMode::Nominate => poolwright_controller::PlacementMode::Nominate,
        },
        setback_first: flags.stock_out_backoff.unsigned_abs(),
        list_interval: flags.list_interval.unsigned_abs(),
        disruption_budgets: flags.disruption_budget.clone(),
        save_failures: flags.save_failures.clone(),
        ..defaults
    }
}

/// Returns a name that no other running replica has: the pod's name, or else the name of the machine and a random number.
fn default_identity() -> String {
    let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(pod) = variable("POD_NAME") {
        return pod;
    }
    let host = variable("HOSTNAME").unwrap_or_else(|| "poolwright".to_owned());
    // Containers in the network of one host share its name, and their process ids may be equal, too.
    format!("{host}-{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Turns off the log of the Kubernetes client for failed requests. It logs every failure as an error and without the cause; the
/// caller logs it with the cause and retries.
const TOLD_ELSEWHERE: &str = "kube_client::client::builder=off";

/// Logs to standard error what the filter allows.
pub fn log(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let client = if filter.contains("kube") { "" } else { TOLD_ELSEWHERE };
    let filter = EnvFilter::try_new(format!("{filter},{client}")).map_err(|error| {
        Failure::bad_input(format!(
            "--log-level {filter}: {error}; use error, warn, info, debug or trace, or a filter like info,kube=debug"
        ))
    })?;
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(print::has_colours(std::io::stderr().is_terminal()))
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.fmt_fields(OneLineFields).init(),
        // JSON escapes line feeds, but not all that a terminal obeys.
        LogFormat::Json => {
            logs.json().flatten_event(true).with_writer(|| print::Printable::new(std::io::stderr())).init();
        }
    }
    Ok(())
}

/// Completes when the user or the system asks the process to end.
pub(crate) async fn told_to_stop() {
    let interrupted = async {
        // Without a handler, an interrupt ends the process at once, which is safe too.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = terminated() => {}
    }
}

#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn risk(flags: &[&str]) -> Option<SpotRisk> {
        let typed = ["poolwright", "controller"].iter().chain(flags);
        let Command::Controller(flags) = Cli::parse_from(typed).command else { panic!("another command") };
        config(&flags, "poolwright".to_owned(), SchedulerConfig::default()).spot_risk
    }

    #[test]
    fn interruptions_count_as_usual_unless_said_otherwise_and_not_at_all_where_they_lose_nothing() {
        assert_eq!(risk(&[]), Some(SpotRisk::default()));
        let more = SpotRisk { per_gpu_micros: 2_500_000, ..SpotRisk::default() };
        assert_eq!(risk(&["--at-risk", "2.50"]), Some(more));
        assert_eq!(risk(&["--at-risk", "0"]), None);
    }
}
