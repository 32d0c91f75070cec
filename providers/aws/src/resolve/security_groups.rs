//! Resolves the security groups that a node class selects.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::Filter;
use poolwright_provider_contract::ProviderError;

use super::{tag_filters, unusable};
use crate::error::provider_error;
use crate::node_class::{ResolvedSecurityGroup, SecurityGroupSelectorTerm};

const FIELD: &str = "securityGroupSelectorTerms";

/// Returns the resources that match at least one term, sorted by id.
pub(super) async fn find(
    ec2: &aws_sdk_ec2::Client,
    class: &str,
    terms: &[SecurityGroupSelectorTerm],
) -> Result<Vec<ResolvedSecurityGroup>, ProviderError> {
    let mut found = BTreeMap::new();
    let filter = |name: &str, value: &str| vec![Filter::builder().name(name).values(value).build()];
    for (index, term) in terms.iter().enumerate() {
        let filters = match (&term.id, &term.name, &term.tags) {
            (Some(id), ..) => filter("group-id", id),
            (None, Some(name), _) => filter("group-name", name),
            (None, None, Some(tags)) => tag_filters(tags),
            (None, None, None) => {
                return Err(unusable(class, &format!("{FIELD}[{index}]"), "give an id, a name or tags"));
            }
        };
        let mut pages = ec2.describe_security_groups().set_filters(Some(filters)).into_paginator().send();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| provider_error("ec2:DescribeSecurityGroups", error))?;
            for group in page.security_groups() {
                let Some(id) = group.group_id() else { continue };
                let resolved =
                    ResolvedSecurityGroup { id: id.to_owned(), name: group.group_name().map(str::to_owned) };
                found.insert(id.to_owned(), resolved);
            }
        }
    }
    if found.is_empty() {
        let cause = "no security group of this region meets a term: correct the ids or names, or put the tags on the groups of the nodes";
        return Err(unusable(class, FIELD, cause));
    }
    Ok(found.into_values().collect())
}
