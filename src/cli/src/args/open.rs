//! Flags of `poolwright open`.

use std::path::PathBuf;

/// Flags of `open`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("which").args(["nodes", "all"]).required(true),
    after_help = "Exit codes: 0 opened, or open already; 1 failed; 2 bad usage, or there is no such node.",
    after_long_help = "Examples:\n  \
        # Which nodes are closed?\n  poolwright open --all --dry-run\n\n  \
        # The controller is gone for good: let pods onto all nodes again\n  poolwright open --all\n\n  \
        # Only one node\n  poolwright open gpu-x7k2p4bd\n\n\
        Exit codes: 0 opened, or open already; 1 failed, also if a controller runs that\n\
        would close the nodes again; 2 bad usage, or there is no such node."
)]
pub struct OpenFlags {
    /// Open these nodes: NAME or node/NAME
    #[arg(value_name = "NODE")]
    pub nodes: Vec<String>,

    /// Open all nodes that Poolwright has closed to newcomers
    #[arg(long)]
    pub all: bool,

    /// Only say which nodes would be opened
    #[arg(long)]
    pub dry_run: bool,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}
