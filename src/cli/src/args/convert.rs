//! Flags of `convert`.

use std::path::PathBuf;

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  # Convert the pools of this cluster\n  kubectl get nodepools.karpenter.sh -o yaml | poolwright convert -f -\n\n  \
                       # Also list the fields that stay, then plan with the result\n  poolwright convert -f karpenter/ --all > pools.yaml\n  \
                       poolwright plan -f pools.yaml -f pods.yaml"
)]
pub struct ConvertFlags {
    /// Karpenter's objects (YAML or JSON), a directory of such files, or - for stdin
    ///
    /// Converts NodePools, node classes, and workloads whose pods use labels or taints of Karpenter. For NodeOverlays and other
    /// objects it says what to do instead. Repeat the flag for more files.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1.., required = true)]
    pub filename: Vec<PathBuf>,

    /// Also list the fields that stay as they are
    #[arg(long)]
    pub all: bool,
}
