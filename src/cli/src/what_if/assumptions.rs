//! What the figures rest on, with its age.

use jiff::civil::Date;
use poolwright_catalog::{Offering, UsdPerHour};
use poolwright_core::plan::SpotRisk;
use poolwright_terms::CapacityType;
use serde::Serialize;

use crate::price_age;
use crate::print::{count, counted};

/// Something that the figures rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assumption {
    /// What it is about: `prices`.
    pub about: &'static str,
    /// The assumption: a sentence.
    pub text: String,
    /// The oldest date of its data; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// The days since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_in_days: Option<i32>,
}

impl Assumption {
    /// Returns the assumption with its age, for people.
    pub fn told(&self) -> String {
        match (&self.as_of, self.age_in_days) {
            (Some(date), Some(1)) => format!("{} The oldest is of {date}, 1 day ago.", self.text),
            (Some(date), Some(days)) => format!("{} The oldest is of {date}, {days} days ago.", self.text),
            _ => self.text.clone(),
        }
    }
}

/// Returns what the figures rest on. `offerings` are those that may be bought after the change, and `source` is their catalogue.
pub fn assumptions(
    offerings: &[&Offering],
    source: &str,
    at_risk: UsdPerHour,
    today: Date,
) -> Vec<Assumption> {
    let plain =
        |about, text: &str| Assumption { about, text: text.to_owned(), as_of: None, age_in_days: None };
    let dated = |about, text, oldest: Option<Date>| Assumption {
        about,
        text,
        as_of: oldest.map(|date| date.to_string()),
        age_in_days: oldest.map(|date| (today - date).get_days().max(0)),
    };
    let prices = price_age::oldest(offerings.iter().copied());
    let mut all = vec![dated(
        "prices",
        format!("Prices are those of the catalogue: {}.", source.trim_end_matches('.')),
        prices,
    )];
    let spot: Vec<_> =
        offerings.iter().filter(|offering| offering.id.capacity_type == CapacityType::Spot).collect();
    if !spot.is_empty() {
        let known = spot.iter().filter_map(|offering| offering.interruptions.as_ref());
        let oldest = known.clone().filter_map(|rate| rate.as_of).min();
        let without = spot.len() - known.count();
        let usual = SpotRisk::default().prior;
        let without = match without {
            0 => String::new(),
            without => {
                let (have, count_with) = if without == 1 { ("has", "counts") } else { ("have", "count") };
                format!(
                    " {} of them {have} none, and {count_with} with {usual} in a million hours.",
                    count(without)
                )
            }
        };
        let offerings = counted(spot.len(), "spot offering");
        let text = format!("Interruption rates are those of the catalogue for {offerings}.{without}");
        all.push(dated("interruptionRates", text, oldest));
        let text =
            format!("An interruption of a new spot node costs each pod ${at_risk} for each of its GPUs.");
        all.push(plain("interruptionLoss", &text));
    }
    all.push(plain("hours", "A month has 730 hours, in which all nodes run."));
    all.push(plain(
        "load",
        "Half as much load again means half as many pods again of each workload, rounded up, with volumes of their own. Gangs are added whole.",
    ));
    all.push(plain(
        "nodes",
        "Pods that run stay on their nodes, so later consolidation may save more. Nodes without work that a pool does not keep count as gone.",
    ));
    all
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use poolwright_catalog::builtin;

    use super::*;

    #[test]
    fn prices_and_rates_are_told_with_their_age() {
        let catalogue = builtin();
        let offerings: Vec<&Offering> = catalogue.offerings().iter().collect();
        let all = assumptions(&offerings, "builtin", UsdPerHour::from_micros(1_000_000), date(2026, 8, 1));
        let about: Vec<_> = all.iter().map(|one| one.about).collect();
        assert_eq!(about, ["prices", "interruptionRates", "interruptionLoss", "hours", "load", "nodes"]);
        let prices = all[0].told();
        assert!(
            prices.starts_with("Prices are those of the catalogue: builtin. The oldest is of 20"),
            "{prices}"
        );
        assert!(prices.ends_with(" days ago."), "{prices}");
        assert!(all[2].text.contains("costs each pod $1.00 for each"), "{}", all[2].text);
        let is_silent = |offering: &&Offering| {
            offering.id.capacity_type == CapacityType::Spot && offering.interruptions.is_none()
        };
        let silent: Vec<&Offering> = offerings.into_iter().filter(is_silent).take(1).collect();
        let one = assumptions(&silent, "builtin", UsdPerHour::ZERO, date(2026, 8, 1));
        assert!(one[1].text.contains(" 1 of them has none, and counts with "), "{}", one[1].text);
        let none = assumptions(&[], "builtin", UsdPerHour::ZERO, date(2026, 8, 1));
        assert_eq!(
            (none[0].as_of.as_deref(), none[0].told().as_str()),
            (None, "Prices are those of the catalogue: builtin.")
        );
    }
}
