//! The file of commitments and reservations (`--commitments`).
//!
//! Reading an entry needs no catalogue. Finding the offerings that it covers, and a node's use of it, needs one.

mod file;

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{
    Catalogue, InstanceType, InstanceTypeName, Offering, OfferingId, Price, PriceSource, Quote, UsdPerHour,
    Zone,
};
use poolwright_core::plan::Commitment;
use poolwright_terms::CapacityType;

pub use file::{Amount, commitments, readable_commitments};
use file::{Covers, Entry, NAMELESS, Part, Reservation};

/// A hundred percent, in the millionths that amounts are read in.
const HUNDRED: u64 = 100_000_000;

/// A node's use of a commitment.
enum Use<'e> {
    /// Its price, less a discount in millionths of a percent.
    Less(u64),
    /// An amount for each instance type.
    Rates(&'e BTreeMap<String, Amount>),
}

/// The commitments and reservations of a file, read without a catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commitments {
    source: String,
    entries: Vec<Part<Entry>>,
    reservations: Vec<Part<Reservation>>,
}

/// A reservation of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedNodes {
    /// Its name, or its place in the file.
    pub name: String,
    /// The offering that it is of.
    pub offering: OfferingId,
    /// The number of nodes.
    pub count: u32,
}

impl Commitments {
    /// Returns the problems of entries that do not depend on a catalogue.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for part in &self.entries {
            problems.extend(part.problems().iter().map(|problem| self.about(part, problem)));
            let name = part.read.name.as_str();
            if name != NAMELESS && !names.insert(name) {
                problems.push(self.about(part, "another entry has this name; rename one of them"));
            }
        }
        problems
    }

    /// Returns the amount of each valid commitment, by name.
    pub fn amounts(&self) -> BTreeMap<String, UsdPerHour> {
        let all = self.entries.iter().map(|part| &part.read);
        all.filter_map(|entry| Some((entry.name.clone(), entry.says()?.0))).collect()
    }

    /// Returns the place of the first reservation in the file, if there is one.
    pub fn first_reservation(&self) -> Option<String> {
        Some(self.about_reservation(self.reservations.first()?))
    }

    fn about(&self, part: &Part<Entry>, problem: &str) -> String {
        format!("{}: commitments[{}] ({}): {problem}", self.source, part.at, part.read.name)
    }

    fn about_reservation(&self, part: &Part<Reservation>) -> String {
        let own = part.read.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        format!("{}: reservations[{}]{own}", self.source, part.at)
    }

    /// Returns the catalogue with the reserved nodes added, at price zero and limited in number, or all problems.
    pub fn with_reservations(&self, catalogue: Catalogue) -> Result<Catalogue, Vec<String>> {
        let mut problems = Vec::new();
        let mut counts: BTreeMap<OfferingId, u32> = BTreeMap::new();
        for part in &self.reservations {
            match place(&catalogue, part) {
                Ok(Some(id)) => {
                    let count = counts.entry(id).or_default();
                    *count = count.saturating_add(part.read.count);
                }
                Ok(None) => {}
                Err(problem) => problems.push(format!("{}: {problem}", self.about_reservation(part))),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        if counts.is_empty() {
            return Ok(catalogue);
        }
        let price = || {
            Price::Known(Quote {
                usd_per_hour: UsdPerHour::ZERO,
                source: PriceSource::from(self.source.as_str()),
                as_of: None,
            })
        };
        let reserved = counts.into_iter().map(|(id, count)| Offering {
            region: region(&catalogue, &id),
            price: price(),
            id,
            available: Some(count),
            interruptions: None,
            notice: None,
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

    /// Returns the reservations that [`Self::with_reservations`] adds to a catalogue, in the order of the file.
    pub fn reserved(&self, catalogue: &Catalogue) -> Vec<ReservedNodes> {
        let of = |part: &Part<Reservation>| {
            let offering = place(catalogue, part).ok()??;
            let unnamed = || format!("reservations[{}]", part.at);
            let name = part.read.name.clone().unwrap_or_else(unnamed);
            Some(ReservedNodes { name, offering, count: part.read.count })
        };
        self.reservations.iter().filter_map(of).collect()
    }

    /// Returns the offerings of these catalogues that each commitment covers, by name, and all problems, in the order of the file. An
    /// entry with a problem covers fewer or none. No offering is in two entries: the first by name has it, so that the order of the
    /// file changes no plan. An instance type that is not for sale does not affect the others.
    pub fn resolve(&self, catalogues: &[&Catalogue]) -> (Vec<Commitment>, Vec<String>) {
        let mut problems = Vec::new();
        let mut taken: BTreeMap<OfferingId, &str> = BTreeMap::new();
        let mut all = Vec::new();
        let mut by_name: Vec<&Part<Entry>> = self.entries.iter().collect();
        by_name.sort_by(|a, b| a.read.name.cmp(&b.read.name));
        for part in by_name {
            let entry = &part.read;
            let mut wrong = entry.unsold(catalogues);
            let has_unsold = !wrong.is_empty();
            let unreadable = part.problems();
            let can_cover = part.is_whole && unreadable.is_empty();
            wrong.extend(unreadable);
            match entry.resolve(catalogues).filter(|_| can_cover) {
                Some(mut terms) => {
                    let twice = terms.rates.keys().find_map(|id| Some((id, *taken.get(id)?)));
                    if let Some((id, other)) = twice {
                        wrong.push(format!(
                            "covers {id}, which `{other}` covers too; narrow `covers`, or make one entry of both"
                        ));
                    }
                    terms.rates.retain(|id, _| !taken.contains_key(id));
                    taken.extend(terms.rates.keys().map(|id| (id.clone(), entry.name.as_str())));
                    all.push(terms);
                }
                // The missing type was reported already.
                None if has_unsold || !can_cover => {}
                None => {
                    let cause = "covers no on-demand offering of the catalogue; widen `covers`";
                    wrong.push(cause.to_owned());
                }
            }
            problems.extend(wrong.iter().map(|problem| (part.at, self.about(part, problem))));
        }
        problems.sort_by_key(|(at, _)| *at);
        (all, problems.into_iter().map(|(_, problem)| problem).collect())
    }
}

impl Part<Entry> {
    /// Returns what is wrong with an entry, whatever is for sale. Of one that was not read as a whole, only what it has is judged.
    fn problems(&self) -> Vec<String> {
        let mut wrong = self.read.wrong_amounts();
        match (&self.read.discount_percent, self.read.rates.is_empty()) {
            (Some(_), false) => wrong.push("has both discountPercent and rates; keep one of them".to_owned()),
            (None, true) if self.is_whole => wrong.push(
                "does not say how much a node uses of it; give discountPercent, or rates by instance type"
                    .to_owned(),
            ),
            _ => {}
        }
        wrong
    }
}

impl Entry {
    /// Returns what is wrong with its amounts.
    fn wrong_amounts(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let elsewhere = "list nodes that cost nothing under `reservations`";
        if let Err(problem) = self.usd_per_hour.read() {
            wrong.push(format!("usdPerHour: {problem}"));
        }
        match self.discount_percent.as_ref().map(Amount::read) {
            Some(Err(problem)) => wrong.push(format!("discountPercent: {problem}")),
            Some(Ok(percent)) if percent.micros() >= HUNDRED => {
                wrong.push(format!("discountPercent: it must be below 100; {elsewhere}"));
            }
            _ => {}
        }
        for (name, rate) in &self.rates {
            match rate.read() {
                Err(problem) => wrong.push(format!("rates.{name}: {problem}")),
                Ok(rate) if rate.micros() == 0 => {
                    wrong.push(format!("rates.{name}: it must be above zero; {elsewhere}"));
                }
                Ok(_) => {}
            }
        }
        wrong
    }

    /// Returns the amount, and a node's use of it; `None` if it does not say them.
    fn says(&self) -> Option<(UsdPerHour, Use<'_>)> {
        if !self.wrong_amounts().is_empty() {
            return None;
        }
        let uses = match (&self.discount_percent, self.rates.is_empty()) {
            (Some(percent), true) => Use::Less(percent.read().ok()?.micros()),
            (None, false) => Use::Rates(&self.rates),
            (Some(_), false) | (None, true) => return None,
        };
        Some((self.usd_per_hour.read().ok()?, uses))
    }

    /// Returns the instance types that no catalogue sells.
    fn unsold(&self, catalogues: &[&Catalogue]) -> Vec<String> {
        let named = self
            .rates
            .keys()
            .chain(&self.covers.instance_types)
            .map(|name| InstanceTypeName::from(name.as_str()));
        let unsold = named.filter(|name| catalogues.iter().all(|one| one.instance_type(name).is_none()));
        unsold
            .map(|name| format!("`{name}` is not an instance type of the catalogue; correct the name"))
            .collect()
    }

    /// Returns the offerings that it covers; `None` if there are none.
    fn resolve(&self, catalogues: &[&Catalogue]) -> Option<Commitment> {
        let (left, uses) = self.says()?;
        let mut rates = BTreeMap::new();
        for (catalogue, offering) in catalogues
            .iter()
            .flat_map(|catalogue| catalogue.offerings().iter().map(move |one| (catalogue, one)))
        {
            let kind = &catalogue.types()[&offering.id.instance_type];
            let Some(price) = offering.price.known() else { continue };
            if offering.id.capacity_type != CapacityType::OnDemand || !self.covers.has(kind, offering) {
                continue;
            }
            let rate = match &uses {
                Use::Less(percent) => {
                    let rest = u128::from(price.micros()) * u128::from(HUNDRED - percent);
                    let rate = rest.div_ceil(u128::from(HUNDRED));
                    UsdPerHour::from_micros(u64::try_from(rate).unwrap_or(u64::MAX))
                }
                Use::Rates(rates) => match rates.get(kind.name.as_str()) {
                    Some(rate) => rate.read().ok()?,
                    None => continue,
                },
            };
            // A free node uses nothing of it.
            if rate.micros() > 0 {
                rates.insert(offering.id.clone(), rate);
            }
        }
        (!rates.is_empty()).then(|| Commitment { name: self.name.clone(), left, rates })
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

/// Returns the offering of a reservation; `None` if it was not read as a whole, and what was read is right.
fn place(catalogue: &Catalogue, part: &Part<Reservation>) -> Result<Option<OfferingId>, String> {
    let reservation = &part.read;
    let name = InstanceTypeName::from(reservation.instance_type.as_str());
    if name.as_str().is_empty() && !part.is_whole {
        return Ok(None);
    }
    let zones: BTreeSet<&Zone> = catalogue
        .offerings()
        .iter()
        .filter(|offering| offering.id.instance_type == name)
        .map(|offering| &offering.id.zone)
        .collect();
    let listed = || zones.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let zone = match &reservation.zone {
        _ if zones.is_empty() => {
            return Err(format!("`{name}` is not an instance type of the catalogue; correct the name"));
        }
        Some(zone) if zones.iter().any(|known| known.as_str() == zone) => Zone::from(zone.as_str()),
        Some(zone) => {
            return Err(format!("`{zone}` is not a zone of {name}; the catalogue has it in {}", listed()));
        }
        None if !part.is_whole => return Ok(None),
        None => match zones.iter().next() {
            Some(only) if zones.len() == 1 => (*only).clone(),
            _ => return Err(format!("has no zone; {name} is sold in {}, so name one of them", listed())),
        },
    };
    let id = OfferingId { instance_type: name, zone, capacity_type: CapacityType::Reserved };
    Ok(part.is_whole.then_some(id))
}

fn region(catalogue: &Catalogue, id: &OfferingId) -> Option<String> {
    let same =
        |offering: &&Offering| offering.id.instance_type == id.instance_type && offering.id.zone == id.zone;
    catalogue.offerings().iter().find(same).and_then(|offering| offering.region.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(text: &str) -> Commitments {
        commitments("c.yaml", text).expect(text)
    }

    #[test]
    fn a_discount_or_rates_say_what_a_node_uses() {
        let catalogue = poolwright_catalog::builtin();
        let (terms, problems) = committed(
            "commitments:\n- {name: plan, usdPerHour: 10, discountPercent: 30, covers: {families: [g5], regions: [us-east-1]}}\n\
             - {name: flat, usdPerHour: '5.5', rates: {g6.xlarge: 0.5}}\n",
        )
        .resolve(&[&catalogue]);
        assert_eq!(problems, [""; 0]);
        let named = |name: &str| terms.iter().find(|terms| terms.name == name).expect("it is valid");
        let rate = |commitment: &str, name: &str| {
            let of = |id: &OfferingId| id.instance_type.as_str() == name;
            named(commitment).rates.iter().find(|(id, _)| of(id)).map(|(_, rate)| rate.to_string())
        };
        assert_eq!(rate("plan", "g5.xlarge").as_deref(), Some("0.7042"));
        assert_eq!(rate("plan", "g6.xlarge"), None);
        assert_eq!(rate("flat", "g6.xlarge").as_deref(), Some("0.50"));
        assert_eq!(named("flat").left, "5.5".parse().unwrap());
        assert!(
            terms.iter().all(|terms| terms.rates.keys().all(|id| id.capacity_type == CapacityType::OnDemand))
        );
    }

    #[test]
    fn the_first_commitment_by_name_covers_what_two_cover_in_whichever_order_they_are_written() {
        let catalogue = poolwright_catalog::builtin();
        let both = [
            "{name: a, usdPerHour: 1, rates: {g5.xlarge: 0.5}}",
            "{name: b, usdPerHour: 1, rates: {g5.xlarge: 0.5}}",
        ];
        let terms = |first: usize, second: usize| {
            let text = format!("commitments: [{}, {}]", both[first], both[second]);
            let (terms, problems) = committed(&text).resolve(&[&catalogue]);
            let entry = format!("c.yaml: commitments[{}] (b): covers g5.xlarge/", 1 - first);
            assert!(problems.len() == 1 && problems[0].starts_with(&entry), "{problems:?}");
            terms
        };
        let as_named = terms(0, 1);
        let names: Vec<&str> = as_named.iter().map(|terms| terms.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(!as_named[0].rates.is_empty() && as_named[1].rates.is_empty());
        assert_eq!(terms(1, 0), as_named);
    }

    #[test]
    fn reservations_are_free_offerings_with_a_limited_count() {
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
        let file = committed(
            "commitments:\n- {name: a, usdPerHour: 1}\n- {name: b, usdPerHour: -1, discountPercent: 5}\n\
             - {name: c, usdPerHour: 1, discountPercent: 100}\n- {name: d, usdPerHour: 1, rates: {g99: 1}}\n\
             - {name: e, usdPerHour: 1, discountPercent: 5, covers: {families: [g99]}}\n\
             - {name: f, usdPerHour: 1, discountPercent: 5, covers: {families: [g5]}}\n\
             - {name: g, usdPerHour: 1, rates: {g5.xlarge: 0.5, g6.xlarge: 0.6}}\n\
             - {name: f, usdPerHour: 1, rates: {p5.48xlarge: 0}}\n",
        );
        let expected = [
            "c.yaml: commitments[0] (a): does not say how much a node uses of it",
            "c.yaml: commitments[1] (b): usdPerHour: ",
            "c.yaml: commitments[2] (c): discountPercent: it must be below 100",
            "c.yaml: commitments[3] (d): `g99` is not an instance type",
            "c.yaml: commitments[4] (e): covers no on-demand offering",
            "c.yaml: commitments[6] (g): covers g5.xlarge/",
            "c.yaml: commitments[7] (f): rates.p5.48xlarge: it must be above zero",
        ];
        let (terms, said) = file.resolve(&[&catalogue]);
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for (said, part) in said.iter().zip(expected) {
            assert!(said.starts_with(part), "{part}: {said}");
        }
        let covered: BTreeSet<&str> = terms[1].rates.keys().map(|id| id.instance_type.as_str()).collect();
        assert_eq!(covered, BTreeSet::from(["g6.xlarge"]), "what another covers is left to it");
        let alone = file.problems();
        let of = |at: usize| alone.iter().filter(|said| said.contains(&format!("commitments[{at}]"))).count();
        assert_eq!((0..8).map(of).collect::<Vec<_>>(), [1, 1, 1, 0, 0, 0, 0, 2], "{alone:?}");
        let said = committed(
            "reservations:\n- {instanceType: g99, count: 1}\n- {instanceType: p5.48xlarge, zone: mars, count: 1}\n\
             - {name: r, instanceType: g5.xlarge, count: 1}\n",
        )
        .with_reservations(catalogue)
        .expect_err("none of them is there");
        let expected = [
            "c.yaml: reservations[0]: `g99` is not an instance type",
            "c.yaml: reservations[1]: `mars` is not a zone of p5.48xlarge",
            "c.yaml: reservations[2] (r): has no zone",
        ];
        for (said, part) in said.iter().zip(expected) {
            assert!(said.starts_with(part), "{part}: {said}");
        }
    }

    #[test]
    fn a_commitment_covers_all_catalogues_and_an_unsold_type_is_reported() {
        let all = poolwright_catalog::builtin();
        let only = |name: &str| {
            let types = all.types().values().filter(|kind| kind.name.as_str() == name).cloned().collect();
            let of = |offering: &&Offering| offering.id.instance_type.as_str() == name;
            let offerings = all.offerings().iter().filter(of).cloned().collect();
            Catalogue::new(all.origin().clone(), types, offerings)
        };
        let (one, other) = (only("g5.xlarge"), only("g6.xlarge"));
        let text = "commitments: [{name: a, usdPerHour: 1, rates: {g5.xlarge: 0.5, g6.xlarge: 0.6}}]";
        let (terms, problems) = committed(text).resolve(&[&one, &other]);
        let covered: BTreeSet<&str> = terms[0].rates.keys().map(|id| id.instance_type.as_str()).collect();
        assert_eq!((covered, problems), (BTreeSet::from(["g5.xlarge", "g6.xlarge"]), Vec::new()));
        let (terms, problems) = committed(text).resolve(&[&one]);
        let covered: BTreeSet<&str> = terms[0].rates.keys().map(|id| id.instance_type.as_str()).collect();
        assert_eq!(covered, BTreeSet::from(["g5.xlarge"]), "the others are covered all the same");
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("`g6.xlarge` is not an instance type"), "{problems:?}");
    }

    #[test]
    fn an_invalid_commitments_file_is_reported_with_its_line() {
        let said =
            commitments("c.yaml", "commitments:\n- name: a\n  usdPerHour: 1\n  discont: 5\n").unwrap_err();
        let [said] = said.as_slice() else { panic!("{said:?}") };
        assert!(
            said.starts_with("c.yaml: ") && said.contains("line 4") && said.contains("docs/cli/plan.md"),
            "{said}"
        );
        assert_eq!((said.lines().count(), said.matches("discont`").count()), (1, 1), "{said}");
    }

    #[test]
    fn all_wrong_fields_of_a_commitments_file_are_told_at_once() {
        let text = "reservations:\n- {instanceType: g5.xlarge, count: 1, cnt: 2}\ncommitment: []\n";
        let said = commitments("c.yaml", text).unwrap_err();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("c.yaml: reservations[0].cnt: unknown field"), "{said:?}");
        assert_eq!(said[1], "c.yaml: commitment: unknown field; did you mean `commitments`?");
    }
}
