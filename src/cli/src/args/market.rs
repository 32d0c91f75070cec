//! Flags of `poolwright gpus` and `poolwright prices`.

use clap::ValueEnum;

use super::CapacityChoice;
use super::clouds::{CloudFlags, Market, examples, sellers};
use super::number::whole;

/// Where types and prices are read.
#[derive(Debug, clap::Args)]
pub struct MarketFlags {
    /// Instance types and prices: a CSV file, or `builtin` [default: builtin]
    ///
    /// Repeat the flag to combine catalogues; later ones override earlier ones, type by type.
    #[arg(long, value_name = "FILE|builtin")]
    pub catalogue: Vec<String>,

    /// Only this provider; without --catalogue, a cloud that can be asked is asked
    ///
    /// A cloud is asked for its types and prices with the credentials of this environment, if Poolwright can ask it. With --catalogue, and
    /// for other providers, the list is that of the catalogue.
    #[arg(long, value_name = "NAME", value_parser = sellers())]
    pub provider: Option<String>,

    /// Flags of the clouds.
    #[command(flatten)]
    pub clouds: CloudFlags<Market>,
}

/// How to print a list of offerings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MarketFormat {
    /// A table, one line for each row in a pipe or file
    Table,
    /// A table with more columns, as wide as it needs
    Wide,
    /// One JSON document
    Json,
}

impl std::fmt::Display for MarketFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
        })
    }
}

/// Flags of `gpus`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 listed, 1 failed, 2 bad usage or input.",
    after_long_help = format!(
        "{}Exit codes: 0 listed, 1 failed, 2 bad usage or input.",
        examples("gpus", &[("What does the catalogue in the binary list?", "")])
    )
)]
pub struct GpusFlags {
    /// Where types are read.
    #[command(flatten)]
    pub market: MarketFlags,

    /// Only types with these GPU models: h100,l4
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub gpu: Vec<String>,

    /// How to print the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = MarketFormat::Table)]
    pub output: MarketFormat,
}

/// Flags of `prices`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 listed, 1 failed, 2 bad usage or input.",
    after_long_help = format!(
        "{}Exit codes: 0 listed, 1 failed, 2 bad usage or input.",
        examples(
            "prices",
            &[
                ("Which GPUs are cheapest?", "--gpu any"),
                ("Which prices are in quarantine?", "-o json | jq '.offerings[] | select(.suspicious)'"),
            ]
        )
    )
)]
pub struct PricesFlags {
    /// Where prices are read.
    #[command(flatten)]
    pub market: MarketFlags,

    /// Only these types or families: g5.xlarge,g5
    #[arg(long = "type", value_name = "TYPE", value_delimiter = ',')]
    pub kind: Vec<String>,

    /// Only types with these GPU models, or `any` for all types with a GPU
    #[arg(long, value_name = "MODEL", value_delimiter = ',')]
    pub gpu: Vec<String>,

    /// Only these zones
    #[arg(long, value_name = "ZONE", value_delimiter = ',')]
    pub zone: Vec<String>,

    /// Only these capacity types
    #[arg(long, value_name = "TYPE", value_enum, value_delimiter = ',')]
    pub capacity_type: Vec<CapacityChoice>,

    /// Print at most this many offerings; 0 for all [default: 30 in a table, all in JSON]
    #[arg(long, value_name = "NUMBER", value_parser = whole(0..=u32::MAX, 30), allow_negative_numbers = true)]
    pub first: Option<u32>,

    /// How to print the list
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = MarketFormat::Table)]
    pub output: MarketFormat,
}
