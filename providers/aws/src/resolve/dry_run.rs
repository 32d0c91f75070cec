//! A dry run of a launch, which shows whether AWS would allow it. With the parameter `DryRun`, EC2 checks the permissions of a
//! call and has no effect.
//!
//! The dry run makes the three calls of a launch: CreateLaunchTemplate, CreateFleet, and RunInstances. A fleet calls RunInstances
//! in Poolwright's name, and there EC2 checks whether Poolwright may pass the role of the nodes. The calls have the tags of a
//! launch, because policies depend on them. Source:
//! <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/CommonParameters.html>, `DryRun`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_ec2::types::{
    DefaultTargetCapacityType, FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetType, HttpTokensState, IamInstanceProfileSpecification,
    InstanceMetadataOptionsRequest, InstanceType, RequestLaunchTemplateData, ResourceType, TagSpecification,
    TargetCapacitySpecificationRequest,
};
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::Arch;
use poolwright_provider_contract::{ConditionOutcome, NodeClassCondition, ProviderError};

use super::ResolvedNodeClass;
use crate::error::{code, provider_error};
use crate::reason::AwsReason;
use crate::tags::{self, Tags};

/// The condition.
const KIND: &str = "Validated";
/// How long a successful dry run is valid. A launch that fails for lack of a permission ends that time.
const ALLOWED_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How soon a failed dry run is repeated. A person who adds a permission waits for the result.
const REFUSED_FOR: SignedDuration = SignedDuration::from_mins(2);
/// The name of a launch template that never exists.
const TEMPLATE: &str = "poolwright-dry-run";

/// The results of dry runs, by class.
#[derive(Debug, Default)]
pub(crate) struct DryRuns(Mutex<BTreeMap<String, DryRun>>);

#[derive(Clone, Debug)]
struct DryRun {
    /// The input of the dry run.
    about: DryRunInput,
    at: Timestamp,
    condition: NodeClassCondition,
}

/// The input of a dry run. If it changes, the dry run is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DryRunInput {
    image: String,
    kind: InstanceType,
    subnet: String,
    groups: Vec<String>,
    profile: String,
    tags: Tags,
}

impl DryRuns {
    /// Returns the condition of a resolved class, from a dry run now or from a recent one.
    pub async fn condition(
        &self,
        ec2: &aws_sdk_ec2::Client,
        cluster: &str,
        class: &ResolvedNodeClass,
        now: Timestamp,
    ) -> NodeClassCondition {
        let Some(about) = dry_run_input(cluster, class) else { return not_tried() };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&class.name).cloned();
        if let Some(known) = known.filter(|known| known.about == about) {
            let lasts =
                if known.condition.outcome == ConditionOutcome::True { ALLOWED_FOR } else { REFUSED_FOR };
            if now.duration_since(known.at).abs() < lasts {
                return known.condition;
            }
        }
        let condition = condition_of(try_all(ec2, cluster, &about).await);
        let verdict = DryRun { about, at: now, condition: condition.clone() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(class.name.clone(), verdict);
        condition
    }

    /// Forgets the result for this class.
    pub fn forget(&self, class: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(class);
    }
}

/// Returns the condition of a class with unresolved parts, for which a dry run is impossible.
pub(super) fn not_tried() -> NodeClassCondition {
    NodeClassCondition {
        kind: KIND,
        outcome: ConditionOutcome::Unknown,
        reason: AwsReason::NotTried.into(),
        message:
            "the dry run of a launch waits until subnets, security groups, images and the instance profile are found"
                .to_owned(),
    }
}

fn condition_of(tried: Result<(), ProviderError>) -> NodeClassCondition {
    let (outcome, reason, message) = match tried {
        Ok(()) => {
            (ConditionOutcome::True, AwsReason::Allowed, "the dry run of a launch succeeded".to_owned())
        }
        Err(ProviderError::Invalid(why)) => (ConditionOutcome::False, AwsReason::NotAllowed, why),
        Err(error) => (ConditionOutcome::NoAnswer, AwsReason::NoAnswer, error.to_string()),
    };
    NodeClassCondition { kind: KIND, outcome, reason: reason.into(), message }
}

fn dry_run_input(cluster: &str, class: &ResolvedNodeClass) -> Option<DryRunInput> {
    let image = class.images.first()?;
    // Every region has these types. Nothing is launched.
    let kind = if image.architecture == Arch::Arm64.as_str() { "m6g.large" } else { "m5.large" };
    let mut all = class.spec.tags.clone();
    all.insert(tags::CLUSTER.to_owned(), cluster.to_owned());
    all.insert(tags::of_kubernetes(cluster), "owned".to_owned());
    Some(DryRunInput {
        image: image.id.clone(),
        kind: kind.into(),
        subnet: class.subnets.first()?.id.clone(),
        groups: class.groups.iter().map(|group| group.id.clone()).collect(),
        profile: class.profile.clone(),
        tags: all,
    })
}

async fn try_all(ec2: &aws_sdk_ec2::Client, cluster: &str, about: &DryRunInput) -> Result<(), ProviderError> {
    let tagged = |kind| {
        TagSpecification::builder().resource_type(kind).set_tags(Some(tags::write(&about.tags))).build()
    };
    let own = Tags::from([
        (tags::CLUSTER.to_owned(), cluster.to_owned()),
        (tags::of_kubernetes(cluster), "owned".to_owned()),
    ]);
    let template = ec2
        .create_launch_template()
        .dry_run(true)
        .launch_template_name(TEMPLATE)
        .launch_template_data(RequestLaunchTemplateData::builder().image_id(&about.image).build())
        .tag_specifications(
            TagSpecification::builder()
                .resource_type(ResourceType::LaunchTemplate)
                .set_tags(Some(tags::write(&own)))
                .build(),
        )
        .send()
        .await;
    allowed("ec2:CreateLaunchTemplate", template)?;
    let pool = FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(about.kind.clone())
        .subnet_id(&about.subnet);
    let fleet = ec2
        .create_fleet()
        .dry_run(true)
        .r#type(FleetType::Instant)
        .target_capacity_specification(
            TargetCapacitySpecificationRequest::builder()
                .default_target_capacity_type(DefaultTargetCapacityType::OnDemand)
                .total_target_capacity(1)
                .build(),
        )
        .launch_template_configs(
            FleetLaunchTemplateConfigRequest::builder()
                .launch_template_specification(
                    FleetLaunchTemplateSpecificationRequest::builder()
                        .launch_template_name(TEMPLATE)
                        .version("$Latest")
                        .build(),
                )
                .overrides(pool.build())
                .build(),
        )
        .tag_specifications(tagged(ResourceType::Instance))
        .tag_specifications(tagged(ResourceType::Volume))
        .tag_specifications(tagged(ResourceType::Fleet))
        .send()
        .await;
    allowed("ec2:CreateFleet", fleet)?;
    let instances = ec2
        .run_instances()
        .dry_run(true)
        .min_count(1)
        .max_count(1)
        .image_id(&about.image)
        .instance_type(about.kind.clone())
        .subnet_id(&about.subnet)
        .set_security_group_ids(Some(about.groups.clone()))
        .iam_instance_profile(IamInstanceProfileSpecification::builder().name(&about.profile).build())
        // Policies of organizations may reject launches without this setting.
        .metadata_options(
            InstanceMetadataOptionsRequest::builder().http_tokens(HttpTokensState::Required).build(),
        )
        .tag_specifications(tagged(ResourceType::Instance))
        .tag_specifications(tagged(ResourceType::Volume))
        .send()
        .await;
    allowed("ec2:RunInstances", instances)
}

/// Interprets the response to a dry run. EC2 returns an error for a permitted one, too.
fn allowed<T, E, R>(action: &str, answer: Result<T, SdkError<E, R>>) -> Result<(), ProviderError>
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
    R: std::fmt::Debug + Send + Sync + 'static,
{
    match answer {
        // EC2 never returns success to a dry run, but a simulated AWS may. The call had no effect.
        Ok(_) => Ok(()),
        Err(error) => match code(&error) {
            // EC2 returns these errors only to permitted callers: the template does not exist, or the zone does not offer the
            // type.
            Some("DryRunOperation" | "Unsupported") => Ok(()),
            Some(code) if code.starts_with("InvalidLaunchTemplateName.NotFound") => Ok(()),
            _ => Err(provider_error(action, error)),
        },
    }
}
