//! Flags of `poolwright simulate`.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::ReplayFlags;

/// Flags of `simulate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SimulateFlags {
    /// A search for broken rules, instead of a workload.
    #[command(subcommand)]
    pub what: Option<Simulation>,

    /// A workload to play.
    #[command(flatten)]
    pub replay: ReplayFlags,
}

/// What can be simulated.
#[derive(Debug, Subcommand)]
pub enum Simulation {
    /// Search for a simulated world in which the controller breaks a rule
    ///
    /// Each seed is a cluster with its work and its accidents: late, lost and refused requests, watches that end, stock-outs,
    /// failing instances, and controllers that crash, lose the network or have wrong clocks. The real controller runs in
    /// it, hours in a second. When it breaks a rule, the search ends and shows the fewest accidents that lead to it.
    Fuzz(FuzzFlags),
}

/// Flags of `simulate fuzz`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 no rule was broken, 1 failed, 2 bad usage, 4 a rule was broken.",
    after_long_help = "Examples:\n  \
        # A thousand worlds\n  poolwright simulate fuzz --seeds 1000\n\n  \
        # One of them again, with everything that happened in it\n  \
        poolwright simulate fuzz --from 41 --seeds 1 --record 41.log\n\n  \
        # With only some of what went wrong\n  \
        poolwright simulate fuzz --from 41 --seeds 1 --accidents request:17,blow:2\n\n\
        Exit codes: 0 no rule was broken (also when it was interrupted before), 1 failed,\n\
        2 bad usage, 4 a rule was broken."
)]
pub struct FuzzFlags {
    /// How many seeds to play
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,

    /// The first of them
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub from: u64,

    /// How much goes wrong, in percent of a bad day; 0 for nothing
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub faults: u32,

    /// Allow only these accidents, by the names that a search gave them [default: all]
    #[arg(long, value_name = "SITE:NUMBER", value_delimiter = ',')]
    pub accidents: Vec<String>,

    /// How many seeds to play at a time [default: one for each core]
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<NonZeroUsize>,

    /// Write all events to this file: those of the world with the broken rule, or of the last world
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// What the controllers log, to standard error: error, warn, info, debug or trace, or a filter; of use with one seed
    /// [default: nothing]
    #[arg(long, value_name = "FILTER")]
    pub log_level: Option<String>,

    /// How to print what was found
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = FuzzFormat::Text)]
    pub output: FuzzFormat,
}

/// How to print what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FuzzFormat {
    /// For people
    Text,
    /// For programs
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
