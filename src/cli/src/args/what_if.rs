//! Flags of `poolwright what-if`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use super::changes::{
    Factor, Named, PriceChange, Replaced, Replicas, Threshold, factor, named, price, replaced, replicas,
    threshold, zone,
};
use super::replay::{length, offset};
use super::{
    ClusterFlags, InputFlags, PoolRules, PriceFlags, Question, ReplayFlags, SearchFlags, SharingMode, Span,
};

/// The word after `--base` for a base without objects.
pub const NOTHING: &str = "nothing";

/// Flags of `what-if`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes: 0 no difference, 1 a difference, 2 failed, or bad usage or input, 6 see --fail-above.",
    after_long_help = "Examples:\n  \
        # What would this change of a Deployment cost?\n  poolwright what-if --base cluster.yaml -f deployment.yaml\n\n  \
        # What would a new cluster cost with these jobs?\n  poolwright what-if --base nothing -f pool.yaml -f jobs.yaml\n\n  \
        # What would another pool cost for the cluster in a snapshot?\n  \
        poolwright what-if --snapshot cluster.json --pool pool.yaml\n\n  \
        # What if a zone fails while there is twice the load?\n  \
        poolwright what-if --base cluster.yaml --load 2 --outage zone=us-east-1a\n\n  \
        # What would a week of a trace cost without spot nodes?\n  \
        poolwright what-if --trace pods.csv --base pools.yaml --no-spot\n\n  \
        # In a pull request: fail if it costs more than $500 a month more\n  \
        poolwright what-if --base main/ -f branch/ -o markdown --fail-above usd=500\n\n  \
        # The same for a branch that deletes a Deployment\n  \
        poolwright what-if --base main/ -f branch/ --remove deploy/old -o markdown\n\n\
        Exit codes: 0 no difference, 1 a difference, 2 failed, or bad usage or input, 6\n\
        see --fail-above."
)]
pub struct WhatIfFlags {
    /// Another question.
    #[command(subcommand)]
    pub command: Option<Question>,

    /// What the changes are made to: manifests, or `nothing` [default: the current cluster]
    ///
    /// YAML or JSON files, directories, or - for stdin. Repeat the flag for more files.
    #[arg(
        long,
        value_name = "FILE|nothing",
        num_args = 1..,
        conflicts_with_all = ["snapshot", "kubeconfig", "context"],
        help_heading = "Base"
    )]
    pub base: Vec<PathBuf>,

    /// The namespace of objects that name none, and of those of --remove and --replicas [default: `default`, and for these two any]
    ///
    /// Both plans are for the pods of all namespaces.
    #[arg(short, long, value_name = "NAMESPACE", help_heading = "Base")]
    pub namespace: Option<String>,

    /// The cluster that is the base.
    #[command(flatten)]
    pub cluster: ClusterFlags,

    /// Compare two replays of a pod list of the Alibaba GPU trace 2023 (CSV) instead of two plans
    ///
    /// The controller plays it in simulated time, with the NodePools of --base. Columns as for `simulate --trace`.
    #[arg(
        long,
        value_name = "FILE",
        requires = "base",
        conflicts_with_all = ["snapshot", "kubeconfig", "context"],
        help_heading = "Base"
    )]
    pub trace: Option<PathBuf>,

    /// With --trace: GPU models for each gpu_spec (CSV) [default: built in]
    #[arg(long, value_name = "FILE", requires = "trace", help_heading = "Base")]
    pub gpu_map: Option<PathBuf>,

    /// With --trace: begin this far into the trace (142d) [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = offset, requires = "trace", help_heading = "Base")]
    pub from: Option<Span>,

    /// With --trace: how long to play (36h, 30d) [default: 7d]
    #[arg(long = "for", value_name = "DURATION", value_parser = length, requires = "trace", help_heading = "Base")]
    pub length: Option<Span>,

    /// Add the objects of these manifests, or replace those of the same kind and name
    ///
    /// YAML or JSON files, directories, or - for stdin. What a replaced object has made, such as the pods of a Deployment, is made
    /// anew. Repeat the flag for more files.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1.., help_heading = "Changes of the work")]
    pub filename: Vec<PathBuf>,

    /// Remove an object with all that it has made: deploy/web
    #[arg(long, value_name = "KIND/NAME", value_parser = named, help_heading = "Changes of the work")]
    pub remove: Vec<Named>,

    /// Give a workload this many replicas: deploy/web=20
    #[arg(long, value_name = "KIND/NAME=NUMBER", value_parser = replicas, help_heading = "Changes of the work")]
    pub replicas: Vec<Replicas>,

    /// Multiply the pods of each workload: 1.5, rounded up
    ///
    /// Pods that are alike and have no controller count as one workload. Every answer has the cost at half as many pods again
    /// beside the cost.
    #[arg(
        long,
        value_name = "FACTOR",
        value_parser = factor,
        allow_negative_numbers = true,
        help_heading = "Changes of the work"
    )]
    pub load: Option<Factor>,

    /// Let the pods that ask for one GPU model ask for another: l4=a10g
    ///
    /// They ask by the label poolwright.dev/gpu-model. Pods that run are made anew.
    #[arg(long, value_name = "MODEL=MODEL", value_parser = replaced, help_heading = "Changes of the work")]
    pub gpu: Vec<Replaced>,

    /// Add NodePools and node classes, or replace those of the same name
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Changes of what may be bought")]
    pub pool: Vec<PathBuf>,

    /// Allow spot nodes in every pool
    #[arg(long, conflicts_with = "no_spot", help_heading = "Changes of what may be bought")]
    pub spot: bool,

    /// Buy no spot nodes
    ///
    /// Spot nodes that run stay.
    #[arg(long, help_heading = "Changes of what may be bought")]
    pub no_spot: bool,

    /// Leave out these instance types: p4d.24xlarge, or 'p4d.*'
    ///
    /// Nodes of these types that run stay.
    #[arg(long, value_name = "TYPE", help_heading = "Changes of what may be bought")]
    pub without: Vec<String>,

    /// Change prices: 'g5.*=+20%', or the on-demand price in US dollars per hour: g5.xlarge=1.10
    ///
    /// A percentage changes on-demand and spot prices, also of nodes that run. Later flags change what earlier ones made.
    #[arg(long, value_name = "TYPE=PRICE", value_parser = price, help_heading = "Changes of what may be bought")]
    pub price: Vec<PriceChange>,

    /// Take away a zone with its nodes: zone=us-east-1a
    ///
    /// Pods on these nodes wait for a place elsewhere. Those without a controller are lost.
    #[arg(long, value_name = "zone=ZONE", value_parser = zone, help_heading = "Changes of what may be bought")]
    pub outage: Vec<String>,

    /// Multiply the interruption rates of spot offerings: x2
    #[arg(long, value_name = "FACTOR", value_parser = factor, help_heading = "Changes of what may be bought")]
    pub interruptions: Option<Factor>,

    /// Pay with these reservations, savings plans and commitments first (YAML or JSON)
    ///
    /// The format is in docs/cli/plan.md.
    #[arg(long, value_name = "FILE", help_heading = "Changes of what may be bought")]
    pub commitments: Option<PathBuf>,

    /// Let pods share the GPUs of new nodes in this way, instead of none
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Changes of what may be bought")]
    pub sharing: Option<SharingMode>,

    /// What nodes cost in both plans.
    #[command(flatten)]
    pub prices: PriceFlags,

    /// Buy from this provider [default: the provider of the node class, else the first cloud in the catalogue]
    #[arg(long, value_name = "NAME", help_heading = "What may be bought")]
    pub provider: Option<String>,

    /// What holds for every pool.
    #[command(flatten)]
    pub pool_rules: PoolRules,

    /// How far to search.
    #[command(flatten)]
    pub search: SearchFlags,

    /// Exit with code 6 if the cost rises by more than this: usd=500 a month, or percent=10
    ///
    /// Repeat the flag for more limits. Without a cost before, every rise is more than any percentage. If the change adds
    /// nodes of unknown price, no limit can be judged, and the code is 6, too.
    #[arg(long, value_name = "LIMIT", value_parser = threshold)]
    pub fail_above: Vec<Threshold>,

    /// How to print the answer
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = WhatIfFormat::Table)]
    pub output: WhatIfFormat,
}

impl WhatIfFlags {
    /// Returns the flags of a plan for the base.
    pub fn input(&self) -> InputFlags {
        // A snapshot is read with the base.
        let cluster = ClusterFlags { snapshot: None, ..self.cluster.clone() };
        let provider = self.provider.clone();
        InputFlags { provider, ..InputFlags::of(cluster, self.prices.clone(), self.pool_rules.clone()) }
    }

    /// Returns the flags of both replays. Their pools are read by the caller.
    pub fn replay(&self, trace: PathBuf) -> ReplayFlags {
        const WEEK: Span = Span(Duration::from_hours(7 * 24));
        ReplayFlags {
            gpu_map: self.gpu_map.clone(),
            from: self.from.unwrap_or_default(),
            length: self.length.unwrap_or(WEEK),
            prices: self.prices.catalogue.clone(),
            ..ReplayFlags::of_trace(trace, self.pool_rules.clone())
        }
    }

    /// Returns whether a flag changes objects before they are read.
    pub fn changes_objects(&self) -> bool {
        !self.filename.is_empty()
            || !self.remove.is_empty()
            || !self.replicas.is_empty()
            || !self.pool.is_empty()
    }

    /// Returns whether a flag changes something.
    pub fn has_change(&self) -> bool {
        self.changes_objects()
            || self.spot
            || self.no_spot
            || !self.without.is_empty()
            || !self.price.is_empty()
            || !self.outage.is_empty()
            || self.load.is_some()
            || !self.gpu.is_empty()
            || self.interruptions.is_some()
            || self.commitments.is_some()
            || self.sharing.is_some()
    }
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WhatIfFormat {
    /// Tables as wide as the terminal, or 80 columns in a pipe or file
    Table,
    /// One document
    Json,
    /// The same document as YAML
    Yaml,
    /// One line for each kind of node
    Csv,
    /// A comment for a pull request, with a mark in its first line by which a later one replaces it
    Markdown,
    /// A page in one file, for a browser or for paper; it loads nothing
    Html,
}

impl fmt::Display for WhatIfFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Csv => "csv",
            Self::Markdown => "markdown",
            Self::Html => "html",
        })
    }
}
