//! The catalogue in the binary.
//!
//! `fixtures/SOURCES.md` lists its files and the source of each figure.

use crate::offering::Catalogue;
use crate::reader::read_csv;

/// The built-in files, as `fixtures/catalogue` lists them: provider, region, file name and text.
const FILES: &[(&str, &str, &str, &str)] = include!("../../../fixtures/catalogue/builtin.rs");

/// Parses the catalogue built into the binary (milliseconds per call).
///
/// Its origin has the date of its prices. A user's catalogue replaces it or overrides parts of it
/// ([`Catalogue::overlaid_with`]).
pub fn builtin() -> Catalogue {
    let files: Vec<_> = FILES.iter().map(|(_, _, name, text)| (*name, *text)).collect();
    let read = read_csv(&files).expect("the files in the binary are those the tests read");
    let regions: Vec<_> = FILES.iter().map(|(provider, region, ..)| format!("{provider} {region}")).collect();
    read.named(format!("builtin ({})", regions.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright_terms::{CapacityType, labels};

    use super::*;
    use crate::price::{Price, UnknownPrice};
    use crate::resources::ResourceName;
    use crate::{OfferingId, UsdPerHour};

    #[test]
    fn no_price_in_it_is_in_quarantine_and_the_unknown_ones_are_those_no_source_has() {
        let catalogue = builtin();
        let mut unknown: Vec<_> = Vec::new();
        for offering in catalogue.offerings() {
            if let Price::Unknown(reason) = &offering.price {
                assert_eq!(reason, &UnknownPrice::Missing, "{}", offering.id);
                unknown.push(offering.id.to_string());
            }
        }
        assert_eq!(
            unknown,
            ["a3-edgegpu-8g", "a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a4-highgpu-8g"]
                .map(|name| format!("{name}/us-central1/on-demand"))
        );
        assert_eq!(catalogue.unknown_prices(), 5);
    }

    #[test]
    fn it_holds_the_types_of_both_clouds_and_nothing_by_accident() {
        let catalogue = builtin();
        let mut types = BTreeMap::new();
        for kind in catalogue.types().values() {
            *types.entry((kind.provider.as_str(), kind.gpu.is_some())).or_insert(0) += 1;
        }
        assert_eq!(types, BTreeMap::from([(("aws", false), 165), (("aws", true), 59), (("gcp", true), 40)]));
        let mut offerings = BTreeMap::new();
        for offering in catalogue.offerings() {
            *offerings.entry(offering.id.capacity_type).or_insert(0) += 1;
        }
        assert_eq!(offerings, BTreeMap::from([(CapacityType::Spot, 234), (CapacityType::OnDemand, 1105)]));
    }

    #[test]
    fn every_price_names_its_source_and_the_catalogue_its_oldest_day() {
        let catalogue = builtin();
        for offering in catalogue.offerings() {
            if let Price::Known(quote) = &offering.price {
                assert!(quote.source.as_str().contains('@'), "{}: {}", offering.id, quote.source);
            }
        }
        assert_eq!(catalogue.origin().source, "builtin (aws us-east-1, gcp us-central1)");
        assert_eq!(catalogue.origin().as_of, Some(jiff::civil::date(2025, 6, 1)));
    }

    #[test]
    fn a_g5_xlarge_is_what_aws_sells() {
        let catalogue = builtin();
        let id = OfferingId {
            instance_type: "g5.xlarge".into(),
            zone: "us-east-1a".into(),
            capacity_type: CapacityType::OnDemand,
        };
        let offering = catalogue.offering(&id).expect("g5.xlarge is sold in us-east-1a");
        assert_eq!(offering.price.known(), Some(UsdPerHour::from_micros(1_006_000)));
        let kind = &catalogue.types()[&id.instance_type];
        assert_eq!(kind.allocatable.get(ResourceName::NVIDIA_GPU), 1);
        assert_eq!(kind.allocatable.get(ResourceName::CPU), 3920);
        assert_eq!(kind.allocatable.get(ResourceName::MEMORY), 14162 << 20);
        let labels = catalogue.node_labels(offering);
        assert_eq!(labels[labels::GPU_MODEL], "a10g");
        assert_eq!(labels[labels::REGION], "us-east-1");
    }

    #[test]
    fn google_cloud_is_priced_by_region_so_the_zone_is_the_region() {
        let catalogue = builtin();
        let id = OfferingId {
            instance_type: "g2-standard-4".into(),
            zone: "us-central1".into(),
            capacity_type: CapacityType::Spot,
        };
        let offering = catalogue.offering(&id).expect("g2-standard-4 is sold as spot");
        assert_eq!(offering.price.known(), Some(UsdPerHour::from_micros(397_336)));
    }

    #[test]
    fn every_label_of_every_offering_is_one_the_api_server_accepts() {
        let catalogue = builtin();
        for offering in catalogue.offerings() {
            for (key, value) in catalogue.node_labels(offering) {
                assert!(labels::is_value(&value), "{}: {key}={value}", offering.id);
            }
        }
    }
}
