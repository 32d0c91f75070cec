//! Flags of `poolwright top`.

use std::path::PathBuf;

use clap::ValueEnum;
use jiff::SignedDuration;

use super::plan::duration;

/// The shortest interval between two readings, which protects the API server.
const SHORTEST: SignedDuration = SignedDuration::from_millis(500);

/// Flags of `top`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 shown, 1 failed, 2 bad usage.",
    after_long_help = "Examples:\n  \
        # What does Poolwright do now, and why?\n  poolwright top\n\n  \
        # The same once, for a script or a ticket\n  poolwright top --once\n\n  \
        # Which nodes are launched but not registered?\n  \
        poolwright top --once -o json | jq '.nodes[] | select(.stage == \"Launched\")'\n\n\
        Exit codes: 0 shown, 1 failed, 2 bad usage."
)]
pub struct TopFlags {
    /// Kubeconfig of the cluster to show [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// With --once: show the cluster in this file, which `poolwright snapshot` wrote, or - for stdin
    #[arg(long, value_name = "FILE", requires = "once", conflicts_with_all = ["kubeconfig", "context"])]
    pub snapshot: Option<PathBuf>,

    /// Show only the waiting pods of this namespace, the nodes with its pods or bought for them, and their events
    #[arg(short, long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// Show all namespaces, as without -n
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Read the cluster this often; at least 500ms
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval, conflicts_with = "once")]
    pub interval: SignedDuration,

    /// Print one reading as plain text, then exit
    #[arg(long)]
    pub once: bool,

    /// With --once: how to print it [default: table]
    #[arg(short, long, value_enum, value_name = "FORMAT", requires = "once")]
    pub output: Option<TopFormat>,
}

/// How to print one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopFormat {
    /// Tables, for people
    Table,
    /// Tables with more columns, as wide as they need
    Wide,
    /// One JSON document
    Json,
}

fn interval(text: &str) -> Result<SignedDuration, String> {
    let interval = duration(text)?;
    if interval < SHORTEST {
        return Err("the shortest is 500ms: each reading lists every pod of the cluster".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_not_read_more_than_twice_a_second() {
        assert_eq!(interval("500ms"), Ok(SignedDuration::from_millis(500)));
        assert_eq!(interval("1m"), Ok(SignedDuration::from_mins(1)));
        assert!(interval("499ms").unwrap_err().contains("500ms"));
        assert!(interval("0s").is_err());
    }
}
