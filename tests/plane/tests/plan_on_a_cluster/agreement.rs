//! What `poolwright what-if` says of a change, and the bill after it was made. The controller is down while the change is made, so its
//! first plan sees all of it, as the answer did.

use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Controller, Random, Trial, WITHIN, is_running, is_true, node_class, taint_keys, usd_per_hour,
};
use poolwright_plane::{ControlPlane, measurement, poolwright_binary, seed, wait_for};
use serde_json::{Value, json};

use crate::world::{CLASS, Change, World};

/// The number of changes of one world, after which another one begins.
const OF_ONE_WORLD: u64 = 6;
const FLAGS: [&str; 4] = ["--identity", "agreement", "--list-interval", "1s"];
/// As far as the controller searches. Without it, `what-if` searches longer for few pods.
const GAP: &str = "0.1%";

/// Returns an amount in millionths of a dollar per hour.
fn micros(side: &Value, field: &str) -> anyhow::Result<u64> {
    let number = side[field].as_f64().with_context(|| format!("no number {field} in {side}"))?;
    Ok((number * 1e6).round() as u64)
}

/// What the answer says about the plan after the change.
#[derive(Debug)]
struct Said {
    /// The cost before the change.
    before: u64,
    /// The cost, in millionths of a dollar per hour.
    cost: u64,
    /// The expected loss from interruptions.
    loss: u64,
    /// A lower bound of both together.
    bound: u64,
    /// The pods that wait.
    waiting: Vec<String>,
}

impl Said {
    fn of(answer: &Value) -> anyhow::Result<Self> {
        let after = &answer["after"];
        let waiting = after["waiting"].as_array().context("no list of pods that wait")?;
        let name = |one: &Value| one["pod"].as_str().map(str::to_owned).context("a pod without a name");
        Ok(Self {
            before: micros(&answer["before"], "usdPerHour")?,
            cost: micros(after, "usdPerHour")?,
            loss: micros(after, "riskUsdPerHour")?,
            bound: micros(after, "lowerBoundUsdPerHour")?,
            waiting: waiting.iter().map(name).collect::<Result<_, _>>()?,
        })
    }

    /// Returns by how much the bill may differ: the gap, and the loss, which another plan as good may exchange for price.
    fn gap(&self) -> u64 {
        (self.cost + self.loss).saturating_sub(self.bound) + self.loss
    }
}

/// Returns the answer about a change.
fn ask(plane: &ControlPlane, namespace: &str, change: &Change) -> anyhow::Result<Said> {
    let mut command = Command::new(poolwright_binary()?);
    command.args(["what-if", "-o", "json", "--gap", GAP, "-n", namespace]).args(&change.flags);
    command.arg("--kubeconfig").arg(plane.kubeconfig_path());
    for (flag, objects) in [("--pool", &change.pools), ("--filename", &change.work)] {
        if !objects.is_empty() {
            let file = plane.dir().join(format!("change{flag}.yaml"));
            let documents: Vec<String> = objects.iter().map(Value::to_string).collect();
            fs::write(&file, documents.join("\n---\n"))?;
            command.arg(flag).arg(file);
        }
    }
    let output = command.output()?;
    let is_answer = output.status.code().is_some_and(|code| code <= 1);
    ensure!(is_answer, "poolwright what-if: {}", String::from_utf8_lossy(&output.stderr));
    Said::of(&serde_json::from_slice(&output.stdout)?)
}

/// Makes a change in the cluster, and waits until the scheduler has tried every pod.
async fn carry_out(
    cluster: &Cluster,
    namespace: &str,
    change: &Change,
    expected: usize,
) -> anyhow::Result<()> {
    for objects in [&change.pools, &change.meant, &change.work] {
        cluster.apply(namespace, objects).await?;
    }
    if let Some((kind, name)) = &change.deleted {
        let (client, how) = (cluster.client.clone(), DeleteParams::background());
        if *kind == "Deployment" {
            Api::<Deployment>::namespaced(client, namespace).delete(name, &how).await?;
        } else {
            Api::<StatefulSet>::namespaced(client, namespace).delete(name, &how).await?;
        }
    }
    wait_for("the scheduler to have tried every pod", WITHIN, async || {
        let pods = cluster.pods(namespace).await?;
        ensure!(pods.len() == expected, "{} pods of {expected}", pods.len());
        let untried: Vec<String> =
            pods.iter().filter(|pod| !is_tried(pod)).map(ResourceExt::name_any).collect();
        ensure!(untried.is_empty(), "{untried:?}");
        Ok(())
    })
    .await
}

fn has_node(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

fn is_tried(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_refused = conditions
        .into_iter()
        .flatten()
        .any(|one| one.type_ == "PodScheduled" && one.reason.as_deref() == Some("Unschedulable"));
    pod.metadata.deletion_timestamp.is_none() && (has_node(pod) || is_refused)
}

/// Waits until the controller has planned, as many pods wait as was said, the others run, and no other node is there. Returns the bill.
async fn settled(
    cluster: &Cluster,
    namespace: &str,
    controller: &mut Controller,
    expected: usize,
    waiting: usize,
) -> anyhow::Result<u64> {
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let all = ListParams::default();
    wait_for(
        "as many pods to run as was said, on open nodes, and no other node to be there",
        WITHIN,
        async || {
            controller.ensure_running()?;
            let plans = controller.metric_sum("poolwright_plans_total", "outcome").await?;
            ensure!(plans >= 1.0, "nothing was planned yet");
            let pods = cluster.pods(namespace).await?;
            let without = pods.iter().filter(|pod| !has_node(pod)).count();
            let running = pods.iter().filter(|pod| is_running(pod)).count();
            ensure!(
                without == waiting && running + without == pods.len() && pods.len() == expected,
                "{} pods, {running} run, and {without} wait instead of {waiting}",
                pods.len()
            );
            let claims = claims.list(&all).await?.items;
            let nodes = nodes.list(&all).await?.items;
            for node in &nodes {
                let name = node.name_any();
                let is_home =
                    |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref() == Some(&name));
                ensure!(pods.iter().any(is_home), "no pod is on node {name}");
                let is_closed = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
                let mut taints = taint_keys(node).into_iter();
                ensure!(
                    !is_closed && !taints.any(|key| key.starts_with("poolwright.dev/")),
                    "node {name} is not open"
                );
            }
            ensure!(claims.len() == nodes.len(), "{} claims and {} nodes", claims.len(), nodes.len());
            ensure!(
                claims.iter().all(|claim| is_true(claim, "Initialized")),
                "not every node is initialized"
            );
            usd_per_hour(&claims)
        },
    )
    .await
}

/// Makes this many changes in a world of its own, and compares each bill with what was said. `first` is the number of the first one.
async fn play(random: &mut Random, first: u64, count: u64) -> anyhow::Result<()> {
    let plane = Trial::plane_without_controller().await?;
    let cluster = Cluster::new(plane.client()?);
    let namespace = cluster.namespace("work").await?;
    cluster.apply("", &[node_class(CLASS, json!({}))]).await?;
    let mut world = World::new(namespace.clone());
    let mut bill = 0;
    for number in first..first + count {
        let change = world.change(random);
        let told = format!(
            "case {number}: {} ({} pools, {} workloads)",
            change.flags.join(" "),
            change.pools.len(),
            change.work.len()
        );
        let said = ask(&plane, &namespace, &change).with_context(|| told.clone())?;
        ensure!(said.before == bill, "{told}: the base costs {}, and the bill is {bill}", said.before);
        let expected = world.pods();
        carry_out(&cluster, &namespace, &change, expected).await.with_context(|| told.clone())?;
        let mut controller = Controller::start(&plane, "controller", &FLAGS)?;
        bill = settled(&cluster, &namespace, &mut controller, expected, said.waiting.len())
            .await
            .with_context(|| told.clone())?;
        println!(
            "{told}: said {} within {}, paid {bill} millionths of a dollar per hour; {expected} pods, {} wait",
            said.cost,
            said.gap(),
            said.waiting.len()
        );
        ensure!(bill.abs_diff(said.cost) <= said.gap(), "{told}: paid {bill}, and it said {said:?}");
        world.remember_waiting(&said.waiting);
        let status = controller.process().terminate(WITHIN).await?;
        ensure!(status.success(), "{told}: the controller ended with {status}");
    }
    Ok(())
}

#[tokio::test]
async fn the_bill_that_comes_out_is_what_was_said_within_the_printed_gap() {
    let cases: u64 = measurement::variable("CASES", 6).unwrap();
    let mut random = Random::new(seed("these changes"));
    let mut done = 0;
    while done < cases {
        let count = OF_ONE_WORLD.min(cases - done);
        play(&mut random, done + 1, count).await.unwrap_or_else(|error| panic!("{error:#}"));
        done += count;
    }
}
