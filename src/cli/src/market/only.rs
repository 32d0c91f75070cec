//! Filters the offerings of a market.

use std::collections::BTreeSet;

use poolwright_catalog::{Catalogue, InstanceType, OfferingId};
use poolwright_terms::CapacityType;

use crate::args::PricesFlags;

/// The most names in a message. More would hide the problem.
const NAMED: usize = 30;

/// The filter for offerings. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// The types and families.
    pub types: Vec<String>,
    /// The GPU models; `any` for all types with a GPU.
    pub gpus: Vec<String>,
    /// The zones.
    pub zones: Vec<String>,
    /// The capacity types.
    pub capacity_types: Vec<CapacityType>,
}

impl Only {
    /// Reads the filter from the flags.
    pub fn of(flags: &PricesFlags) -> Self {
        let lower = |text: &String| text.to_lowercase();
        Self {
            types: flags.kind.iter().map(lower).collect(),
            gpus: flags.gpu.iter().map(lower).collect(),
            zones: flags.zone.iter().map(lower).collect(),
            capacity_types: flags.capacity_type.iter().flat_map(|one| one.types()).copied().collect(),
        }
    }

    /// Returns whether an offering matches.
    pub fn takes(&self, kind: &InstanceType, id: &OfferingId) -> bool {
        let (name, family) = (kind.name.as_str(), kind.family());
        let model = kind.gpu.as_ref().map(|gpu| gpu.model.as_str());
        let is_any = |list: &[String], is: &dyn Fn(&str) -> bool| {
            list.is_empty() || list.iter().any(|wanted| is(wanted))
        };
        is_any(&self.types, &|wanted| wanted == name || wanted == family)
            && is_any(&self.gpus, &|wanted| model == Some(wanted) || (wanted == ANY && model.is_some()))
            && is_any(&self.zones, &|wanted| wanted == id.zone.as_str())
            && (self.capacity_types.is_empty() || self.capacity_types.contains(&id.capacity_type))
    }

    /// Returns a message about the first name that the catalogue does not know, with the names that it knows.
    pub fn unknown(&self, catalogue: &Catalogue) -> Option<String> {
        let kinds = || catalogue.types().values();
        let zones: BTreeSet<&str> =
            catalogue.offerings().iter().map(|offering| offering.id.zone.as_str()).collect();
        let models: BTreeSet<&str> =
            kinds().filter_map(|kind| Some(kind.gpu.as_ref()?.model.as_str())).collect();
        let families: BTreeSet<&str> = kinds().map(InstanceType::family).collect();
        let is_type =
            |wanted: &str| families.contains(wanted) || kinds().any(|kind| kind.name.as_str() == wanted);
        let missing = |flag: &str, wanted: &[String], is: &dyn Fn(&str) -> bool, has: &BTreeSet<&str>| {
            let name = wanted.iter().find(|name| !is(name))?;
            Some(format!("{flag} {name}: none found; choose from {}", some(has)))
        };
        missing("--type", &self.types, &is_type, &families)
            .or_else(|| missing("--gpu", &self.gpus, &|name| name == ANY || models.contains(name), &models))
            .or_else(|| missing("--zone", &self.zones, &|name| zones.contains(name), &zones))
    }
}

/// The name that stands for every GPU model.
pub const ANY: &str = "any";

/// Joins the names, and cuts the list if it is too long for a message.
pub fn some(names: &BTreeSet<&str>) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let listed: Vec<&str> = names.iter().take(NAMED).copied().collect();
    match names.len().saturating_sub(NAMED) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::builtin;

    use super::*;

    fn taken(only: &Only) -> Vec<String> {
        let catalogue = builtin();
        let kept = catalogue
            .offerings()
            .iter()
            .filter(|offering| only.takes(&catalogue.types()[&offering.id.instance_type], &offering.id));
        kept.map(|offering| offering.id.to_string()).collect()
    }

    #[test]
    fn a_type_is_named_by_itself_or_by_its_family() {
        let one = Only { types: vec!["g5.xlarge".to_owned()], ..Only::default() };
        assert!(!taken(&one).is_empty() && taken(&one).iter().all(|id| id.starts_with("g5.xlarge/")));
        let family = Only { types: vec!["g5".to_owned()], ..Only::default() };
        assert!(taken(&family).len() > taken(&one).len());
        assert!(taken(&family).iter().all(|id| id.starts_with("g5.")), "not g5g");
    }

    #[test]
    fn all_that_is_asked_for_must_be_met() {
        let only = Only {
            gpus: vec![ANY.to_owned()],
            zones: vec!["us-central1".to_owned()],
            capacity_types: vec![CapacityType::Spot],
            ..Only::default()
        };
        let ids = taken(&only);
        assert!(!ids.is_empty() && ids.iter().all(|id| id.ends_with("/us-central1/spot")), "{ids:?}");
    }

    #[test]
    fn a_name_that_nothing_has_is_told_with_what_there_is() {
        let told = |only: Only| only.unknown(&builtin());
        assert_eq!(told(Only::default()), None);
        let gpu =
            told(Only { gpus: vec!["h1000".to_owned()], ..Only::default() }).expect("there is no such GPU");
        assert!(gpu.starts_with("--gpu h1000: none found; choose from a100"), "{gpu}");
        assert!(told(Only { zones: vec!["mars".to_owned()], ..Only::default() }).is_some());
        assert!(told(Only { types: vec!["g5.tiny".to_owned()], ..Only::default() }).is_some());
    }
}
