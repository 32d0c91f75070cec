//! Flags of `poolwright savings`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use poolwright_catalog::UsdPerHour;

use super::plan::at_risk;
use super::{InputFlags, PoolRules, PreferenceMode, SearchFlags, SharingMode};

/// Flags of `savings`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered, 1 failed, 2 bad usage or input.",
    after_long_help = "Examples:\n  \
        # For the current cluster, whatever scales it now\n  poolwright savings\n\n  \
        # For a cluster that another machine can reach\n  \
        kubectl get nodes,pods,daemonsets,pv,pvc -A -o yaml > cluster.yaml\n  \
        poolwright savings -f cluster.yaml\n\n  \
        # With Karpenter's pools, as a comment for a ticket\n  \
        kubectl get nodepools -o yaml > pools.yaml\n  \
        poolwright savings -f cluster.yaml pools.yaml -o markdown\n\n\
        Exit codes: 0 answered, 1 failed, 2 bad usage or input."
)]
pub struct SavingsFlags {
    /// Read the cluster from these manifests, as kubectl prints them [default: the current cluster]
    ///
    /// YAML or JSON files, directories, or - for stdin. NodePools of Poolwright or Karpenter among them say what may be bought.
    /// Repeat the flag for more files.
    #[arg(
        short,
        long = "filename",
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = ["snapshot", "kubeconfig", "context"],
        help_heading = "The cluster"
    )]
    pub filename: Vec<PathBuf>,

    /// Read the cluster from this file, which `poolwright snapshot` wrote, or - for stdin
    ///
    /// A snapshot has no NodePools of Karpenter. Prices are those of the file, unless --catalogue names others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"], help_heading = "The cluster")]
    pub snapshot: Option<PathBuf>,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", help_heading = "The cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME", help_heading = "The cluster")]
    pub context: Option<String>,

    /// Instance types and prices: a CSV file, or `builtin` [default: builtin, or those of --snapshot]
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(long, value_name = "FILE|builtin", help_heading = "What may be bought")]
    pub catalogue: Vec<String>,

    /// What one interruption of a spot node costs a pod for each of its GPUs, in US dollars; with 0, spot is compared by price
    /// alone
    #[arg(
        long,
        value_name = "USD",
        value_parser = at_risk,
        allow_negative_numbers = true,
        default_value = "1.00",
        help_heading = "What may be bought"
    )]
    pub at_risk: UsdPerHour,

    /// What holds for every pool.
    #[command(flatten)]
    pub pool_rules: PoolRules,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,

    /// How to print the answer
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = SavingsFormat::Table)]
    pub output: SavingsFormat,
}

impl SavingsFlags {
    /// Returns the flags of a plan for the cluster. Without a pool, `spot` lets it buy spot nodes.
    pub fn input(&self, spot: bool) -> InputFlags {
        InputFlags {
            filename: Vec::new(),
            trace: None,
            gpu_map: None,
            existing: Vec::new(),
            kubeconfig: None,
            context: None,
            snapshot: None,
            catalogue: self.catalogue.clone(),
            provider: None,
            capacity_type: Vec::new(),
            spot,
            at_risk: self.at_risk,
            commitments: None,
            sharing: SharingMode::None,
            mig_mixed: false,
            limit: Vec::new(),
            namespace_limit: Vec::new(),
            scheduler_config: None,
            preferences: PreferenceMode::Respect,
            pool_rules: self.pool_rules.clone(),
        }
    }
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SavingsFormat {
    /// Tables as wide as the terminal, or 80 columns in a pipe or file
    Table,
    /// One document
    Json,
    /// The same as Markdown, for a ticket or a comment
    Markdown,
}

impl fmt::Display for SavingsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Markdown => "markdown",
        })
    }
}
