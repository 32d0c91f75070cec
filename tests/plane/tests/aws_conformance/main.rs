//! The AWS provider against moto, behind a front that adds what moto lacks. The conformance suite runs with and without failing
//! calls.

mod bad_input;
mod batches;
mod classes;
mod fields;
mod on_a_cluster;
mod persistent;
mod polled_interruptions;
mod reserved;
mod silence;
mod spot;
mod tokens;
mod world;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::ensure;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::join_all;
use poolwright_catalog::RankedOffering;
use poolwright_plane::{measurement, wait_for};
use poolwright_provider_aws::AwsProvider;
use poolwright_provider_contract::conformance::{Failure, Fixture, World, run_concurrently};
use poolwright_provider_contract::{
    CloudProvider, Instance, LaunchError, LaunchRequest, NodeClassStatusSource, ProviderError, instance_of,
};
use poolwright_terms::{CapacityType, InterruptionKind};
use serde_json::json;
use world::{AwsWorld, eks, pool, training, warning};

/// Long compared with the time that moto and the front need.
const SOON: Duration = Duration::from_mins(1);

/// Returns the seeds that each test of random failures plays. `SEEDS` sets their number, and `make soak` plays four.
fn seeds() -> RangeInclusive<u64> {
    1..=measurement::variable("SEEDS", 1).unwrap()
}

/// The number of cases of the suite that run concurrently.
const AT_A_TIME: usize = 6;

/// Makes worlds for the suite, in which this percentage of calls fails.
struct Aws {
    trouble: u64,
}

#[async_trait(?Send)]
impl Fixture for Aws {
    async fn world(&self, case: &'static str) -> Result<Box<dyn World>, Failure> {
        let world = AwsWorld::for_the_suite().await.map_err(|error| format!("no world: {error:#}"))?;
        if self.trouble > 0 {
            // Each case has its own failures, the same in every run.
            let seed =
                case.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
            world.front.show_late(1);
            world.trouble(self.trouble, seed);
        }
        Ok(Box::new(world))
    }
}

#[tokio::test]
async fn the_aws_provider_passes_the_conformance_suite() {
    let report = run_concurrently(&Aws { trouble: 0 }, AT_A_TIME).await;
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[tokio::test]
async fn the_aws_provider_passes_the_conformance_suite_although_three_of_ten_calls_fail() {
    let report = run_concurrently(&Aws { trouble: 30 }, AT_A_TIME).await;
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[tokio::test]
async fn a_provider_remembers_its_unlisted_instance_and_does_not_launch_it_again() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    world.front.show_late(1000);
    let request = world.request(0, &offerings);
    let launched = provider.launch(&request).await.unwrap().instance;
    assert_eq!(provider.list().await.unwrap(), std::slice::from_ref(&launched));
    assert_eq!(provider.get(&launched.provider_id).await.unwrap(), Some(launched.clone()));
    assert_eq!(provider.launch(&request).await.unwrap().instance, launched);
    // A new provider sees no instances, and orders with the same token.
    let restarted = world.connect().await.unwrap();
    assert_eq!(restarted.list().await.unwrap(), []);
    let again = restarted.launch(&request).await.unwrap().instance;
    assert_eq!(again.provider_id, launched.provider_id);
    assert_eq!(world.front.calls()["ec2:CreateFleet"], 2);
    world.front.show_late(0);
}

/// Repeats launches after transient errors, as the controller does. Although three of ten calls fail in various ways, each claim
/// gets exactly one instance.
#[tokio::test]
async fn each_claim_gets_one_instance_although_three_of_ten_calls_fail() {
    join_all(seeds().map(each_claim_gets_one_instance)).await;
}

async fn each_claim_gets_one_instance(seed: u64) {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    world.front.show_late(1);
    world.trouble(30, seed);
    let requests: Vec<_> = (0..12).map(|number| world.request(number, &offerings)).collect();
    let launched = join_all(requests.iter().map(|request| until_launched(&world, &provider, request))).await;
    let mut ids: Vec<_> = launched.iter().map(|instance| instance.provider_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), requests.len(), "seed {seed}");

    world.trouble(0, 0);
    let all = world.connect().await.unwrap();
    wait_for("all instances to show", SOON, async || {
        let listed = all.list().await?;
        ensure!(listed.len() == requests.len(), "{} are listed", listed.len());
        Ok(())
    })
    .await
    .unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
    world.trouble(30, seed + 100);
    for request in &requests {
        wait_for("its end", SOON, async || {
            ensure!(provider.terminate(&request.key).await?, "it is still going");
            Ok(())
        })
        .await
        .unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
    }
    world.trouble(0, 0);
    assert_eq!(all.list().await.unwrap(), [], "seed {seed}");
}

#[tokio::test]
async fn a_refused_offering_is_reported_with_its_kind_of_failure() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let [first, second] = [&offerings[0].offering, &offerings[1].offering];
    for (number, (code, is_quota)) in [
        ("InsufficientInstanceCapacity", false),
        ("UnfulfillableCapacity", false),
        ("VcpuLimitExceeded", true),
        ("MaxSpotInstanceCountExceeded", true),
    ]
    .into_iter()
    .enumerate()
    {
        world.front.refuse([(pool(first), code.to_owned())]);
        let launched = provider.launch(&world.request(number, &offerings)).await.unwrap();
        assert_eq!(launched.instance.offering, *second, "{code}");
        let [failed] = &launched.failed[..] else { panic!("{code}: {:?}", launched.failed) };
        assert_eq!(failed.offering, *first, "{code}");
        assert_eq!(matches!(failed.error, LaunchError::Quota(_)), is_quota, "{code}");
        assert!(failed.error.to_string().contains(code), "{}", failed.error);
    }
}

#[tokio::test]
async fn a_denied_launch_names_the_permission_and_launches_nothing() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    for action in ["ec2:CreateFleet", "ec2:CreateLaunchTemplate"] {
        let fresh = world.connect().await.unwrap();
        world.front.forbid([action.to_owned()]);
        let error = fresh.launch(&world.request(0, &offerings)).await.unwrap_err();
        let LaunchError::Provider(ProviderError::Invalid(told)) = error else { panic!("{error}") };
        assert!(told.contains(&format!("add {action} to the policy")), "{told}");
        // The response is not checked, because this account may hold templates of other tests.
        world.front.call("ec2", "Action=DescribeLaunchTemplates&Version=2016-11-15").await.unwrap();
    }
    world.front.forbid([]);
    for (action, class) in [("iam:GetInstanceProfile", "profile"), ("ec2:DescribeSubnets", "subnets")] {
        world.front.forbid([action.to_owned()]);
        let fresh = world.connect().await.unwrap();
        let error = fresh.catalogue(&world.node_class()).await.unwrap_err().to_string();
        assert!(error.contains(action), "{class}: {error}");
    }
    world.front.forbid([]);
    assert_eq!(provider.list().await.unwrap(), []);
}

#[tokio::test]
async fn a_class_without_matches_names_the_field_and_the_fix() {
    let world = AwsWorld::new().await.unwrap();
    let told = async |patch: serde_json::Value| {
        world.merge_class(patch);
        let provider = world.connect().await.unwrap();
        let error = provider.catalogue(&world.node_class()).await.expect_err("nothing is found");
        world.reset_class();
        assert!(matches!(error, ProviderError::Invalid(_)), "{error}");
        error.to_string()
    };
    let wrong = [
        (json!({"subnetSelectorTerms": [{"tags": {"team": "nobody"}}]}), "spec.subnetSelectorTerms"),
        (json!({"securityGroupSelectorTerms": [{"name": "nobody's"}]}), "spec.securityGroupSelectorTerms"),
        (json!({"amiSelectorTerms": [{"id": "ami-00000000000000000"}]}), "spec.amiSelectorTerms"),
        (
            json!({"amiFamily": null, "amiSelectorTerms": [{"alias": "al2023@latest"}]}),
            "AWS has no image al2023@latest",
        ),
        (json!({"instanceProfile": "nobody"}), "no instance profile `nobody`"),
        (json!({"instanceProfile": null, "role": "nobody"}), "no IAM role `nobody`"),
    ];
    for (patch, words) in wrong {
        let error = told(patch).await;
        assert!(error.contains("EC2NodeClass `gpu`") && error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_role_gets_one_instance_profile_and_an_alias_selects_published_images() {
    let world = AwsWorld::new().await.unwrap();
    let base = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023";
    world.front.publish([
        (format!("{base}/x86_64/standard/recommended/image_id"), world.account.image.clone()),
        (format!("{base}/arm64/standard/recommended/image_id"), world.account.arm_image.clone()),
    ]);
    let role = world.account.role.clone();
    world.merge_class(json!({
        "amiFamily": "Custom", "amiSelectorTerms": [{"alias": "al2023@latest"}], "instanceProfile": null, "role": role,
    }));
    let provider = world.connect().await.unwrap();
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let has = |name: &str| catalogue.instance_type(&name.into()).is_some();
    assert!(has("m7i.large") && has("m7g.large"), "both processors have an image");
    assert!(!has("g5.xlarge"), "AWS publishes no image with NVIDIA's driver here");
    provider.catalogue(&world.node_class()).await.unwrap();
    let calls = world.front.calls();
    assert_eq!(calls["iam:AddRoleToInstanceProfile"], 1, "{calls:?}");
}

#[tokio::test]
async fn nodes_do_not_use_an_instance_profile_with_a_foreign_role() {
    let world = AwsWorld::new().await.unwrap();
    let iam = async |query: String| {
        world.front.call("iam", &format!("{query}&Version=2010-05-08")).await.unwrap();
    };
    let (role, profile) = (world.cluster.clone(), format!("poolwright-{}", world.cluster));
    let trust = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D";
    iam(format!("Action=CreateRole&RoleName={role}&AssumeRolePolicyDocument={trust}")).await;
    iam(format!("Action=CreateInstanceProfile&InstanceProfileName={profile}")).await;
    let other = &world.account.role;
    iam(format!("Action=AddRoleToInstanceProfile&InstanceProfileName={profile}&RoleName={other}")).await;
    world.merge_class(json!({"instanceProfile": null, "role": role}));
    let error = world.connect().await.unwrap().catalogue(&world.node_class()).await.unwrap_err().to_string();
    assert!(error.contains(&profile) && error.contains(other) && error.contains("spec.role"), "{error}");
}

#[tokio::test]
async fn simultaneous_launches_share_listings() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let before = world.front.calls().get("ec2:DescribeInstances").copied().unwrap_or(0);
    let requests: Vec<_> = (0..50).map(|number| world.request(number, &offerings)).collect();
    let launched = join_all(requests.iter().map(|request| provider.launch(request))).await;
    assert!(launched.iter().all(Result::is_ok), "{launched:?}");
    let listings = world.front.calls()["ec2:DescribeInstances"] - before;
    assert!(listings <= 5, "{listings} listings for 50 launches");
    let ended = join_all(requests.iter().map(|request| provider.terminate(&request.key))).await;
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    let calls = world.front.calls();
    assert!(calls["ec2:TerminateInstances"] <= 3, "{calls:?}");
}

#[tokio::test]
async fn launch_templates_unused_for_an_hour_are_deleted_and_foreign_ones_stay() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let foreign = "Action=CreateLaunchTemplate&Version=2016-11-15&LaunchTemplateName=somebody-s&LaunchTemplateData.ImageId=ami-1";
    world.front.call("ec2", foreign).await.unwrap();
    // Other tests have templates in this account, too. moto lists 15 at most, unless a call asks for more.
    let list = "Action=DescribeLaunchTemplates&Version=2016-11-15";
    let all = format!("{list}&MaxResults=200");
    let ours = format!("{list}&Filter.1.Name=tag:poolwright.dev/cluster&Filter.1.Value.1={}", world.cluster);
    let templates = async |list: &str| -> anyhow::Result<Vec<String>> {
        let listed = world.front.call("ec2", list).await?;
        Ok(listed
            .split("<launchTemplateName>")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once('<')?.0.to_owned()))
            .collect())
    };
    assert!(templates(&ours).await.unwrap().is_empty());
    provider.launch(&world.request(0, &offerings)).await.unwrap();
    let created = templates(&ours).await.unwrap();
    let [first] = &created[..] else { panic!("{created:?}") };
    world.merge_class(json!({"userData": "#!/bin/sh\necho changed\n"}));
    world.ahead.store(2 * 3600, Ordering::Relaxed);
    let late = provider.launch(&world.request(1, &offerings)).await.unwrap();
    assert!(late.failed.is_empty());
    wait_for("the template of the class as it was to go", SOON, async || {
        let left = templates(&ours).await?;
        ensure!(left.len() == 1 && !left.contains(first), "left are {left:?}");
        Ok(())
    })
    .await
    .unwrap();
    let left = templates(&all).await.unwrap();
    assert!(left.contains(&"somebody-s".to_owned()), "somebody's is gone: {left:?}");
    // Somebody deletes the template in use: it is created again.
    for name in templates(&ours).await.unwrap() {
        let delete = format!("Action=DeleteLaunchTemplate&Version=2016-11-15&LaunchTemplateName={name}");
        world.front.call("ec2", &delete).await.unwrap();
    }
    provider.launch(&world.request(2, &offerings)).await.unwrap();
}

#[tokio::test]
async fn al2023_nodes_get_the_api_server_address_and_no_public_address() {
    let world = AwsWorld::new().await.unwrap();
    world.merge_class(json!({"amiFamily": "AL2023"}));
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    let error = provider.launch(&world.request(0, &offerings)).await.unwrap_err().to_string();
    assert!(error.contains("--aws-cluster-endpoint"), "{error}");
    let provider = world.connect_with(Some(eks())).await.unwrap();
    provider.launch(&world.request(0, &offerings)).await.unwrap();
    let ours = format!(
        "Action=DescribeLaunchTemplates&Version=2016-11-15&Filter.1.Name=tag:poolwright.dev/cluster&Filter.1.Value.1={}",
        world.cluster
    );
    let templates = world.front.call("ec2", &ours).await.unwrap();
    let name = templates.split("<launchTemplateName>").nth(1).and_then(|rest| rest.split('<').next());
    let name = name.unwrap_or_else(|| panic!("no template of this cluster: {templates}"));
    let versions =
        format!("Action=DescribeLaunchTemplateVersions&Version=2016-11-15&LaunchTemplateName={name}");
    let data = world.front.call("ec2", &versions).await.unwrap();
    assert!(data.contains("<associatePublicIpAddress>false</associatePublicIpAddress>"), "{data}");
    assert!(data.contains("<httpTokens>required</httpTokens>"), "{data}");
    let user_data =
        data.split("<userData>").nth(1).and_then(|rest| rest.split('<').next()).expect("user data");
    let user_data = String::from_utf8(STANDARD.decode(user_data).unwrap()).unwrap();
    assert!(user_data.contains("https://api.example") && user_data.contains(&world.cluster), "{user_data}");
}

#[tokio::test]
async fn messages_are_reported_until_deleted_and_invalid_ones_stay_in_the_queue() {
    let mut world = AwsWorld::new().await.unwrap();
    let name = world.cluster.clone();
    let sqs =
        async |query: String| world.front.call("sqs", &format!("{query}&Version=2012-11-05")).await.unwrap();
    let made = sqs(format!("Action=CreateQueue&QueueName={name}")).await;
    let url =
        made.split("<QueueUrl>").nth(1).and_then(|rest| rest.split('<').next()).expect("a queue").to_owned();
    let send = async |body: &str| {
        let body: String = form_urlencoded::byte_serialize(body.as_bytes()).collect();
        sqs(format!("Action=SendMessage&QueueUrl={url}&MessageBody={body}")).await
    };
    let warning = warning("i-0b662ef9931388ba0", "2026-11-23T12:00:00Z".parse().unwrap());
    send(&warning).await;
    send(&warning.replace("123456789012", "999999999999")).await;
    send("{\"half").await;
    world.queue = Some(name);
    let provider = world.connect().await.unwrap();
    let left = async || {
        let attributes = "AttributeName.1=ApproximateNumberOfMessages&AttributeName.2=ApproximateNumberOfMessagesNotVisible";
        let left = sqs(format!("Action=GetQueueAttributes&QueueUrl={url}&{attributes}")).await;
        let counts =
            left.split("<Value>").skip(1).filter_map(|rest| rest.split('<').next()?.parse::<u32>().ok());
        counts.sum::<u32>()
    };
    assert_eq!(left().await, 3);
    let mut told = Vec::new();
    wait_for("only what cannot be read or believed to be left", SOON, async || {
        for notice in provider.interruptions().await? {
            told.extend(notice.interruptions);
            provider.acknowledge(&notice.receipt.into_iter().collect::<Vec<_>>()).await?;
        }
        ensure!(left().await == 2, "{} are left", left().await);
        Ok(())
    })
    .await
    .unwrap();
    // On a busy machine a message may be visible again before it is deleted.
    told.dedup();
    let [one] = &told[..] else { panic!("one is about this account: {told:?}") };
    assert_eq!((one.instance.as_str(), one.kind), ("i-0b662ef9931388ba0", InterruptionKind::Reclaim));
    assert_eq!(one.deadline, Some("2026-11-23T12:02:00Z".parse().unwrap()));
    world.queue = Some("nowhere".to_owned());
    let error = world.connect().await.unwrap().interruptions().await.unwrap_err().to_string();
    assert!(error.contains("no SQS queue `nowhere`") && error.contains("docs/aws.md"), "{error}");
}

/// Permissions that AWS checks as part of other calls.
const CHECKED_ON_THE_WAY: [&str; 3] = ["ec2:CreateTags", "ec2:RunInstances", "iam:PassRole"];
/// Calls that every identity may make.
const ALLOWED_TO_ALL: [&str; 1] = ["sts:GetCallerIdentity"];

#[tokio::test]
async fn the_documented_policy_allows_exactly_the_calls_of_the_provider() {
    let mut world = AwsWorld::new().await.unwrap();
    let name = world.cluster.clone();
    world
        .front
        .call("sqs", &format!("Action=CreateQueue&QueueName={name}&Version=2012-11-05"))
        .await
        .unwrap();
    let trust = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%5D%7D";
    let role =
        format!("Action=CreateRole&RoleName={name}&AssumeRolePolicyDocument={trust}&Version=2010-05-08");
    world.front.call("iam", &role).await.unwrap();
    world.queue = Some(name.clone());
    let parameter = "/aws/service/somebody/image_id";
    world.front.publish([(parameter.to_owned(), world.account.image.clone())]);
    let one_of_each =
        json!([{"tags": {"poolwright.test/nobody": "*"}}, {"id": world.account.subnet_in("us-east-1a")}]);
    world.merge_class(json!({
        "amiSelectorTerms": [{"ssmParameter": parameter}], "instanceProfile": null, "role": name,
        "subnetSelectorTerms": one_of_each, "placementGroup": {"name": "training"},
    }));
    world.front.place("pg-0a1b2c3d", training("cluster", 0));
    // The whole life of a provider: list, launch, receive interruptions, clean up, terminate.
    let provider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    provider.status(&world.node_class()).await.unwrap().expect("the class is there");
    provider.launch(&world.request(0, &offerings)).await.unwrap();
    let other = provider.launch(&world.request(2, &offerings)).await.unwrap().instance;
    let (other, end) = (instance_of(&other.provider_id), "2099-01-01T00:00:00Z");
    world.front.make_spot(other);
    world.front.reserve(other, "cr-0123456789abcdef0", "capacity-block", end);
    let nowhere = offerings.iter().map(|ranked| (pool(&ranked.offering), 0));
    world.front.set_stock(nowhere);
    provider.launch(&world.request(3, &offerings)).await.unwrap_err();
    world.front.set_stock([]);
    world.merge_class(json!({"detailedMonitoring": true}));
    // A new provider uses the same token for another order.
    world.connect().await.unwrap().launch(&world.request(3, &offerings)).await.unwrap();
    world.ahead.store(2 * 3600, Ordering::Relaxed);
    provider.launch(&world.request(1, &offerings)).await.unwrap();
    let deleted = async || world.front.calls().contains_key("ec2:DeleteLaunchTemplate");
    wait_for("templates to be tidied up", SOON, async || {
        ensure!(deleted().await, "not yet");
        Ok(())
    })
    .await
    .unwrap();
    provider.terminate(&world.request(0, &offerings).key).await.unwrap();
    let ignored = json!({"version": "0", "id": "1", "detail-type": "Something", "source": "aws.other",
        "account": "123456789012", "time": "2026-11-23T12:00:00Z", "region": "us-east-1", "resources": [], "detail": {}});
    let body: String = form_urlencoded::byte_serialize(ignored.to_string().as_bytes()).collect();
    let url = format!("{}/123456789012/{name}", world.front.url());
    let send = format!("Action=SendMessage&QueueUrl={url}&MessageBody={body}&Version=2012-11-05");
    world.front.call("sqs", &send).await.unwrap();
    let notices = provider.interruptions().await.unwrap();
    let receipts: Vec<_> = notices.into_iter().filter_map(|notice| notice.receipt).collect();
    provider.acknowledge(&receipts).await.unwrap();
    wait_for("the reservations to be looked at", SOON, async || {
        ensure!(world.front.calls().contains_key("ec2:DescribeCapacityReservations"), "not yet");
        Ok(())
    })
    .await
    .unwrap();

    let called: BTreeSet<String> = world
        .front
        .calls()
        .into_keys()
        .map(|action| action.replace("sqs:DeleteMessageBatch", "sqs:DeleteMessage"))
        .filter(|action| !ALLOWED_TO_ALL.contains(&action.as_str()))
        .chain(CHECKED_ON_THE_WAY.map(str::to_owned))
        .collect();
    let policy: serde_json::Value =
        serde_json::from_str(include_str!("../../../../deploy/aws-controller-policy.json")).expect("JSON");
    let mut allowed = BTreeSet::new();
    for statement in policy["Statement"].as_array().expect("statements") {
        match &statement["Action"] {
            serde_json::Value::String(action) => {
                allowed.insert(action.clone());
            }
            actions => {
                let actions = actions.as_array().expect("actions");
                allowed.extend(actions.iter().map(|action| action.as_str().expect("an action").to_owned()));
            }
        }
    }
    assert_eq!(called, allowed);
}

/// Repeats a launch until it succeeds, as the controller does.
async fn until_launched(world: &AwsWorld, provider: &AwsProvider, request: &LaunchRequest) -> Instance {
    for _ in 0..200 {
        match provider.launch(request).await {
            Ok(launched) => return launched.instance,
            Err(LaunchError::Provider(ProviderError::Throttled(_) | ProviderError::Transient(_))) => {
                world.pause().await;
            }
            Err(error) => panic!("{}: {error}", request.claim),
        }
    }
    panic!("{} was not launched in 200 tries", request.claim);
}

/// Returns two on-demand offerings with known prices in one zone.
async fn two_offerings(provider: &AwsProvider, world: &AwsWorld) -> Vec<RankedOffering> {
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    ["g5.xlarge", "g5.2xlarge"]
        .map(|name| {
            let offering = catalogue
                .offerings()
                .iter()
                .find(|one| {
                    one.id.instance_type.as_str() == name
                        && one.id.capacity_type == CapacityType::OnDemand
                        && one.price.known().is_some()
                })
                .expect("it is sold");
            RankedOffering {
                offering: offering.id.clone(),
                price: offering.price.known(),
                allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
            }
        })
        .to_vec()
}
