//! The requests to AWS's price list, and its endpoints.
//!
//! Source: <https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html>.

/// The service code of EC2 in the price list.
pub const SERVICE_CODE: &str = "AmazonEC2";
/// The page size. GetProducts allows no more.
pub const PAGE: i32 = 100;

/// A filter of GetProducts, of the type `TERM_MATCH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The attribute.
    pub field: &'static str,
    /// The value.
    pub value: String,
}

/// The attributes of all entries that Poolwright uses: Linux without preinstalled software, in use, priced per hour. A missing
/// attribute of an entry is not checked.
pub(super) const COMMON: [(&str, &str); 4] = [
    ("operatingSystem", "Linux"),
    ("preInstalledSw", "NA"),
    ("capacitystatus", "Used"),
    ("marketoption", "OnDemand"),
];

/// The product families, and the tenancy with which AWS lists the shared instances of each.
pub(super) const FAMILIES: [(&str, &str); 2] =
    [("Compute Instance", "Shared"), ("Compute Instance (bare metal)", "Dedicated")];

/// Returns the filters of two requests that together cover all types of a region: virtual machines and bare metal.
pub fn filters(region: &str) -> [Vec<Filter>; 2] {
    FAMILIES.map(|(family, tenancy)| {
        let own = [("regionCode", region), ("productFamily", family), ("tenancy", tenancy)];
        own.into_iter()
            .chain(COMMON)
            .map(|(field, value)| Filter { field, value: value.to_owned() })
            .collect()
    })
}

/// The error for a region without a price list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("AWS has no price list for {region}; add prices with a catalogue file (docs/catalogue.md)")]
pub struct NoPriceList {
    /// The region.
    pub region: String,
}

/// Returns the region of the price list endpoint for prices of `region`. Few regions have such an endpoint, and credentials of
/// one partition do not work in another.
///
/// # Errors
///
/// The partition has no price list: GovCloud, the isolated partitions, the European sovereign cloud.
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
