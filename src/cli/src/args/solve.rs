//! Flags of `poolwright debug solve`.

use std::fmt;
use std::path::PathBuf;

use clap::ValueEnum;

use super::SearchFlags;

/// Flags of `debug solve`.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("work_limit", |flag| flag.hide(false)),
    after_help = "Exit codes: 0 solved, 1 failed, 2 bad usage or input, 3 see --fail-on-unplaced.",
    after_long_help = "Examples:\n  \
        # Save what a plan asks of the solver, and solve it again\n  \
        poolwright plan --trace pods.csv --save-problem problem.json\n  \
        poolwright debug solve problem.json\n\n  \
        # The same answer on every machine\n  \
        poolwright debug solve problem.json --work-limit 5000000 -o json\n\n\
        Exit codes: 0 solved (also when pods are left out), 1 failed (also when the answer\n\
        did not pass the independent check), 2 bad usage or input, 3 pods are left out\n\
        and --fail-on-unplaced is given."
)]
pub struct SolveFlags {
    /// The problem: a file of --save-problem, a single problem as JSON, or - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,

    /// How to print the solution
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = SolveFormat::Table)]
    pub output: SolveFormat,

    /// Exit with code 3 when pods are left out
    #[arg(long)]
    pub fail_on_unplaced: bool,
}

/// How to print a solution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SolveFormat {
    /// The figures, for people
    Table,
    /// The figures and the whole solution
    Json,
}

impl fmt::Display for SolveFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
        })
    }
}
