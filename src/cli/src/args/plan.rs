//! Flags of `poolwright plan`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::SignedDuration;
use poolwright_catalog::UsdPerHour;
use poolwright_catalog::money::MoneyError;
use poolwright_terms::CapacityType;

use super::{ClusterFlags, PoolOverrides, PoolRules, PreferenceMode, PriceFlags, SearchFlags};

/// Flags of `plan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 planned, 1 failed, 2 bad usage or input, 3 see --fail-on-unplaced.",
    after_long_help = "Examples:\n  \
        # For the current cluster\n  poolwright plan\n\n  \
        # For manifests, no cluster needed\n  poolwright plan -f pool.yaml -f training-job.yaml\n\n  \
        # What would spot cost?\n  poolwright plan -f training-job.yaml --capacity-type spot\n\n  \
        # For a trace, with a catalogue of one's own, to a file\n  \
        poolwright plan --trace pods.csv --catalogue types.csv -o json > plan.json\n\n\
        Exit codes: 0 planned (also when pods are left out), 1 failed, 2 bad usage or\n\
        input, 3 see --fail-on-unplaced."
)]
pub struct PlanFlags {
    /// What to plan from.
    #[command(flatten)]
    pub input: InputFlags,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,

    /// What counts instead of fields of all pools.
    #[command(flatten)]
    pub overrides: PoolOverrides,

    /// Plan only for the pods of this namespace
    ///
    /// Pods of other namespaces use room where they run, but none is bought for them. With -f, objects that name no namespace
    /// are in this one. The controller plans the pods of all namespaces together.
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "trace",
        help_heading = "Pods to plan for"
    )]
    pub namespace: Option<String>,

    /// Plan for the pods of all namespaces, as without -n
    #[arg(short = 'A', long, conflicts_with = "namespace", help_heading = "Pods to plan for")]
    pub all_namespaces: bool,

    /// Save the solver's input to this file; `poolwright debug solve` solves it again
    #[arg(long, value_name = "FILE", hide = true)]
    pub save_problem: Option<PathBuf>,

    /// Explain where this pod goes: what alternatives cost, and which rules exclude the rest
    ///
    /// Write NAMESPACE/NAME, or the bare name in a trace, in the namespace of -n, or in that of the context.
    #[arg(long, value_name = "POD")]
    pub explain: Option<String>,

    /// How to print the plan
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Table)]
    pub output: OutputFormat,

    /// Exit with code 3 when the plan leaves pods out, when a quota refuses pods or what makes them, or when an object that makes
    /// pods is not read
    #[arg(long)]
    pub fail_on_unplaced: bool,
}

/// Flags that say which pods there are and what may be bought.
#[derive(Debug, clap::Args)]
pub struct InputFlags {
    /// Plan for these manifests: YAML or JSON files, directories, or - for stdin
    ///
    /// Reads Pod, Deployment, StatefulSet, Job, JobSet, List, and kinds of Kubeflow, Ray, Volcano and others. NodePools
    /// and node classes limit the offerings; without a NodePool the plan may use all that node classes sell by default.
    /// Node, NodeClaim and DaemonSet count as in a cluster. Repeat the flag for more files.
    #[arg(
        short,
        long = "filename",
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["snapshot", "kubeconfig", "context"],
        help_heading = "Pods to plan for"
    )]
    pub filename: Vec<PathBuf>,

    /// Plan for a pod list of the Alibaba GPU trace 2023 (CSV), or - for stdin
    ///
    /// Columns name, cpu_milli, memory_mib and num_gpu; gpu_milli, gpu_spec and the others of the trace are
    /// optional. A share of a GPU (gpu_milli below 1000) counts as a whole one, unless --sharing says otherwise. Any
    /// offering may be bought.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["filename", "snapshot", "kubeconfig", "context"],
        help_heading = "Pods to plan for"
    )]
    pub trace: Option<PathBuf>,

    /// With --trace: GPU models for each gpu_spec (CSV) [default: built in]
    ///
    /// Columns gpu_spec and gpu_models; alternatives are separated by |, and `any` means every model.
    #[arg(long, value_name = "FILE", help_heading = "Pods to plan for")]
    pub gpu_map: Option<PathBuf>,

    /// Existing nodes with their pods; the plan fills their free room first (YAML or JSON)
    ///
    /// Write the file with `kubectl get nodes,pods -A -o yaml`; NodeClaims and DaemonSets count too. Takes files,
    /// directories, or - for stdin. Repeat the flag for more.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["snapshot", "kubeconfig", "context"],
        help_heading = "Pods to plan for"
    )]
    pub existing: Vec<PathBuf>,

    /// The cluster, if it is not one of manifests or of a trace.
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// What nodes cost.
    #[command(flatten)]
    pub prices: PriceFlags,

    /// Buy from this provider [default: the provider of the node class, else the first cloud in the catalogue]
    #[arg(long, value_name = "NAME", help_heading = "What may be bought")]
    pub provider: Option<String>,

    /// Buy only these [default: what the pools say; without a pool, on-demand]
    #[arg(
        long,
        value_name = "TYPE",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = false,
        help_heading = "What may be bought"
    )]
    pub capacity_type: Vec<CapacityChoice>,

    /// Allow spot and on-demand nodes together, as far as pools allow
    ///
    /// Without a pool, and without this flag or --capacity-type, plans buy on-demand nodes only.
    #[arg(long, help_heading = "What may be bought")]
    pub spot: bool,

    /// Use what you have paid for first: reservations, savings plans, commitments (YAML or JSON)
    ///
    /// The format is in docs/cli/plan.md.
    #[arg(long, value_name = "FILE", help_heading = "What may be bought")]
    pub commitments: Option<PathBuf>,

    /// How pods may share the GPUs of new nodes
    ///
    /// With time-slicing and mps, a pod of a trace takes its gpu_milli of one GPU; GPUs of all models can be shared. With
    /// mig it gets the smallest GPU instance with enough compute, and pods of manifests may request instances by name
    /// (nvidia.com/mig-1g.10gb). The plan shows the instances of each GPU and their slices.
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t = SharingMode::None,
        help_heading = "What may be bought"
    )]
    pub sharing: SharingMode,

    /// With --sharing mig: a node may have both whole GPUs and MIG instances
    #[arg(long, help_heading = "What may be bought")]
    pub mig_mixed: bool,

    /// Buy no more than this, over all pools together: usdPerHour=40, nodes=10, nvidia.com/gpu=16
    ///
    /// Takes the keys and amounts of `spec.limits` of a NodePool; the pools' own limits hold too. Existing NodeClaims
    /// count, and nodes with a pool's label. Repeat the flag for more limits.
    #[arg(long, value_name = "KEY=AMOUNT", help_heading = "What may be bought")]
    pub limit: Vec<String>,

    /// Buy no more than this for the pods of each namespace: nodes=10, gpus=8, usdPerHour=40 [default: no limit]
    ///
    /// The annotations poolwright.dev/limit-nodes, limit-gpus and limit-usd-per-hour of a Namespace replace it. Give the
    /// flags of the controller to plan as it does. Repeat the flag for more limits.
    #[arg(long, value_name = "KEY=AMOUNT", help_heading = "What may be bought")]
    pub namespace_limit: Vec<String>,

    /// The --config of your kube-scheduler: its default spread and added affinity apply to its pods
    ///
    /// A KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1. A pod belongs to the profile of its schedulerName.
    /// Pods of these profiles are planned in addition to those of default-scheduler. Services, ReplicaSets, StatefulSets
    /// and ReplicationControllers decide which pods a default spread counts.
    #[arg(long, value_name = "FILE", help_heading = "Pods to plan for")]
    pub scheduler_config: Option<PathBuf>,

    /// How to treat preferences of pods: preferred affinity, ScheduleAnyway, PreferNoSchedule
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t = PreferenceMode::Respect,
        help_heading = "What may be bought"
    )]
    pub preferences: PreferenceMode,

    /// What holds for every pool.
    #[command(flatten)]
    pub pool_rules: PoolRules,
}

impl InputFlags {
    /// Returns the flags for objects that a command reads itself. What is not given is as without any flag.
    pub fn of(cluster: ClusterFlags, prices: PriceFlags, pool_rules: PoolRules) -> Self {
        Self {
            filename: Vec::new(),
            trace: None,
            gpu_map: None,
            existing: Vec::new(),
            cluster,
            prices,
            provider: None,
            capacity_type: Vec::new(),
            spot: false,
            commitments: None,
            sharing: SharingMode::None,
            mig_mixed: false,
            limit: Vec::new(),
            namespace_limit: Vec::new(),
            scheduler_config: None,
            preferences: PreferenceMode::Respect,
            pool_rules,
        }
    }
}

/// A capacity type, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CapacityChoice {
    /// List price; yours until you terminate it
    OnDemand,
    /// Cheaper; the cloud may reclaim it at any time
    Spot,
    /// You have paid for it already
    Reserved,
    /// All of them
    Any,
}

impl CapacityChoice {
    /// Returns the capacity types of the choice.
    pub fn types(self) -> &'static [CapacityType] {
        match self {
            Self::OnDemand => &[CapacityType::OnDemand],
            Self::Spot => &[CapacityType::Spot],
            Self::Reserved => &[CapacityType::Reserved],
            Self::Any => &CapacityType::ALL,
        }
    }
}

/// What may be done with GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SharingMode {
    /// Each GPU goes to one pod; a share counts as a whole GPU
    None,
    /// Pods take turns on a GPU
    TimeSlicing,
    /// Pods run side by side on a GPU
    Mps,
    /// MIG cuts GPUs into instances
    Mig,
}

impl fmt::Display for SharingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::TimeSlicing => "time-slicing",
            Self::Mps => "mps",
            Self::Mig => "mig",
        })
    }
}

/// How to print a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Tables as wide as the terminal, or 80 columns in a pipe or file
    Table,
    /// Tables with the names of all pods, as wide as they need
    Wide,
    /// Every node with its pods, as in docs/plan.schema.json
    Json,
    /// The same document as YAML
    Yaml,
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
        })
    }
}

/// The maximum of `--at-risk`, more than any interruption loses for a GPU. Larger values could overflow the sums of money, and
/// every plan would be refused.
const MOST_AT_RISK: UsdPerHour = UsdPerHour::from_micros(100_000 * UsdPerHour::MICROS_PER_USD);

/// Parses the loss of one interruption for each GPU, in dollars: zero or more.
pub fn at_risk(text: &str) -> Result<UsdPerHour, String> {
    usd(
        text,
        MOST_AT_RISK,
        "write what one interruption loses for one GPU, such as 2.50, or 0 where nothing is lost",
    )
}

/// Parses an amount of US dollars, at most `most`. Errors end with the `remedy`.
pub fn usd(text: &str, most: UsdPerHour, remedy: &str) -> Result<UsdPerHour, String> {
    let too_large = || format!("too large; write {most} at most");
    let amount: UsdPerHour = text.parse().map_err(|error| match error {
        MoneyError::NotANumber(_) => format!("not a decimal number of US dollars; {remedy}"),
        MoneyError::Negative(_) => format!("negative; {remedy}"),
        MoneyError::TooLarge(_) => too_large(),
    })?;
    if amount > most { Err(too_large()) } else { Ok(amount) }
}

/// Parses a duration above zero: `5s`, `500ms`, `1m30s`.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    let remedy = "write a number with a unit, like 500ms, 5s or 1m";
    let parsed: SignedDuration = text.parse().map_err(|_| format!("not a duration; {remedy}"))?;
    if parsed <= SignedDuration::ZERO {
        return Err(format!("a duration must be above zero; {remedy}"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_an_interruption_is_a_limited_non_negative_amount() {
        assert_eq!(at_risk("2.50"), Ok(UsdPerHour::from_micros(2_500_000)));
        assert_eq!(at_risk("0"), Ok(UsdPerHour::ZERO));
        for (wrong, cause) in [("much", "not a decimal"), ("-1", "negative"), ("100000.01", "too large")] {
            let error = at_risk(wrong).expect_err(wrong);
            assert!(error.starts_with(cause) && error.contains("; write "), "{wrong}: {error}");
        }
    }

    #[test]
    fn durations_are_what_people_write_and_never_zero() {
        assert_eq!(duration("500ms"), Ok(SignedDuration::from_millis(500)));
        assert_eq!(duration("1m30s"), Ok(SignedDuration::from_secs(90)));
        for wrong in ["0s", "-1s", "5", "", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
