//! The whole way on AWS: pods wait, instances are launched in moto, machines join with what their user data says, EventBridge says that
//! one is taken back, what its pods need is bought before anybody is asked to go, and in the end nothing is left.

mod cloud;

use std::sync::Arc;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use cloud::{Cloud, Machines, work};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use poolwright_api::{EC2NodeClass, InterruptionKind, NodeClaim};
use poolwright_plane::aws::credentials;
use poolwright_plane::trial::{Cluster, Controller, Trial, WITHIN, node_pool, taint_keys};
use poolwright_plane::wait_for;
use poolwright_provider_aws::{Access, AwsProvider, BootstrapToken, Classes, Key, Settings, Tokens};
use poolwright_provider_contract::{CloudProvider, ProviderError};
use serde_json::{Value, json};

const POOL: &str = "gpu";

/// Nobody launches with the one who looks.
struct Nothing;

#[async_trait]
impl Classes for Nothing {
    async fn class(&self, _name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        Ok(None)
    }
}

#[async_trait]
impl Tokens for Nothing {
    async fn make(&self, _expires: Timestamp) -> Result<BootstrapToken, ProviderError> {
        Err(ProviderError::Invalid("nobody asks for one".to_owned()))
    }
}

/// One to look with: it makes nothing.
async fn looker(cloud: &Cloud) -> anyhow::Result<AwsProvider> {
    let settings = Settings {
        access: Access {
            region: Some("us-east-1".to_owned()),
            endpoint: Some(cloud.moto.url().to_owned()),
            key: Some(Key { id: "looker".to_owned(), secret: "stand-in".to_owned() }),
        },
        cluster: cloud.cluster.clone(),
        kubernetes: "1.36".to_owned(),
        join: None,
        queue: None,
        cloud_controller: false,
    };
    Ok(AwsProvider::connect(settings, Arc::new(Nothing), Arc::new(Nothing), Arc::new(now)).await?)
}

#[expect(clippy::disallowed_methods, reason = "the edge: moto has the time of day")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// What EC2 says when it takes spot instances back, put on EventBridge: each in an event of its own.
async fn take_back(cloud: &Cloud, instances: &[&str]) -> anyhow::Result<()> {
    for some in instances.chunks(10) {
        let entry = |id: &&str| {
            let detail = json!({"instance-id": id, "instance-action": "terminate"}).to_string();
            json!({"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning", "Detail": detail,
                "Resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")]})
        };
        let entries: Vec<Value> = some.iter().map(entry).collect();
        let answer = cloud.events("PutEvents", &json!({"Entries": entries})).await?;
        ensure!(answer["FailedEntryCount"] == 0, "{answer}");
    }
    Ok(())
}

fn id_of(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or_default()
}

#[tokio::test]
async fn from_waiting_pods_to_instances_an_interruption_and_back_to_nothing() {
    let cloud = Arc::new(Cloud::start().await.unwrap());
    let looker = looker(&cloud).await.unwrap();
    let plane = Trial::plane_without_controller().await.unwrap();
    let authority = plane.dir().join("certificates").join("apiserver.crt");
    let authority = authority.to_str().unwrap();
    let flags = [
        ["--batch-idle", "300ms"],
        ["--list-interval", "1s"],
        ["--aws-cluster", &cloud.cluster],
        ["--aws-region", "us-east-1"],
        ["--aws-cluster-endpoint", "https://api.example"],
        ["--aws-cluster-ca", authority],
        ["--aws-service-cidr", "10.100.0.0/16"],
        ["--aws-interruption-queue", &cloud.cluster],
    ]
    .concat();
    let mut controller = Controller::start_with(&plane, "controller", &flags, |command| {
        credentials(command);
        command.env("AWS_ENDPOINT_URL", cloud.front.url());
    })
    .unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let _machines = Machines::boot(Arc::clone(&cloud), cluster.client.clone());
    let on_ec2 = json!({"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass"}}}});
    cluster.apply("", &[cloud.node_class(POOL), node_pool(POOL, on_ec2)]).await.unwrap();
    let namespace = cluster.namespace("work").await.unwrap();
    cluster.apply(&namespace, &[work("train", POOL, 3)]).await.unwrap();
    let pods = cluster.wait_running(&namespace, 3).await;
    controller.ensure_running().unwrap();
    pods.unwrap();
    let before = looker.list().await.unwrap();
    let claims = cluster.claims(POOL).await.unwrap();
    assert_eq!(before.len(), claims.len(), "one instance for each claim: {before:?}");
    for claim in &claims {
        let provider_id = claim.status.as_ref().and_then(|status| status.provider_id.clone());
        assert!(before.iter().any(|instance| Some(&instance.provider_id) == provider_id.as_ref()));
    }

    let taken = &before[0];
    take_back(&cloud, &[id_of(&taken.provider_id)]).await.unwrap();
    let api: Api<NodeClaim> = Api::all(cluster.client.clone());
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let (interruption, node) = wait_for("what EC2 says to be recorded", WITHIN, async || {
        let status = api.get(&taken.claim).await?.status.context("no status")?;
        Ok((status.interruption.context("nothing is recorded")?, status.node_name.context("no node")?))
    })
    .await
    .unwrap();
    assert_eq!(interruption.kind, InterruptionKind::Reclaim);
    wait_for("the node to be closed, and something to be bought in its place", WITHIN, async || {
        if let Some(node) = nodes.get_opt(&node).await? {
            ensure!(taint_keys(&node).iter().any(|key| key == "poolwright.dev/disrupted"), "it is open");
        }
        let claims = cluster.claims(POOL).await?;
        let is_new = |claim: &&NodeClaim| before.iter().all(|instance| instance.claim != claim.name_any());
        ensure!(claims.iter().any(|claim| is_new(&claim)), "nothing is bought");
        Ok(())
    })
    .await
    .unwrap();
    wait_for("the instance to be given back, and its claim and node to go", WITHIN, async || {
        ensure!(api.get_opt(&taken.claim).await?.is_none(), "the claim is there");
        ensure!(nodes.get_opt(&node).await?.is_none(), "the node is there");
        let instances = looker.list().await?;
        ensure!(instances.iter().all(|one| one.provider_id != taken.provider_id), "the instance is there");
        Ok(())
    })
    .await
    .unwrap();
    for pod in cluster.wait_running(&namespace, 3).await.unwrap() {
        assert_ne!(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some(node.as_str()));
    }

    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &namespace);
    deployments.delete("train", &DeleteParams::default()).await.unwrap();
    wait_for("everything to be given back", WITHIN, async || {
        let left = looker.list().await?;
        ensure!(left.is_empty(), "instances are left: {left:?}");
        ensure!(
            cluster.claims(POOL).await?.is_empty() && cluster.nodes(POOL).await?.is_empty(),
            "objects are left"
        );
        Ok(())
    })
    .await
    .unwrap();
    controller.ensure_running().unwrap();
}
