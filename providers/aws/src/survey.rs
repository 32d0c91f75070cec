//! What a region sells now, asked once: for people who want to see it. Nothing is launched with it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::{InstanceTypeName, Zone};
use poolwright_provider_aws_model::instance::{Selection, Settings, TypeFacts};
use poolwright_provider_aws_model::prices::{self, InterruptionRates, Sold};
use poolwright_provider_contract::ProviderError;

use crate::clients::{Access, Clients};
use crate::market::Market;

/// What a region sells.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The region.
    pub region: String,
    /// Every type that it has, whether Poolwright buys it or not.
    pub types: Vec<TypeFacts>,
    /// Where each type is.
    pub zones: BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
    /// What Poolwright would buy, as nodes of a class that decides nothing else.
    pub sold: Sold,
}

/// Asks for types, zones and prices of the region.
///
/// # Errors
///
/// There is no region or there are no credentials, or a call is not allowed; each says what to do. On-demand prices alone may be
/// missing: what stands in for them is said in the notes of [`Sold`].
pub async fn survey(access: &Access, now: Timestamp) -> Result<Survey, ProviderError> {
    let clients = Clients::connect(access).await?;
    let region = clients.region.clone();
    let asked = Market::new(clients);
    let (types, on_demand, spot) =
        futures::try_join!(asked.types(now), asked.on_demand(now), asked.spot(now))?;
    let market = prices::Market {
        region: &region,
        zones: &types.zones,
        on_demand: &on_demand,
        spot: &spot,
        interruptions: &InterruptionRates::builtin(&region),
        reservations: &[],
        now,
    };
    let sold = prices::catalogue(&types.facts, &Selection::default(), &Settings::default(), market);
    Ok(Survey { types: types.facts.clone(), zones: types.zones.clone(), sold, region })
}
