//! On-demand prices of a region, from AWS's price list or the built-in list.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, Quote, UnknownPrice};

use super::entry::{Refusal, one, read_entry};

/// The region of the built-in list.
pub const BUILTIN_REGION: &str = "us-east-1";
/// The date of the built-in list.
pub const BUILTIN_AS_OF: Date = date(2026, 7, 20);

const BUILTIN: &str = include_str!("../../../../fixtures/aws/on-demand-us-east-1.csv");
const BUILTIN_SOURCE: &str = "built-in list: karpenter-provider-aws@1d92708";

/// On-demand prices by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDemandPrices {
    prices: BTreeMap<InstanceTypeName, Price>,
    source: String,
    refused: Vec<Refusal>,
    note: Option<String>,
}

impl OnDemandPrices {
    /// Reads the entries of AWS's price list of `region` from the day `as_of`, in any order. [`Self::refused`] returns the
    /// entries that cannot be used. A type without an entry has no known price.
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

    /// Returns the built-in list, for use when AWS's list cannot be read. It applies only to [`BUILTIN_REGION`], because prices
    /// elsewhere are up to twice as high. In other regions no price is known, and [`Self::note`] says what to do.
    pub fn builtin(region: &str) -> Self {
        if region != BUILTIN_REGION {
            let note = format!(
                "no on-demand prices are known for {region}, because the built-in list is for {BUILTIN_REGION}; allow the action pricing:GetProducts, or list instance types in allowUnknownPrices of the NodePool"
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
            "the on-demand prices are from the built-in list of {BUILTIN_AS_OF}; allow the action pricing:GetProducts to get current ones"
        );
        Self { prices, source: BUILTIN_SOURCE.to_owned(), refused: Vec::new(), note: Some(note) }
    }

    /// Returns the price of a type; unknown if no source has one.
    pub fn price(&self, name: &InstanceTypeName) -> Price {
        self.prices.get(name).cloned().unwrap_or(Price::Unknown(UnknownPrice::Missing))
    }

    /// Returns the number of listed types, including those with a price in quarantine.
    pub fn len(&self) -> usize {
        self.prices.len()
    }

    /// Returns whether no type is listed. An empty list of AWS does not count as an answer.
    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// Returns the source of the prices.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the entries that could not be used.
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// Returns a remark about the list for the reader.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}
