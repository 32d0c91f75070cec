//! Invalid credentials, regions, images, roles, queues and messages. Each is reported with a fix, and nothing is launched or
//! deleted.

#[path = "../../../../providers/aws-model/tests/events/outcomes.rs"]
mod outcomes;

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::ensure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outcomes::OUTCOMES;
use poolwright_plane::wait_for;
use poolwright_provider_aws::AwsProvider;
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{
    CloudProvider, ConditionOutcome, LaunchError, NodeClassStatusSource, ProviderError,
};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::tokens::cluster;
use super::world::{AwsWorld, Counted, SECRET};
use super::{SOON, two_offerings};

async fn sqs(world: &AwsWorld, query: &str) -> String {
    world.front.call("sqs", &format!("{query}&Version=2012-11-05")).await.unwrap()
}

/// Creates a queue and returns its address.
async fn queue(world: &AwsWorld) -> String {
    let made = sqs(world, &format!("Action=CreateQueue&QueueName={}", world.cluster)).await;
    made.split("<QueueUrl>").nth(1).and_then(|rest| rest.split('<').next()).expect("a queue").to_owned()
}

fn invalid(error: ProviderError) -> String {
    let ProviderError::Invalid(told) = error else { panic!("a person must do something: {error}") };
    told
}

fn launches_and_ends(world: &AwsWorld) -> Vec<String> {
    let acts = ["ec2:CreateFleet", "ec2:RunInstances", "ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"];
    world.front.calls().into_keys().filter(|action| acts.contains(&action.as_str())).collect()
}

#[tokio::test]
async fn every_call_with_invalid_credentials_fails_and_names_the_problem() {
    let mut world = AwsWorld::new().await.unwrap();
    world.queue = Some(queue(&world).await);
    let offerings = two_offerings(&world.connect().await.unwrap(), &world).await;
    for (code, words) in [
        ("ExpiredToken", "the credentials have expired"),
        ("ExpiredTokenException", "the credentials have expired"),
        ("OptInRequired", "get-region-opt-status"),
        ("AuthFailure", "does not accept the credentials"),
    ] {
        let provider = world.connect().await.unwrap();
        world.front.refuse_all(Some(code));
        let LaunchError::Provider(launch) = provider.launch(&world.request(0, &offerings)).await.unwrap_err()
        else {
            panic!("{code}")
        };
        let report = provider.status(&world.node_class()).await.unwrap().expect("the class is there");
        let subnets = &report.conditions[0];
        assert_eq!((subnets.kind, subnets.outcome), ("SubnetsReady", ConditionOutcome::False), "{code}");
        for told in [
            invalid(launch),
            invalid(provider.catalogue(&world.node_class()).await.unwrap_err()),
            invalid(provider.list().await.unwrap_err()),
            invalid(provider.terminate("a-key").await.unwrap_err()),
            invalid(provider.interruptions().await.unwrap_err()),
            subnets.message.clone(),
        ] {
            assert!(told.to_lowercase().contains(words) && told.contains(code), "{code}: {told}");
        }
        world.front.refuse_all(None);
    }
    assert_eq!(launches_and_ends(&world), [""; 0]);
}

#[tokio::test]
async fn an_invalid_region_is_rejected_before_any_call() {
    let mut world = AwsWorld::new().await.unwrap();
    world.region = "Frankfurt".to_owned();
    let Err(error) = world.connect().await else { panic!("there is no such region") };
    let told = invalid(error);
    assert!(told.contains("`Frankfurt`") && told.contains("--aws-region"), "{told}");
}

#[tokio::test]
async fn an_image_offers_no_types_of_another_architecture() {
    let world = AwsWorld::new().await.unwrap();
    let offerings = two_offerings(&world.connect().await.unwrap(), &world).await;
    world.merge_class(json!({"amiSelectorTerms": [{"id": world.account.arm_image}]}));
    let provider = world.connect().await.unwrap();
    let LaunchError::Provider(error) = provider.launch(&world.request(0, &offerings)).await.unwrap_err()
    else {
        panic!("no offering is to blame")
    };
    let told = invalid(error);
    assert!(told.contains("EC2NodeClass `gpu`") && told.contains("no image fits the type"), "{told}");
    let report = provider.status(&world.node_class()).await.unwrap().expect("the class is there");
    let images = report.conditions.iter().find(|one| one.kind == "ImagesReady").expect("it is told of");
    assert_eq!(images.message, "1 image for arm64");
    assert_eq!(provider.list().await.unwrap(), []);
    assert_eq!(world.front.calls().get("ec2:CreateLaunchTemplate"), Some(&1), "tried dry, and never made");
}

#[tokio::test]
async fn a_missing_or_foreign_queue_is_reported_with_the_flag_and_not_read() {
    let mut world = AwsWorld::new().await.unwrap();
    let url = queue(&world).await;
    let told = async |world: &AwsWorld| {
        let provider = world.connect().await.unwrap();
        let told = invalid(provider.interruptions().await.unwrap_err());
        let said = provider.interruption_condition().expect("there is to be a queue");
        assert_eq!((said.kind, said.outcome), ("InterruptionQueueReady", ConditionOutcome::False));
        assert!(
            said.message.contains(world.queue.as_ref().unwrap()) && said.message.contains(&told),
            "{said:?}"
        );
        told
    };
    world.queue = Some(url.replace("123456789012", "999999999999"));
    let other = told(&world).await;
    assert!(other.contains("account 999999999999") && other.contains("--aws-interruption-queue"), "{other}");
    assert_eq!(world.front.calls().get("sqs:ReceiveMessage"), None);
    world.queue = Some(url.clone());
    sqs(&world, &format!("Action=DeleteQueue&QueueUrl={url}")).await;
    let gone = told(&world).await;
    assert!(gone.contains("there is no SQS queue") && gone.contains("docs/aws.md"), "{gone}");
    world.front.forbid(["sqs:GetQueueUrl".to_owned()]);
    world.queue = Some(world.cluster.clone());
    let forbidden = told(&world).await;
    assert!(forbidden.contains("add sqs:GetQueueUrl to the policy"), "{forbidden}");
}

/// Sends every message of the corpus that SQS accepts, each followed by a valid one.
#[tokio::test]
async fn hostile_messages_stay_in_the_queue_and_valid_ones_are_reported_and_deleted() {
    let mut world = AwsWorld::new().await.unwrap();
    let url = queue(&world).await;
    let send = async |body: &str| {
        let body: String = form_urlencoded::byte_serialize(body.as_bytes()).collect();
        let answer = sqs(&world, &format!("Action=SendMessage&QueueUrl={url}&MessageBody={body}")).await;
        answer.contains("<MessageId>")
    };
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/aws/events");
    let good = std::fs::read_to_string(folder.join("spot-terminate.json")).unwrap();
    let (mut expected, mut hostile) = (BTreeSet::new(), 0);
    for (number, (file, outcome)) in OUTCOMES.iter().enumerate() {
        // SQS itself refuses text that is not UTF-8, and empty messages.
        let Ok(body) = std::fs::read_to_string(folder.join(file)) else { continue };
        if !send(&body).await {
            continue;
        }
        if outcome.starts_with("error: ") {
            hostile += 1;
        }
        let instances = outcome.split("; ").filter(|part| part.starts_with("i-"));
        expected.extend(instances.filter_map(|part| part.split(' ').next()).map(str::to_owned));
        let id = format!("i-{number:017x}");
        assert!(send(&good.replace("i-0b662ef9931388ba0", &id)).await, "{file}");
        expected.insert(id);
    }
    assert!(hostile > 30, "{hostile} hostile messages were taken");
    let large = format!("{{\"detail\": \"{}", "x".repeat(250_000));
    assert!(send(&large).await);
    hostile += 1;
    world.queue = Some(url.clone());
    let provider = world.connect().await.unwrap();
    let left = async || {
        let names = "AttributeName.1=ApproximateNumberOfMessages&AttributeName.2=ApproximateNumberOfMessagesNotVisible";
        let left = sqs(&world, &format!("Action=GetQueueAttributes&QueueUrl={url}&{names}")).await;
        let counts =
            left.split("<Value>").skip(1).filter_map(|rest| rest.split('<').next()?.parse::<usize>().ok());
        counts.sum::<usize>()
    };
    let mut told = BTreeSet::new();
    wait_for("all that can be believed to be given back", SOON, async || {
        let notices = provider.interruptions().await?;
        let all = notices.iter().flat_map(|notice| &notice.interruptions);
        told.extend(all.map(|one| one.instance.clone()));
        let receipts: Vec<_> = notices.into_iter().filter_map(|notice| notice.receipt).collect();
        provider.acknowledge(&receipts).await?;
        let left = left().await;
        ensure!(left <= hostile, "{left} are left");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(told, expected);
    assert_eq!(left().await, hostile, "what cannot be read or believed is left for the dead letters");
    let counted = provider.unreadable();
    assert!(counted >= hostile as u64, "{counted} of {hostile} were counted");
    assert_eq!(provider.unreadable(), 0, "each is counted once");
    assert_eq!(
        provider.interruption_condition().map(|said| said.outcome),
        Some(ConditionOutcome::True),
        "the queue itself is well"
    );
    assert_eq!(launches_and_ends(&world), [""; 0]);
}

/// The log of a test's thread.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("nobody panicked")).into_owned()
    }

    /// Captures the log of this thread until the returned guard is dropped.
    pub fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(self.clone())
            .with_ansi(false);
        tracing::subscriber::set_default(subscriber.finish())
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn logs_and_errors_contain_no_user_data_and_no_secrets() {
    let log = Log::default();
    let _guard = log.listen();
    let world = AwsWorld::new().await.unwrap();
    let user_data = "#!/bin/sh\nexport TOKEN=hunter2-of-the-nodes\n";
    world.merge_class(json!({"userData": user_data}));
    let provider: AwsProvider = world.connect().await.unwrap();
    let offerings = two_offerings(&provider, &world).await;
    provider.status(&world.node_class()).await.unwrap();
    provider.launch(&world.request(0, &offerings)).await.unwrap();
    let fresh = world.connect().await.unwrap();
    world.front.refuse_all(Some("InvalidUserData.Malformed"));
    let error = fresh.launch(&world.request(1, &offerings)).await.unwrap_err();
    world.front.refuse_all(None);
    // Ubuntu nodes join with a token, which is part of their user data.
    world.merge_class(json!({"amiFamily": "Ubuntu"}));
    let kubeadm = world.connect_with(Some(cluster())).await.unwrap();
    kubeadm.launch(&world.request(2, &offerings)).await.unwrap();
    world.front.refuse_all(Some("InvalidUserData.Malformed"));
    let other = kubeadm.launch(&world.request(3, &offerings)).await.unwrap_err();
    assert_eq!(world.tokens.made().len(), 1);
    let log = log.text();
    assert_eq!(log.matches("instance launched").count(), 2, "something is logged: {log}");
    let encoded = STANDARD.encode(user_data);
    let (token, kubeconfig) = (Counted::text(0), STANDARD.encode("#!/bin/bash\nset -euo pipefail"));
    for said in [log, error.to_string(), format!("{error:?}"), other.to_string(), format!("{other:?}")] {
        for secret in
            ["hunter2", &encoded[20..40], SECRET, &token, &token[7..], &kubeconfig[4..20], "kubeadm"]
        {
            let at = said.find(secret).map(|at| said[at.saturating_sub(300)..at].to_owned());
            assert_eq!(at, None, "{secret} is there");
        }
    }
}
