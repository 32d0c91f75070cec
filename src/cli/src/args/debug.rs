//! Flags of `poolwright debug`: the tools of Poolwright's developers.

use std::path::PathBuf;

use clap::Subcommand;

use super::{FuzzFlags, SolveFlags};

/// Flags of `debug`.
#[derive(Debug, clap::Args)]
#[command(after_help = "`plan` and `explain` also take flags for developers, which their help leaves out:
  --work-limit <UNITS>   Stop after this much counted work, as in `debug solve`
  --save-problem <FILE>  With `plan`: save the solver's input for `debug solve`")]
pub struct DebugFlags {
    /// The tool.
    #[command(subcommand)]
    pub command: DebugCommand,
}

/// The tools.
#[derive(Debug, Subcommand)]
pub enum DebugCommand {
    /// Solve a problem that `plan --save-problem` saved, and prove how good the answer is
    ///
    /// Use it to report or repeat a case: the file holds the whole input.
    Solve(SolveFlags),
    /// Plan again for pods with which a plan of the controller failed
    ///
    /// Use it to report or repeat a case: the file, which `controller --save-failures` saved, holds the whole input. It ends
    /// in a panic where that plan did.
    Replan(ReplanFlags),
    /// Search for a simulated world in which the controller breaks a rule
    ///
    /// Each seed is a cluster with pods and faults: late, lost and refused requests, watches that end, stock-outs,
    /// failing instances, and controllers that crash, lose the network or have wrong clocks. The real controller runs in
    /// it, hours in a second. When it breaks a rule, the search ends and shows the fewest faults that lead to it.
    Fuzz(FuzzFlags),
}

/// Flags of `debug replan`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 planned, 1 the independent check refused the plan, 2 bad usage or input, 101 it panicked."
)]
pub struct ReplanFlags {
    /// A file that `controller --save-failures` saved, or - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
