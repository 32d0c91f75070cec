//! Many interruption messages at once, handled by the real controller in a simulated world. All times are world time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use poolwright_catalog::builtin;
use poolwright_sim::cloud::{NODE_CLASS, NODE_CLASS_KIND, SIM_NODE_CLASS};
use poolwright_sim::sandbox::{Sandbox, play};
use poolwright_sim::time::Time;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{API_VERSION, ConditionType, labels};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::kit::wait_until;

/// Returns the number of nodes. `NODES` sets it, and `make soak` plays 500.
fn nodes() -> usize {
    let given = std::env::var("NODES").ok().filter(|text| !text.is_empty());
    given.map_or(100, |text| text.parse().unwrap_or_else(|_| panic!("NODES is not a number: {text}")))
}

/// One message in this many is about an instance that nobody knows.
const FOREIGN: usize = 20;

/// What the API server has shown of the instances, by provider id.
#[derive(Default)]
struct Seen {
    /// Those whose nodes are open.
    open: BTreeSet<String>,
    /// When the claim first recorded an interruption.
    recorded: BTreeMap<String, Duration>,
    /// When the node was first closed.
    fenced: BTreeMap<String, Duration>,
}

impl Seen {
    fn claim(&mut self, claim: &Value, now: Duration) {
        let status = &claim["status"];
        let Some(id) = status["providerID"].as_str() else { return };
        let initialized = ConditionType::Initialized.as_str();
        let mut conditions = status["conditions"].as_array().into_iter().flatten();
        if conditions.any(|one| one["type"] == initialized && one["status"] == "True") {
            self.open.insert(id.to_owned());
        }
        if status["interruption"].is_object() {
            self.recorded.entry(id.to_owned()).or_insert(now);
        }
    }

    fn node(&mut self, node: &Value, now: Duration) {
        let Some(id) = node["spec"]["providerID"].as_str() else { return };
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        if taints.any(|taint| taint["key"] == DISRUPTED_TAINT) {
            self.fenced.entry(id.to_owned()).or_insert(now);
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes what the API server shows, at the moment of each change.
async fn watch(
    mut claims: UnboundedReceiver<Value>,
    mut nodes: UnboundedReceiver<Value>,
    time: Time,
    seen: Arc<Mutex<Seen>>,
) {
    loop {
        tokio::select! {
            biased;
            Some(event) = claims.next() => lock(&seen).claim(&event["object"], time.elapsed()),
            Some(event) = nodes.next() => lock(&seen).node(&event["object"], time.elapsed()),
            else => return,
        }
    }
}

/// Starts a pool of this many nodes, and waits until they are open.
async fn start(nodes: usize, seen: &Arc<Mutex<Seen>>) -> Sandbox {
    let sold = builtin().filtered(|kind, offering| {
        kind.name.as_str() == "m6i.xlarge" && offering.id.zone.as_str() == "us-east-1a"
    });
    let sandbox = Sandbox::start(Arc::new(sold), &[SIM_NODE_CLASS], 1);
    let feed = |collection: &str| sandbox.server().feed(collection).expect("there is such a collection");
    let (claims, node_feed) = (feed("/apis/poolwright.dev/v1alpha1/nodeclaims"), feed("/api/v1/nodes"));
    tokio::spawn(watch(claims, node_feed, sandbox.time(), seen.clone()));
    let class = json!({"apiVersion": API_VERSION, "kind": NODE_CLASS_KIND, "metadata": {"name": NODE_CLASS},
        "spec": {}});
    let pool = json!({"apiVersion": API_VERSION, "kind": "NodePool", "metadata": {"name": "fixed"}, "spec": {
        "replicas": nodes,
        "limits": {"usdPerHour": "1000"},
        "template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": NODE_CLASS_KIND, "name": NODE_CLASS},
            "requirements": [{"key": labels::CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}],
        }},
    }});
    for object in [class, pool] {
        sandbox.create(&object).expect("the API server accepts it");
    }
    wait_until("all nodes are open", Duration::from_mins(15), || lock(seen).open.len() == nodes).await;
    // Longer than the interval of listings: the controller knows then that the cloud has no other instance of this cluster.
    sleep(Duration::from_mins(1)).await;
    sandbox
}

/// Sends this many messages at once, one in [`FOREIGN`] about an unknown instance, and checks how the controller handles them.
/// There are more of the others than instances, so that some come twice.
async fn handle(nodes: usize, messages: usize, recorded_within: Duration) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let sandbox = start(nodes, &seen).await;
    let told: Vec<String> = lock(&seen).open.iter().take(messages * 9 / 10).cloned().collect();
    let mut own = told.iter().cycle();
    let sent = sandbox.time().elapsed();
    for number in 1..=messages {
        let unknown = format!("sim://us-east-1a/i-unknown-{number}");
        let about = if number % FOREIGN == 0 { Some(&unknown) } else { own.next() };
        sandbox.cloud().interrupt(about.expect("there are instances"));
    }
    wait_until("all messages are acknowledged, and all nodes closed", Duration::from_mins(1), || {
        let is_acknowledged = sandbox.cloud().mail().iter().all(|one| one.given_back.is_some());
        is_acknowledged && lock(&seen).fenced.len() >= told.len()
    })
    .await;
    assert!(sandbox.is_alive());
    let mail = sandbox.cloud().mail();
    let seen = lock(&seen);
    let interrupted: BTreeSet<&String> = told.iter().collect();
    assert_eq!(seen.recorded.keys().collect::<BTreeSet<_>>(), interrupted, "each claim, and no other");
    assert_eq!(seen.fenced.keys().collect::<BTreeSet<_>>(), interrupted, "each node, and no other");
    assert_eq!(mail.len(), messages);
    let own = mail.iter().filter(|one| interrupted.contains(&one.provider_id));
    assert!(own.clone().count() > told.len(), "some come twice");
    for one in own {
        let (recorded, acknowledged) = (seen.recorded[&one.provider_id], one.given_back);
        assert!(
            acknowledged.is_some_and(|at| at > recorded),
            "{}: recorded at {recorded:?}, acknowledged at {acknowledged:?}",
            one.provider_id
        );
    }
    let recorded = seen.recorded.values().max().expect("some are recorded").saturating_sub(sent);
    let mut fenced: Vec<Duration> =
        seen.fenced.iter().map(|(instance, at)| at.saturating_sub(seen.recorded[instance])).collect();
    fenced.sort();
    let fenced = fenced[fenced.len() * 99 / 100];
    println!("{messages} messages: all recorded after {recorded:?}, 99 of 100 nodes closed {fenced:?} later");
    assert!(recorded <= recorded_within, "{recorded:?}");
    assert!(fenced <= Duration::from_secs(1), "{fenced:?}");
}

#[test]
fn as_many_messages_as_nodes_are_recorded_before_they_are_acknowledged_and_all_nodes_are_closed() {
    play(async || handle(nodes(), nodes(), Duration::from_secs(5)).await).expect("a runtime");
}

#[test]
fn twice_as_many_messages_as_nodes_are_recorded_before_they_are_acknowledged_and_all_nodes_are_closed() {
    play(async || handle(nodes(), 2 * nodes(), Duration::from_secs(10)).await).expect("a runtime");
}
