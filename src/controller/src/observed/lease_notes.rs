//! What the Lease says about its holder: the version, and the date of its prices.

use std::collections::BTreeMap;

use jiff::civil::Date;
use poolwright_core::Snapshot;
use poolwright_terms::keys::{PRICES_AS_OF_ANNOTATION, VERSION_ANNOTATION};

/// Returns the date of the oldest price of all node classes; `None` if no price has a date.
pub fn oldest_price(snapshot: &Snapshot) -> Option<Date> {
    snapshot.catalogues.values().flatten().filter_map(|catalogue| catalogue.origin().as_of).min()
}

/// Returns the annotations of the Lease. A date that is unknown is empty.
pub fn lease_notes(snapshot: &Snapshot) -> BTreeMap<&'static str, String> {
    let oldest = oldest_price(snapshot).map(|date| date.to_string()).unwrap_or_default();
    [(VERSION_ANNOTATION, env!("CARGO_PKG_VERSION").to_owned()), (PRICES_AS_OF_ANNOTATION, oldest)].into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::civil::date;
    use poolwright_catalog::{Catalogue, CatalogueOrigin};
    use poolwright_terms::NodeClassRef;

    use super::*;

    #[test]
    fn the_oldest_price_of_all_node_classes_counts() {
        let mut snapshot = Snapshot::default();
        assert_eq!(lease_notes(&snapshot)[PRICES_AS_OF_ANNOTATION], "");
        for (name, as_of) in [("a", Some(date(2026, 7, 20))), ("b", Some(date(2026, 3, 1))), ("c", None)] {
            let class =
                NodeClassRef { group: String::new(), kind: "Trial".to_owned(), name: name.to_owned() };
            let origin = CatalogueOrigin { source: "a test".to_owned(), as_of };
            snapshot.catalogues.insert(class, Ok(Arc::new(Catalogue::new(origin, Vec::new(), Vec::new()))));
        }
        let notes = lease_notes(&snapshot);
        assert_eq!(notes[PRICES_AS_OF_ANNOTATION], "2026-03-01");
        assert_eq!(notes[VERSION_ANNOTATION], env!("CARGO_PKG_VERSION"));
    }
}
