//! Measures how fast interruptions are handled: the real controller on a real control plane, with moto as EC2 and KWOK for nodes
//! and pods.
//!
//! The controller starts when the pods exist, and may buy every type of the region. The program prints the time until the first
//! claim, and the time that moto alone needs to list the types. `NODES` instances (default 500) are launched for pods that need
//! one each. Then each number of messages in `BURSTS` (default as many as nodes, then twice as many) is put on the queue at once.
//! Each node gets one warning. Further messages are rebalance recommendations for the same nodes, which come before the warnings.
//! After that, `MESSAGES` (default 1,000) interruptions follow one by one, each when the replacement of the last was requested and
//! all but a few pods run.
//!
//! For each interrupted node the program measures the time from the message until the claim records the warning, until the node is
//! fenced, and for single messages until a claim for the pod exists. It prints one table. Its times are those of a watch, which
//! shows changes late when the API server is busy. So for each burst, the program also prints when the API server had answered the
//! controller's last record.
//!
//! Instances are launched, tagged and terminated by moto, and listed by the front before it. For each listing moto needs at least
//! two milliseconds per instance, terminated ones included, so a burst would measure only moto. The queue is similar: moto needs
//! more than a tenth of a second of a core for a response with ten messages. `QUEUE=moto` leaves both to moto, as in the tests.

#[path = "../tests/aws_cluster/cloud.rs"]
mod cloud;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use cloud::{ACCOUNT, Cloud, Machines};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::aws::credentials;
use poolwright_plane::trial::{Cluster, Controller, Trial, node_pool, taint_keys};
use poolwright_plane::wait_for;
use poolwright_terms::InterruptionKind;
use serde_json::{Value, json};

const POOL: &str = "gpu";
/// Far longer than any reaction takes.
const ANSWER: Duration = Duration::from_mins(1);
/// The time limit of everything else.
const LIMIT: Duration = Duration::from_mins(15);

/// The number of pods that may still be moving when the next message is sent.
const UNDER_WAY: usize = 5;

/// What the watches have seen, and when.
#[derive(Default)]
struct Seen {
    /// The time at which each claim's status showed an interruption that is more than a recommendation.
    recorded: BTreeMap<String, Instant>,
    /// The time at which each node got our taint.
    fenced: BTreeMap<String, Instant>,
    /// The creation times of claims.
    made: Vec<Instant>,
    /// The node and the provider id of each claim.
    claims: BTreeMap<String, (String, String)>,
    /// The node of each pod.
    pods: BTreeMap<String, String>,
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Returns the numbers in this environment variable, or `None` if it is unset or empty.
fn numbers(name: &str) -> anyhow::Result<Option<Vec<usize>>> {
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return Ok(None) };
    let all = text
        .split_whitespace()
        .map(|word| word.parse::<usize>().with_context(|| format!("{name}={text}: {word} is no number")));
    Ok(Some(all.collect::<anyhow::Result<Vec<usize>>>()?))
}

fn number(name: &str, default: usize) -> anyhow::Result<usize> {
    match numbers(name)?.as_deref() {
        None => Ok(default),
        Some([number]) => Ok(*number),
        Some(_) => anyhow::bail!("{name} is one number"),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let nodes = number("NODES", 500)?;
    let bursts = numbers("BURSTS")?.unwrap_or_else(|| vec![nodes, 2 * nodes]);
    let messages = number("MESSAGES", 1000)?;
    let cloud = Arc::new(Cloud::start().await?);
    let of_moto = match std::env::var("QUEUE").ok().filter(|name| !name.is_empty()).as_deref() {
        None | Some("own") => false,
        Some("moto") => true,
        Some(other) => anyhow::bail!("QUEUE={other}: `own`, or `moto`"),
    };
    if !of_moto {
        cloud.front.keep_messages();
        cloud.front.keep_instances();
    }
    let plane = Trial::plane_without_controller().await?;
    let authority = plane.dir().join("certificates").join("apiserver.crt");
    let flags = [
        ["--aws-cluster", &cloud.cluster],
        ["--aws-region", "us-east-1"],
        ["--aws-cluster-endpoint", "https://api.example"],
        ["--aws-cluster-ca", authority.to_str().context("a path")?],
        ["--aws-service-cidr", "10.100.0.0/16"],
        ["--aws-interruption-queue", &cloud.cluster],
    ]
    .concat();
    let cluster = Cluster::new(plane.client()?);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let watches = tokio::spawn(watch(plane.client()?, Arc::clone(&seen)));
    let spec = json!({
        "template": {"spec": {
            "nodeClassRef": {"kind": "EC2NodeClass"},
            "requirements": [{"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]}],
        }},
        "scaleToZero": {"after": "1h"}, "disruption": {"budgets": [{"nodes": "0"}]},
    });
    cluster.apply("", &[cloud.node_class(POOL), node_pool(POOL, spec)]).await?;
    let namespace = cluster.namespace("work").await?;
    cluster.apply(&namespace, &[cloud::work("train", POOL, nodes)]).await?;
    wait_for("all pods to be there", LIMIT, async || {
        let there = cluster.pods(&namespace).await?.len();
        ensure!(there == nodes, "{there} of {nodes}");
        Ok(())
    })
    .await?;
    let (types, listing) = list_types(&cloud).await?;
    let begun = now();
    let mut controller = Controller::start_with(&plane, "controller", &flags, |command| {
        credentials(command);
        command.env("AWS_ENDPOINT_URL", cloud.front.url());
    })?;
    let _machines = Machines::boot(Arc::clone(&cloud), plane.client()?);
    let first = wait_for("the first claim", LIMIT, async || {
        seen.lock().expect("no panic").made.first().copied().context("none")
    })
    .await?;
    println!(
        "{types} types; first claim {:.2} s after the start (moto alone lists the types in {:.2} s)",
        first.duration_since(begun).as_secs_f64(),
        listing.as_secs_f64()
    );
    all_run(&seen, &mut controller, nodes).await?;
    let fleets = cloud.front.calls().get("ec2:CreateFleet").copied().unwrap_or(0);
    println!(
        "{nodes} instances with {fleets} orders; all pods run after {:.1} s",
        begun.elapsed().as_secs_f64()
    );

    let mut table = Vec::new();
    for burst in bursts {
        table.extend(at_once(&cloud, &seen, &mut controller, nodes, burst).await?);
    }
    let mut single = ["recorded", "fenced", "replacement requested"].map(|step| Row::new("one by one", step));
    for number in 0..messages {
        // Wait until most of the earlier work has ended. moto does one thing at a time, and must not be what is measured.
        all_run(&seen, &mut controller, nodes - nodes.min(UNDER_WAY)).await?;
        let target = wait_for("a node to be told of", LIMIT, async || {
            unheard(&seen, 1).into_iter().next().context("none is left")
        })
        .await?;
        let sent = now();
        tell_queue(&cloud, &[warning(&target.instance)]).await?;
        let at = wait_for(&format!("the answer about {}", target.claim), ANSWER, async || {
            let seen = seen.lock().expect("no panic");
            let recorded = seen.recorded.get(&target.claim).context("it is not recorded")?;
            let fenced = seen.fenced.get(&target.node).context("it is not fenced")?;
            // Only one message is on its way at a time, so any later purchase is for it.
            let bought = seen.made.iter().find(|at| **at > sent).copied();
            // The pod may have found free room on an existing node.
            ensure!(bought.is_some() || !seen.claims.contains_key(&target.claim), "nothing is bought for it");
            Ok([Some(*recorded), Some(*fenced), bought])
        })
        .await?;
        let late = |at: &Instant| at.saturating_duration_since(sent) > Duration::from_secs(1);
        if at.iter().flatten().any(late) {
            let took = at.map(|at| at.map(|at| at.saturating_duration_since(sent)));
            println!(
                "late: claim {}, node {}, told of {:?} ago: {took:?}",
                target.claim,
                target.node,
                sent.elapsed()
            );
        }
        for (row, at) in single.iter_mut().zip(at) {
            row.times.extend(at.map(|at| at.saturating_duration_since(sent)));
        }
        if (number + 1) % 100 == 0 && number + 1 < messages {
            print(&mut single);
        }
    }
    table.extend(single.into_iter().filter(|row| !row.times.is_empty()));
    print(&mut table);
    controller.ensure_running()?;
    watches.abort();
    Ok(())
}

/// Puts this many messages on the queue at once, and waits until all pods run on other nodes.
async fn at_once(
    cloud: &Cloud,
    seen: &Mutex<Seen>,
    controller: &mut Controller,
    nodes: usize,
    messages: usize,
) -> anyhow::Result<[Row; 3]> {
    let targets = unheard(seen, messages);
    ensure!(!targets.is_empty(), "no node can be told of");
    let about = |number: usize| {
        let instance = &targets[number % targets.len()].instance;
        if number < targets.len() { warning(instance) } else { recommendation(instance) }
    };
    let bodies: Vec<String> = (0..messages).rev().map(about).collect();
    let before = cloud.front.asked();
    let warnings = async |outcome: &str| {
        let labels = format!("kind=\"Reclaim\",outcome=\"{outcome}\"");
        controller.metric_sum("poolwright_interruptions_total", &labels).await
    };
    let (recorded, failed) =
        (warnings("recorded").await? + warnings("known").await?, warnings("failed").await?);
    let sent = now();
    tell_queue(cloud, &bodies).await?;
    let took = sent.elapsed();
    wait_for("all of them to be recorded", LIMIT, async || {
        let recorded = warnings("recorded").await? + warnings("known").await? - recorded;
        ensure!(recorded >= targets.len() as f64, "{recorded} are recorded");
        Ok(())
    })
    .await?;
    let answered = sent.elapsed();
    let failed = warnings("failed").await? - failed;
    let mut rows = ["recorded", "fenced", "fenced after its record"]
        .map(|step| Row::new(&format!("{messages} at once"), step));
    for target in &targets {
        let what = format!("the answer about {}", target.claim);
        let [recorded, fenced] = wait_for(&what, LIMIT, async || {
            let seen = seen.lock().expect("no panic");
            let recorded = seen.recorded.get(&target.claim).context("it is not recorded")?;
            Ok([*recorded, *seen.fenced.get(&target.node).context("it is not fenced")?])
        })
        .await?;
        rows[0].times.push(recorded.saturating_duration_since(sent));
        rows[1].times.push(fenced.saturating_duration_since(sent));
        rows[2].times.push(fenced.saturating_duration_since(recorded));
    }
    moto(cloud, &before);
    println!(
        "{messages} messages about {} nodes, put on the queue within {:.2} s: the last is recorded {:.2} s after that began; SQS \
         had to deliver {failed} again",
        targets.len(),
        took.as_secs_f64(),
        answered.as_secs_f64()
    );
    print(&mut rows);
    all_run(seen, controller, nodes).await?;
    moto(cloud, &before);
    println!("all pods run on other nodes {:.1} s after the first was sent", sent.elapsed().as_secs_f64());
    Ok(rows)
}

/// How long one step took, for each message or node.
struct Row {
    messages: String,
    step: &'static str,
    times: Vec<Duration>,
}

impl Row {
    fn new(messages: &str, step: &'static str) -> Self {
        Self { messages: messages.to_owned(), step, times: Vec::new() }
    }
}

/// Prints how long each step took.
fn print(rows: &mut [Row]) {
    println!(
        "{:<14} {:<24} {:>6} {:>10} {:>10} {:>10}",
        "messages", "step", "nodes", "p50", "p99", "longest"
    );
    for Row { messages, step, times } in rows {
        times.sort();
        let at = |share: usize| times.get((times.len() * share / 1000).min(times.len().saturating_sub(1)));
        let [half, most, all] =
            [500, 990, 1000].map(|share| format!("{} ms", at(share).map_or(0, Duration::as_millis)));
        println!("{messages:<14} {step:<24} {:>6} {half:>10} {most:>10} {all:>10}", times.len());
    }
}

/// Prints the calls to moto since `before`, longest total first.
fn moto(cloud: &Cloud, before: &BTreeMap<String, (usize, Duration)>) {
    let mut did: Vec<(String, usize, Duration)> = Vec::new();
    for (action, (count, took)) in cloud.front.asked() {
        let (known, spent) = before.get(&action).copied().unwrap_or_default();
        did.push((action, count - known, took.saturating_sub(spent)));
    }
    did.sort_by_key(|(_, _, took)| std::cmp::Reverse(*took));
    for (action, count, took) in did.into_iter().filter(|(_, count, _)| *count > 0).take(8) {
        println!("  moto: {count:>5} x {action}, {:.2} s waited for in all", took.as_secs_f64());
    }
}

/// Returns EventBridge's message with this event of an instance.
fn event(id: &str, kind: &str, detail: &Value) -> String {
    #[expect(clippy::disallowed_methods, reason = "the edge: moto has the time of day")]
    let time = jiff::Timestamp::now();
    json!({
        "version": "0", "id": format!("event-{id}"), "detail-type": kind,
        "source": "aws.ec2", "account": ACCOUNT, "time": time.to_string(), "region": "us-east-1",
        "resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")],
        "detail": detail,
    })
    .to_string()
}

/// Returns the warning that EC2 takes a spot instance back.
fn warning(id: &str) -> String {
    let detail = json!({"instance-id": id, "instance-action": "terminate"});
    event(id, "EC2 Spot Instance Interruption Warning", &detail)
}

/// Returns EC2's recommendation to replace a spot instance.
fn recommendation(id: &str) -> String {
    event(id, "EC2 Instance Rebalance Recommendation", &json!({"instance-id": id}))
}

/// Puts messages on the queue, in calls of ten, as many as SQS accepts. The calls run concurrently.
async fn tell_queue(cloud: &Cloud, bodies: &[String]) -> anyhow::Result<()> {
    let url = format!("{}/{ACCOUNT}/{}", cloud.moto.url(), cloud.cluster);
    if cloud.front.put(bodies.iter().cloned()) {
        return Ok(());
    }
    let calls = bodies.chunks(10).map(|some| {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("Action", "SendMessageBatch").append_pair("Version", "2012-11-05");
        form.append_pair("QueueUrl", &url);
        for (number, body) in some.iter().enumerate() {
            let field = |name: &str| format!("SendMessageBatchRequestEntry.{}.{name}", number + 1);
            form.append_pair(&field("Id"), &number.to_string());
            form.append_pair(&field("MessageBody"), body);
        }
        let query = form.finish();
        async move {
            let answer = cloud.front.call("sqs", &query).await?;
            ensure!(answer.contains("SendMessageBatchResultEntry"), "{answer}");
            Ok(())
        }
    });
    futures::future::try_join_all(calls).await.map(|_| ())
}

/// Returns the number of types moto has, and the time it needs to list them page by page.
async fn list_types(cloud: &Cloud) -> anyhow::Result<(usize, Duration)> {
    let begun = now();
    let (mut types, mut token) = (0, String::new());
    loop {
        let query =
            format!("Action=DescribeInstanceTypes&Version=2016-11-15&MaxResults=100&NextToken={token}");
        let query = if token.is_empty() { query.replace("&NextToken=", "") } else { query };
        let answer = cloud.front.call("ec2", &query).await?;
        types += answer.matches("<instanceType>").count();
        match answer.split("<nextToken>").nth(1).and_then(|rest| rest.split('<').next()) {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => break,
        }
    }
    Ok((types, begun.elapsed()))
}

/// A node that can be interrupted.
struct Target {
    claim: String,
    node: String,
    instance: String,
}

/// Returns nodes with a pod and without a recorded interruption.
fn unheard(seen: &Mutex<Seen>, most: usize) -> Vec<Target> {
    let seen = seen.lock().expect("no panic");
    let with_pod: BTreeSet<&String> = seen.pods.values().collect();
    seen.claims
        .iter()
        .filter(|(claim, _)| !seen.recorded.contains_key(*claim))
        .filter_map(|(claim, (node, provider_id))| {
            with_pod.get(node)?;
            let instance = provider_id.rsplit('/').next()?.to_owned();
            Some(Target { claim: claim.clone(), node: node.clone(), instance })
        })
        .take(most)
        .collect()
}

/// Waits until `count` pods run on nodes without an interruption.
async fn all_run(seen: &Mutex<Seen>, controller: &mut Controller, count: usize) -> anyhow::Result<()> {
    wait_for("pods to run on nodes that stay", LIMIT, async || {
        let staying: BTreeSet<String> =
            unheard(seen, usize::MAX).into_iter().map(|target| target.node).collect();
        // A node may hold several pods, if it was bought larger than one pod needs.
        let seen = seen.lock().expect("no panic");
        let running = seen.pods.values().filter(|node| staying.contains(*node)).count();
        ensure!(running >= count, "{running} of {count}");
        Ok(())
    })
    .await?;
    controller.ensure_running()
}

async fn watch(client: Client, seen: Arc<Mutex<Seen>>) -> anyhow::Result<()> {
    let claims = watcher(Api::<NodeClaim>::all(client.clone()), watcher::Config::default()).default_backoff();
    let nodes = watcher(Api::<Node>::all(client.clone()), watcher::Config::default()).default_backoff();
    let pods = watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff();
    #[expect(clippy::large_enum_variant, reason = "made and taken apart at once")]
    enum Event {
        Claim(watcher::Event<NodeClaim>),
        Node(watcher::Event<Node>),
        Pod(watcher::Event<Pod>),
    }
    let mut events = futures::stream::select_all([
        claims.map_ok(Event::Claim).boxed(),
        nodes.map_ok(Event::Node).boxed(),
        pods.map_ok(Event::Pod).boxed(),
    ]);
    let mut known = BTreeSet::new();
    while let Some(event) = events.next().await {
        let at = now();
        let mut seen = seen.lock().expect("no panic");
        match event {
            Ok(Event::Claim(watcher::Event::Apply(claim) | watcher::Event::InitApply(claim))) => {
                let name = claim.name_any();
                if known.insert(name.clone()) {
                    seen.made.push(at);
                }
                let Some(status) = claim.status else { continue };
                let recommended = InterruptionKind::Rebalance;
                if status.interruption.as_ref().is_some_and(|told| told.kind != recommended) {
                    seen.recorded.entry(name.clone()).or_insert(at);
                }
                if let (Some(node), Some(id)) = (status.node_name, status.provider_id) {
                    seen.claims.insert(name, (node, id));
                }
            }
            Ok(Event::Claim(watcher::Event::Delete(claim))) => {
                seen.claims.remove(&claim.name_any());
            }
            Ok(Event::Node(watcher::Event::Apply(node) | watcher::Event::InitApply(node))) => {
                if taint_keys(&node).iter().any(|key| key == "poolwright.dev/disrupted") {
                    seen.fenced.entry(node.name_any()).or_insert(at);
                }
            }
            Ok(Event::Pod(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) => {
                let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
                let is_there =
                    poolwright_plane::trial::is_running(&pod) && pod.metadata.deletion_timestamp.is_none();
                match pod.spec.and_then(|spec| spec.node_name).filter(|_| is_there) {
                    Some(node) => seen.pods.insert(name, node),
                    None => seen.pods.remove(&name),
                };
            }
            Ok(Event::Pod(watcher::Event::Delete(pod))) => {
                let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
                seen.pods.remove(&name);
            }
            Ok(_) => {}
            Err(error) => {
                eprintln!("a watch of this measurement failed; what follows is heard of late: {error}");
            }
        }
    }
    Ok(())
}
