//! Flags of `poolwright savings`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{ClusterFlags, InputFlags, PoolRules, PriceFlags, SearchFlags};

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

    /// The cluster, if it is not one of manifests.
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// What nodes cost.
    #[command(flatten)]
    pub prices: PriceFlags,

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
        let of_objects =
            InputFlags::of(ClusterFlags::default(), self.prices.clone(), self.pool_rules.clone());
        InputFlags { spot, ..of_objects }
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
    /// A page in one file, for a browser or for paper; it loads nothing
    Html,
}

impl fmt::Display for SavingsFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Html => "html",
        })
    }
}
