//! What to ask AWS's price list, and where.
//!
//! Source: <https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html>.

/// The service of EC2's prices.
pub const SERVICE_CODE: &str = "AmazonEC2";
/// Entries to a page, the most there can be.
pub const PAGE: i32 = 100;

/// A filter of GetProducts, of the type `TERM_MATCH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The attribute.
    pub field: &'static str,
    /// What it must be.
    pub value: String,
}

/// What an entry must be, whatever else it is: a running Linux with nothing installed, by the hour. An attribute that an
/// entry does not have is not asked.
pub(super) const COMMON: [(&str, &str); 4] = [
    ("operatingSystem", "Linux"),
    ("preInstalledSw", "NA"),
    ("capacitystatus", "Used"),
    ("marketoption", "OnDemand"),
];

/// Product families, and the tenancy in which AWS lists an ordinary order of each.
pub(super) const FAMILIES: [(&str, &str); 2] =
    [("Compute Instance", "Shared"), ("Compute Instance (bare metal)", "Dedicated")];

/// The filters of the two questions that together have all types of a region: virtual machines and bare metal.
pub fn filters(region: &str) -> [Vec<Filter>; 2] {
    FAMILIES.map(|(family, tenancy)| {
        let own = [("regionCode", region), ("productFamily", family), ("tenancy", tenancy)];
        own.into_iter()
            .chain(COMMON)
            .map(|(field, value)| Filter { field, value: value.to_owned() })
            .collect()
    })
}

/// Why there is no price list to ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "AWS has no price list that can be asked from {region}; lay a catalogue file with prices over it (docs/catalogue.md)"
)]
pub struct NoPriceList {
    /// Where it was to be asked from.
    pub region: String,
}

/// The region of the endpoint to ask for prices of `region`: the list is served in few places, and credentials of one
/// partition do not work in another.
///
/// # Errors
///
/// In partitions without a list: GovCloud, the isolated ones, the European sovereign cloud.
pub fn endpoint(region: &str) -> Result<&'static str, NoPriceList> {
    let begins = |prefix: &str| region.starts_with(prefix);
    if ["us-gov-", "us-iso", "eu-isoe-", "eusc-"].into_iter().any(begins) {
        return Err(NoPriceList { region: region.to_owned() });
    }
    Ok(if begins("cn-") {
        "cn-northwest-1"
    } else if begins("ap-") {
        "ap-south-1"
    } else if begins("eu-") {
        "eu-central-1"
    } else {
        "us-east-1"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_asked_where_it_is_served_for_the_partition() {
        let of = |region: &str| endpoint(region).ok();
        assert_eq!(of("us-west-2"), Some("us-east-1"));
        assert_eq!(of("sa-east-1"), Some("us-east-1"));
        assert_eq!(of("ap-northeast-1"), Some("ap-south-1"));
        assert_eq!(of("eu-west-1"), Some("eu-central-1"));
        assert_eq!(of("cn-north-1"), Some("cn-northwest-1"));
        for none in ["us-gov-west-1", "us-iso-east-1", "us-isob-east-1", "eu-isoe-west-1", "eusc-de-east-1"] {
            let error = endpoint(none).expect_err("no list").to_string();
            assert!(error.contains(none) && error.contains("docs/catalogue.md"), "{error}");
        }
    }

    #[test]
    fn two_questions_have_virtual_machines_and_bare_metal() {
        let [virtual_machines, metal] = filters("eu-west-1");
        let value = |filters: &[Filter], field: &str| {
            filters.iter().find(|filter| filter.field == field).map(|filter| filter.value.clone())
        };
        assert_eq!(value(&virtual_machines, "regionCode").as_deref(), Some("eu-west-1"));
        assert_eq!(value(&virtual_machines, "tenancy").as_deref(), Some("Shared"));
        assert_eq!(value(&metal, "productFamily").as_deref(), Some("Compute Instance (bare metal)"));
        assert_eq!(value(&metal, "tenancy").as_deref(), Some("Dedicated"));
        assert_eq!((virtual_machines.len(), metal.len()), (7, 7));
    }
}
