//! Flags of `poolwright controller`. Each can be set by an environment variable too.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;
use poolwright_core::DisruptionBudget;
use poolwright_intake::disruption_budget;
use poolwright_ledger::Location;

use super::number::whole;
use super::plan::{at_risk, duration};
use super::pool_rules::of_controller;
use super::{CloudFlags, Nodes, PoolRules, PreferenceMode};

/// Flags of `controller`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  \
        # From outside the cluster, with the current kubeconfig\n  poolwright controller\n\n  \
        # In a cluster\n  poolwright controller --log-format json",
    mut_arg("min_values_policy", |flag| of_controller(flag, "POOLWRIGHT_MIN_VALUES_POLICY")),
    mut_arg("default_usd_per_hour", |flag| of_controller(flag, "POOLWRIGHT_DEFAULT_USD_PER_HOUR"))
)]
pub struct ControllerFlags {
    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME", env = "POOLWRIGHT_CONTEXT")]
    pub context: Option<String>,

    /// Instance types and prices: a CSV file, or `builtin`
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(
        long,
        value_name = "FILE|builtin",
        default_value = "builtin",
        env = "POOLWRIGHT_CATALOGUE",
        value_delimiter = ','
    )]
    pub catalogue: Vec<String>,

    /// Plan once no new pod has arrived for this long
    #[arg(long, value_name = "DURATION", default_value = "1s", env = "POOLWRIGHT_BATCH_IDLE", value_parser = duration)]
    pub batch_idle: SignedDuration,

    /// Plan after this long, even if new pods keep arriving
    #[arg(long, value_name = "DURATION", default_value = "10s", env = "POOLWRIGHT_BATCH_MAX", value_parser = duration)]
    pub batch_max: SignedDuration,

    /// Stop the solver after this long and use its best plan so far
    #[arg(long, value_name = "DURATION", default_value = "3s", env = "POOLWRIGHT_TIME_LIMIT", value_parser = duration)]
    pub time_limit: SignedDuration,

    /// Buy nothing for pods below this priority; they can only use free room [default: buy for all pods]
    #[arg(
        long,
        value_name = "NUMBER",
        env = "POOLWRIGHT_MIN_PRIORITY",
        value_parser = whole(i32::MIN..=i32::MAX, 1000),
        allow_negative_numbers = true
    )]
    pub min_priority: Option<i32>,

    /// The --config of your kube-scheduler: its default spread and added affinity apply to its pods
    ///
    /// A KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1, read once at the start. A pod belongs to the profile
    /// of its schedulerName. Pods of these profiles are planned in addition to those of default-scheduler.
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_SCHEDULER_CONFIG")]
    pub scheduler_config: Option<PathBuf>,

    /// Savings plans and commitments to use first (YAML or JSON); node classes name reservations
    ///
    /// On-demand nodes that a commitment covers cost nothing extra until it is used up. Nodes of existing NodeClaims use it
    /// first. The file is read at the start and again when it changes. The format is in docs/cli/plan.md.
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_COMMITMENTS")]
    pub commitments: Option<PathBuf>,

    /// How to treat preferences of pods: preferred affinity, ScheduleAnyway, PreferNoSchedule
    #[arg(long, value_enum, value_name = "MODE", default_value_t = PreferenceMode::Respect, env = "POOLWRIGHT_PREFERENCES")]
    pub preferences: PreferenceMode,

    /// What one interruption costs a pod for each of its GPUs, in US dollars; with 0, spot is compared by price alone
    ///
    /// It covers the work since the last checkpoint and the restart. A spot node counts with its price plus its expected
    /// loss: for each pod, the interruption rate times this loss. The rate is published by the cloud, or
    /// spot_interruptions_per_hour of the catalogue, else 0.0044 (10 % in a day). So among offerings of nearly equal price,
    /// Poolwright prefers those that are interrupted less often. Limits count the price alone. Pods without GPUs lose nothing.
    /// A gang stops when one of its nodes is taken, and loses the work of all its pods.
    #[arg(
        long,
        value_name = "USD",
        default_value = "1.00",
        env = "POOLWRIGHT_AT_RISK",
        value_parser = at_risk,
        allow_negative_numbers = true
    )]
    pub at_risk: UsdPerHour,

    /// How pods get to the nodes that were bought for them
    #[arg(long, value_enum, value_name = "HOW", default_value_t = PlacementMode::Reserve, env = "POOLWRIGHT_PLACEMENT")]
    pub placement: PlacementMode,

    /// Do not buy an offering for this long after it was out of stock or its node failed
    ///
    /// Doubles with each failure in a row, up to an hour.
    #[arg(long, value_name = "DURATION", default_value = "1m", env = "POOLWRIGHT_STOCK_OUT_BACKOFF", value_parser = backoff)]
    pub stock_out_backoff: SignedDuration,

    /// Buy no more than this, over all pools together: usdPerHour=40, nodes=10, nvidia.com/gpu=16
    ///
    /// Takes the keys and amounts of `spec.limits` of a NodePool; the pools' own limits hold too. Repeat the flag for more
    /// limits.
    #[arg(long, value_name = "KEY=AMOUNT", env = "POOLWRIGHT_LIMIT")]
    pub limit: Vec<String>,

    /// What holds for every pool.
    #[command(flatten)]
    pub pool_rules: PoolRules,

    /// Buy no more than this for the pods of each namespace: nodes=10, gpus=8, usdPerHour=40 [default: no limit]
    ///
    /// The annotations poolwright.dev/limit-nodes, limit-gpus and limit-usd-per-hour of a Namespace replace it. Repeat the flag
    /// for more limits.
    #[arg(long, value_name = "KEY=AMOUNT", env = "POOLWRIGHT_NAMESPACE_LIMIT")]
    pub namespace_limit: Vec<String>,

    /// Budget of a namespace for each month (UTC): team-a=5000
    ///
    /// With team-a=5000,StopBuying, nothing is bought for its pods in a month whose budget is spent. Repeat the flag for more
    /// namespaces.
    #[arg(long, value_name = "NAMESPACE=USD", env = "POOLWRIGHT_NAMESPACE_BUDGET")]
    pub namespace_budget: Vec<String>,

    /// Disrupt at most this many nodes at a time, over all pools together
    ///
    /// Takes an entry of a NodePool's spec.disruption.budgets: `{nodes: 10%, reasons: [Underutilized], schedule: 0 9 * * mon-fri,
    /// duration: 8h}`. The most restrictive active budget applies, and the pools' own budgets hold too. Repeat the flag for
    /// more budgets.
    #[arg(long, value_name = "BUDGET", env = "POOLWRIGHT_DISRUPTION_BUDGET", value_parser = disruption_budget)]
    pub disruption_budget: Vec<DisruptionBudget>,

    /// List the instances of each cloud this often
    #[arg(long, value_name = "DURATION", default_value = "30s", env = "POOLWRIGHT_LIST_INTERVAL", value_parser = list_interval)]
    pub list_interval: SignedDuration,

    /// Save the input of a plan that fails by a bug into this directory, for a report [default: not saved]
    ///
    /// At most 20 files of 32 MiB. They have the pods without which plans succeed, and what a plan for them needs: pools, prices,
    /// and the nodes if the bug needs them. They have no environment, command line, annotation or Secret. `debug replan` reads
    /// them.
    #[arg(long, value_name = "DIRECTORY", env = "POOLWRIGHT_SAVE_FAILURES")]
    pub save_failures: Option<PathBuf>,

    /// Write what each instance costs and which pods hold it: to a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX [default: not
    /// written]
    ///
    /// Once a minute, the leader adds a file of JSON lines, which DuckDB, Athena and BigQuery read. docs/money.md describes it. Planning
    /// never waits for the ledger.
    #[arg(long, value_name = "PLACE", env = "POOLWRIGHT_LEDGER")]
    pub ledger: Option<Location>,

    /// Flags of the clouds.
    #[command(flatten)]
    pub clouds: CloudFlags<Nodes>,

    /// Serve health (/healthz, /readyz) and metrics (/metrics) here
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", env = "POOLWRIGHT_BIND", value_parser = address)]
    pub bind: SocketAddr,

    /// Namespace of the Lease that elects the leader among replicas [default: the pod's, or the context's]
    #[arg(long, value_name = "NAMESPACE", env = "POOLWRIGHT_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Another replica takes over when the leader has not renewed its Lease for this long; whole seconds
    #[arg(long, value_name = "DURATION", default_value = "15s", env = "POOLWRIGHT_LEASE_DURATION", value_parser = lease_duration)]
    pub lease_duration: SignedDuration,

    /// Identity of this replica in the Lease [default: $POD_NAME, else the host name and a random number]
    ///
    /// It must differ between replicas. A leader that restarts with the same identity leads again at once.
    #[arg(long, value_name = "NAME", env = "POOLWRIGHT_IDENTITY", value_parser = identity)]
    pub identity: Option<String>,

    /// How to write logs, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, env = "POOLWRIGHT_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// What to log: error, warn, info, debug, trace, or a filter like info,kube=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "POOLWRIGHT_LOG_LEVEL")]
    pub log_level: String,
}

/// Parses the address to serve on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an address; write IP:PORT, such as 0.0.0.0:8080".to_owned())
}

/// Parses the duration of the Lease, which Kubernetes stores in whole seconds.
fn lease_duration(text: &str) -> Result<SignedDuration, String> {
    let parsed = duration(text)?;
    if parsed.subsec_nanos() == 0 { Ok(parsed) } else { Err("write whole seconds, such as 15s".to_owned()) }
}

/// Parses how often clouds are asked. The lower bound protects their API.
fn list_interval(text: &str) -> Result<SignedDuration, String> {
    let parsed = duration(text)?;
    if parsed >= SignedDuration::from_secs(1) {
        Ok(parsed)
    } else {
        Err("too short; write 1s or more".to_owned())
    }
}

/// Parses the first backoff of an offering. It doubles up to an hour.
fn backoff(text: &str) -> Result<SignedDuration, String> {
    let parsed = duration(text)?;
    let allowed = SignedDuration::from_secs(1)..=SignedDuration::from_hours(1);
    if allowed.contains(&parsed) { Ok(parsed) } else { Err("write a duration from 1s to 1h".to_owned()) }
}

/// Parses the identity of a replica.
fn identity(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("empty; write a name that no other replica has, or leave out the flag".to_owned());
    }
    Ok(text.to_owned())
}

impl ControllerFlags {
    /// Checks the flags against each other.
    ///
    /// # Errors
    /// The error is a sentence for the user.
    pub fn check(&self) -> Result<(), String> {
        let (idle, max) = (self.batch_idle, self.batch_max);
        if idle > max {
            return Err(format!(
                "--batch-idle ({idle:#}) must not exceed --batch-max ({max:#}); lower one or raise the other"
            ));
        }
        Ok(())
    }
}

/// How pods get to the nodes that were bought for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlacementMode {
    /// A new node admits only its own pods until they are bound; adds a toleration to these pods
    Reserve,
    /// Pods are nominated to their nodes, which open one by one; slower, and other pods may take the room
    Nominate,
}

impl fmt::Display for PlacementMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reserve => "reserve",
            Self::Nominate => "nominate",
        })
    }
}

/// How to write logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object per line
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parsed(flags: &[&str]) -> Result<Box<ControllerFlags>, String> {
        let typed = ["poolwright", "controller"].iter().chain(flags);
        match Cli::try_parse_from(typed).map_err(|error| error.to_string())?.command {
            Command::Controller(flags) => Ok(flags),
            _ => Err("another command".to_owned()),
        }
    }

    #[test]
    fn a_batch_window_that_never_closes_is_refused_with_both_flags() {
        assert_eq!(parsed(&[]).and_then(|flags| flags.check()), Ok(()));
        let wrong = parsed(&["--batch-idle", "20s", "--batch-max", "1s"]).and_then(|flags| flags.check());
        assert_eq!(
            wrong.unwrap_err(),
            "--batch-idle (20s) must not exceed --batch-max (1s); lower one or raise the other"
        );
    }

    #[test]
    fn the_flags_about_all_pools_have_the_help_of_plan_and_a_variable_of_their_own() {
        let command = super::super::command("poolwright");
        let of = |name: &str| command.find_subcommand(name).expect("a command").clone();
        let (plan, controller) = (of("plan"), of("controller"));
        for (flag, variable) in [
            ("min_values_policy", "POOLWRIGHT_MIN_VALUES_POLICY"),
            ("default_usd_per_hour", "POOLWRIGHT_DEFAULT_USD_PER_HOUR"),
        ] {
            let find = |command: &clap::Command| {
                command.get_arguments().find(|one| one.get_id() == flag).expect(flag).clone()
            };
            let (planned, controlled) = (find(&plan), find(&controller));
            let text = |one: &clap::Arg| {
                let long = one.get_long_help().map(ToString::to_string);
                (one.get_help().map(ToString::to_string), long)
            };
            assert_eq!(text(&planned), text(&controlled), "{flag}");
            assert_eq!(planned.get_env(), None, "{flag}");
            assert_eq!(controlled.get_env().and_then(std::ffi::OsStr::to_str), Some(variable));
        }
    }

    #[test]
    fn a_setting_that_the_controller_cannot_use_is_refused_with_its_flag_and_a_remedy() {
        for (flag, value, remedy) in [
            ("--lease-duration", "1500ms", "write whole seconds, such as 15s"),
            ("--list-interval", "500ms", "too short; write 1s or more"),
            ("--stock-out-backoff", "2h", "write a duration from 1s to 1h"),
            ("--identity", "", "write a name that no other replica has"),
            ("--bind", "8080", "not an address; write IP:PORT, such as 0.0.0.0:8080"),
            ("--min-priority", "high", "not a whole number; write e.g. 1000"),
            ("--ledger", "ftp://host/a", "has an unknown scheme; write a directory, s3://BUCKET/PREFIX"),
            ("--at-risk", "-1", "negative; write what one interruption loses"),
            (
                "--default-usd-per-hour",
                "much",
                "write a plain decimal number, such as 500, or 0 for no limit",
            ),
        ] {
            let said = parsed(&[flag, value]).unwrap_err();
            assert!(said.contains(flag) && said.contains(remedy), "{flag}: {said}");
        }
    }
}
