//! The command line: flags and their help. Nothing here touches the system.

mod changes;
mod check;
mod clouds;
mod commitment;
mod common;
mod controller;
mod convert;
mod debug;
mod explain;
mod job;
mod market;
mod min_values;
mod number;
mod open;
mod overrides;
mod plan;
mod pool_rules;
mod preferences;
mod replay;
mod report;
mod savings;
mod search;
mod simulate;
mod snapshot;
mod solve;
mod top;
mod what_if;

use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub use changes::{Factor, Named, NewPrice, PriceChange, Replaced, Replicas, Threshold, WHOLE};
pub use check::{CheckFlags, CheckFormat, ServiceAccount};
pub use clouds::{CloudFlags, Market, Nodes};
pub use commitment::{CommitmentFlags, CommitmentFormat, Question};
pub use common::{ClusterFlags, PriceFlags};
pub use controller::{ControllerFlags, LogFormat, PlacementMode};
pub use convert::ConvertFlags;
pub use debug::{DebugCommand, DebugFlags, ReplanFlags};
pub use explain::{ExplainFlags, ExplainFormat, Explainable};
pub use job::{Asked, JobFlags, JobFormat, Shape};
pub use market::{GpusFlags, MarketFlags, MarketFormat, PricesFlags};
pub use min_values::MinValuesMode;
pub use open::OpenFlags;
pub use overrides::{ConsolidationChoice, LeastValues, PoolOverrides};
pub use plan::{CapacityChoice, InputFlags, OutputFormat, PlanFlags, SharingMode};
pub use pool_rules::{DefaultLimit, PoolRules};
pub use preferences::PreferenceMode;
pub use replay::{ReplayFlags, ReplayFormat, Span, runs_for};
pub use report::{FocusVersion, ReportFlags, ReportFormat, When};
pub use savings::{SavingsFlags, SavingsFormat};
pub use search::SearchFlags;
pub use simulate::{FuzzFlags, FuzzFormat, SimulateFlags, Simulation};
pub use snapshot::SnapshotFlags;
pub use solve::{SolveFlags, SolveFormat};
pub use top::{TopFlags, TopFormat};
pub use what_if::{NOTHING, WhatIfFlags, WhatIfFormat};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "poolwright",
    version,
    term_width = 80,
    about = "Buys GPU nodes for Kubernetes at the lowest cost it can prove",
    long_about = "Buys GPU nodes for Kubernetes at the lowest cost it can prove.\n\n\
                  `poolwright plan` shows what it would buy now and why; it changes nothing.\n\
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
    /// Show what Poolwright would buy now, at what cost, and why; changes nothing
    ///
    /// Plans for the unschedulable pods of the current cluster, for manifests (-f), or for a pod list of the Alibaba GPU
    /// trace (--trace). The controller plans with the same code.
    Plan(Box<PlanFlags>),
    /// Compare two plans: what a change would buy and cost, and which pods move; changes nothing
    ///
    /// Plans for the current cluster, a snapshot, manifests (--base), or nothing, and again with the changes. The controller plans
    /// with the same code. Nodes that run keep their pods; what consolidation would save later is not counted.
    #[command(name = "what-if")]
    WhatIf(Box<WhatIfFlags>),
    /// Tell what a cluster costs now, what the best plan would cost, and what no plan can go below; changes nothing
    ///
    /// For clusters that anything scales: Karpenter, Cluster Autoscaler, managed groups, or nobody. Reads the current cluster, a
    /// snapshot, or what kubectl prints (-f).
    Savings(Box<SavingsFlags>),
    /// Explain a pod, node, claim or pool in a few lines: why it was planned, bought, kept or left out
    ///
    /// Reads the current cluster, or manifests (-f). Changes nothing.
    Explain(Box<ExplainFlags>),
    /// Watch what Poolwright does now and why: pools, nodes, waiting pods, recent events
    ///
    /// Fills the terminal and reads the current cluster again every two seconds. With --once it prints one reading, for
    /// scripts. Changes nothing.
    Top(TopFlags),
    /// Write what a plan needs of a cluster to one file, without secrets; other commands read it with --snapshot
    ///
    /// Keeps only the fields that plans read, and the prices. Environment variables, commands and other content of containers are
    /// never among them. Changes nothing in the cluster.
    Snapshot(SnapshotFlags),
    /// List the instance types with GPUs that you can buy: model, number, memory, MIG, network, disks
    ///
    /// Reads a catalogue, or asks your account at a cloud (--provider).
    Gpus(GpusFlags),
    /// List offerings and prices, the cheapest per GPU first, with the source and age of each price
    ///
    /// Reads a catalogue, or asks your account at a cloud (--provider). A price that is missing or cannot be right is
    /// unknown, never guessed.
    Prices(PricesFlags),
    /// Price one job: each type, zone and way to buy, the cheapest first, and why the others lost
    ///
    /// The job is a shape, such as 8x8xh100, or a manifest. Spot counts with the work that interruptions lose. Reads a catalogue and no
    /// cluster.
    Job(Box<JobFlags>),
    /// Report what nodes cost and who held them, by namespace, label, workload, pool, node or day
    ///
    /// Reads the ledger that the controller writes, and no cluster. The costs of pods and of idle time add up to those of the nodes
    /// exactly.
    Report(Box<ReportFlags>),
    /// Play a workload through the controller in simulated time: its cost, and how long pods wait
    ///
    /// Runs the real controller in a cluster in memory, a week in seconds. Buys nothing and reads no cluster. To compare two
    /// policies, run it twice.
    Simulate(Box<SimulateFlags>),
    /// Run the controller: buy nodes for pending pods and remove empty ones
    ///
    /// You can run several replicas; one at a time acts. Install the custom resources first:
    /// `poolwright crds | kubectl apply -f -`.
    Controller(Box<ControllerFlags>),
    /// Check that the cluster and your account at a cloud are ready, and say how to fix them
    ///
    /// Checks custom resources, rights, clocks and the device plugin. With --provider it also checks credentials, each
    /// permission, node classes, the queue and quotas. Changes nothing.
    Check(Box<CheckFlags>),
    /// Open nodes that Poolwright has closed to newcomers, in a cluster whose controller is gone
    ///
    /// Removes the taint poolwright.dev/reserved: from nodes that retire, and from nodes that were reserved for their first
    /// pods. A controller that stops opens retiring nodes itself. While a controller runs, nothing is opened, because it
    /// would close the nodes again.
    Open(OpenFlags),
    /// Convert Karpenter's NodePools to Poolwright's, and report on each field
    ///
    /// Writes manifests to standard output and the report to standard error: fields that are not possible, fields that
    /// changed, and how many stay. Neither reads nor changes a
    /// cluster.
    Convert(ConvertFlags),
    /// Print the custom resource definitions as YAML
    Crds(CrdsFlags),
    /// Print a completion script for a shell
    Completions(CompletionsFlags),
    /// Write the man pages of all commands into a directory
    Man(ManFlags),
    /// Find and repeat faults of Poolwright itself: tools of its developers
    Debug(DebugFlags),
    /// Print the version
    Version(VersionFlags),
    /// The old name of `debug solve`, which still works: scripts and records of old findings use it
    #[command(hide = true)]
    Solve(SolveFlags),
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
    /// The shell to complete for
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Flags of `man`.
#[derive(Debug, clap::Args)]
#[command(
    after_long_help = "Examples:\n  # For you alone; `man poolwright-plan` shows one\n  poolwright man --dir ~/.local/share/man/man1\n\n  \
                       # For all users\n  sudo poolwright man --dir /usr/local/share/man/man1"
)]
pub struct ManFlags {
    /// The directory, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
}

/// Flags of `version`.
#[derive(Debug, clap::Args)]
pub struct VersionFlags {
    /// Print as JSON
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub output: Option<OnlyJson>,
}

/// How to print what is text by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnlyJson {
    /// One JSON object
    Json,
}

/// Builds the command under the name `program`. Installed as `kubectl-poolwright`, it is `kubectl poolwright`.
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

    /// Returns a flag of a command.
    fn flag<'a>(command: &'a clap::Command, name: &str) -> Option<&'a clap::Arg> {
        command.get_arguments().find(|one| one.get_long() == Some(name))
    }

    #[test]
    fn every_command_that_reads_a_cluster_takes_the_flags_of_kubectl() {
        // These are about the whole cluster.
        const WITHOUT_NAMESPACE: [&str; 5] = ["check", "controller", "open", "savings", "snapshot"];
        let mut with_namespace = Vec::new();
        for command in command("poolwright").get_subcommands() {
            let name = command.get_name();
            let reads = flag(command, "kubeconfig").is_some();
            assert_eq!(flag(command, "context").is_some(), reads, "{name}");
            if reads && !WITHOUT_NAMESPACE.contains(&name) {
                let namespace = flag(command, "namespace").and_then(clap::Arg::get_short);
                assert_eq!(namespace, Some('n'), "{name}");
                with_namespace.push(name.to_owned());
            }
        }
        assert_eq!(with_namespace, ["plan", "what-if", "explain", "top"]);
    }

    #[test]
    fn every_command_that_only_looks_at_a_cluster_looks_at_a_snapshot_too() {
        // These ask the cluster itself, change it, or write the snapshot.
        const LIVE: [&str; 4] = ["check", "controller", "open", "snapshot"];
        for command in command("poolwright").get_subcommands() {
            let name = command.get_name();
            let looks = flag(command, "kubeconfig").is_some() && !LIVE.contains(&name);
            // The snapshot of a replay is a dump with which it starts.
            assert_eq!(flag(command, "snapshot").is_some(), looks || name == "simulate", "{name}");
        }
    }

    #[test]
    fn a_snapshot_stands_alone_for_a_cluster() {
        for typed in [
            "plan --snapshot f --context c",
            "plan --snapshot f --kubeconfig k",
            "plan --snapshot f -f pod.yaml",
            "plan --snapshot f --trace t.csv",
            "plan --snapshot f --existing e.yaml",
            "explain pod x --snapshot f --context c",
            "top --once --snapshot f --context c",
            "top --snapshot f",
            "what-if --snapshot f --base nothing --no-spot",
            "what-if --snapshot f --context c --no-spot",
            "savings --snapshot f --context c",
            "savings --snapshot f -f c.yaml",
        ] {
            let parsed = Cli::try_parse_from(["poolwright"].into_iter().chain(typed.split(' ')));
            let refused = parsed.expect_err(typed).to_string();
            assert!(refused.contains("--snapshot") || refused.contains("--once"), "{typed}: {refused}");
        }
    }

    #[test]
    fn tools_of_developers_are_below_debug_and_nowhere_else_in_the_help() {
        let all = command("poolwright");
        let find = |path: &[&str]| {
            path.iter().fold(&all, |command, name| command.find_subcommand(name).expect("a command"))
        };
        assert!(find(&["solve"]).is_hide_set() && find(&["simulate", "fuzz"]).is_hide_set());
        for (path, name, is_hidden) in [
            (&["plan"][..], "work-limit", true),
            (&["explain"], "work-limit", true),
            (&["plan"], "save-problem", true),
            (&["debug", "solve"], "work-limit", false),
        ] {
            let flag = flag(find(path), name).expect("a flag");
            assert_eq!(flag.is_hide_set(), is_hidden, "{path:?} --{name}");
        }
    }

    #[test]
    fn as_a_kubectl_plugin_the_usage_says_how_it_was_called() {
        let mut plugin = command("kubectl-poolwright");
        assert!(plugin.render_usage().to_string().contains("kubectl poolwright <COMMAND>"));
        let mut plain = command("poolwright");
        assert!(plain.render_usage().to_string().contains("Usage: poolwright <COMMAND>"));
    }
}
