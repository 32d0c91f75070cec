//! The CreateFleet call and its answer.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{
    CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest,
    FleetOnDemandAllocationStrategy, FleetType, OnDemandOptionsRequest, ResourceType, SpotAllocationStrategy,
    SpotOptionsRequest, TagSpecification, TargetCapacitySpecificationRequest,
};
use poolwright_catalog::{InstanceTypeName, OfferingId};
use poolwright_provider_aws_model::InstanceId;
use poolwright_provider_contract::{FailedOffering, LaunchError, ProviderError};
use poolwright_terms::CapacityType;

use super::order::{Order, Pool};
use crate::error::{code, launch_error, provider_error};
use crate::tags;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call launched these instances and failed for these offerings. Either list may be empty.
    Launched { instances: Vec<Launched>, failed: Vec<FailedOffering>, refused: Option<ProviderError> },
    /// The token was used before with other parameters. The instances of that call exist, or will show later.
    TokenUsed,
    /// A launch template of the order was deleted.
    TemplateGone,
}

/// A launched instance, as the answer describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Launched {
    pub id: InstanceId,
    pub offering: OfferingId,
}

/// Sends the order.
pub(crate) async fn create(ec2: &aws_sdk_ec2::Client, order: &Order) -> Result<Answer, ProviderError> {
    let tagged = |kind, tags| {
        TagSpecification::builder().resource_type(kind).set_tags(Some(tags::write(tags))).build()
    };
    let mut of_fleet = order.tags.clone();
    of_fleet.insert(tags::TOKEN.to_owned(), order.token.clone());
    let (kind, count) = match order.capacity_type {
        CapacityType::Spot => (DefaultTargetCapacityType::Spot, order.count),
        CapacityType::Reserved if order.block => (DefaultTargetCapacityType::CapacityBlock, order.count),
        CapacityType::OnDemand | CapacityType::Reserved => (DefaultTargetCapacityType::OnDemand, order.count),
    };
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let answer = ec2
        .create_fleet()
        .r#type(FleetType::Instant)
        .client_token(&order.token)
        .target_capacity_specification(
            TargetCapacitySpecificationRequest::builder()
                .default_target_capacity_type(kind)
                .total_target_capacity(count)
                .build(),
        )
        .spot_options(
            SpotOptionsRequest::builder()
                .allocation_strategy(SpotAllocationStrategy::PriceCapacityOptimized)
                .build(),
        )
        .on_demand_options(
            OnDemandOptionsRequest::builder()
                .allocation_strategy(FleetOnDemandAllocationStrategy::Prioritized)
                .build(),
        )
        .set_launch_template_configs(Some(configs(&order.pools, order.capacity_type)))
        .tag_specifications(tagged(ResourceType::Instance, &order.tags))
        .tag_specifications(tagged(ResourceType::Volume, &order.tags))
        .tag_specifications(tagged(ResourceType::Fleet, &of_fleet))
        .send()
        .await;
    match answer {
        Ok(answer) => Ok(read(order, answer.instances(), answer.errors())),
        Err(error) => match code(&error) {
            Some("IdempotentParameterMismatch" | "IdempotentInstanceTerminated") => Ok(Answer::TokenUsed),
            Some("InvalidLaunchTemplateName.NotFoundException" | "InvalidLaunchTemplateId.NotFound") => {
                Ok(Answer::TemplateGone)
            }
            _ => Err(provider_error("ec2:CreateFleet", error)),
        },
    }
}

/// Groups the pools by launch template and keeps their order.
fn configs(pools: &[Pool], capacity_type: CapacityType) -> Vec<FleetLaunchTemplateConfigRequest> {
    let mut by_template: BTreeMap<&str, Vec<FleetLaunchTemplateOverridesRequest>> = BTreeMap::new();
    for pool in pools {
        let mut one = FleetLaunchTemplateOverridesRequest::builder()
            .instance_type(pool.instance_type.as_str().into())
            .subnet_id(&pool.subnet);
        // EC2 chooses spot pools by price and depth. Priorities apply to on-demand capacity only.
        if capacity_type != CapacityType::Spot {
            one = one.priority(f64::from(u32::try_from(pool.rank).unwrap_or(u32::MAX)));
        }
        by_template.entry(&pool.template).or_default().push(one.build());
    }
    by_template
        .into_iter()
        .map(|(template, overrides)| {
            FleetLaunchTemplateConfigRequest::builder()
                .launch_template_specification(
                    FleetLaunchTemplateSpecificationRequest::builder()
                        .launch_template_name(template)
                        .version("$Latest")
                        .build(),
                )
                .set_overrides(Some(overrides))
                .build()
        })
        .collect()
}

fn read(order: &Order, instances: &[CreateFleetInstance], errors: &[CreateFleetError]) -> Answer {
    let mut launched = Vec::new();
    for group in instances {
        let overrides = group.launch_template_and_overrides().and_then(|both| both.overrides());
        let place = Place {
            instance_type: overrides
                .and_then(|one| one.instance_type())
                .or(group.instance_type())
                .map(AsRef::as_ref),
            subnet: overrides.and_then(|one| one.subnet_id()).or(group.subnet_id()),
            zone: overrides.and_then(|one| one.availability_zone()).or(group.availability_zone()),
        };
        let Some(offering) = place.offering(order) else { continue };
        let ids = group.instance_ids().iter().filter_map(|id| id.parse().ok());
        launched.extend(ids.map(|id| Launched { id, offering: offering.clone() }));
    }
    launched.sort_by(|a, b| a.id.cmp(&b.id));
    let mut failed: Vec<FailedOffering> = Vec::new();
    let mut refused = None;
    for error in errors {
        let (code, said) =
            (error.error_code().unwrap_or_default(), error.error_message().unwrap_or_default());
        let overrides = error.launch_template_and_overrides().and_then(|both| both.overrides());
        let place = Place {
            instance_type: overrides.and_then(|one| one.instance_type()).map(AsRef::as_ref),
            subnet: overrides.and_then(|one| one.subnet_id()),
            zone: overrides.and_then(|one| one.availability_zone()),
        };
        match (launch_error(code, said), place.offering(order)) {
            (LaunchError::Provider(error), _) => {
                refused.get_or_insert(error);
            }
            (error, Some(offering)) => {
                if !failed.iter().any(|one| one.offering == offering) {
                    failed.push(FailedOffering { offering, error });
                }
            }
            // The answer does not name the pool, so the error applies to the whole order.
            (error, None) => {
                for offering in order.offerings() {
                    if !failed.iter().any(|one| one.offering == offering) {
                        failed.push(FailedOffering { offering, error: error.clone() });
                    }
                }
            }
        }
    }
    Answer::Launched { instances: launched, failed, refused }
}

impl Order {
    /// Returns the offerings of the order without duplicates.
    fn offerings(&self) -> Vec<OfferingId> {
        let mut all: Vec<OfferingId> = self.pools.iter().map(|pool| self.offering(pool)).collect();
        all.dedup();
        all
    }

    fn offering(&self, pool: &Pool) -> OfferingId {
        OfferingId {
            instance_type: pool.instance_type.clone(),
            zone: pool.zone.clone(),
            capacity_type: self.capacity_type,
        }
    }
}

/// The pool that a part of the answer names.
struct Place<'a> {
    instance_type: Option<&'a str>,
    subnet: Option<&'a str>,
    zone: Option<&'a str>,
}

impl Place<'_> {
    /// Finds the offering of the order; `None` if the answer does not name one.
    fn offering(&self, order: &Order) -> Option<OfferingId> {
        let kind = InstanceTypeName::from(self.instance_type?);
        let is_meant = |pool: &&Pool| {
            pool.instance_type == kind
                && self.subnet.is_none_or(|subnet| subnet == pool.subnet)
                && self.zone.is_none_or(|zone| zone == pool.zone.as_str())
        };
        order.pools.iter().find(is_meant).map(|pool| order.offering(pool))
    }
}
