//! Interruptions that the provider finds by polling EC2, with and without a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::ensure;
use jiff::{SignedDuration, Timestamp};
use poolwright_plane::wait_for;
use poolwright_provider_aws::AwsProvider;
use poolwright_provider_contract::{CloudProvider, Interruption, InterruptionMessage, instance_of};
use poolwright_terms::InterruptionKind;

use super::world::{AwsWorld, now};
use super::{SOON, two_offerings};

const OFTEN: Duration = Duration::from_millis(50);

/// Launches an instance and returns its id.
async fn launch(provider: &AwsProvider, world: &AwsWorld, number: usize) -> String {
    let offerings = two_offerings(provider, world).await;
    let launched = provider.launch(&world.request(number, &offerings)).await.unwrap();
    instance_of(&launched.instance.provider_id).to_owned()
}

/// Launches a spot instance.
async fn launch_spot(provider: &AwsProvider, world: &AwsWorld) -> String {
    let id = launch(provider, world, 0).await;
    world.front.make_spot(&id);
    id
}

/// Polls until all of these instances were reported, and acknowledges nothing.
async fn hear(
    provider: &AwsProvider,
    instances: &[&String],
) -> BTreeMap<String, (Interruption, InterruptionMessage)> {
    let mut told = BTreeMap::new();
    wait_for("every instance to be spoken of", SOON, async || {
        for notice in provider.interruptions().await? {
            for one in &notice.interruptions {
                told.insert(one.instance.clone(), (one.clone(), notice.clone()));
            }
        }
        ensure!(instances.iter().all(|id| told.contains_key(*id)), "so far: {:?}", told.keys());
        Ok(())
    })
    .await
    .unwrap();
    told
}

fn whole_seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap()
}

#[tokio::test]
async fn polling_reports_interruptions_with_deadlines_until_they_are_recorded() {
    let world = AwsWorld::new().await.unwrap();
    let provider = world.connect().await.unwrap().with_poll_interval(OFTEN);
    let at = whole_seconds(now());
    let later = |minutes| at.checked_add(SignedDuration::from_mins(minutes)).unwrap();
    let spot = launch_spot(&provider, &world).await;
    let mut own = Vec::new();
    for number in 1..=5 {
        own.push(launch(&provider, &world, number).await);
    }
    let [serviced, block, long, stopped, well] = &own[..] else { panic!("{own:?}") };
    world.front.mark_spot(&spot, "marked-for-termination", &at.to_string());
    // The provider asks neither for spot requests of on-demand instances, nor for instances that are not its own.
    world.front.mark_spot(well, "marked-for-termination", &at.to_string());
    world.front.schedule("i-00000000000000000", "system-reboot", "somebody's", &later(5).to_string());
    world.front.schedule(serviced, "instance-retirement", "[Completed] it was", &later(-60).to_string());
    world.front.schedule(serviced, "system-maintenance", "it will be", &later(600).to_string());
    world.front.schedule(serviced, "system-reboot", "before that", &later(300).to_string());
    world.front.reserve(block, "cr-0123456789abcdef0", "capacity-block", &later(35).to_string());
    world.front.reserve(long, "cr-0123456789abcdef1", "capacity-block", &later(50).to_string());
    world.front.reserve(well, "cr-0123456789abcdef2", "default", &later(35).to_string());
    let stop = format!("Action=StopInstances&Version=2016-11-15&InstanceId.1={stopped}");
    world.front.call("ec2", &stop).await.unwrap();

    let told = hear(&provider, &[&spot, serviced, block, stopped]).await;
    let said = |id: &String| (told[id].0.kind, told[id].0.deadline);
    assert_eq!(said(&spot), (InterruptionKind::Reclaim, Some(later(2))));
    assert_eq!(told[&spot].0.noticed, at);
    assert_eq!(
        said(serviced),
        (InterruptionKind::Maintenance, Some(later(300))),
        "the first that is to come"
    );
    assert_eq!(
        said(block),
        (InterruptionKind::ReservationEnd, Some(later(5))),
        "half an hour before the end"
    );
    assert_eq!(said(stopped), (InterruptionKind::Ending, None));
    assert_eq!(told.len(), 4, "{told:?}");

    // Nothing was acknowledged, so everything is reported again.
    hear(&provider, &[&spot, serviced, block, stopped]).await;
    let receipts: Vec<String> = told.into_values().filter_map(|(_, notice)| notice.receipt).collect();
    assert_eq!(receipts.len(), 4);
    provider.acknowledge(&receipts).await.unwrap();
    world.front.schedule(well, "instance-stop", "it will stop", &later(120).to_string());
    // A poll may have been under way and report the others too.
    hear(&provider, &[well]).await;
    let after = provider.interruptions().await.unwrap();
    let all: Vec<_> =
        after.iter().flat_map(|notice| &notice.interruptions).map(|one| &one.instance).collect();
    assert_eq!(all, [well], "what was recorded is not told again");
}

#[tokio::test]
async fn a_failed_poll_delays_neither_other_polls_nor_the_queue() {
    let mut world = AwsWorld::new().await.unwrap();
    let name = world.cluster.clone();
    let sqs =
        async |query: String| world.front.call("sqs", &format!("{query}&Version=2012-11-05")).await.unwrap();
    sqs(format!("Action=CreateQueue&QueueName={name}")).await;
    world.queue = Some(name.clone());
    let provider = world.connect().await.unwrap().with_poll_interval(OFTEN);
    let spot = launch_spot(&provider, &world).await;
    world
        .front
        .forbid(["ec2:DescribeInstanceStatus".to_owned(), "ec2:DescribeCapacityReservations".to_owned()]);
    world.front.mark_spot(&spot, "marked-for-stop", &now().to_string());
    hear(&provider, &[&spot]).await;
    hear(&provider, &[&spot]).await;
    // Failures are reported to the metrics once.
    let failed: BTreeSet<String> = provider.failures().iter().map(ToString::to_string).collect();
    assert!(
        failed.iter().any(|one| one.contains("add ec2:DescribeInstanceStatus to the policy")),
        "{failed:?}"
    );
    assert!(failed.iter().all(|one| one.starts_with("invalid: ec2:Describe")), "{failed:?}");
    // On a busy machine, the polls may be done before the queue is asked.
    let received = world.front.calls().get("sqs:ReceiveMessage").copied().unwrap_or(0);
    assert!(received <= 1, "{:?}", world.front.calls());
    let event = serde_json::json!({
        "version": "0", "id": "1", "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2",
        "account": "123456789012", "time": "2026-11-23T12:00:00Z", "region": "us-east-1", "resources": [],
        "detail": {"instance-id": "i-0b662ef9931388ba0", "instance-action": "terminate"},
    });
    let body: String = form_urlencoded::byte_serialize(event.to_string().as_bytes()).collect();
    let url = format!("{}/123456789012/{name}", world.front.url());
    sqs(format!("Action=SendMessage&QueueUrl={url}&MessageBody={body}")).await;
    hear(&provider, &[&"i-0b662ef9931388ba0".to_owned()]).await;
    // EC2 answers nothing more: polls become rare, and the queue is still received.
    world.front.forbid(["ec2:DescribeInstances".to_owned()]);
    let event = event.to_string().replace("i-0b662ef9931388ba0", "i-0b662ef9931388ba1");
    let body: String = form_urlencoded::byte_serialize(event.as_bytes()).collect();
    sqs(format!("Action=SendMessage&QueueUrl={url}&MessageBody={body}")).await;
    hear(&provider, &[&"i-0b662ef9931388ba1".to_owned()]).await;
}
