//! The status of a node class on a real control plane, written with the rights of docs/rbac.yaml and no others.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use poolwright_api::{EC2NodeClass, Ec2NodeClassStatus};
use poolwright_controller::Config;
use poolwright_plane::trial::{Cluster, condition};
use poolwright_plane::{ControlPlane, Options, apply, install_crds, wait_for};
use poolwright_provider_aws::KubeClasses;
use poolwright_provider_contract::CloudProvider;
use serde_json::json;
use tokio::sync::oneshot;

use super::world::AwsWorld;

/// Two rounds of looks at a class that is not ready, on a busy machine.
const LATER: Duration = Duration::from_mins(2);

const RIGHTS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: poolwright}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: poolwright-controller}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: poolwright-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: poolwright-controller}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: poolwright-controller, namespace: poolwright}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: poolwright-controller}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: poolwright-controller}]
";

/// Waits for the class to be ready, or not, and returns that condition and the status.
async fn ready(client: &Client, expected: &str) -> (Condition, Ec2NodeClassStatus) {
    let api: Api<EC2NodeClass> = Api::all(client.clone());
    wait_for(&format!("the class to say Ready={expected}"), LATER, async || {
        let status = api.get("gpu").await?.status.context("it has no status")?;
        let ready = condition(&status.conditions, "Ready").context("it does not say")?.clone();
        ensure!(ready.status == expected, "{}: {}", ready.reason, ready.message);
        Ok((ready, status))
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_without_subnets_says_so_with_its_pool_and_is_ready_once_somebody_has_tagged_one() {
    let world = AwsWorld::new().await.unwrap();
    let tag = format!("poolwright.test/{}", world.cluster);
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    apply(&client, "poolwright", RIGHTS).await.unwrap();
    apply(&client, "poolwright", include_str!("../../../../docs/rbac.yaml")).await.unwrap();
    let mut config = plane.config().clone();
    config.auth_info.impersonate = Some("poolwright-controller".to_owned());
    let limited = Client::try_from(config).unwrap();
    let provider = world.connect_for(Arc::new(KubeClasses(limited.clone())), None).await.unwrap();
    let providers: Vec<Arc<dyn CloudProvider>> = vec![Arc::new(provider)];
    let config = Config { http: None, ..Config::new("classes", "poolwright") };
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = tokio::spawn(async move {
        poolwright_controller::run(config, limited, providers, async {
            let _ = stopped.await;
        })
        .await
    });

    let cluster = Cluster::new(client.clone());
    let class = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": {
        "subnetSelectorTerms": [{"tags": {&tag: "yes"}}],
        "securityGroupSelectorTerms": [{"id": world.account.group}],
        "amiFamily": "Custom", "amiSelectorTerms": [{"id": world.account.image}],
        "instanceProfile": world.account.profile,
    }});
    let pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {
        "template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": "EC2NodeClass", "name": "gpu"},
            "requirements": [{"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]}],
        }},
    }});
    cluster.apply("", &[class, pool]).await.unwrap();
    let (said, status) = ready(&client, "False").await;
    assert_eq!(said.reason, "SubnetsUnusable");
    assert!(
        said.message.contains("spec.subnetSelectorTerms") && said.message.contains("put the tags on"),
        "{said:?}"
    );
    assert_eq!((status.subnets.len(), status.observed_generation), (0, Some(1)));
    assert_eq!(status.images[0].id, world.account.image);
    let event = cluster.wait_said("EC2NodeClass", "gpu", "SubnetsUnusable").await.unwrap();
    assert_eq!(event, said.message);
    let pool = cluster.wait_pool_condition("gpu", "NodeClassReady", "False").await.unwrap();
    assert!(pool.message.contains("spec.subnetSelectorTerms"), "{pool:?}");

    let subnet = world.account.subnet_in("us-east-1a");
    let tagged =
        format!("Action=CreateTags&Version=2016-11-15&ResourceId.1={subnet}&Tag.1.Key={tag}&Tag.1.Value=yes");
    world.front.call("ec2", &tagged).await.unwrap();
    let (_, status) = ready(&client, "True").await;
    let subnets: Vec<_> = status.subnets.iter().map(|one| (one.id.as_str(), one.zone.as_str())).collect();
    assert_eq!(subnets, [(subnet, "us-east-1a")]);
    assert!(status.conditions.iter().all(|one| one.status == "True"), "{:?}", status.conditions);
    cluster.wait_said("EC2NodeClass", "gpu", "Ready").await.unwrap();
    cluster.wait_pool_condition("gpu", "NodeClassReady", "True").await.unwrap();
    assert_eq!(world.front.calls().get("ec2:TerminateInstances"), None);
    let _ = stop.send(());
    controller.await.unwrap().unwrap();
}
