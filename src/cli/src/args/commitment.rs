//! Flags of `poolwright what-if commitment`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::replay::{length, offset};
use super::{PoolRules, ReplayFlags, Span};

/// The questions that are no comparison of two plans.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Find the commitments that cost least for a known use
    ///
    /// They are reservations, savings plans, committed-use discounts and capacity blocks. Solves an integer program over the hours of the use, and tells how far the answer can be from the best. Buys nothing and reads no
    /// cluster.
    Commitment(Box<CommitmentFlags>),
}

/// Flags of `what-if commitment`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered, 2 failed, or bad usage or input.",
    after_long_help = "Examples:\n  \
        # For node-hours that are known, such as those of a bill\n  \
        poolwright what-if commitment --usage usage.csv --offers offers.yaml\n\n  \
        # For a month of a trace, played by the controller\n  \
        poolwright what-if commitment --trace t.csv --pools p.yaml --offers o.yaml\n\n\
        Exit codes: 0 answered, 2 failed, or bad usage or input."
)]
pub struct CommitmentFlags {
    /// Node-hours on demand of each hour and instance type (CSV), or - for stdin
    ///
    /// Columns: hour (a whole number, counted from any beginning, in rising order), instance_type, node_hours; usd_per_hour, the
    /// on-demand price, is optional.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "trace",
        conflicts_with = "trace",
        help_heading = "Use"
    )]
    pub usage: Option<PathBuf>,

    /// Take the on-demand nodes that the controller buys for a pod list of the Alibaba GPU trace 2023 (CSV)
    ///
    /// Columns as for `simulate --trace`.
    #[arg(long, value_name = "FILE", requires = "pools", help_heading = "Use")]
    pub trace: Option<PathBuf>,

    /// With --trace: NodePools and their node classes: YAML or JSON files, or directories
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "usage", help_heading = "Use")]
    pub pools: Vec<PathBuf>,

    /// With --trace: GPU models for each gpu_spec (CSV) [default: built in]
    #[arg(long, value_name = "FILE", conflicts_with = "usage", help_heading = "Use")]
    pub gpu_map: Option<PathBuf>,

    /// With --trace: begin this far into the trace (142d) [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = offset, conflicts_with = "usage", help_heading = "Use")]
    pub from: Option<Span>,

    /// With --trace: how long to play (36h, 30d) [default: 30d]
    #[arg(
        long = "for",
        value_name = "DURATION",
        value_parser = length,
        conflicts_with = "usage",
        help_heading = "Use"
    )]
    pub length: Option<Span>,

    /// What may be bought (YAML or JSON), with the discounts that the cloud publishes
    #[arg(long, value_name = "FILE")]
    pub offers: PathBuf,

    /// Instance types and prices: a CSV file, or `builtin` [default: builtin]
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(long, value_name = "FILE|builtin")]
    pub catalogue: Vec<String>,

    /// What holds for every pool of a replay.
    #[command(flatten)]
    pub pool_rules: PoolRules,

    /// How to print the answer
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = CommitmentFormat::Table)]
    pub output: CommitmentFormat,
}

impl CommitmentFlags {
    /// Returns the flags of the replay of a trace.
    pub fn replay(&self, trace: PathBuf) -> ReplayFlags {
        const MONTH: Span = Span(Duration::from_hours(30 * 24));
        ReplayFlags {
            gpu_map: self.gpu_map.clone(),
            from: self.from.unwrap_or_default(),
            length: self.length.unwrap_or(MONTH),
            pools: self.pools.clone(),
            prices: self.catalogue.clone(),
            ..ReplayFlags::of_trace(trace, self.pool_rules.clone())
        }
    }
}

/// How to print what to commit to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommitmentFormat {
    /// Tables as wide as the terminal, or 80 columns in a pipe or file
    Table,
    /// One document
    Json,
    /// The same document as YAML
    Yaml,
    /// One line for each offer
    Csv,
    /// The verdict, tables, and lists
    Markdown,
}

impl fmt::Display for CommitmentFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
        })
    }
}
