//! The command line as it is typed: flags and their help, and nothing that touches the system.

mod check;
mod controller;
mod convert;
mod explain;
mod market;
mod plan;
mod preferences;
mod replay;
mod search;
mod simulate;
mod solve;
mod top;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use check::{CheckFlags, ServiceAccount};
pub use controller::{AwsFlags, ControllerFlags, LogFormat, Placement};
pub use convert::ConvertFlags;
pub use explain::{ExplainFlags, Explainable};
pub use market::{GpusFlags, ListFormat, MarketFlags, PricesFlags};
pub use plan::{CapacityChoice, InputFlags, OutputFormat, PlanFlags, SharingMode};
pub use preferences::PreferenceMode;
pub use replay::{ReplayFlags, ReplayFormat, Span, runs_for};
pub use search::SearchFlags;
pub use simulate::{FuzzFlags, FuzzFormat, SimulateFlags, Simulation};
pub use solve::{SolveFlags, SolveFormat};
pub use top::{TopFlags, TopFormat};

/// Everything one can type.
#[derive(Debug, Parser)]
#[command(
    name = "poolwright",
    version,
    term_width = 80,
    about = "Buys GPU nodes for Kubernetes at the lowest cost it can prove",
    long_about = "Buys GPU nodes for Kubernetes at the lowest cost it can prove.\n\n\
                  `poolwright plan` shows what would be bought now and why; it changes nothing.\n\
                  `poolwright controller` does it.",
    propagate_version = false,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what would be bought now, for how much, and why; changes nothing
    ///
    /// Plans for the pods of the current cluster that no node can hold, for manifests (-f), or for a pod list of the
    /// Alibaba GPU trace (--trace). The controller plans with the same code.
    Plan(Box<PlanFlags>),
    /// Tell the story of a pod, node, claim or pool in a few lines: why it was planned, bought, kept or left out
    ///
    /// From the current cluster, or from manifests (-f). Decides nothing and changes nothing.
    Explain(Box<ExplainFlags>),
    /// Watch what is being done now and why: pools, nodes, waiting pods, what happened lately
    ///
    /// Of the current cluster, on the whole terminal, read anew every two seconds. With --once it is printed once, for
    /// scripts. Changes nothing.
    Top(TopFlags),
    /// List the instance types with GPUs that can be bought: model, number, memory, MIG, network, disks
    ///
    /// From a catalogue, or from the account at a cloud (--provider).
    Gpus(GpusFlags),
    /// List what can be bought and what it costs, the cheapest per GPU first, with the source and age of each price
    ///
    /// From a catalogue, or from the account at a cloud (--provider). A price that nobody has, or that cannot be right, is
    /// unknown; none is guessed.
    Prices(PricesFlags),
    /// Solve what `plan --save-problem` saved, and prove how good the answer is
    ///
    /// For reporting and replaying a case: nothing but the file decides what is solved.
    Solve(SolveFlags),
    /// Play a workload through the controller in simulated time: what it costs, how long pods wait
    ///
    /// The controller that `poolwright controller` runs, in a cluster that exists in memory, in that cluster's own time: a
    /// week in seconds. Nothing is bought and no cluster is asked. Two policies are compared by running it twice.
    Simulate(Box<SimulateFlags>),
    /// Run the controller: buy nodes for pending pods and give empty ones back
    ///
    /// Any number of replicas may run; one at a time acts. Install the custom resources first:
    /// `poolwright crds | kubectl apply -f -`.
    Controller(Box<ControllerFlags>),
    /// Look whether the cluster, and the account at a cloud, have what Poolwright needs, and what to do where not
    ///
    /// Custom resources, rights, clocks and the device plugin; with --provider also credentials, permissions one by one, node
    /// classes, the queue and quotas. Changes nothing.
    Check(Box<CheckFlags>),
    /// Write Karpenter's NodePools as Poolwright's, and say what became of each field
    ///
    /// Manifests go to standard output, what became of each field to standard error: what is not possible, what is changed, and
    /// how much is kept as it is. Nothing of a cluster is read or changed.
    Convert(ConvertFlags),
    /// Print the custom resource definitions as YAML
    Crds(CrdsFlags),
    /// Print a completion script for a shell
    Completions(CompletionsFlags),
    /// Print the version
    Version(VersionFlags),
}

/// Flags of `crds`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  poolwright crds | kubectl apply -f -\n  poolwright crds --dir crds"
)]
pub struct CrdsFlags {
    /// Write one file per resource into this directory instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Flags of `completions`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  poolwright completions bash > /etc/bash_completion.d/poolwright\n  \
                             poolwright completions zsh > \"${fpath[1]}/_poolwright\""
)]
pub struct CompletionsFlags {
    /// For which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Flags of `version`.
#[derive(Debug, clap::Args)]
pub struct VersionFlags {
    /// Print as JSON
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output: Option<VersionFormat>,
}

/// How to print the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VersionFormat {
    /// One JSON object
    Json,
}

/// The command as `program` names it: installed as `kubectl-poolwright` it is `kubectl poolwright`.
pub fn command(program: &str) -> clap::Command {
    let command = Cli::command();
    if program.starts_with("kubectl-") {
        command.bin_name("kubectl poolwright").display_name("kubectl poolwright")
    } else {
        command.bin_name("poolwright")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        command("poolwright").debug_assert();
        command("kubectl-poolwright").debug_assert();
    }

    #[test]
    fn as_a_kubectl_plugin_the_usage_says_how_it_was_called() {
        let mut plugin = command("kubectl-poolwright");
        assert!(plugin.render_usage().to_string().contains("kubectl poolwright <COMMAND>"));
        let mut plain = command("poolwright");
        assert!(plain.render_usage().to_string().contains("Usage: poolwright <COMMAND>"));
    }
}
