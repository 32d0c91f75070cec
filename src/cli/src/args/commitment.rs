//! Flags of `poolwright what-if commitment`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use poolwright_ledger::Location;

use super::replay::{length, offset};
use super::report::when;
use super::{PoolRules, ReplayFlags, Span, When};

/// The questions that are no comparison of two plans.
#[derive(Debug, Subcommand)]
pub enum Question {
    /// Find the commitments that cost least for a known use
    ///
    /// They are reservations, savings plans, committed-use discounts and capacity blocks. Solves an integer program over the hours of the use, and tells how far the answer can be from the best. Buys nothing and reads no
    /// cluster.
    Commitment(Box<CommitmentFlags>),
}

/// The uses that are no trace. A flag conflicts with them by itself: clap asks for no `--trace` that conflicts with them.
const OTHER_USES: [&str; 2] = ["usage", "ledger"];

/// Flags of `what-if commitment`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered, 2 failed, or bad usage or input.",
    after_long_help = "Examples:\n  \
        # For node-hours that are known, such as those of a bill\n  \
        poolwright what-if commitment --usage usage.csv --offers offers.yaml\n\n  \
        # For what a controller has recorded in the last 30 days\n  \
        poolwright what-if commitment --ledger s3://money/ledger --offers offers.yaml\n\n  \
        # For a month of a trace, played by the controller\n  \
        poolwright what-if commitment --trace t.csv --pools p.yaml --offers o.yaml\n\n\
        Exit codes: 0 answered, 2 failed, or bad usage or input.",
    mut_arg("min_values_policy", |flag| flag.requires("trace").conflicts_with_all(OTHER_USES)),
    mut_arg("default_usd_per_hour", |flag| flag.requires("trace").conflicts_with_all(OTHER_USES))
)]
pub struct CommitmentFlags {
    /// Node-hours on demand of each hour and instance type (CSV), or - for stdin
    ///
    /// Columns: hour (a whole number, counted from any beginning, in rising order), instance_type, node_hours; usd_per_hour, the
    /// on-demand price, is optional.
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present_any = ["trace", "ledger"],
        conflicts_with_all = ["trace", "ledger"],
        help_heading = "Use"
    )]
    pub usage: Option<PathBuf>,

    /// Take the on-demand nodes that the controller buys for a pod list of the Alibaba GPU trace 2023 (CSV)
    ///
    /// Columns as for `simulate --trace`.
    #[arg(long, value_name = "FILE", requires = "pools", conflicts_with = "ledger", help_heading = "Use")]
    pub trace: Option<PathBuf>,

    /// Take the on-demand instances in the ledger that a controller has written: a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
    ///
    /// The hours from the first to the last sign of a controller count.
    #[arg(long, value_name = "PLACE", help_heading = "Use")]
    pub ledger: Option<Location>,

    /// With --trace: NodePools and their node classes: YAML or JSON files, or directories
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = OTHER_USES, requires = "trace", help_heading = "Use")]
    pub pools: Vec<PathBuf>,

    /// With --trace: GPU models for each gpu_spec (CSV) [default: built in]
    #[arg(long, value_name = "FILE", conflicts_with_all = OTHER_USES, requires = "trace", help_heading = "Use")]
    pub gpu_map: Option<PathBuf>,

    /// With --trace: begin this far into the trace (142d) [default: 0s]. With --ledger: the first day: a day (2026-11-01), a month
    /// (2026-11), or so many days up to today (30d) [default: 30d]
    #[arg(long, value_name = "WHEN", value_parser = begin, conflicts_with = "usage", help_heading = "Use")]
    pub from: Option<Begin>,

    /// With --ledger: the last day: a day, a month, or so many days ago [default: the end of the month of --from, else today]
    #[arg(long, value_name = "WHEN", value_parser = when, conflicts_with_all = ["usage", "trace"], requires = "ledger", help_heading = "Use")]
    pub to: Option<When>,

    /// With --ledger: count only instances of this region
    #[arg(long, value_name = "NAME", conflicts_with_all = ["usage", "trace"], requires = "ledger", help_heading = "Use")]
    pub region: Option<String>,

    /// With --trace: how long to play (36h, 30d) [default: 30d]
    #[arg(long = "for", value_name = "DURATION", value_parser = length, conflicts_with_all = OTHER_USES, requires = "trace", help_heading = "Use")]
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
    ///
    /// # Errors
    ///
    /// `--from` is a day. The error is a sentence.
    pub fn replay(&self, trace: PathBuf) -> Result<ReplayFlags, String> {
        const MONTH: Span = Span(Duration::from_hours(30 * 24));
        const NO_OFFSET: &str = "--from: with --trace, write how far into it, like 142d or 36h";
        let from = self.from.map(|begin| begin.offset.ok_or(NO_OFFSET)).transpose()?;
        Ok(ReplayFlags {
            gpu_map: self.gpu_map.clone(),
            from: from.unwrap_or_default(),
            length: self.length.unwrap_or(MONTH),
            pools: self.pools.clone(),
            prices: self.catalogue.clone(),
            ..ReplayFlags::of_trace(trace, self.pool_rules.clone())
        })
    }

    /// Returns the first and the last day of a ledger.
    ///
    /// # Errors
    ///
    /// `--from` is no day. The error is a sentence.
    pub fn days(&self) -> Result<(When, Option<When>), String> {
        const NO_DAY: &str =
            "--from: with --ledger, write a day (2026-11-30), a month (2026-11), or a number of days (30d)";
        let from = self.from.map(|begin| begin.day.ok_or(NO_DAY)).transpose()?;
        Ok((from.unwrap_or(When::Days(30)), self.to))
    }
}

/// Where the use begins. `30d` is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// So far into a trace.
    pub offset: Option<Span>,
    /// The first day of a ledger.
    pub day: Option<When>,
}

/// Parses where the use begins.
fn begin(text: &str) -> Result<Begin, String> {
    match (offset(text), when(text)) {
        (Err(_), Err(_)) => {
            Err("not a time; write 142d or 36h for a trace, and a day (2026-11-30), a month (2026-11) or 30d for a ledger".to_owned())
        }
        (offset, day) => Ok(Begin { offset: offset.ok(), day: day.ok() }),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn flags(more: &[&str]) -> Result<CommitmentFlags, String> {
        let fixed = ["poolwright", "what-if", "commitment", "--offers", "o.yaml"];
        let cli = Cli::try_parse_from(fixed.iter().chain(more)).map_err(|error| error.to_string())?;
        let Command::WhatIf(flags) = cli.command else { panic!("it is what-if") };
        let Some(Question::Commitment(flags)) = flags.command else { panic!("it is about commitments") };
        Ok(*flags)
    }

    #[test]
    fn the_begin_is_a_time_of_a_trace_or_a_day_of_a_ledger() {
        let trace = |from| flags(&["--trace", "t.csv", "--pools", "p.yaml", "--from", from]).expect("flags");
        let offset = |from| trace(from).replay("t.csv".into()).map(|replay| replay.from.to_string());
        assert_eq!(offset("36h"), Ok("1d12h".to_owned()));
        assert!(offset("2026-11").is_err_and(|told| told.contains("how far into it")));
        let ledger = |from| flags(&["--ledger", "l", "--from", from]).expect("flags").days();
        assert_eq!(ledger("30d"), Ok((When::Days(30), None)));
        assert!(ledger("36h").is_err_and(|told| told.contains("write a day")));
        assert!(flags(&["--ledger", "l", "--from", "soon"]).is_err_and(|told| told.contains("not a time")));
    }

    #[test]
    fn a_flag_that_would_count_for_nothing_is_refused() {
        for more in [
            &["--usage", "u.csv", "--ledger", "l"][..],
            &["--usage", "u.csv", "--from", "30d"],
            &["--usage", "u.csv", "--default-usd-per-hour", "5"],
            &["--usage", "u.csv", "--pools", "p.yaml"],
            &["--ledger", "l", "--for", "30d"],
            &["--ledger", "l", "--min-values-policy", "BestEffort"],
            &["--trace", "t.csv", "--pools", "p.yaml", "--region", "r"],
            &["--trace", "t.csv"],
            &[],
        ] {
            assert!(flags(more).is_err(), "{more:?}");
        }
        assert!(flags(&["--usage", "u.csv"]).is_ok(), "the default of a flag asks for nothing");
    }
}
