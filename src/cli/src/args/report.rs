//! Flags of `poolwright report`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;
use jiff::civil::Date;
use poolwright_ledger::Location;
use poolwright_report::bill::{By, Method};

/// The most days of a report: ten years.
const MOST_DAYS: i32 = 3_660;

/// Flags of `report`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 reported, 1 failed, 2 bad usage or input.",
    after_long_help = "Examples:\n  \
        # What did each team cost in November?\n  \
        poolwright report --ledger ledger --from 2026-11 --by label:team\n\n  \
        # The last 30 days by pool, split by the prices of a rate card\n  \
        poolwright report --ledger ledger --by pool --method rate-card --rates r.yaml\n\n  \
        # For the FinOps tool\n  \
        poolwright report --ledger ledger --from 2026-11 -o focus > november.csv\n\n\
        Exit codes: 0 reported, 1 failed, 2 bad usage or input."
)]
pub struct ReportFlags {
    /// The ledger that the controller writes: a directory, s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
    #[arg(long, value_name = "PLACE")]
    pub ledger: Location,

    /// The first day: a day (2026-11-01), a month (2026-11), or so many days up to today (30d)
    #[arg(long, value_name = "WHEN", value_parser = when, default_value = "30d")]
    pub from: When,

    /// The last day: a day, a month, or so many days ago [default: the end of the month of --from, else today]
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub to: Option<When>,

    /// Group costs by this: namespace, label:KEY, workload, pool, node, day, week, month, cluster
    ///
    /// Repeat it, or separate several with commas, to group by all of them together.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', default_value = "namespace")]
    pub by: Vec<By>,

    /// How the cost of a node is split among its pods: gpu-only, weights, marginal, rate-card
    #[arg(long, value_name = "METHOD", default_value = "weights")]
    pub method: Method,

    /// Prices of GPUs, vCPUs and memory for `marginal` and `rate-card` (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub rates: Option<PathBuf>,

    /// Also read the period before, of the same length, and tell the change
    #[arg(long)]
    pub compare: bool,

    /// How to print the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReportFormat::Table)]
    pub output: ReportFormat,

    /// The version of FOCUS for `-o focus`
    #[arg(long, value_enum, value_name = "VERSION", default_value_t = FocusVersion::V1_3)]
    pub focus_version: FocusVersion,

    /// The terms of the commitments that the ledger names (YAML or JSON), for `-o focus-commitments`
    #[arg(long, value_name = "FILE")]
    pub commitments: Option<PathBuf>,
}

/// A day, or something that stands for days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// A day.
    Day(Date),
    /// All days of a month: the first one.
    Month(Date),
    /// So many days.
    Days(i32),
}

/// How to print a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Tables as wide as the terminal, or one line for each row in a pipe or file
    Table,
    /// One document
    Json,
    /// One document
    Yaml,
    /// One line for each group
    Csv,
    /// The same as a table, for a ticket or a comment
    Markdown,
    /// A page in one file, for a browser or for paper; it loads nothing
    Html,
    /// FOCUS: one line for each pod on each node and day, and for idle time
    Focus,
    /// FOCUS: one line for each commitment in --commitments
    FocusCommitments,
}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Focus => "focus",
            Self::FocusCommitments => "focus-commitments",
        })
    }
}

/// A version of FOCUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FocusVersion {
    /// With the columns `ProviderName` and `PublisherName`
    #[value(name = "1.3")]
    V1_3,
    /// Without them
    #[value(name = "1.4")]
    V1_4,
}

impl fmt::Display for FocusVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V1_3 => "1.3",
            Self::V1_4 => "1.4",
        })
    }
}

/// Parses a day, a month or a number of days.
pub(super) fn when(text: &str) -> Result<When, String> {
    let wrong =
        || "not a day; write a day (2026-11-30), a month (2026-11), or a number of days (30d)".to_owned();
    if let Some(days) = text.strip_suffix('d').filter(|days| !days.contains('-')) {
        let days: i32 = days.parse().map_err(|_| wrong())?;
        let fits = (1..=MOST_DAYS).contains(&days);
        return fits.then_some(When::Days(days)).ok_or_else(|| format!("write 1d to {MOST_DAYS}d"));
    }
    match text.matches('-').count() {
        2 => text.parse().map(When::Day).map_err(|_| wrong()),
        1 => format!("{text}-01").parse().map(When::Month).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_day_a_month_and_a_number_of_days_are_told_apart() {
        assert_eq!(when("2026-11-30"), Ok(When::Day(date(2026, 11, 30))));
        assert_eq!(when("2026-11"), Ok(When::Month(date(2026, 11, 1))));
        assert_eq!(when("30d"), Ok(When::Days(30)));
        for wrong in ["", "30", "d", "-3d", "0d", "9999d", "2026-13", "2026-11-31", "november", "2026"] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }
}
