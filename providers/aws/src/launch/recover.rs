//! Recovery of orders whose answer was lost: EC2 keeps the instances of each fleet.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{DescribeFleetsInstances, Filter, FleetData, TargetCapacitySpecification};
use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_contract::ProviderError;

use crate::error::provider_error;
use crate::instances::Listing;
use crate::provider::AwsProvider;
use crate::tags;

impl AwsProvider {
    /// Returns whether EC2 shows all instances that the order with this token launched. Only then is a missing instance one that
    /// was not launched, so that the provider may order it with another token.
    pub(super) async fn lists_all_of(&self, token: &str) -> Result<bool, ProviderError> {
        let Some(launched) = launched_with(&self.clients().ec2, token).await? else { return Ok(false) };
        Ok(shows(&*self.list_instances().await?, &launched))
    }
}

/// Makes the error of an order whose outcome is unknown.
pub(super) fn outcome_unknown(token: &str) -> ProviderError {
    ProviderError::Transient(format!(
        "ec2:CreateFleet was called with the token {token} before, and EC2 does not show the result yet. Poolwright waits for it, \
         because a second call could buy the same instances twice"
    ))
}

/// Returns the instances that the order with this token launched; `None` while EC2 does not show its fleet.
///
/// DescribeFleets finds a fleet of type `instant` only by its id, so the provider finds the fleet by its tag first. Source:
/// <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeFleets.html>.
async fn launched_with(
    ec2: &aws_sdk_ec2::Client,
    token: &str,
) -> Result<Option<BTreeSet<InstanceId>>, ProviderError> {
    let filter = |name: &str, value: &str| Filter::builder().name(name).values(value).build();
    let tagged = ec2
        .describe_tags()
        .filters(filter("resource-type", "fleet"))
        .filters(filter(&format!("tag:{}", tags::TOKEN), token))
        .send()
        .await
        .map_err(|error| provider_error("ec2:DescribeTags", error))?;
    let fleets: BTreeSet<String> =
        tagged.tags().iter().filter_map(|tag| tag.resource_id().map(str::to_owned)).collect();
    if fleets.is_empty() {
        return Ok(None);
    }
    let described = ec2
        .describe_fleets()
        .set_fleet_ids(Some(fleets.iter().cloned().collect()))
        .send()
        .await
        .map_err(|error| provider_error("ec2:DescribeFleets", error))?;
    if described.fleets().len() < fleets.len() {
        return Ok(None);
    }
    if !described.fleets().iter().all(has_ended) {
        return Ok(None);
    }
    // An id that cannot be parsed counts as not shown.
    Ok(described.fleets().iter().flat_map(ids).map(|id| id.parse().ok()).collect())
}

fn ids(fleet: &FleetData) -> impl Iterator<Item = &String> {
    fleet.instances().iter().flat_map(DescribeFleetsInstances::instance_ids)
}

/// Returns whether EC2 shows the outcome of a fleet: all requested instances, or an error.
fn has_ended(fleet: &FleetData) -> bool {
    let target = fleet.target_capacity_specification();
    let wanted = target.and_then(TargetCapacitySpecification::total_target_capacity);
    let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
    !fleet.errors().is_empty() || wanted.is_some_and(|wanted| ids(fleet).count() >= wanted)
}

fn shows(listing: &Listing, launched: &BTreeSet<InstanceId>) -> bool {
    let is_found = |id: &InstanceId| listing.found.iter().any(|found| found.id == *id);
    launched.iter().all(|id| listing.gone.contains(id) || is_found(id))
}
