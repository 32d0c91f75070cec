//! Flags about all pools that `plan`, `explain`, `simulate` and `controller` share, and one of them that `check` has too.

use clap::Arg;
use poolwright_catalog::UsdPerHour;

use super::MinValuesMode;
use super::plan::usd;

/// The default of `--default-usd-per-hour`.
const DEFAULT_USD_PER_HOUR: &str = "500";

/// The most that `--default-usd-per-hour` takes.
const MOST: UsdPerHour = UsdPerHour::from_micros(1_000_000_000 * UsdPerHour::MICROS_PER_USD);

/// What holds for every pool. In `controller`, these flags have environment variables too.
#[derive(Clone, Debug, clap::Args)]
pub struct PoolRules {
    /// What to do if minValues of a NodePool cannot be met: buy nothing, or buy with as many values as there are
    #[arg(
        long,
        value_name = "POLICY",
        value_enum,
        ignore_case = true,
        default_value_t = MinValuesMode::Strict,
        help_heading = "What may be bought"
    )]
    pub min_values_policy: MinValuesMode,

    /// The money limit of pools that state none.
    #[command(flatten)]
    pub default_limit: DefaultLimit,
}

impl PoolRules {
    /// Returns rules that limit no pool.
    pub fn without_limit() -> Self {
        let default_limit = DefaultLimit { default_usd_per_hour: UsdPerHour::ZERO };
        Self { min_values_policy: MinValuesMode::BestEffort, default_limit }
    }
}

/// The money limit of pools that state none. All commands have the same, so that they agree about a cluster.
#[derive(Clone, Debug, clap::Args)]
pub struct DefaultLimit {
    /// Buy no more than this for a NodePool without limits.usdPerHour, in US dollars per hour; 0 for no limit
    ///
    /// A wrong number in one workload then cannot buy nodes without end. Set limits.usdPerHour of pools that need more.
    /// Without any NodePool, plan and explain apply no such limit.
    #[arg(
        long,
        value_name = "USD",
        default_value = DEFAULT_USD_PER_HOUR,
        value_parser = usd_per_hour,
        allow_negative_numbers = true,
        help_heading = "What may be bought"
    )]
    default_usd_per_hour: UsdPerHour,
}

impl DefaultLimit {
    /// Returns the limit; `None` if there is none.
    pub fn usd_per_hour(&self) -> Option<UsdPerHour> {
        Some(self.default_usd_per_hour).filter(|amount| *amount > UsdPerHour::ZERO)
    }
}

/// Gives a flag of [`PoolRules`] the environment variable that it has in `controller`, and lists it with the others there.
pub fn of_controller(flag: Arg, variable: &'static str) -> Arg {
    flag.env(variable).help_heading(None::<&'static str>)
}

/// Parses an amount of `--default-usd-per-hour`.
fn usd_per_hour(text: &str) -> Result<UsdPerHour, String> {
    usd(text, MOST, "write a plain decimal number, such as 500, or 0 for no limit")
}
