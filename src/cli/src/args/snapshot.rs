//! Flags of `poolwright snapshot`.

use std::path::PathBuf;

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 written, 1 failed, 2 bad usage or input.",
    after_long_help = "Examples:\n  \
        # Plan for the cluster of today, tomorrow and elsewhere\n  \
        poolwright snapshot -o cluster.json\n  poolwright plan --snapshot cluster.json\n\n  \
        # For a report, without the names of your workloads\n  \
        poolwright snapshot --anonymise -o report.json\n\n\
        Exit codes: 0 written, also if some kinds could not be listed; 1 failed; 2 bad\n\
        usage or input."
)]
pub struct SnapshotFlags {
    /// Write to this file, which only you may read [default: standard output]
    ///
    /// A file of this name is replaced, whole or not at all.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Give namespaces, pods, nodes, owners, pools, labels and their values other names
    ///
    /// The same name gets the same alias everywhere, so that selectors and references still match. What decides about purchases
    /// keeps its name: instance types, zones, resources, and the labels of Kubernetes, clouds and operators.
    #[arg(long, alias = "anonymize")]
    pub anonymise: bool,

    /// Instance types and prices for the snapshot: a CSV file, or `builtin`
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(long, value_name = "FILE|builtin", default_value = "builtin")]
    pub catalogue: Vec<String>,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}
