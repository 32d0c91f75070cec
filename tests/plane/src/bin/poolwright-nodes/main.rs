//! Measures a cluster that grows to many nodes and shrinks to nothing again, on a real control plane: `NODES` pods that need a
//! node each are created at once, run, and are deleted.
//!
//! It measures how long that takes and what it costs the controller in time, memory and calls, and checks that exactly one node
//! per pod was bought. The nodes are KWOK's, so only API objects take time. The limit is the two cores that run etcd, the API
//! server, the scheduler, KWOK and the controller.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kube::api::GetParams;
use poolwright_plane::measurement::{self, Times, peak_mib, resident_mib};
use poolwright_plane::trial::{
    Cluster, Controller, Trial, Witness, is_running, node_class, node_pool, pod, sum,
};
use poolwright_plane::wait_for;
use serde_json::{Value, json};

const POOL: &str = "nodes";
/// Two cores need minutes for 500 nodes. Whatever takes longer than this is stuck.
const WITHIN: Duration = Duration::from_mins(30);
/// The interval between looks. Each look lists all pods, which loads a small machine.
const LOOK: Duration = Duration::from_secs(1);

#[tokio::main]
async fn main() -> ExitCode {
    measurement::end(measure().await)
}

/// Runs the measurement. Returns whether exactly the needed nodes were bought and nothing is left.
async fn measure() -> anyhow::Result<bool> {
    let nodes: usize = measurement::variable("NODES", 500)?;
    let plane = Trial::plane_without_controller().await?;
    let cluster = Cluster::new(plane.client()?);
    cluster.apply("", &[node_class(POOL, json!({})), node_pool(POOL, json!({}))]).await?;
    let namespace = cluster.namespace(POOL).await?;
    let witness = Witness::start(&cluster).await?;
    let mut controller = Controller::start(&plane, "controller", &[])?;
    wait_for("the controller to lead", WITHIN, async || {
        controller.ensure_running()?;
        ensure!(controller.metric("poolwright_leader").await? > 0.5, "it does not");
        Ok(())
    })
    .await?;
    let pid = controller.process().id();
    println!(
        "{nodes} pods that take a node each come at once; the controller has {} MiB",
        resident_mib(pid)?
    );
    let calls_before = calls(&cluster).await?;

    let began = Instant::now();
    let requests = json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"});
    let pods: Vec<Value> =
        (0..nodes).map(|number| pod(&format!("pod-{number:05}"), POOL, requests.clone())).collect();
    cluster.create_pods(&namespace, &pods).await?;
    let created = began.elapsed();
    let mut half = None;
    let up = until(&mut controller, "all pods to run", began, async || {
        let waiting = cluster.pods(&namespace).await?.iter().filter(|pod| !is_running(pod)).count();
        if waiting * 2 <= nodes {
            half.get_or_insert(began.elapsed());
        }
        ensure!(waiting == 0, "{waiting} pods wait");
        Ok(())
    })
    .await?;
    let at_work = witness.account_of([nodes; 3]).await;
    let account = witness.account()?;
    let used: std::collections::BTreeSet<_> = cluster
        .pods(&namespace)
        .await?
        .into_iter()
        .filter_map(|pod| pod.spec.and_then(|spec| spec.node_name))
        .collect();
    let calls_up = calls(&cluster).await?;

    let began = Instant::now();
    cluster.delete_pods(&namespace).await?;
    let down = until(&mut controller, "all nodes to be gone", began, async || {
        let account = witness.account()?;
        let left =
            [&account.instances, &account.nodes, &account.claims].map(poolwright_plane::trial::Seen::now);
        ensure!(left == [0; 3], "{left:?} instances, nodes and claims are there");
        Ok(())
    })
    .await?;
    let last = witness.account()?;
    let calls_down = calls(&cluster).await?;

    let seconds = |time: Duration| format!("{:.1} s", time.as_secs_f64());
    let row = |what: &str, value: String| println!("{what:<58} {value}");
    row("pods created after", seconds(created));
    row("half of them run after", half.map_or_else(String::new, seconds));
    row("all of them run after", seconds(up));
    row("after their deletion nothing is left after", seconds(down));
    for (what, seen) in [("claims", &last.claims), ("instances", &last.instances), ("nodes", &last.nodes)] {
        let counts = format!("{}, {} at a time, {} doubled", seen.ever(), seen.most(), seen.doubled().len());
        row(&format!("{what} there ever were"), counts);
    }
    row("nodes that pods ran on", used.len().to_string());
    for (what, name) in [
        ("from an object to the index", "poolwright_index_duration_seconds"),
        ("decisions about claims", "poolwright_decision_duration_seconds"),
        ("plans", "poolwright_plan_duration_seconds"),
    ] {
        let Times { count, mean, p99 } = Times::of(&controller, name).await?;
        let times = format!("{count} times, mean {:.3} ms, p99 <= {:.3} ms", mean * 1e3, p99 * 1e3);
        row(what, times);
    }
    let done = controller.metric_sum("poolwright_actions_total", r#"outcome="done""#).await?;
    let again = controller.metric_sum("poolwright_actions_total", r#"outcome="retry""#).await?;
    row("actions", format!("{done} done, {again} tried again"));
    let each = |calls: f64| format!("{:.1}", calls / nodes as f64);
    row(
        "calls about claims for each node, up and down",
        format!("{} and {}", each(calls_up - calls_before), each(calls_down - calls_up)),
    );
    row("the controller's memory", format!("{} MiB, {} at most", resident_mib(pid)?, peak_mib(pid)?));
    row("its processor time", format!("{:.1} s", controller.metric("process_cpu_seconds_total").await?));
    let exact = [&last.claims, &last.instances, &last.nodes]
        .iter()
        .all(|seen| seen.ever() == nodes && seen.doubled().is_empty());
    let reached = at_work.is_ok() && account.claims.most() == nodes && used.len() == nodes && exact;
    let verdict = if reached { "reached" } else { "missed" };
    println!("Goal ({nodes} claims, instances and nodes, not one more; all gone at the end): {verdict}");
    Ok(reached)
}

/// Returns the time from `began` until `look` succeeds.
async fn until(
    controller: &mut Controller,
    what: &str,
    began: Instant,
    mut look: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    loop {
        controller.ensure_running()?;
        match look().await {
            Ok(()) => return Ok(began.elapsed()),
            Err(error) => ensure!(began.elapsed() < WITHIN, "waited too long for {what}: {error:#}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns how many calls about NodeClaims the API server has answered. Only the controller makes such calls.
async fn calls(cluster: &Cluster) -> anyhow::Result<f64> {
    let request = kube::core::Request::new("").get("metrics", &GetParams::default())?;
    let metrics = cluster.client.request_text(request).await?;
    sum(&metrics, "apiserver_request_total", r#"resource="nodeclaims""#)
}
