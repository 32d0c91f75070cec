//! Seeded scale-ups of the real trace, and their cost compared with their plans.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_terms::keys::BOUGHT_AGAIN_ANNOTATION;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Cluster, node_class, node_pool};
use crate::trace;

/// Pods without a node by then count as stuck.
const STUCK_AFTER: Duration = Duration::from_mins(4);
/// The interval between looks at the pods.
const LOOK: Duration = Duration::from_millis(250);

/// A small random generator of our own, so that a seed gives the same numbers for ever.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from this seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    /// Returns a number below `end`, which must not be zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Pods of the trace and their arrival times: in a few bursts, in random order, at random speed.
#[derive(Clone, Debug)]
pub struct ScaleUp {
    seed: u64,
    pods: Vec<Value>,
    /// The pause before each pod.
    pauses: Vec<Duration>,
    pool: String,
}

/// The result of a scale-up.
#[derive(Clone, Debug)]
pub struct Realised {
    /// Its seed.
    pub seed: u64,
    /// The number of pods.
    pub pods: usize,
    /// The number of pods without a node at the end.
    pub stuck: usize,
    /// The number of nodes at the end.
    pub nodes: usize,
    /// The number of nodes bought because a pod lost the place that a plan had given it.
    pub again: usize,
    /// The total cost of the plans made as pods came, in millionths of a dollar per hour. Nodes bought again for pods that were
    /// planned before are left out.
    pub planned: u64,
    /// The price of all nodes at the end.
    pub realised: u64,
    /// The time from the first pod's creation until the last pod has a node.
    pub took: Duration,
    /// The time from the last pod's creation until the last pod has a node.
    pub waited: Duration,
}

impl Realised {
    /// Returns by how much the price paid exceeds the planned one, in percent.
    pub fn beyond_percent(&self) -> f64 {
        (self.realised as f64 / self.planned as f64 - 1.0) * 100.0
    }
}

impl fmt::Display for Realised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {:>4}  pods {:>3}  nodes {:>3}  plan ${:.2}/h  realised ${:.2}/h  {:>+6.2} %  bought again {:>2}  \
             stuck {}  {:>5.1} s, {:>5.1} s after the last pod",
            self.seed,
            self.pods,
            self.nodes,
            self.planned as f64 / 1e6,
            self.realised as f64 / 1e6,
            self.beyond_percent(),
            self.again,
            self.stuck,
            self.took.as_secs_f64(),
            self.waited.as_secs_f64(),
        )
    }
}

impl ScaleUp {
    /// Returns the scale-up of this seed: `pods` pods of the trace, all for one pool and in one namespace.
    pub fn new(seed: u64, pods: usize, namespace: &str, pool: &str) -> anyhow::Result<Self> {
        let mut random = Random::new(seed);
        let mut all = trace::read_all()?;
        anyhow::ensure!(all.len() >= pods, "the trace has {} pods, {pods} are wanted", all.len());
        for at in 0..pods {
            let other = at + random.below((all.len() - at) as u64) as usize;
            all.swap(at, other);
        }
        all.truncate(pods);
        let bursts = 1 + random.below(4);
        let starts: BTreeSet<usize> = (1..bursts).map(|_| random.below(pods as u64) as usize).collect();
        let mut pace = 0;
        let pauses = (0..pods)
            .map(|at| {
                let burst = at == 0 || starts.contains(&at);
                if burst {
                    pace = [0, 5, 20, 60][random.below(4) as usize];
                }
                let before = if burst && at > 0 { random.below(6_000) } else { random.below(pace + 1) };
                Duration::from_millis(before)
            })
            .collect();
        let objects = all
            .iter()
            .map(|pod| {
                let mut object = pod.object(namespace);
                object["spec"]["nodeSelector"] = json!({"poolwright.dev/nodepool": pool});
                object
            })
            .collect();
        Ok(Self { seed, pods: objects, pauses, pool: pool.to_owned() })
    }

    /// Returns the node class and the pool of these pods: any on-demand type with the trace's architecture.
    pub fn definitions(pool: &str) -> [Value; 2] {
        let requirements = json!([
            {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        ]);
        let pool_spec = json!({"template": {"spec": {"requirements": requirements}}});
        [node_class(pool, json!({"registrationDelay": "1s"})), node_pool(pool, pool_spec)]
    }

    /// Returns the pods as their users would write them.
    pub fn pods(&self) -> &[Value] {
        &self.pods
    }

    /// Creates the pods and waits until each has a node.
    pub async fn run(&self, cluster: &Cluster, namespace: &str) -> anyhow::Result<Realised> {
        let api: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
        let how = PostParams::default();
        let begun = Instant::now();
        for (pod, pause) in self.pods.iter().zip(&self.pauses) {
            if !pause.is_zero() {
                // Arrivals are set by time, so there is no condition to wait for.
                tokio::time::sleep(*pause).await;
            }
            api.create(&how, &serde_json::from_value(pod.clone())?).await.context("creating a pod")?;
        }
        let created = Instant::now();
        let stuck = loop {
            let pods = cluster.pods(namespace).await?;
            let waiting = pods.iter().filter(|pod| pod.spec.as_ref().is_none_or(|s| s.node_name.is_none()));
            let waiting = waiting.count();
            if waiting == 0 || created.elapsed() > STUCK_AFTER {
                break waiting;
            }
            tokio::time::sleep(LOOK).await;
        };
        let ended = Instant::now();
        let claims = cluster.claims(&self.pool).await?;
        let again = |claim: &&NodeClaim| claim.annotations().contains_key(BOUGHT_AGAIN_ANNOTATION);
        Ok(Realised {
            seed: self.seed,
            pods: self.pods.len(),
            stuck,
            nodes: claims.len(),
            again: claims.iter().filter(again).count(),
            planned: claims
                .iter()
                .filter(|claim| !again(claim))
                .map(planned_price)
                .sum::<anyhow::Result<u64>>()?,
            realised: claims.iter().map(price).sum::<anyhow::Result<u64>>()?,
            took: ended - begun,
            waited: ended - created,
        })
    }
}

/// Returns the planned price of a claim, in millionths of a dollar per hour.
fn planned_price(claim: &NodeClaim) -> anyhow::Result<u64> {
    let text = claim.spec.offerings.first().and_then(|first| first.usd_per_hour.as_deref());
    micros(text.with_context(|| format!("claim {} has no price", claim.name_any()))?)
}

/// Returns the price recorded at launch, or the planned price before.
fn price(claim: &NodeClaim) -> anyhow::Result<u64> {
    let recorded = claim.status.as_ref().and_then(|status| status.price.as_ref());
    recorded.map_or_else(|| planned_price(claim), |price| micros(&price.usd_per_hour))
}

fn micros(text: &str) -> anyhow::Result<u64> {
    Ok((text.parse::<f64>()? * 1e6).round() as u64)
}
