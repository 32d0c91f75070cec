//! The cluster as users see it: pods, claims, nodes, events, and the instances behind them.

use std::fmt;

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_terms::keys::NODEPOOL_LABEL;
use serde_json::Value;

use super::WITHIN;
use crate::objects::{apply, create_namespace};
use crate::wait::wait_for;

/// The number of concurrent calls to the API server.
const CONCURRENCY: usize = 16;

/// The namespace in which the KWOK provider stores its instances.
pub(super) const INSTANCES: &str = "poolwright-kwok";

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The object's kind.
    pub kind: String,
    /// The object's name.
    pub about: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub note: String,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}: {}", self.kind, self.about, self.reason, self.note)
    }
}

/// A client with helpers for tests. See the module.
#[derive(Clone)]
pub struct Cluster {
    /// The client, for everything without a helper here.
    pub client: Client,
}

impl Cluster {
    /// Uses this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates a namespace for one test.
    pub async fn namespace(&self, prefix: &str) -> anyhow::Result<String> {
        create_namespace(&self.client, prefix).await
    }

    /// Applies objects in order. Namespaced ones go to `namespace`.
    pub async fn apply(&self, namespace: &str, objects: &[Value]) -> anyhow::Result<()> {
        for object in objects {
            apply(&self.client, namespace, &object.to_string()).await?;
        }
        Ok(())
    }

    /// Creates pods concurrently.
    pub async fn create_pods(&self, namespace: &str, pods: &[Value]) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let how = PostParams::default();
        let pods: Vec<Pod> =
            pods.iter().map(|pod| serde_json::from_value(pod.clone())).collect::<Result<_, _>>()?;
        stream::iter(&pods)
            .map(|pod| api.create(&how, pod))
            .buffer_unordered(CONCURRENCY)
            .try_for_each(async |_| Ok(()))
            .await
            .context("creating pods")
    }

    /// Lists the pods of a namespace.
    pub async fn pods(&self, namespace: &str) -> anyhow::Result<Vec<Pod>> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        Ok(api.list(&ListParams::default()).await?.items)
    }

    /// Deletes one pod.
    pub async fn delete_pod(&self, namespace: &str, name: &str) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Deletes all pods of a namespace.
    pub async fn delete_pods(&self, namespace: &str) -> anyhow::Result<()> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        Ok(())
    }

    /// Lists the claims of a pool.
    pub async fn claims(&self, pool: &str) -> anyhow::Result<Vec<NodeClaim>> {
        let api: Api<NodeClaim> = Api::all(self.client.clone());
        Ok(api.list(&ListParams::default().labels(&format!("{NODEPOOL_LABEL}={pool}"))).await?.items)
    }

    /// Lists the nodes of a pool.
    pub async fn nodes(&self, pool: &str) -> anyhow::Result<Vec<Node>> {
        let api: Api<Node> = Api::all(self.client.clone());
        Ok(api.list(&ListParams::default().labels(&format!("{NODEPOOL_LABEL}={pool}"))).await?.items)
    }

    /// Returns the API of the ConfigMaps that hold instances.
    pub fn instance_store(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), INSTANCES)
    }

    /// Lists the instances of a pool.
    pub async fn instances(&self, pool: &str) -> anyhow::Result<Vec<ConfigMap>> {
        let all =
            self.instance_store().list(&ListParams::default().labels("poolwright.dev/nodeclaim")).await?;
        let of_pool = |stored: &ConfigMap| {
            let text = stored.data.as_ref().and_then(|data| data.get("instance"))?;
            let instance: Value = serde_json::from_str(text).ok()?;
            Some(instance.pointer("/node/labels")?.get(NODEPOOL_LABEL)? == pool)
        };
        Ok(all.items.into_iter().filter(|stored| of_pool(stored) == Some(true)).collect())
    }

    /// Returns a pool.
    pub async fn pool(&self, name: &str) -> anyhow::Result<NodePool> {
        Ok(Api::<NodePool>::all(self.client.clone()).get(name).await?)
    }

    /// Returns the events about an object.
    pub async fn said_about(&self, kind: &str, name: &str) -> anyhow::Result<Vec<Said>> {
        let api: Api<Event> = Api::all(self.client.clone());
        let fields = format!("regarding.kind={kind},regarding.name={name}");
        let ours = |event: &Event| {
            event.reporting_controller.as_deref().is_some_and(|who| who.starts_with("poolwright"))
        };
        let events = api.list(&ListParams::default().fields(&fields)).await?;
        Ok(events
            .into_iter()
            .filter(ours)
            .map(|event| Said {
                kind: kind.to_owned(),
                about: name.to_owned(),
                reason: event.reason.unwrap_or_default(),
                note: event.note.unwrap_or_default(),
            })
            .collect())
    }

    /// Waits for an event with this reason and returns its message.
    pub async fn wait_said(&self, kind: &str, name: &str, reason: &str) -> anyhow::Result<String> {
        wait_for(&format!("an event {reason} on {kind} {name}"), WITHIN, async || {
            let said = self.said_about(kind, name).await?;
            let found = said.iter().find(|one| one.reason == reason);
            let all = || said.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            Ok(found.with_context(|| format!("said so far: [{}]", all()))?.note.clone())
        })
        .await
    }

    /// Waits until a pool's condition has this status and returns the condition.
    pub async fn wait_pool_condition(
        &self,
        pool: &str,
        kind: &str,
        status: &str,
    ) -> anyhow::Result<Condition> {
        wait_for(&format!("condition {kind}={status} of pool {pool}"), WITHIN, async || {
            let found = self.pool(pool).await?.status.unwrap_or_default();
            let is = condition(&found.conditions, kind);
            ensure!(is.is_some_and(|one| one.status == status), "its conditions are {:?}", found.conditions);
            is.cloned().context("it was just there")
        })
        .await
    }

    /// Waits until the namespace has `count` pods and all of them run.
    pub async fn wait_running(&self, namespace: &str, count: usize) -> anyhow::Result<Vec<Pod>> {
        wait_for(&format!("{count} pods of {namespace} to run"), WITHIN, async || {
            let pods = self.pods(namespace).await?;
            let waiting: Vec<String> =
                pods.iter().filter(|pod| !is_running(pod)).map(ResourceExt::name_any).collect();
            ensure!(
                pods.len() == count && waiting.is_empty(),
                "{} pods, of which do not run: {waiting:?}",
                pods.len()
            );
            Ok(pods)
        })
        .await
    }

    /// Waits until a pool has neither claims nor nodes nor instances.
    pub async fn wait_nothing_left(&self, pool: &str) -> anyhow::Result<()> {
        wait_for(&format!("pool {pool} to scale to zero"), WITHIN, async || {
            let names = |what: &str, names: Vec<String>| format!("{what} {names:?}");
            let claims = self.claims(pool).await?;
            let nodes = self.nodes(pool).await?;
            let instances = self.instances(pool).await?;
            ensure!(
                claims.is_empty() && nodes.is_empty() && instances.is_empty(),
                "{}; {}; {}",
                names("claims", claims.iter().map(ResourceExt::name_any).collect()),
                names("nodes", nodes.iter().map(ResourceExt::name_any).collect()),
                names("instances", instances.iter().map(ResourceExt::name_any).collect())
            );
            Ok(())
        })
        .await
    }
}

/// Checks whether a pod runs.
pub fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
}

/// Returns the condition of this type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|one| one.type_ == kind)
}

/// Checks whether a claim's condition is true.
pub fn is_true(claim: &NodeClaim, kind: &str) -> bool {
    let conditions = claim.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    condition(conditions, kind).is_some_and(|one| one.status == "True")
}

/// Returns the keys of a node's taints.
pub fn taint_keys(node: &Node) -> Vec<String> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    taints.into_iter().map(|taint| taint.key).collect()
}

/// Returns the total price of the claims in millionths of a dollar per hour, as recorded at launch.
pub fn usd_per_hour(claims: &[NodeClaim]) -> anyhow::Result<u64> {
    let mut sum = 0;
    for claim in claims {
        let price = claim.status.as_ref().and_then(|status| status.price.as_ref());
        let price = price.with_context(|| format!("claim {} has no price yet", claim.name_any()))?;
        sum += (price.usd_per_hour.parse::<f64>()? * 1e6).round() as u64;
    }
    Ok(sum)
}
