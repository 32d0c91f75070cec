//! Flags of `poolwright explain`.

use clap::ValueEnum;

use super::{InputFlags, SearchFlags};

/// Flags of `explain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 explained, 1 failed, 2 bad usage or input, or there is no such object.",
    after_long_help = "Examples:\n  \
        # Why does this pod wait?\n  poolwright explain pod ml/train-0\n\n  \
        # Would it get a node?\n  poolwright explain pod train -f pool.yaml -f training-job.yaml\n\n  \
        # Why does this node exist?\n  poolwright explain node gpu-x7k2p4bd\n\n\
        Exit codes: 0 explained, 1 failed, 2 bad usage or input, or there is no such\n\
        object."
)]
pub struct ExplainFlags {
    /// The kind of object
    #[arg(value_enum, value_name = "KIND")]
    pub kind: Explainable,

    /// The name of the object; for a pod NAMESPACE/NAME, or the bare name in a trace or the namespace `default`
    #[arg(value_name = "NAME")]
    pub name: String,

    /// What to explain from.
    #[command(flatten)]
    pub input: InputFlags,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,
}

/// The kinds of object that can be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Explainable {
    /// Its requests, the offerings considered and ruled out, and where it goes
    Pod,
    /// The claim behind it, and why it stays
    Node,
    /// Why it was bought, what came second, and why it stays
    Claim,
    /// What it may buy, what it has bought, and what holds it back
    Pool,
}
