//! The catalogue that a user selects: the built-in one, files, or files that override it.

use std::path::Path;

use jiff::ToSpan;
use jiff::civil::Date;
use poolwright_catalog::{Catalogue, Price, builtin, read_csv};
use poolwright_terms::CapacityType;

use crate::clouds::clouds;
use crate::exit::Failure;
use crate::price_age;
use crate::problems::Problems;
use crate::source;

/// The name of the catalogue in the binary.
pub const BUILTIN: &str = "builtin";

/// Loads the catalogues; the built-in one if none is named. Later ones override earlier ones. Problems of all files are reported
/// together.
pub fn load(names: &[String]) -> Result<Catalogue, Failure> {
    if names.is_empty() {
        return Ok(builtin());
    }
    let mut whole: Option<Catalogue> = None;
    let mut problems = Problems::new();
    for name in names {
        match one(name) {
            Ok(catalogue) => {
                whole = Some(match whole.take() {
                    None => catalogue,
                    Some(under) => under.overlaid_with(catalogue),
                });
            }
            Err(found) => problems.extend(found),
        }
    }
    match whole {
        Some(whole) if problems.is_empty() => Ok(whole),
        _ => Err(Failure::bad_input(format!("the catalogue cannot be used: {problems}"))),
    }
}

/// Loads the catalogues as [`load`] does. If none is named, returns that of a snapshot, if there is one.
pub fn load_or(names: &[String], saved: Option<&Catalogue>) -> Result<Catalogue, Failure> {
    match saved {
        Some(saved) if names.is_empty() => Ok(saved.clone()),
        _ => load(names),
    }
}

fn one(name: &str) -> Result<Catalogue, Problems> {
    if name == BUILTIN {
        return Ok(builtin());
    }
    let source = source::file(Path::new(name))
        .map_err(|cause| Problems::one(format!("{cause}; `{BUILTIN}` is the catalogue in the binary")))?;
    let catalogue = read_csv(&[(&source.name, &source.text)])?;
    match newest(&catalogue) {
        // Dates are those of the reader's calendar somewhere on Earth.
        Some(date) if date > price_age::by_the_clock().saturating_add(1.day()) => {
            Err(Problems::one(format!(
                "{}: a price is of {date}, which is in the future; correct price_as_of or spot_as_of",
                source.name
            )))
        }
        _ => Ok(catalogue),
    }
}

/// Returns the date of the newest price; `None` if no price has a date.
fn newest(catalogue: &Catalogue) -> Option<Date> {
    let dates = catalogue.offerings().iter().filter_map(|offering| match &offering.price {
        Price::Known(quote) => quote.as_of,
        Price::Unknown(_) => None,
    });
    dates.max()
}

/// The part of a catalogue that the flags select.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The provider; `None` for all.
    pub provider: Option<String>,
    /// The capacity types; empty for all.
    pub capacity_types: Vec<CapacityType>,
}

impl Selection {
    /// Returns the selected part of `catalogue`.
    ///
    /// # Errors
    ///
    /// The selection is empty. The error names the alternatives.
    pub fn of(&self, catalogue: &Catalogue) -> Result<Catalogue, Failure> {
        let is_provider = |provider: &str| self.provider.as_deref().is_none_or(|wanted| wanted == provider);
        if !catalogue.providers().iter().any(|provider| is_provider(provider.as_str())) {
            let known: Vec<_> = catalogue.providers().iter().map(ToString::to_string).collect();
            return Err(Failure::bad_input(format!(
                "--provider {}: the catalogue has no offering of this provider; it has {}",
                self.provider.as_deref().unwrap_or_default(),
                known.join(", ")
            )));
        }
        let selected = catalogue.filtered(|kind, offering| {
            let capacity = offering.id.capacity_type;
            is_provider(kind.provider.as_str())
                && (self.capacity_types.is_empty() || self.capacity_types.contains(&capacity))
        });
        if selected.offerings().is_empty() {
            let wanted: Vec<_> = self.capacity_types.iter().map(ToString::to_string).collect();
            return Err(Failure::bad_input(format!(
                "--capacity-type {}: the catalogue has no such offering; try --capacity-type any",
                wanted.join(",")
            )));
        }
        Ok(selected)
    }
}

/// Returns the provider to buy from if the user names none: the first cloud of the registry with an offering in the catalogue, or
/// else the first provider by name. Also returns whether there was a choice.
pub fn default_provider(catalogue: &Catalogue) -> Option<(String, bool)> {
    let providers: Vec<_> = catalogue.providers().iter().map(|name| name.as_str().to_owned()).collect();
    let is_choice = providers.len() > 1;
    let known = clouds().iter().find_map(|cloud| providers.iter().find(|name| *name == cloud.name));
    let chosen = known.or_else(|| providers.first())?;
    Some((chosen.clone(), is_choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aws_is_the_default_of_several_providers_and_the_choice_is_reported() {
        assert_eq!(default_provider(&builtin()), Some(("aws".to_owned(), true)));
    }

    #[test]
    fn a_selection_that_leaves_nothing_says_what_there_is() {
        let wanted = Selection { provider: Some("azure".to_owned()), ..Selection::default() };
        let Err(Failure::BadInput(message)) = wanted.of(&builtin()) else { panic!("azure is not built in") };
        assert_eq!(
            message,
            "--provider azure: the catalogue has no offering of this provider; it has aws, gcp"
        );
        let reserved = Selection { capacity_types: vec![CapacityType::Reserved], ..Selection::default() };
        assert!(matches!(reserved.of(&builtin()), Err(Failure::BadInput(_))));
    }

    #[test]
    fn a_file_that_is_not_there_is_bad_input() {
        let Err(Failure::BadInput(message)) = load(&["builtin".into(), "no-such.csv".into()]) else {
            panic!("there is no such file")
        };
        assert!(message.contains("no-such.csv: "), "{message}");
    }
}
