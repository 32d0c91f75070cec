//! Parses one entry of AWS's price list: one JSON text in a response of GetProducts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use poolwright_catalog::sanity::{self, Claim};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, UnknownPrice, UsdPerHour};
use poolwright_terms::labels;
use serde::Deserialize;

use super::request::{COMMON, FAMILIES};
use crate::id::shown;

/// The maximum size of an entry. It is ten times the largest observed size.
const MOST_BYTES: usize = 256 << 10;
/// The maximum price. It is a hundred times the highest list price, about $400/h.
const MOST: UsdPerHour = UsdPerHour::from_micros(50_000 * UsdPerHour::MICROS_PER_USD);

/// A parsed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The instance type.
    pub instance_type: InstanceTypeName,
    /// The on-demand price; unknown if it is in quarantine: zero, another currency, or two contradicting prices.
    pub price: Price,
}

/// The reason why an entry is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The entry is too long.
    #[error("an entry has {bytes} bytes, more than the limit of {MOST_BYTES}")]
    TooLong {
        /// The size in bytes.
        bytes: usize,
    },
    /// The entry is not JSON, or has another structure.
    #[error("an entry cannot be parsed: {0}")]
    NotAnEntry(String),
    /// The name of the type is invalid.
    #[error("an entry for `{0}`, which is not a valid name of an instance type")]
    NotAType(String),
    /// The entry is for another product.
    #[error("an entry for {instance_type} whose {attribute} is `{value}`, not `{wanted}`")]
    OtherProduct {
        /// The instance type.
        instance_type: String,
        /// The attribute.
        attribute: &'static str,
        /// The value of the attribute.
        value: String,
        /// The expected value.
        wanted: String,
    },
    /// The entry has no on-demand price.
    #[error("an entry for {instance_type} without an on-demand price")]
    NoPrice {
        /// The instance type.
        instance_type: String,
    },
    /// The price is not per hour.
    #[error("an entry for {instance_type} with the unit `{unit}`, not Hrs")]
    OtherUnit {
        /// The instance type.
        instance_type: String,
        /// The unit.
        unit: String,
    },
    /// The price is not a number, or is negative.
    #[error("an entry for {instance_type} whose price is `{text}`, which is not a valid amount")]
    NotAnAmount {
        /// The instance type.
        instance_type: String,
        /// The price in the entry.
        text: String,
    },
    /// The price is implausibly high.
    #[error("an entry for {instance_type} whose price is `{text}`, more than ${MOST}/h")]
    TooLarge {
        /// The instance type.
        instance_type: String,
        /// The price in the entry.
        text: String,
    },
}

#[derive(Deserialize)]
struct Entry {
    product: Product,
    #[serde(default)]
    terms: Terms,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Product {
    #[serde(default)]
    product_family: String,
    attributes: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
struct Terms {
    #[serde(default, rename = "OnDemand")]
    on_demand: BTreeMap<String, Term>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    price_dimensions: BTreeMap<String, Dimension>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dimension {
    unit: String,
    price_per_unit: BTreeMap<String, String>,
}

/// Parses one entry of the price list of `region`. It rounds the price to micro-dollars (the list has ten decimals).
///
/// # Errors
///
/// The text is not an entry, or is for another product; see [`Refusal`]. An implausible price is not an error: the price is then
/// unknown, with the reason.
pub fn read_entry(
    text: &str,
    region: &str,
    source: &PriceSource,
    as_of: Option<Date>,
) -> Result<Listed, Refusal> {
    if text.len() > MOST_BYTES {
        return Err(Refusal::TooLong { bytes: text.len() });
    }
    let entry: Entry =
        serde_json::from_str(text).map_err(|error| Refusal::NotAnEntry(shown(&error.to_string())))?;
    let attribute = |name: &str| entry.product.attributes.get(name).map(String::as_str);
    let name = attribute("instanceType")
        .filter(|name| !name.is_empty() && labels::is_value(name))
        .ok_or_else(|| Refusal::NotAType(shown(attribute("instanceType").unwrap_or_default())))?;
    if let Some(other) = other_product(&entry.product, region, name) {
        return Err(other);
    }
    let dimensions: Vec<_> =
        entry.terms.on_demand.values().flat_map(|term| term.price_dimensions.values()).collect();
    let prices = dimensions
        .iter()
        .map(|dimension| price(dimension, name, source, as_of))
        .collect::<Result<Vec<_>, _>>()?;
    let price = one(prices).ok_or_else(|| Refusal::NoPrice { instance_type: name.to_owned() })?;
    Ok(Listed { instance_type: InstanceTypeName::from(name), price })
}

/// Checks that an entry is for the requested product. AWS applies the filters, but a price of Windows must never count as one of
/// Linux.
fn other_product(product: &Product, region: &str, name: &str) -> Option<Refusal> {
    let family = FAMILIES.iter().find(|(family, _)| *family == product.product_family);
    let tenancy = family.map(|(_, tenancy)| ("tenancy", *tenancy));
    let differs = |(attribute, wanted): (&'static str, &str)| {
        let value = product.attributes.get(attribute)?;
        (value != wanted).then(|| (attribute, value.clone(), wanted.to_owned()))
    };
    let not_of_a_family =
        || Some(("productFamily", product.product_family.clone(), FAMILIES[0].0.to_owned()));
    let (attribute, value, wanted) = COMMON
        .into_iter()
        .chain([("regionCode", region)])
        .chain(tenancy)
        .find_map(differs)
        .or_else(|| if family.is_none() { not_of_a_family() } else { None })?;
    Some(Refusal::OtherProduct { instance_type: name.to_owned(), attribute, value: shown(&value), wanted })
}

fn price(
    dimension: &Dimension,
    name: &str,
    source: &PriceSource,
    as_of: Option<Date>,
) -> Result<Price, Refusal> {
    let instance_type = name.to_owned();
    if dimension.unit != "Hrs" {
        return Err(Refusal::OtherUnit { instance_type, unit: shown(&dimension.unit) });
    }
    let quoted = |currency: &str| dimension.price_per_unit.get_key_value(currency);
    let Some((currency, text)) = quoted("USD").or_else(|| dimension.price_per_unit.iter().next()) else {
        return Err(Refusal::NoPrice { instance_type });
    };
    let amount: UsdPerHour = match text.parse() {
        Ok(amount) if amount <= MOST => amount,
        Ok(_) | Err(poolwright_catalog::money::MoneyError::TooLarge(_)) => {
            return Err(Refusal::TooLarge { instance_type, text: shown(text) });
        }
        Err(_) => return Err(Refusal::NotAnAmount { instance_type, text: shown(text) }),
    };
    let (text, currency) = (shown(text), shown(currency));
    Ok(sanity::admit(Claim { text: &text, amount, currency: &currency }, source.clone(), as_of))
}

/// Combines several prices of one type; `None` if the list is empty. Known prices take precedence over unknown ones. Two
/// different known prices contradict each other and give an unknown price.
pub(super) fn one(prices: Vec<Price>) -> Option<Price> {
    let mut known = BTreeSet::new();
    for price in &prices {
        match price {
            Price::Known(quote) => {
                known.insert(quote.usd_per_hour);
            }
            Price::Unknown(UnknownPrice::Contradictory { lower, higher }) => {
                known.extend([*lower, *higher]);
            }
            Price::Unknown(_) => {}
        }
    }
    match (known.first(), known.last()) {
        (Some(lower), Some(higher)) if lower != higher => {
            Some(Price::Unknown(UnknownPrice::Contradictory { lower: *lower, higher: *higher }))
        }
        _ => {
            let is_known = |price: &Price| price.known().is_some();
            let at = prices.iter().position(is_known).unwrap_or(0);
            prices.into_iter().nth(at)
        }
    }
}
