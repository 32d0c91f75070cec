//! On-demand prices of a region: AWS's list, or the one built in.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, Quote, UnknownPrice};

use super::entry::{Refusal, one, read_entry};

/// The region of the list that is built in.
pub const BUILTIN_REGION: &str = "us-east-1";
/// The day of the list that is built in.
pub const BUILTIN_AS_OF: Date = date(2026, 7, 20);

const BUILTIN: &str = include_str!("../../../../fixtures/aws/on-demand-us-east-1.csv");
const BUILTIN_SOURCE: &str = "list built in: karpenter-provider-aws@1d92708";

/// On-demand prices by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDemandPrices {
    prices: BTreeMap<InstanceTypeName, Price>,
    source: String,
    refused: Vec<Refusal>,
    note: Option<String>,
}

impl OnDemandPrices {
    /// From the entries of AWS's price list of `region`, in any order, read on the day `as_of`. What cannot be read is told
    /// by [`Self::refused`]; a type that no entry prices has no known price.
    pub fn of_entries<'t>(region: &str, as_of: Date, entries: impl IntoIterator<Item = &'t str>) -> Self {
        let source = format!("AWS price list of {region}");
        let quoted_by = PriceSource::from(source.as_str());
        let mut listed: BTreeMap<InstanceTypeName, Vec<Price>> = BTreeMap::new();
        let mut refused = Vec::new();
        for text in entries {
            match read_entry(text, region, &quoted_by, Some(as_of)) {
                Ok(entry) => listed.entry(entry.instance_type).or_default().push(entry.price),
                Err(refusal) => refused.push(refusal),
            }
        }
        let prices = listed.into_iter().filter_map(|(name, prices)| Some((name, one(prices)?))).collect();
        Self { prices, source, refused, note: None }
    }

    /// From the list built in, for where AWS's own cannot be asked. It is of [`BUILTIN_REGION`]: elsewhere everything costs
    /// up to twice as much, so there no price is known, and [`Self::note`] says what to do.
    pub fn builtin(region: &str) -> Self {
        if region != BUILTIN_REGION {
            let note = format!(
                "no on-demand price of {region} is known: the list built in is of {BUILTIN_REGION}; allow the action pricing:GetProducts, or lay a catalogue file with prices over it (docs/catalogue.md)"
            );
            return Self { source: "no list".to_owned(), note: Some(note), ..Self::default() };
        }
        let quote = |line: &str| {
            let (name, price) = line.split_once(',')?;
            let quote = Quote {
                usd_per_hour: price.parse().ok()?,
                source: PriceSource::from(BUILTIN_SOURCE),
                as_of: Some(BUILTIN_AS_OF),
            };
            Some((InstanceTypeName::from(name), Price::Known(quote)))
        };
        let prices = BUILTIN.lines().skip(1).filter_map(quote).collect();
        let note = format!(
            "on-demand prices are those of the list built in, of {BUILTIN_AS_OF}; allow the action pricing:GetProducts to have today's"
        );
        Self { prices, source: BUILTIN_SOURCE.to_owned(), refused: Vec::new(), note: Some(note) }
    }

    /// The price of a type; unknown where no source has one.
    pub fn price(&self, name: &InstanceTypeName) -> Price {
        self.prices.get(name).cloned().unwrap_or(Price::Unknown(UnknownPrice::Missing))
    }

    /// How many types are listed, with a known price or in quarantine.
    pub fn len(&self) -> usize {
        self.prices.len()
    }

    /// Whether no type is listed: a list that came empty is no answer.
    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// Where the prices are from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Entries that could not be used.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// What a person should know of the list.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}
