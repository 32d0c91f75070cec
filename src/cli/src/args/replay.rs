//! Flags of `poolwright simulate` without a subcommand, which plays a workload.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::number::whole;
use super::{PoolOverrides, PoolRules};

/// Flags that say what is played.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 played, also when it was interrupted, 1 failed, 2 bad usage or input.",
    after_long_help = "Examples:\n  \
        # A week of a trace, from its 142nd day on\n  \
        poolwright simulate --trace pods.csv --pools pools.yaml --from 142d --for 7d\n\n  \
        # The same with another policy\n  \
        poolwright simulate --trace pods.csv --pools pools.yaml --policy scaleToZero.after=30m\n\n  \
        # The same, but no pod moves to save money\n  \
        poolwright simulate --trace pods.csv --pools pools.yaml --consolidation WhenEmpty\n\n  \
        # What a cluster runs now, on nodes bought anew\n  \
        kubectl get pods,jobs,deployments -A -o yaml > cluster.yaml\n  \
        poolwright simulate --snapshot cluster.yaml --pools pools.yaml --for 24h\n\n\
        Exit codes: 0 played (also when it was interrupted before its end), 1 failed,\n\
        2 bad usage or input."
)]
pub struct ReplayFlags {
    /// Play a pod list of the Alibaba GPU trace 2023 (CSV), or - for stdin
    ///
    /// Columns as for `plan --trace`, plus creation_time and deletion_time in seconds; scheduled_time is optional. A pod
    /// runs as long as in the trace; a pod that never ran in the trace runs as long as it existed there.
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot", help_heading = "Workload")]
    pub trace: Option<PathBuf>,

    /// With --trace: GPU models for each gpu_spec (CSV) [default: built in]
    #[arg(long, value_name = "FILE", help_heading = "Workload")]
    pub gpu_map: Option<PathBuf>,

    /// With --trace: play pods of these classes (column qos) as services, which may be moved without loss of work (LS)
    ///
    /// All other pods are Jobs, which repeat their work if they are moved.
    #[arg(long, value_name = "CLASS", value_delimiter = ',', help_heading = "Workload")]
    pub services: Vec<String>,

    /// Play the pods of these manifests: YAML or JSON files, directories, or - for stdin
    ///
    /// Takes the same files as `plan -f`; write one with `kubectl get pods,jobs,deployments -A -o yaml`. All running and
    /// waiting pods start at the beginning, and so do the pods that controllers lack. They run for ever, unless the annotation
    /// poolwright.dev/runs-for (as 90m) or activeDeadlineSeconds limits them. All nodes are bought anew. Repeat the flag for more
    /// files.
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Workload")]
    pub snapshot: Vec<PathBuf>,

    /// Begin this far into the trace (142d); pods running at that time run for the rest of their time
    #[arg(long, value_name = "DURATION", value_parser = offset, default_value = "0s", help_heading = "Workload")]
    pub from: Span,

    /// How long to play (36h, 7d)
    #[arg(long = "for", value_name = "DURATION", value_parser = length, default_value = "7d", help_heading = "Workload")]
    pub length: Span,

    /// NodePools and their node classes: YAML or JSON files, directories, or - for stdin
    ///
    /// Repeat the flag for more files.
    #[arg(long, value_name = "FILE", num_args = 1.., required = true, help_heading = "What may be bought")]
    pub pools: Vec<PathBuf>,

    /// Instance types and prices: a CSV file, or `builtin`
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(
        long,
        visible_alias = "catalogue",
        value_name = "FILE|builtin",
        default_value = "builtin",
        help_heading = "What may be bought"
    )]
    pub prices: Vec<String>,

    /// Set a field of every pool: scaleToZero.after=10m, limits[usdPerHour]=40, template.spec.deadlines.launch=5m
    ///
    /// KEY is a path below `spec`; write keys with dots and list indices in brackets. `null` removes a field. Repeat the flag
    /// for more fields.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "What may be bought")]
    pub policy: Vec<String>,

    /// What counts instead of fields of all pools.
    #[command(flatten)]
    pub overrides: PoolOverrides,

    /// What holds for every pool.
    #[command(flatten)]
    pub pool_rules: PoolRules,

    /// The failure rate, in percent of that of `debug fuzz`; without crashes and clock errors
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0,
        value_parser = whole(0..=1000_u32, 100),
        allow_negative_numbers = true,
        help_heading = "The world"
    )]
    pub faults: u32,

    /// Seed for the duration of launches, image pulls and so on; the same seed gives the same report
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        value_parser = whole(0..=u64::MAX, 1),
        allow_negative_numbers = true,
        help_heading = "The world"
    )]
    pub seed: u64,

    /// How to print the report
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ReplayFormat::Text)]
    pub output: ReplayFormat,

    /// Draw cost per hour and waiting pods over time to this file (SVG)
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    /// Write all events of nodes and pods to this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

impl ReplayFlags {
    /// Returns the flags of a replay of a trace in which nothing else is set.
    pub fn of_trace(trace: PathBuf, pool_rules: PoolRules) -> Self {
        Self {
            trace: Some(trace),
            gpu_map: None,
            services: Vec::new(),
            snapshot: Vec::new(),
            from: Span::default(),
            length: Span::default(),
            pools: Vec::new(),
            prices: Vec::new(),
            policy: Vec::new(),
            overrides: PoolOverrides::default(),
            pool_rules,
            faults: 0,
            seed: 1,
            output: ReplayFormat::Text,
            svg: None,
            record: None,
        }
    }
}

/// How to print the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayFormat {
    /// Tables, at most 80 columns wide
    Text,
    /// Tables with more columns and all reasons
    Wide,
    /// One document, with the series behind the plot
    Json,
    /// One figure per line: figure, pool, capacity type, value
    Csv,
    /// A page in one file, for a browser or for paper; it loads nothing
    Html,
}

impl fmt::Display for ReplayFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Html => "html",
        })
    }
}

/// A length of time in the notation of the flags, which allows days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    /// Writes the length as the flags accept it: `7d`, `1d12h`, `90s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [
            (seconds / 86_400, 'd'),
            (seconds / 3600 % 24, 'h'),
            (seconds / 60 % 60, 'm'),
            (seconds % 60, 's'),
        ];
        let mut text = String::new();
        for (count, unit) in parts.iter().filter(|(count, _)| *count > 0) {
            text.push_str(&count.to_string());
            text.push(*unit);
        }
        f.pad(if text.is_empty() { "0s" } else { &text })
    }
}

/// The longest time that can be played, in days.
const LONGEST: u64 = 3660;

/// Parses a length of time in whole seconds, zero or more.
pub(super) fn offset(text: &str) -> Result<Span, String> {
    let remedy = "write whole numbers with units, like 7d, 36h or 1d12h";
    let wrong = || format!("not a duration; {remedy}");
    let mut seconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit()).ok_or_else(wrong)?;
        let count: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = match rest.as_bytes()[digits] {
            b'd' => 86_400,
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return Err(wrong()),
        };
        seconds = count.checked_mul(unit).and_then(|part| seconds.checked_add(part)).ok_or_else(wrong)?;
        rest = &rest[digits + 1..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    if seconds > LONGEST * 86_400 {
        return Err(format!("more than {LONGEST} days"));
    }
    Ok(Span(Duration::from_secs(seconds)))
}

/// Parses a length of time in whole seconds, above zero.
pub(super) fn length(text: &str) -> Result<Span, String> {
    let span = offset(text)?;
    if span.0.is_zero() {
        Err("a replay must be longer than nothing; write it like 7d or 36h".to_owned())
    } else {
        Ok(span)
    }
}

/// Parses the length of time above zero in an annotation of a pod.
///
/// # Errors
/// The error is a sentence for the user.
pub fn runs_for(text: &str) -> Result<Duration, String> {
    length(text).map(|span| span.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_whole_numbers_with_units_and_print_as_they_are_written() {
        for text in ["7d", "1d12h", "90m", "45s", "0s"] {
            let span = offset(text).unwrap();
            assert_eq!(offset(&span.to_string()), Ok(span), "{text}");
        }
        assert_eq!(offset("1d12h").unwrap().0, Duration::from_hours(36));
        for wrong in ["", "7", "d", "-1d", "1.5d", "7w", "7d 1h", "99999999999999999999d", "4000d", "1ä"] {
            assert!(offset(wrong).is_err(), "{wrong}");
        }
        assert!(length("0d").is_err());
    }
}
