//! Flags of `poolwright controller`. Each can be set by an environment variable too.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;
use poolwright_intake::disruption_budget;

use super::plan::{at_risk, duration};
use super::{CloudFlags, Nodes, PreferenceMode};

/// A disruption budget over all pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget(pub poolwright_core::NodeBudget);

fn budget(text: &str) -> Result<Budget, String> {
    disruption_budget(text).map(Budget)
}

/// Flags of `controller`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
        # From outside the cluster, with the current kubeconfig\n  poolwright controller\n\n  \
        # In a cluster\n  poolwright controller --log-format json")]
pub struct ControllerFlags {
    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config, else the pod's own cluster]
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_KUBECONFIG")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME", env = "POOLWRIGHT_CONTEXT")]
    pub context: Option<String>,

    /// Instance types and prices: a CSV file, or `builtin`
    ///
    /// May be repeated: each later catalogue is laid over the ones before it, type by type.
    #[arg(
        long,
        value_name = "FILE|builtin",
        default_value = "builtin",
        env = "POOLWRIGHT_CATALOGUE",
        value_delimiter = ','
    )]
    pub catalogue: Vec<String>,

    /// Plan when no new pod has come for this long
    #[arg(long, value_name = "DURATION", default_value = "1s", env = "POOLWRIGHT_BATCH_IDLE", value_parser = duration)]
    pub batch_idle: SignedDuration,

    /// Plan after this long even if new pods keep coming
    #[arg(long, value_name = "DURATION", default_value = "10s", env = "POOLWRIGHT_BATCH_MAX", value_parser = duration)]
    pub batch_max: SignedDuration,

    /// Stop solving after this long and take the best plan so far
    #[arg(long, value_name = "DURATION", default_value = "3s", env = "POOLWRIGHT_TIME_LIMIT", value_parser = duration)]
    pub time_limit: SignedDuration,

    /// Buy nothing for pods with a lower priority; they run where room is left [default: buy for all]
    #[arg(long, value_name = "NUMBER", env = "POOLWRIGHT_MIN_PRIORITY", allow_negative_numbers = true)]
    pub min_priority: Option<i32>,

    /// What kube-scheduler is started with (its --config): its default spread and added affinity hold for its pods
    ///
    /// A KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1, read once at the start. Pods of its profiles are
    /// planned besides those of default-scheduler.
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_SCHEDULER_CONFIG")]
    pub scheduler_config: Option<PathBuf>,

    /// Count with money paid beforehand: savings plans and other commitments (YAML or JSON)
    ///
    /// On-demand nodes that a commitment covers cost nothing more until it is used up; what nodes of NodeClaims use
    /// of it is taken off. Read at the start and again when it changes. The format is in docs/cli/plan.md.
    #[arg(long, value_name = "FILE", env = "POOLWRIGHT_COMMITMENTS")]
    pub commitments: Option<PathBuf>,

    /// What is done with preferences of pods: preferred affinity, ScheduleAnyway, PreferNoSchedule
    #[arg(long, value_enum, value_name = "MODE", default_value_t = PreferenceMode::Respect, env = "POOLWRIGHT_PREFERENCES")]
    pub preferences: PreferenceMode,

    /// What one interruption of a pod loses for each of its GPUs, in US dollars; 0 to compare spot by price alone
    ///
    /// A spot node counts at its price and, for each pod on it, its interruption rate (what its cloud publishes, or
    /// spot_interruptions_per_hour of the catalogue, else 0.0044: 10 % in a day) times this: work since the last checkpoint
    /// and the time to come back. So of offerings that cost nearly the same those come first that are taken back less often.
    /// Limits count what is paid. Pods without GPUs are counted to lose nothing.
    #[arg(long, value_name = "USD", default_value = "1.00", env = "POOLWRIGHT_AT_RISK", value_parser = at_risk)]
    pub at_risk: UsdPerHour,

    /// How pods come to the nodes that were bought for them
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Placement::Reserve, env = "POOLWRIGHT_PLACEMENT")]
    pub placement: Placement,

    /// Do not buy an offering for this long after it was out of stock or its node failed
    ///
    /// Doubles with each failure in a row, up to an hour.
    #[arg(long, value_name = "DURATION", default_value = "1m", env = "POOLWRIGHT_STOCK_OUT_BACKOFF", value_parser = duration)]
    pub stock_out_backoff: SignedDuration,

    /// Buy no more than this, over all pools together: usdPerHour=40, nodes=10, nvidia.com/gpu=16; may be repeated
    ///
    /// Keys and amounts as in `spec.limits` of a NodePool, whose own limits hold too.
    #[arg(long, value_name = "KEY=AMOUNT", env = "POOLWRIGHT_LIMIT")]
    pub limit: Vec<String>,

    /// How many nodes may be disturbed at a time over all pools, besides what each pool says; may be repeated
    ///
    /// In the terms of a NodePool's spec.disruption.budgets: `{nodes: 10%, reasons: [Underutilized], schedule: 0 9 * * mon-fri,
    /// duration: 8h}`. The most restrictive that is in force counts.
    #[arg(long, value_name = "BUDGET", env = "POOLWRIGHT_DISRUPTION_BUDGET", value_parser = budget)]
    pub disruption_budget: Vec<Budget>,

    /// Ask providers this often which instances there are
    #[arg(long, value_name = "DURATION", default_value = "30s", env = "POOLWRIGHT_LIST_INTERVAL", value_parser = duration)]
    pub list_interval: SignedDuration,

    /// Flags of the clouds.
    #[command(flatten)]
    pub clouds: CloudFlags<Nodes>,

    /// Serve health (/healthz, /readyz) and metrics (/metrics) here
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080", env = "POOLWRIGHT_BIND")]
    pub bind: SocketAddr,

    /// Namespace of the Lease by which one replica leads [default: the pod's, or the context's]
    #[arg(long, value_name = "NAMESPACE", env = "POOLWRIGHT_LEASE_NAMESPACE")]
    pub lease_namespace: Option<String>,

    /// Another replica leads when the one that led has not renewed its Lease for this long; whole seconds
    #[arg(long, value_name = "DURATION", default_value = "15s", env = "POOLWRIGHT_LEASE_DURATION", value_parser = duration)]
    pub lease_duration: SignedDuration,

    /// Name under which this replica leads [default: $POD_NAME, else host name and process id]
    ///
    /// Must differ between replicas. A replica that restarts under the same name leads again at once.
    #[arg(long, value_name = "NAME", env = "POOLWRIGHT_IDENTITY")]
    pub identity: Option<String>,

    /// How to write logs, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, env = "POOLWRIGHT_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// What to log: error, warn, info, debug, trace, or a filter like info,kube=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "POOLWRIGHT_LOG_LEVEL")]
    pub log_level: String,
}

/// How pods come to the nodes that were bought for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Placement {
    /// A new node takes only its own pods until they are there; adds a toleration to them
    Reserve,
    /// Pods are nominated to their nodes, which open one by one; slower, and others may take their place
    Nominate,
}

impl fmt::Display for Placement {
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
    /// For people
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
