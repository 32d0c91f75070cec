//! Resolves the subnets that a node class selects.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;
use poolwright_provider_contract::ProviderError;

use super::{tag_filters, unusable};
use crate::error::provider_error;
use crate::node_class::{ResolvedSubnet, SubnetSelectorTerm};

const FIELD: &str = "subnetSelectorTerms";

/// Returns the resources that match at least one term, sorted by id.
pub(super) async fn find(
    ec2: &aws_sdk_ec2::Client,
    class: &str,
    terms: &[SubnetSelectorTerm],
) -> Result<Vec<ResolvedSubnet>, ProviderError> {
    let mut found = BTreeMap::new();
    for (index, term) in terms.iter().enumerate() {
        let filters = match (&term.id, &term.tags) {
            // Use a filter, because a missing id in the parameter would fail the whole call.
            (Some(id), _) => vec![Filter::builder().name("subnet-id").values(id).build()],
            (None, Some(tags)) => tag_filters(tags),
            (None, None) => {
                return Err(unusable(class, &format!("{FIELD}[{index}]"), "give an id or tags"));
            }
        };
        let mut pages = ec2.describe_subnets().set_filters(Some(filters)).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeSubnets", error))?;
            for subnet in page.subnets() {
                let (Some(id), Some(zone)) = (subnet.subnet_id(), subnet.availability_zone()) else {
                    continue;
                };
                let resolved = ResolvedSubnet {
                    id: id.to_owned(),
                    zone: zone.to_owned(),
                    zone_id: subnet.availability_zone_id().map(str::to_owned),
                    available_addresses: subnet.available_ip_address_count().map(i64::from),
                };
                found.insert(id.to_owned(), resolved);
            }
        }
    }
    if found.is_empty() {
        let cause = "no subnet of this region meets a term: correct the ids, or put the tags on the subnets that nodes may use";
        return Err(unusable(class, FIELD, cause));
    }
    Ok(found.into_values().collect())
}
