//! One entry of AWS's price list: a JSON text, as GetProducts gives a hundred of on a page.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use poolwright_catalog::sanity::{self, Claim};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, UnknownPrice, UsdPerHour};
use poolwright_terms::labels;
use serde::Deserialize;

use super::request::{COMMON, FAMILIES};
use crate::id::shown;

/// Longer than any entry AWS was seen to give by a factor of ten.
const MOST_BYTES: usize = 256 << 10;
/// More than any instance costs by a factor of a hundred: the dearest list price is some 400 $/h.
const MOST: UsdPerHour = UsdPerHour::from_micros(50_000 * UsdPerHour::MICROS_PER_USD);

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Of which type.
    pub instance_type: InstanceTypeName,
    /// Its price on demand; unknown where it is in quarantine (zero, not dollars, two prices at once).
    pub price: Price,
}

/// Why an entry says nothing usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too long to be looked at.
    #[error("an entry of {bytes} bytes, more than the {MOST_BYTES} that are read")]
    TooLong {
        /// How long.
        bytes: usize,
    },
    /// Not JSON, or not of this form.
    #[error("an entry that cannot be read: {0}")]
    NotAnEntry(String),
    /// Its type has a name that no type has.
    #[error("an entry for `{0}`, which cannot be the name of an instance type")]
    NotAType(String),
    /// Something else that is sold.
    #[error("an entry for {instance_type} whose {attribute} is `{value}`, not `{wanted}`")]
    OtherProduct {
        /// Type.
        instance_type: String,
        /// Attribute.
        attribute: &'static str,
        /// What it is.
        value: String,
        /// What was asked for.
        wanted: String,
    },
    /// No price on demand.
    #[error("an entry for {instance_type} without a price on demand")]
    NoPrice {
        /// Type.
        instance_type: String,
    },
    /// Not by the hour.
    #[error("an entry for {instance_type} that is priced by `{unit}`, not by the hour (Hrs)")]
    OtherUnit {
        /// Type.
        instance_type: String,
        /// The unit.
        unit: String,
    },
    /// No amount of money, or less than none.
    #[error("an entry for {instance_type} whose price is `{text}`, which is no amount of dollars")]
    NotAnAmount {
        /// Type.
        instance_type: String,
        /// What it says.
        text: String,
    },
    /// More than an instance can cost.
    #[error("an entry for {instance_type} whose price is `{text}`, more than {MOST} $/h")]
    TooLarge {
        /// Type.
        instance_type: String,
        /// What it says.
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

/// Reads one entry of the price list of `region`. Money is rounded to the micro-dollar (the list has ten decimals).
///
/// # Errors
///
/// What is no entry, or one of something else than was asked for; see [`Refusal`]. A price that is there and cannot be
/// right is no error but an unknown price with its reason.
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

/// What an entry is that was not asked for: filters are AWS's to apply, and a price of Windows is no price of Linux.
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

/// The one price that several say; `None` of none. Those that are known win over those that are not, and two that differ
/// contradict each other.
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
