//! Where types and prices come from: a catalogue, or the account at a cloud.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, anyhow};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use poolwright_catalog::{Catalogue, InstanceTypeName, Zone};
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_provider_aws::{Access, Survey, survey};
use poolwright_provider_aws_model::instance::TypeFacts;
use poolwright_provider_contract::ProviderError;

use crate::args::{Cloud, MarketFlags};
use crate::catalogue;
use crate::exit::Failure;

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
#[derive(Default)]
pub struct FromCloud {
    /// Every type by its name.
    pub facts: BTreeMap<InstanceTypeName, TypeFacts>,
    /// Where each is.
    pub zones: BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
    /// Types that are not bought, and why.
    pub left_out: BTreeMap<InstanceTypeName, String>,
}

impl From<Survey> for FromCloud {
    fn from(survey: Survey) -> Self {
        Self {
            facts: survey.types.into_iter().map(|facts| (facts.name.clone(), facts)).collect(),
            zones: survey.zones,
            left_out: survey.sold.left_out.into_iter().map(|one| (one.instance_type, one.reason)).collect(),
        }
    }
}

/// Reads what the flags name.
pub fn read(flags: &MarketFlags) -> Result<Believed, Failure> {
    let now = SystemClock::new().now();
    let today = now.to_zoned(TimeZone::UTC).date();
    let Some(Cloud::Aws) = flags.provider else {
        let catalogue = catalogue::load(&flags.catalogue)?;
        return Ok(Believed { catalogue, today, cloud: None, notes: Vec::new() });
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime for network calls")?;
    let access = Access { region: flags.region.clone(), ..Access::default() };
    let asked = runtime.block_on(survey(&access, now)).map_err(|error| match error {
        ProviderError::Invalid(why) => Failure::bad_input(format!("--provider aws: {why}")),
        other => Failure::Other(anyhow!("--provider aws: {other}; try again in a moment")),
    })?;
    let (catalogue, notes) = (asked.sold.catalogue.clone(), asked.sold.notes.clone());
    Ok(Believed { catalogue, today, cloud: Some(asked.into()), notes })
}
