//! Probes each action with a dry run, or with a harmless call if the service has no dry runs.
//!
//! No probe may launch, terminate, create or change anything, even if the endpoint is not AWS. A call that could have an effect
//! is a dry run, or names a resource that does not exist.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{
    FleetLaunchTemplateConfigRequest, FleetLaunchTemplateSpecificationRequest, FleetType,
    IamInstanceProfileSpecification, InstanceType as Ec2Type, RequestLaunchTemplateData, ResourceType,
    TagSpecification, TargetCapacitySpecificationRequest,
};
use aws_sdk_sqs::types::DeleteMessageBatchRequestEntry;
use poolwright_provider_aws_model::prices::request;

use super::Scope;
use super::answer::CallResult;
use super::classes::Parts;
use super::permissions::Probe;
use super::queue::QueueState as Queue;
use crate::clients::Clients;
use crate::resolve::ProfileState;
use crate::{instances, tags};

/// A name that no resource has.
const NOBODY: &str = "poolwright-check-nobody";
/// IAM checks the permission first, then looks up the profile.
const IAM_LETS_THROUGH: &[&str] = &["NoSuchEntity", "EntityAlreadyExists", "LimitExceeded"];

type All = BTreeMap<&'static str, Probe>;

/// Probes every action.
pub(super) async fn try_all(clients: &Clients, scope: &Scope, parts: &[Parts<'_>], queue: &Queue) -> All {
    let (looks, launches, ends, iam, sqs) = futures::join!(
        // Boxed: the SDK's calls are large.
        Box::pin(looks(clients, parts)),
        Box::pin(launches(clients, scope, parts)),
        Box::pin(ends(clients, scope)),
        Box::pin(iam(clients, parts)),
        Box::pin(sqs(clients, queue)),
    );
    [looks, launches, ends, iam, sqs].into_iter().flatten().collect()
}

fn called(answer: CallResult) -> Probe {
    Probe::Called(answer, &[])
}

async fn looks(clients: &Clients, parts: &[Parts<'_>]) -> All {
    let ec2 = &clients.ec2;
    let names_group = parts.iter().any(|(_, spec, _)| spec.placement_group.is_some());
    let placement = async {
        if !names_group {
            return Probe::Skipped("not needed, because no EC2NodeClass names a placement group".to_owned());
        }
        called(CallResult::of(&ec2.describe_placement_groups().dry_run(true).send().await))
    };
    let prices = async {
        let Some(pricing) = &clients.pricing else {
            return Probe::Skipped("AWS has no price list for this region".to_owned());
        };
        let asked = pricing.get_products().service_code(request::SERVICE_CODE).max_results(1).send().await;
        called(CallResult::of(&asked))
    };
    // Poolwright needs this action when the response of a launch is lost.
    let fleets = async { CallResult::of(&ec2.describe_fleets().dry_run(true).send().await) };
    let of_fleets = async { CallResult::of(&ec2.describe_tags().dry_run(true).send().await) };
    let (fleets, of_fleets) = futures::join!(fleets, of_fleets);
    // Poolwright needs these actions for interruptions and for reservations.
    let (placement, reservations, statuses, requests) = futures::join!(
        placement,
        async { CallResult::of(&ec2.describe_capacity_reservations().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_instance_status().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_spot_instance_requests().dry_run(true).send().await) },
    );
    let (images, offerings, types, instances, templates, groups, spot, subnets, prices, parameters) = futures::join!(
        async { CallResult::of(&ec2.describe_images().owners("self").dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_instance_type_offerings().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_instance_types().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_instances().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_launch_templates().dry_run(true).send().await) },
        async { CallResult::of(&ec2.describe_security_groups().dry_run(true).send().await) },
        async {
            CallResult::of(&ec2.describe_spot_price_history().max_results(1).dry_run(true).send().await)
        },
        async { CallResult::of(&ec2.describe_subnets().dry_run(true).send().await) },
        prices,
        async {
            let name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64";
            CallResult::of(&clients.ssm.get_parameters().names(name).send().await)
        },
    );
    BTreeMap::from([
        ("ec2:DescribePlacementGroups", placement),
        ("ec2:DescribeCapacityReservations", called(reservations)),
        ("ec2:DescribeInstanceStatus", called(statuses)),
        ("ec2:DescribeSpotInstanceRequests", called(requests)),
        ("ec2:DescribeFleets", called(fleets)),
        ("ec2:DescribeImages", called(images)),
        ("ec2:DescribeInstanceTypeOfferings", called(offerings)),
        ("ec2:DescribeInstanceTypes", called(types)),
        ("ec2:DescribeInstances", called(instances)),
        ("ec2:DescribeLaunchTemplates", called(templates)),
        ("ec2:DescribeSecurityGroups", called(groups)),
        ("ec2:DescribeSpotPriceHistory", called(spot)),
        ("ec2:DescribeSubnets", called(subnets)),
        ("ec2:DescribeTags", called(of_fleets)),
        ("pricing:GetProducts", prices),
        ("ssm:GetParameters", called(parameters)),
    ])
}

/// Returns the tag that the policy requires of every new resource.
fn tagged(scope: &Scope, kind: ResourceType) -> TagSpecification {
    let tags = tags::Tags::from([(tags::CLUSTER.to_owned(), scope.cluster.clone())]);
    TagSpecification::builder().resource_type(kind).set_tags(Some(tags::write(&tags))).build()
}

async fn launches(clients: &Clients, scope: &Scope, parts: &[Parts<'_>]) -> All {
    let ec2 = &clients.ec2;
    let template = async {
        let data = RequestLaunchTemplateData::builder().instance_type(Ec2Type::T3Micro).build();
        let made = ec2
            .create_launch_template()
            .dry_run(true)
            .launch_template_name(NOBODY)
            .launch_template_data(data)
            .tag_specifications(tagged(scope, ResourceType::LaunchTemplate));
        called(CallResult::of(&made.send().await))
    };
    let (template, fleet, run) = futures::join!(template, fleet(clients, scope), run(clients, scope, parts));
    let mut all = BTreeMap::from([("ec2:CreateLaunchTemplate", template), ("ec2:CreateFleet", fleet)]);
    all.extend(run);
    all
}

/// Probes a fleet with a launch template of this cluster, if one exists: EC2 looks up the template before it checks the
/// permission.
async fn fleet(clients: &Clients, scope: &Scope) -> Probe {
    let own = aws_sdk_ec2::types::Filter::builder()
        .name(format!("tag:{}", tags::CLUSTER))
        .values(&scope.cluster)
        .build();
    let found = clients.ec2.describe_launch_templates().filters(own).send().await;
    let name =
        found.ok().and_then(|all| Some(all.launch_templates().first()?.launch_template_name()?.to_owned()));
    let template = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_name(name.as_deref().unwrap_or(NOBODY))
        .version("$Latest")
        .build();
    let wanted = TargetCapacitySpecificationRequest::builder().total_target_capacity(1).build();
    let made = clients
        .ec2
        .create_fleet()
        .dry_run(true)
        .r#type(FleetType::Instant)
        .target_capacity_specification(wanted)
        .launch_template_configs(
            FleetLaunchTemplateConfigRequest::builder().launch_template_specification(template).build(),
        )
        .tag_specifications(tagged(scope, ResourceType::Fleet));
    let answer = CallResult::of(&made.send().await);
    match (&answer, &name) {
        (CallResult::Refused { code, .. }, None) if code.contains("NotFound") => Probe::Skipped(
            "the probe needs a launch template of this cluster, which the first launch creates".to_owned(),
        ),
        _ => called(answer),
    }
}

/// Probes the launch of an instance of the first fully resolved class. Without a role it probes RunInstances and the tags; with a
/// role, also iam:PassRole.
async fn run(clients: &Clients, scope: &Scope, parts: &[Parts<'_>]) -> All {
    let usable = parts.iter().find_map(|(_, _, parts)| {
        let subnet = parts.subnets.as_ref().ok()?.first()?;
        let group = parts.groups.as_ref().ok()?.first()?;
        let image = parts.images.as_ref().ok()?.first()?;
        Some((subnet, group, image, parts))
    });
    let Some((subnet, group, image, parts)) = usable else {
        let why = "the probe needs an EC2NodeClass with subnets, security groups and an image";
        return ["ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"]
            .map(|action| (action, Probe::Skipped(why.to_owned())))
            .into();
    };
    let kind = if image.architecture == "arm64" { Ec2Type::T4gMicro } else { Ec2Type::T3Micro };
    let ask = || {
        clients
            .ec2
            .run_instances()
            .dry_run(true)
            .image_id(&image.id)
            .instance_type(kind.clone())
            .subnet_id(&subnet.id)
            .security_group_ids(&group.id)
            .min_count(1)
            .max_count(1)
            .tag_specifications(tagged(scope, ResourceType::Instance))
            .tag_specifications(tagged(scope, ResourceType::Volume))
    };
    let run = CallResult::of(&ask().send().await);
    let pass = match &parts.profile {
        _ if run.is_forbidden() => {
            Probe::Skipped("the same call without a role is already refused".to_owned())
        }
        Ok(ProfileState::Exists(profile)) => {
            let profile = IamInstanceProfileSpecification::builder().name(profile).build();
            called(CallResult::of(&ask().iam_instance_profile(profile).send().await))
        }
        Ok(ProfileState::ToCreate { profile, .. }) => Probe::Skipped(format!(
            "the probe needs the instance profile {profile}, which Poolwright creates with the first node"
        )),
        Err(_) => Probe::Skipped("the probe needs an instance profile".to_owned()),
    };
    // The call includes tags, so the error names ec2:CreateTags if that permission is missing.
    let tags = match &run {
        CallResult::Refused { blamed: None, .. } if run.is_forbidden() => {
            Probe::Skipped("the call with tags is refused, and AWS does not say for which action".to_owned())
        }
        _ => called(run.clone()),
    };
    BTreeMap::from([("ec2:RunInstances", called(run)), ("ec2:CreateTags", tags), ("iam:PassRole", pass)])
}

async fn ends(clients: &Clients, scope: &Scope) -> All {
    let own = instances::list(&clients.ec2, &scope.cluster).await;
    let instance = own.ok().and_then(|own| Some(own.found.first()?.id.to_string()));
    let terminate = match instance {
        // EC2 looks up the instance before it checks the permission.
        Some(id) => called(CallResult::of(
            &clients.ec2.terminate_instances().dry_run(true).instance_ids(id).send().await,
        )),
        None => Probe::Skipped("the probe needs an instance of this cluster".to_owned()),
    };
    let deleted =
        clients.ec2.delete_launch_template().dry_run(true).launch_template_name(NOBODY).send().await;
    let delete = match CallResult::of(&deleted) {
        CallResult::Refused { code, .. } if code.contains("NotFound") => Probe::Skipped(
            "EC2 looks up the launch template before it checks the permission, and the probe risks no existing one".to_owned(),
        ),
        answer => called(answer),
    };
    BTreeMap::from([("ec2:TerminateInstances", terminate), ("ec2:DeleteLaunchTemplate", delete)])
}

async fn iam(clients: &Clients, parts: &[Parts<'_>]) -> All {
    let iam = &clients.iam;
    let there = parts.iter().find_map(|(_, _, parts)| match &parts.profile {
        // Other profiles belong to the user, and Poolwright needs no permission to create them.
        Ok(ProfileState::Exists(profile)) => {
            Some(profile.as_str()).filter(|name| name.starts_with("poolwright-"))
        }
        _ => None,
    });
    let get = CallResult::of(&iam.get_instance_profile().instance_profile_name(NOBODY).send().await);
    let add = CallResult::of(
        &iam.add_role_to_instance_profile().instance_profile_name(NOBODY).role_name(NOBODY).send().await,
    );
    let create = match there {
        // The profile exists, so the call creates nothing.
        Some(profile) => {
            let made = iam.create_instance_profile().instance_profile_name(profile).send().await;
            Probe::Called(CallResult::of(&made), IAM_LETS_THROUGH)
        }
        None => Probe::Skipped(
            "IAM has no dry runs, and the probe needs an existing instance profile of Poolwright".to_owned(),
        ),
    };
    BTreeMap::from([
        ("iam:GetInstanceProfile", Probe::Called(get, IAM_LETS_THROUGH)),
        ("iam:AddRoleToInstanceProfile", Probe::Called(add, IAM_LETS_THROUGH)),
        ("iam:CreateInstanceProfile", create),
    ])
}

async fn sqs(clients: &Clients, queue: &Queue) -> All {
    let not = |why: &str| Probe::Skipped(why.to_owned());
    let url = match (&queue.lookup, &queue.url) {
        (None, _) => not("no queue is given (--aws-interruption-queue)"),
        (Some(answer), _) => {
            Probe::Called(answer.clone(), &["AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"])
        }
    };
    let (receive, delete) = match &queue.url {
        None => (not("the probe needs a queue"), not("the probe needs a queue")),
        Some(url) => {
            // An invalid receipt deletes nothing. SQS rejects it only after it has checked the permission.
            let entry = DeleteMessageBatchRequestEntry::builder().id("0").receipt_handle(NOBODY).build().ok();
            let deleted =
                clients.sqs.delete_message_batch().queue_url(url).set_entries(entry.map(|one| vec![one]));
            let delete = Probe::Called(CallResult::of(&deleted.send().await), &["ReceiptHandleIsInvalid"]);
            let receive = match queue.messages {
                // SQS counts each receive of a message towards the dead-letter limit, so leave messages to the controller.
                Some(0) => {
                    let received = clients
                        .sqs
                        .receive_message()
                        .queue_url(url)
                        .visibility_timeout(0)
                        .wait_time_seconds(0);
                    called(CallResult::of(&received.send().await))
                }
                Some(_) => not(
                    "the queue has messages, and SQS would count the probe towards their dead-letter limit",
                ),
                None => not(
                    "the queue may have messages, and SQS would count the probe towards their dead-letter limit",
                ),
            };
            (receive, delete)
        }
    };
    BTreeMap::from([("sqs:GetQueueUrl", url), ("sqs:ReceiveMessage", receive), ("sqs:DeleteMessage", delete)])
}
