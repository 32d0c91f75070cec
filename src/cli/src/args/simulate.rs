//! Flags of `poolwright simulate` and `poolwright debug fuzz`.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::ReplayFlags;
use super::number::whole;

/// Flags of `simulate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SimulateFlags {
    /// The old name of a command.
    #[command(subcommand)]
    pub command: Option<Simulation>,

    /// A workload to play.
    #[command(flatten)]
    pub replay: ReplayFlags,
}

/// The old names of commands, which still work: scripts and records of old findings use them.
#[derive(Debug, Subcommand)]
pub enum Simulation {
    /// Search for a simulated world in which the controller breaks a rule
    #[command(hide = true)]
    Fuzz(FuzzFlags),
}

/// Flags of `debug fuzz`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 no rule was broken, 1 failed, 2 bad usage, 4 a rule was broken.",
    after_long_help = "Examples:\n  \
        # A thousand worlds\n  poolwright debug fuzz --seeds 1000\n\n  \
        # One of them again, with everything that happened in it\n  \
        poolwright debug fuzz --from 41 --seeds 1 --record 41.log\n\n  \
        # With only some of what went wrong\n  \
        poolwright debug fuzz --from 41 --seeds 1 --only request:17,blow:2\n\n\
        Exit codes: 0 no rule was broken (also when it was interrupted before), 1 failed,\n\
        2 bad usage, 4 a rule was broken."
)]
pub struct FuzzFlags {
    /// Play this many seeds
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 100,
        value_parser = whole(1..=u64::MAX, 1000),
        allow_negative_numbers = true
    )]
    pub seeds: u64,

    /// Start with this seed
    #[arg(
        long,
        value_name = "SEED",
        default_value_t = 1,
        value_parser = whole(0..=u64::MAX, 1),
        allow_negative_numbers = true
    )]
    pub from: u64,

    /// How often faults happen, in percent of a bad day; 0 for none
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 100,
        value_parser = whole(0..=1000_u32, 100),
        allow_negative_numbers = true
    )]
    pub faults: u32,

    /// Allow only these faults, by the names in the report of a search [default: all]
    #[arg(long, value_name = "SITE:NUMBER", value_delimiter = ',')]
    pub only: Vec<String>,

    /// Play this many seeds in parallel [default: one for each core]
    #[arg(long, value_name = "NUMBER", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,

    /// Write the events of the world with the broken rule to this file, or of the last world if none broke
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Log level of the controllers, on standard error: error, warn, info, debug, trace, or a filter; useful with one seed
    /// [default: nothing]
    #[arg(long, value_name = "FILTER")]
    pub log_level: Option<String>,

    /// How to print the findings
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = FuzzFormat::Text)]
    pub output: FuzzFormat,
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = whole(1..=u16::MAX, 8)(text)?;
    Ok(NonZeroUsize::new(number.into()).unwrap_or(NonZeroUsize::MIN))
}

/// How to print the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FuzzFormat {
    /// Lines of text
    Text,
    /// One JSON document
    Json,
}

impl fmt::Display for FuzzFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}
