//! Where types and prices come from: a catalogue, or the account at a cloud.

use anyhow::{Context, anyhow};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use poolwright_catalog::Catalogue;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_contract::ProviderError;
use poolwright_provider_contract::market::{Market, TypeFacts};

use crate::args::MarketFlags;
use crate::exit::Failure;
use crate::{catalogue, clouds};

/// What is believed, and when.
pub struct Believed {
    /// Types and offerings.
    pub catalogue: Catalogue,
    /// The day by which ages are counted.
    pub today: Date,
    /// What a cloud says of its types, which a catalogue does not have.
    pub cloud: Option<FromCloud>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// What a cloud says beside what is bought there.
pub struct FromCloud {
    /// Its name.
    pub provider: &'static str,
    /// Every type that it sells.
    pub types: Vec<TypeFacts>,
}

/// Reads what the flags name.
pub fn read(flags: &MarketFlags) -> Result<Believed, Failure> {
    let now = SystemClock::new().now();
    let today = now.to_zoned(TimeZone::UTC).date();
    let cloud = flags.provider.as_deref().and_then(clouds::find);
    let Some((cloud, market)) = cloud.and_then(|cloud| Some((cloud, cloud.market?))) else {
        let catalogue = catalogue::load(&flags.catalogue)?;
        return Ok(Believed { catalogue, today, cloud: None, notes: Vec::new() });
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let provider = cloud.name;
    let read =
        runtime.block_on(market.reader.read(&flags.clouds.values, now)).map_err(|error| match error {
            ProviderError::Invalid(why) => Failure::bad_input(format!("--provider {provider}: {why}")),
            other => Failure::Other(anyhow!("--provider {provider}: {other}; try again in a moment")),
        })?;
    let Market { types, catalogue, notes } = read;
    Ok(Believed { catalogue, today, cloud: Some(FromCloud { provider, types }), notes })
}
