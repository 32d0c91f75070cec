//! Reads types and prices from a catalogue, or from the account at a cloud.

use anyhow::{Context, anyhow};
use jiff::civil::Date;
use poolwright_catalog::Catalogue;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_contract::ProviderError;
use poolwright_provider_contract::market::{Market, TypeFacts};

use crate::args::MarketFlags;
use crate::catalogue::{BUILTIN, Selection};
use crate::exit::Failure;
use crate::{catalogue, clouds, price_age};

/// A catalogue or a market, with the date on which it was read.
pub struct Believed {
    /// Types and offerings.
    pub catalogue: Catalogue,
    /// The current date, from which ages are counted.
    pub today: Date,
    /// What a cloud says about its types and a catalogue does not have; `None` without a cloud.
    pub cloud: Option<FromCloud>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// What a cloud says beyond the offerings that Poolwright buys.
pub struct FromCloud {
    /// Its name.
    pub provider: &'static str,
    /// Every type that the cloud sells.
    pub types: Vec<TypeFacts>,
}

/// Reads the source that the flags name.
pub fn read(flags: &MarketFlags) -> Result<Believed, Failure> {
    let now = SystemClock::new().now();
    let today = price_age::today();
    let is_usual = flags.catalogue.is_empty();
    let cloud = flags.provider.as_deref().filter(|_| is_usual).and_then(clouds::find);
    let Some((cloud, market)) = cloud.and_then(|cloud| Some((cloud, cloud.market?))) else {
        let names = if is_usual { vec![BUILTIN.to_owned()] } else { flags.catalogue.clone() };
        let mut catalogue = catalogue::load(&names)?;
        let mut notes = Vec::new();
        if let Some(provider) = &flags.provider {
            let wanted = Selection { provider: Some(provider.clone()), ..Selection::default() };
            catalogue = wanted.of(&catalogue)?;
            if is_usual {
                notes.push(format!(
                    "Poolwright cannot ask {provider} for its prices, so these are of the catalogue"
                ));
            }
        }
        return Ok(Believed { catalogue, today, cloud: None, notes });
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
