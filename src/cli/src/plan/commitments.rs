//! `--commitments`: what is paid for beforehand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use poolwright_catalog::{
    CapacityType, Catalogue, InstanceType, InstanceTypeName, Offering, OfferingId, Price, PriceSource, Quote,
    UsdPerHour, Zone,
};
use poolwright_core::plan::Commitment;
use serde::Deserialize;

use crate::exit::Failure;
use crate::problems::Problems;
use crate::source;

/// A hundred percent, in the millionths that amounts are read in.
const HUNDRED: u64 = 100_000_000;

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    commitments: Vec<Entry>,
    #[serde(default)]
    reservations: Vec<Reservation>,
}

/// Money per hour that pays for whatever is used of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    name: String,
    usd_per_hour: Amount,
    #[serde(default)]
    discount_percent: Option<Amount>,
    #[serde(default)]
    rates: BTreeMap<String, Amount>,
    #[serde(default)]
    covers: Covers,
}

/// What a commitment covers; what is not said is not asked.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Covers {
    #[serde(default)]
    instance_types: BTreeSet<String>,
    #[serde(default)]
    families: BTreeSet<String>,
    #[serde(default)]
    regions: BTreeSet<String>,
    #[serde(default)]
    providers: BTreeSet<String>,
}

/// Nodes that are paid for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reservation {
    #[serde(default)]
    name: Option<String>,
    instance_type: String,
    #[serde(default)]
    zone: Option<String>,
    count: u32,
}

/// A decimal, written as a number or as a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

impl Amount {
    /// In millionths.
    fn read(&self) -> Result<UsdPerHour, String> {
        let text = match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        };
        text.parse().map_err(|error| format!("{error}; write a plain decimal number, such as 12.5"))
    }
}

/// What is paid for beforehand, as far as it is understood without a catalogue.
#[derive(Debug, Default)]
pub struct Committed {
    name: String,
    file: File,
}

/// Reads the file.
pub fn read(path: &Path) -> Result<Committed, Failure> {
    let source = source::file(path).map_err(Failure::bad_input)?;
    let file: File = serde_saphyr::from_str(&source.text).map_err(|error| {
        Failure::bad_input(format!(
            "{}: cannot be read: {error}; write the lists `commitments` and `reservations` as in docs/cli.md",
            source.name
        ))
    })?;
    Ok(Committed { name: source.name, file })
}

impl Committed {
    /// The catalogue with what is reserved: at no price, since it is paid for, and only so often.
    pub fn with_reservations(&self, catalogue: Catalogue) -> Result<Catalogue, Failure> {
        let mut problems = Problems::new();
        let mut counts: BTreeMap<OfferingId, u32> = BTreeMap::new();
        for (at, reservation) in self.file.reservations.iter().enumerate() {
            match place(&catalogue, reservation) {
                Ok(id) => {
                    let count = counts.entry(id).or_default();
                    *count = count.saturating_add(reservation.count);
                }
                Err(problem) => {
                    let own = reservation.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
                    problems.push(format!("{}: reservations[{at}]{own}: {problem}", self.name));
                }
            }
        }
        let catalogue = or_unusable(problems, catalogue)?;
        if counts.is_empty() {
            return Ok(catalogue);
        }
        let price = || {
            Price::Known(Quote {
                usd_per_hour: UsdPerHour::ZERO,
                source: PriceSource::from(self.name.as_str()),
                as_of: None,
            })
        };
        let reserved = counts.into_iter().map(|(id, count)| Offering {
            region: region(&catalogue, &id),
            price: price(),
            id,
            available: Some(count),
            interruptions: None,
        });
        let reserved: Vec<Offering> = reserved.collect();
        let listed = catalogue
            .offerings()
            .iter()
            .filter(|offering| reserved.iter().all(|reserved| reserved.id != offering.id));
        let offerings = listed.cloned().chain(reserved.iter().cloned()).collect();
        let types = catalogue.types().values().cloned().collect();
        Ok(Catalogue::new(catalogue.origin().clone(), types, offerings))
    }

    /// What each commitment pays for.
    pub fn terms(&self, catalogue: &Catalogue) -> Result<Vec<Commitment>, Failure> {
        let mut problems = Problems::new();
        let mut taken: BTreeMap<OfferingId, &str> = BTreeMap::new();
        let mut all = Vec::new();
        for (at, entry) in self.file.commitments.iter().enumerate() {
            match entry.terms(catalogue) {
                Ok(terms) => {
                    let twice = terms.rates.keys().find_map(|id| Some((id, *taken.get(id)?)));
                    if let Some((id, other)) = twice {
                        problems.push(format!(
                            "{}: commitments[{at}] ({}): covers {id}, which `{other}` covers too; narrow `covers`, or make one entry of both",
                            self.name, entry.name
                        ));
                    }
                    taken.extend(terms.rates.keys().map(|id| (id.clone(), entry.name.as_str())));
                    all.push(terms);
                }
                Err(problem) => {
                    problems.push(format!("{}: commitments[{at}] ({}): {problem}", self.name, entry.name));
                }
            }
        }
        or_unusable(problems, all)
    }
}

impl Entry {
    fn terms(&self, catalogue: &Catalogue) -> Result<Commitment, String> {
        let left = self.usd_per_hour.read().map_err(|problem| format!("usdPerHour: {problem}"))?;
        let discount = match (&self.discount_percent, self.rates.is_empty()) {
            (Some(percent), true) => {
                let percent =
                    percent.read().map_err(|problem| format!("discountPercent: {problem}"))?.micros();
                if percent >= HUNDRED {
                    return Err("discountPercent: it must be below 100; what costs nothing is a reservation"
                        .to_owned());
                }
                Some(percent)
            }
            (None, false) => None,
            (Some(_), false) => {
                return Err("gives discountPercent and rates; keep one of them".to_owned());
            }
            (None, true) => {
                return Err(
                    "says not what a node uses of it; give discountPercent, or rates by instance type"
                        .to_owned(),
                );
            }
        };
        for name in self.rates.keys().chain(&self.covers.instance_types) {
            if catalogue.instance_type(&InstanceTypeName::from(name.as_str())).is_none() {
                return Err(format!("`{name}` is no instance type of the catalogue; correct the name"));
            }
        }
        let mut rates = BTreeMap::new();
        for offering in catalogue.offerings() {
            let kind = &catalogue.types()[&offering.id.instance_type];
            let Some(price) = offering.price.known() else { continue };
            if offering.id.capacity_type != CapacityType::OnDemand || !self.covers.has(kind, offering) {
                continue;
            }
            let rate = match (discount, self.rates.get(kind.name.as_str())) {
                (Some(percent), _) => {
                    let rest = u128::from(price.micros()) * u128::from(HUNDRED - percent);
                    let rate = rest.div_ceil(u128::from(HUNDRED));
                    UsdPerHour::from_micros(u64::try_from(rate).unwrap_or(u64::MAX))
                }
                (None, Some(rate)) => {
                    rate.read().map_err(|problem| format!("rates.{}: {problem}", kind.name))?
                }
                (None, None) => continue,
            };
            if rate.micros() == 0 {
                return Err(format!(
                    "rates.{}: it must be above zero; what costs nothing is a reservation",
                    kind.name
                ));
            }
            rates.insert(offering.id.clone(), rate);
        }
        if rates.is_empty() {
            return Err("covers no on-demand offering of the catalogue; widen `covers`".to_owned());
        }
        Ok(Commitment { name: self.name.clone(), left, rates })
    }
}

impl Covers {
    fn has(&self, kind: &InstanceType, offering: &Offering) -> bool {
        let meets = |wanted: &BTreeSet<String>, value: Option<&str>| {
            wanted.is_empty() || value.is_some_and(|value| wanted.contains(value))
        };
        meets(&self.instance_types, Some(kind.name.as_str()))
            && meets(&self.families, Some(kind.family()))
            && meets(&self.providers, Some(kind.provider.as_str()))
            && meets(&self.regions, offering.region.as_deref())
    }
}

fn or_unusable<T>(problems: Problems, value: T) -> Result<T, Failure> {
    let unusable = |problems| Failure::bad_input(format!("the commitments cannot be used: {problems}"));
    problems.or(value).map_err(unusable)
}

/// The offering that a reservation is of.
fn place(catalogue: &Catalogue, reservation: &Reservation) -> Result<OfferingId, String> {
    let name = InstanceTypeName::from(reservation.instance_type.as_str());
    let zones: BTreeSet<&Zone> = catalogue
        .offerings()
        .iter()
        .filter(|offering| offering.id.instance_type == name)
        .map(|offering| &offering.id.zone)
        .collect();
    let listed = || zones.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let zone = match &reservation.zone {
        _ if zones.is_empty() => {
            return Err(format!("`{name}` is no instance type of the catalogue; correct the name"));
        }
        Some(zone) if zones.iter().any(|known| known.as_str() == zone) => Zone::from(zone.as_str()),
        Some(zone) => {
            return Err(format!("`{zone}` is no zone of {name}; the catalogue has it in {}", listed()));
        }
        None => match zones.iter().next() {
            Some(only) if zones.len() == 1 => (*only).clone(),
            _ => return Err(format!("says not in which zone; {name} is sold in {}", listed())),
        },
    };
    Ok(OfferingId { instance_type: name, zone, capacity_type: CapacityType::Reserved })
}

fn region(catalogue: &Catalogue, id: &OfferingId) -> Option<String> {
    let same =
        |offering: &&Offering| offering.id.instance_type == id.instance_type && offering.id.zone == id.zone;
    catalogue.offerings().iter().find(same).and_then(|offering| offering.region.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(text: &str) -> Committed {
        Committed { name: "c.yaml".to_owned(), file: serde_saphyr::from_str(text).expect(text) }
    }

    fn message<T>(result: Result<T, Failure>) -> String {
        match result {
            Err(Failure::BadInput(message)) => message,
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it was accepted"),
        }
    }

    #[test]
    fn a_discount_or_rates_say_what_a_node_uses() {
        let catalogue = poolwright_catalog::builtin();
        let terms = committed(
            "commitments:\n- {name: plan, usdPerHour: 10, discountPercent: 30, covers: {families: [g5], regions: [us-east-1]}}\n\
             - {name: flat, usdPerHour: '5.5', rates: {g6.xlarge: 0.5}}\n",
        )
        .terms(&catalogue)
        .unwrap();
        let rate = |at: usize, name: &str| {
            let of = |id: &OfferingId| id.instance_type.as_str() == name;
            terms[at].rates.iter().find(|(id, _)| of(id)).map(|(_, rate)| rate.to_string())
        };
        assert_eq!(rate(0, "g5.xlarge").as_deref(), Some("0.7042"));
        assert_eq!(rate(0, "g6.xlarge"), None);
        assert_eq!(rate(1, "g6.xlarge").as_deref(), Some("0.50"));
        assert_eq!(terms[1].left, "5.5".parse().unwrap());
        assert!(
            terms.iter().all(|terms| terms.rates.keys().all(|id| id.capacity_type == CapacityType::OnDemand))
        );
    }

    #[test]
    fn reservations_are_offerings_without_a_price_of_which_there_are_so_many() {
        let catalogue = committed(
            "reservations:\n- {instanceType: p5.48xlarge, zone: us-east-1a, count: 2}\n\
             - {name: more, instanceType: p5.48xlarge, zone: us-east-1a, count: 1}\n",
        )
        .with_reservations(poolwright_catalog::builtin())
        .unwrap();
        let reserved: Vec<_> = catalogue
            .offerings()
            .iter()
            .filter(|offering| offering.id.capacity_type == CapacityType::Reserved)
            .collect();
        assert_eq!(reserved.len(), 1);
        assert_eq!(reserved[0].available, Some(3));
        assert_eq!(reserved[0].price.known(), Some(UsdPerHour::ZERO));
        assert_eq!(reserved[0].region.as_deref(), Some("us-east-1"));
    }

    #[test]
    fn everything_wrong_is_told_with_its_entry() {
        let catalogue = poolwright_catalog::builtin();
        let said = message(
            committed(
                "commitments:\n- {name: a, usdPerHour: 1}\n- {name: b, usdPerHour: -1, discountPercent: 5}\n\
                 - {name: c, usdPerHour: 1, discountPercent: 100}\n- {name: d, usdPerHour: 1, rates: {g99: 1}}\n\
                 - {name: e, usdPerHour: 1, discountPercent: 5, covers: {families: [g99]}}\n\
                 - {name: f, usdPerHour: 1, discountPercent: 5, covers: {families: [g5]}}\n\
                 - {name: g, usdPerHour: 1, rates: {g5.xlarge: 0.5}}\n",
            )
            .terms(&catalogue),
        );
        for part in [
            "6 problems",
            "c.yaml: commitments[0] (a): says not what a node uses of it",
            "commitments[1] (b): usdPerHour: ",
            "commitments[2] (c): discountPercent: it must be below 100",
            "commitments[3] (d): `g99` is no instance type",
            "commitments[4] (e): covers no on-demand offering",
            "commitments[6] (g): covers g5.xlarge/",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = message(
            committed(
                "reservations:\n- {instanceType: g99, count: 1}\n- {instanceType: p5.48xlarge, zone: mars, count: 1}\n\
                 - {name: r, instanceType: g5.xlarge, count: 1}\n",
            )
            .with_reservations(catalogue),
        );
        for part in [
            "3 problems",
            "c.yaml: reservations[0]: `g99` is no instance type",
            "reservations[1]: `mars` is no zone of p5.48xlarge",
            "reservations[2] (r): says not in which zone",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
