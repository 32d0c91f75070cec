//! The demo's view of the cluster, through the API server like any user's.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_catalog::UsdPerHour;
use poolwright_plane::trace::TracePod;

/// The number of concurrent calls to the API server.
const CONCURRENCY: usize = 16;

/// The cluster of the demo.
pub struct Cluster {
    pods: Api<Pod>,
    nodes: Api<Node>,
    claims: Api<NodeClaim>,
}

/// Pods, nodes and price at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Running pods.
    pub running: usize,
    /// Waiting pods.
    pub waiting: usize,
    /// Nodes that accept pods.
    pub open: usize,
    /// Claims whose node does not accept pods yet.
    pub opening: usize,
    nodes: usize,
    claims: usize,
    micro_usd_per_hour: u64,
}

impl Counts {
    /// Checks whether the cluster is empty again.
    pub fn nothing_left(&self) -> bool {
        self.running + self.waiting + self.nodes + self.claims == 0
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pods {:>3} running {:>3} waiting | nodes {:>3} open {:>3} on their way | {:>#11}",
            self.running,
            self.waiting,
            self.open,
            self.opening,
            UsdPerHour::from_micros(self.micro_usd_per_hour)
        )
    }
}

/// The nodes bought.
pub struct Bill {
    /// One line per instance type, highest total price first.
    pub lines: Vec<Line>,
}

/// Nodes of one type.
pub struct Line {
    /// The instance type.
    pub instance_type: String,
    /// The number of nodes.
    pub count: usize,
    /// The price of one in $/h.
    pub each: f64,
}

impl Line {
    /// Returns the price of all in $/h.
    pub fn total(&self) -> f64 {
        self.each * self.count as f64
    }
}

impl Bill {
    /// Returns the price of everything in $/h.
    pub fn total(&self) -> f64 {
        self.lines.iter().map(Line::total).sum()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.lines.iter().map(|line| line.count).sum()
    }
}

impl Cluster {
    /// Uses this client.
    pub fn new(client: Client) -> Self {
        Self {
            pods: Api::default_namespaced(client.clone()),
            nodes: Api::all(client.clone()),
            claims: Api::all(client),
        }
    }

    /// Creates the pods.
    pub async fn create(&self, pods: &[TracePod]) -> anyhow::Result<()> {
        let objects: Vec<Pod> = pods.iter().map(|pod| pod.pod("default")).collect::<anyhow::Result<_>>()?;
        let how = PostParams::default();
        stream::iter(&objects)
            .map(|pod| self.pods.create(&how, pod))
            .buffer_unordered(CONCURRENCY)
            .try_for_each(async |_| Ok(()))
            .await
            .context("creating pods")
    }

    /// Deletes all pods.
    pub async fn delete_pods(&self) -> anyhow::Result<()> {
        let names: Vec<String> =
            self.pods.list(&ListParams::default()).await?.iter().map(ResourceExt::name_any).collect();
        let how = DeleteParams::default();
        stream::iter(&names)
            .map(|name| self.pods.delete(name, &how))
            .buffer_unordered(CONCURRENCY)
            .try_for_each(async |_| Ok(()))
            .await
            .context("deleting pods")
    }

    /// Counts pods, nodes and claims.
    pub async fn counts(&self) -> anyhow::Result<Counts> {
        let all = ListParams::default();
        let (pods, nodes, claims) =
            tokio::try_join!(self.pods.list(&all), self.nodes.list(&all), self.claims.list(&all))?;
        let is_running =
            |pod: &Pod| pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Running"));
        let running = pods.iter().filter(|pod| is_running(pod)).count();
        let open = claims.iter().filter(|claim| is_true(claim, "Initialized")).count();
        Ok(Counts {
            running,
            waiting: pods.items.len() - running,
            open,
            opening: claims.items.len() - open,
            nodes: nodes.items.len(),
            claims: claims.items.len(),
            micro_usd_per_hour: claims.iter().map(|claim| (price(claim) * 1e6).round() as u64).sum(),
        })
    }

    /// Sums up the nodes bought, from the claims.
    pub async fn bill(&self) -> anyhow::Result<Bill> {
        let mut lines: BTreeMap<String, Line> = BTreeMap::new();
        for claim in self.claims.list(&ListParams::default()).await? {
            let offering = claim.status.as_ref().and_then(|status| status.offering.as_ref());
            let instance_type =
                offering.context("a claim without an offering in its status")?.instance_type.clone();
            let line = lines.entry(instance_type.clone()).or_insert(Line {
                instance_type,
                count: 0,
                each: price(&claim),
            });
            line.count += 1;
        }
        let mut lines: Vec<Line> = lines.into_values().collect();
        lines.sort_by(|a, b| b.total().total_cmp(&a.total()));
        Ok(Bill { lines })
    }
}

fn is_true(claim: &NodeClaim, condition: &str) -> bool {
    let conditions = claim.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|c| c.type_ == condition && c.status == "True")
}

/// Returns the price recorded at launch, in $/h, or 0 before the launch.
fn price(claim: &NodeClaim) -> f64 {
    let price = claim.status.as_ref().and_then(|status| status.price.as_ref());
    price.and_then(|price| price.usd_per_hour.parse().ok()).unwrap_or(0.0)
}
