//! The list of offerings and their prices, the cheapest per GPU first.

use std::cmp::Ordering;

use poolwright_catalog::{
    InstanceType, Interruptions, Offering, OfferingId, Price, UnknownPrice, UsdPerHour,
};
use poolwright_terms::CapacityType;
use serde::Serialize;

use super::only::Only;
use super::read::Believed;
use crate::price_age;

/// The reason for an unknown spot price that the price history lacks.
const NO_SPOT: &str = "the spot price history has none for this type in this zone";

/// The offerings with their prices.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prices {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Prices`.
    pub kind: &'static str,
    /// The source of the prices.
    pub source: String,
    /// The oldest date of a price of these offerings; null if none has a date.
    pub as_of: Option<String>,
    /// The number of offerings that match, printed or not.
    pub total: usize,
    /// The number of these offerings without a known price.
    pub unknown: usize,
    /// The offerings: the cheapest per GPU first, then those without GPUs, then those without a known price.
    pub offerings: Vec<Row>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// An offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The instance type.
    pub instance_type: String,
    /// The provider that sells it.
    pub provider: String,
    /// The zone.
    pub zone: String,
    /// The capacity type.
    pub capacity_type: CapacityType,
    /// The model of its GPUs; null without GPUs.
    pub gpu_model: Option<String>,
    /// The number of whole GPUs.
    pub gpus: u32,
    /// The price in micro-dollars per hour; null if it is unknown.
    pub usd_micros_per_hour: Option<u64>,
    /// The price for each GPU, rounded half up; null without a known price or without GPUs.
    pub usd_micros_per_gpu_hour: Option<u64>,
    /// The source of the price; null if the price is unknown.
    pub source: Option<String>,
    /// The date of the price; null if the source does not say.
    pub as_of: Option<String>,
    /// The age of the price in days.
    pub age_days: Option<u32>,
    /// The reason why the price is unknown; null if it is known.
    pub unknown: Option<String>,
    /// Whether the source quotes a price that cannot be right. Such a price counts as unknown.
    pub suspicious: bool,
    /// The interruption rate of its nodes; null if no source has one, as for on-demand offerings.
    pub interruptions: Option<Rate>,
}

/// An interruption rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Interruptions in a million node-hours.
    pub per_million_hours: u32,
    /// The source of the rate.
    pub source: String,
    /// The date of the rate; null if the source does not say.
    pub as_of: Option<String>,
    /// The age of the rate in days.
    pub age_days: Option<u32>,
}

/// Lists the offerings that match the filter.
///
/// # Errors
///
/// The catalogue does not know a name of the filter.
pub fn list(believed: &Believed, only: &Only) -> Result<Prices, String> {
    let catalogue = &believed.catalogue;
    if let Some(unknown) = only.unknown(catalogue) {
        return Err(unknown);
    }
    let mut rows: Vec<Row> = Vec::new();
    for offering in matching(believed, only) {
        let kind = &catalogue.types()[&offering.id.instance_type];
        let mut row = row(believed, kind, &offering.id, &offering.price);
        row.interruptions = offering.interruptions.as_ref().map(|said| rate(said, believed));
        rows.push(row);
    }
    for (kind, id) in unpriced_spot(believed) {
        if only.takes(kind, &id) {
            let mut row = row(believed, kind, &id, &Price::Unknown(UnknownPrice::Missing));
            row.unknown = Some(NO_SPOT.to_owned());
            rows.push(row);
        }
    }
    rows.sort_by(cheapest);
    Ok(Prices {
        api_version: poolwright_terms::API_VERSION,
        kind: "Prices",
        source: catalogue.origin().source.clone(),
        as_of: price_age::oldest(matching(believed, only)).map(|day| day.to_string()),
        total: rows.len(),
        unknown: rows.iter().filter(|row| row.usd_micros_per_hour.is_none()).count(),
        offerings: rows,
        notes: believed.notes.clone(),
    })
}

/// Returns the offerings of the catalogue that match the filter.
pub fn matching<'b>(believed: &'b Believed, only: &'b Only) -> impl Iterator<Item = &'b Offering> {
    let catalogue = &believed.catalogue;
    let is_wanted = move |one: &&Offering| only.takes(&catalogue.types()[&one.id.instance_type], &one.id);
    catalogue.offerings().iter().filter(is_wanted)
}

/// Returns the types and zones that a cloud sells as spot without a price in its history. Poolwright buys nothing there, and the
/// list shows that the price is unknown.
fn unpriced_spot(believed: &Believed) -> impl Iterator<Item = (&InstanceType, OfferingId)> {
    let catalogue = &believed.catalogue;
    let sold_as_spot = believed.cloud.iter().flat_map(move |cloud| {
        cloud
            .types
            .iter()
            .filter(|facts| facts.is_spot)
            .filter_map(move |facts| Some((catalogue.instance_type(&facts.name)?, &facts.zones)))
    });
    sold_as_spot
        .flat_map(|(kind, zones)| {
            zones.iter().map(move |zone| {
                let id = OfferingId {
                    instance_type: kind.name.clone(),
                    zone: zone.clone(),
                    capacity_type: CapacityType::Spot,
                };
                (kind, id)
            })
        })
        .filter(move |(_, id)| catalogue.offering(id).is_none())
}

fn row(believed: &Believed, kind: &InstanceType, id: &OfferingId, price: &Price) -> Row {
    let gpus = kind.gpu.as_ref().map_or(0, |gpu| gpu.count);
    let (quote, unknown) = match price {
        Price::Known(quote) => (Some(quote), None),
        Price::Unknown(why) => (None, Some(why)),
    };
    Row {
        instance_type: kind.name.to_string(),
        provider: kind.provider.to_string(),
        zone: id.zone.to_string(),
        capacity_type: id.capacity_type,
        gpu_model: kind.gpu.as_ref().map(|gpu| gpu.model.to_string()),
        gpus,
        usd_micros_per_hour: quote.map(|quote| quote.usd_per_hour.micros()),
        usd_micros_per_gpu_hour: quote.and_then(|quote| each(quote.usd_per_hour, gpus)),
        source: quote.map(|quote| quote.source.to_string()),
        as_of: quote.and_then(|quote| Some(quote.as_of?.to_string())),
        age_days: quote.and_then(|quote| quote.age_in_days(believed.today)),
        unknown: unknown.map(ToString::to_string),
        suspicious: unknown.is_some_and(|why| *why != UnknownPrice::Missing),
        interruptions: None,
    }
}

fn rate(said: &Interruptions, believed: &Believed) -> Rate {
    Rate {
        per_million_hours: said.per_million_hours,
        source: said.source.to_string(),
        as_of: said.as_of.map(|day| day.to_string()),
        age_days: said.age_in_days(believed.today),
    }
}

/// Divides a price by the number of GPUs, rounded half up.
fn each(price: UsdPerHour, gpus: u32) -> Option<u64> {
    let gpus = u64::from(gpus);
    (gpus > 0).then(|| {
        let (whole, rest) = (price.micros() / gpus, price.micros() % gpus);
        whole + u64::from(rest * 2 >= gpus)
    })
}

/// Compares offerings by the exact price of one GPU. Offerings without GPUs come after those with GPUs, and those without a known
/// price come last.
fn cheapest(a: &Row, b: &Row) -> Ordering {
    let by_price = match (a.usd_micros_per_hour, b.usd_micros_per_hour) {
        (Some(of_a), Some(of_b)) => match (a.gpus, b.gpus) {
            (0, 0) => of_a.cmp(&of_b),
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            // Compares a / m with b / n as a * n with b * m, without rounding.
            (m, n) => (u128::from(of_a) * u128::from(n)).cmp(&(u128::from(of_b) * u128::from(m))),
        },
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => (a.gpus == 0).cmp(&(b.gpus == 0)),
    };
    let name = |row: &Row| (row.gpus, row.instance_type.clone(), row.zone.clone(), row.capacity_type);
    by_price.then_with(|| name(a).cmp(&name(b)))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use poolwright_catalog::{builtin, read_csv};

    use super::*;

    const HEADER: &str = "instance_type,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
                          gpu_memory_mib_each,on_demand_usd_per_hour,spot_usd_per_hour,price_source,price_as_of";

    fn believed(rows: &[&str]) -> Believed {
        let text = [&[HEADER], rows].concat().join("\n");
        let catalogue = read_csv(&[("prices.csv", &text)]).expect("a catalogue");
        Believed { catalogue, today: date(2026, 11, 23), cloud: None, notes: Vec::new() }
    }

    #[test]
    fn the_cheapest_per_gpu_comes_first_and_what_has_no_known_price_last() {
        let believed = believed(&[
            "a.small,amd64,3000,4000,10,l4,1,24576,3.00,,list,2026-11-20",
            "b.large,amd64,9000,9000,10,l4,4,24576,10.000001,,list,2026-11-20",
            "c.large,amd64,9000,9000,10,l4,4,24576,,,list,",
            "d.cpu,amd64,9000,9000,10,,0,,0.01,,list,2026-11-20",
        ]);
        let list = list(&believed, &Only::default()).expect("a list");
        let names: Vec<_> = list.offerings.iter().map(|row| row.instance_type.as_str()).collect();
        assert_eq!(names, ["b.large", "a.small", "d.cpu", "c.large"]);
        let first = &list.offerings[0];
        assert_eq!(
            (first.usd_micros_per_hour, first.usd_micros_per_gpu_hour),
            (Some(10_000_001), Some(2_500_000))
        );
        assert_eq!((first.age_days, first.source.as_deref()), (Some(3), Some("list")));
        let last = &list.offerings[3];
        assert_eq!((last.usd_micros_per_hour, last.suspicious), (None, false));
        assert!(last.unknown.is_some());
        assert_eq!((list.total, list.unknown), (4, 1));
    }

    #[test]
    fn a_price_that_cannot_be_right_is_unknown_and_said_to_be_suspicious() {
        let believed = believed(&["a.small,amd64,3000,4000,10,l4,1,24576,3.00,3.50,list,2026-11-20"]);
        let list = list(&believed, &Only::default()).expect("a list");
        let spot = list.offerings.iter().find(|row| row.capacity_type == CapacityType::Spot).expect("spot");
        assert!(spot.suspicious && spot.usd_micros_per_hour.is_none(), "{spot:?}");
        assert!(spot.unknown.as_deref().is_some_and(|why| why.contains("not below on-demand")), "{spot:?}");
    }

    #[test]
    fn how_often_spot_is_taken_back_has_its_own_source_and_age() {
        let text = format!(
            "{HEADER},spot_interruptions_per_hour,interruptions_source,interruptions_as_of\n\
             a.small,amd64,3000,4000,10,l4,1,24576,3.00,1.00,list,2026-11-20,0.003125,advisor,2026-11-13"
        );
        let catalogue = read_csv(&[("prices.csv", &text)]).expect("a catalogue");
        let believed = Believed { catalogue, today: date(2026, 11, 23), cloud: None, notes: Vec::new() };
        let list = list(&believed, &Only::default()).expect("a list");
        let said: Vec<_> =
            list.offerings.iter().map(|row| (row.capacity_type, row.interruptions.clone())).collect();
        let rate = Rate {
            per_million_hours: 3_125,
            source: "advisor".to_owned(),
            as_of: Some("2026-11-13".to_owned()),
            age_days: Some(10),
        };
        assert_eq!(said, [(CapacityType::Spot, Some(rate)), (CapacityType::OnDemand, None)]);
    }

    #[test]
    fn a_share_of_a_price_is_rounded_half_up_and_nothing_is_divided_by_no_gpu() {
        let each = |micros, gpus| each(UsdPerHour::from_micros(micros), gpus);
        assert_eq!([each(10, 4), each(9, 4), each(11, 4), each(10, 0)], [Some(3), Some(2), Some(3), None]);
    }

    #[test]
    fn every_offering_of_the_catalogue_in_the_binary_is_listed_once_in_one_order() {
        let believed =
            Believed { catalogue: builtin(), today: date(2026, 11, 23), cloud: None, notes: Vec::new() };
        let list = list(&believed, &Only::default()).expect("a list");
        assert_eq!(list.total, believed.catalogue.offerings().len());
        assert_eq!(list.unknown, believed.catalogue.unknown_prices());
        assert!(list.offerings.is_sorted_by(|a, b| cheapest(a, b) == Ordering::Less));
    }
}
