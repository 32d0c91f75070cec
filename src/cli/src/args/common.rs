//! Flags that `plan`, `explain`, `what-if` and `savings` share.

use std::path::PathBuf;

use poolwright_catalog::UsdPerHour;

use super::plan::at_risk;

/// Which cluster is read. Commands that read manifests instead state the conflict at their own flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ClusterFlags {
    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE", help_heading = "The cluster")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME", help_heading = "The cluster")]
    pub context: Option<String>,

    /// Read the cluster from this file, which `poolwright snapshot` wrote, or - for stdin
    ///
    /// Plans are of the moment when the file was written. Prices are those of the file, unless --catalogue names others.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"], help_heading = "The cluster")]
    pub snapshot: Option<PathBuf>,
}

/// What nodes cost.
#[derive(Clone, Debug, clap::Args)]
pub struct PriceFlags {
    /// Instance types and prices: a CSV file, or `builtin` [default: builtin, or those of --snapshot]
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type:
    /// `--catalogue builtin --catalogue my-prices.csv`.
    #[arg(long, value_name = "FILE|builtin", help_heading = "What may be bought")]
    pub catalogue: Vec<String>,

    /// What one interruption of a spot node costs a pod for each of its GPUs, in US dollars; with 0, spot is compared by price
    /// alone
    ///
    /// A spot node counts with its price plus its expected loss, as for the controller: for each pod, the interruption rate times
    /// the loss of one interruption. The rate is spot_interruptions_per_hour of the catalogue, or 0.0044 (10 % in a day). The
    /// loss covers the work since the last checkpoint and the restart; a dollar is 40 minutes at $1.50/h. Pods without GPUs
    /// lose nothing. A gang stops when one of its nodes is taken, and loses the work of all its pods. The bound covers cost and
    /// loss together.
    #[arg(
        long,
        value_name = "USD",
        value_parser = at_risk,
        allow_negative_numbers = true,
        default_value = "1.00",
        help_heading = "What may be bought"
    )]
    pub at_risk: UsdPerHour,
}
