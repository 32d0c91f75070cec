//! Tests of `poolwright open` with an API server that gives the answers of the test.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Output;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use poolwright_controller::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

/// The API server's nodes, and the writes that it got.
#[derive(Default)]
struct Cluster {
    nodes: BTreeMap<String, Value>,
    leases: Vec<Value>,
    /// How many further writes meet a node that has changed.
    conflicts: u32,
    writes: Vec<String>,
}

fn node(name: &str, taints: &[&str]) -> Value {
    let taints: Vec<Value> =
        taints.iter().map(|key| json!({"key": key, "value": name, "effect": "NoSchedule"})).collect();
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {"providerID": format!("kwok://{name}"), "taints": taints}})
}

fn cluster(nodes: &[Value]) -> Arc<Mutex<Cluster>> {
    let name = |node: &Value| node["metadata"]["name"].as_str().expect("a name").to_owned();
    let nodes = nodes.iter().map(|node| (name(node), node.clone())).collect();
    Arc::new(Mutex::new(Cluster { nodes, ..Cluster::default() }))
}

impl Cluster {
    fn answer(&mut self, request: &Request) -> (u16, Value) {
        let path = request.path.split('?').next().unwrap_or_default();
        if path.ends_with("/leases") {
            assert!(request.path.contains("metadata.name"), "{}", request.path);
            return list(&self.leases);
        }
        if path == "/api/v1/nodes" {
            return list(&self.nodes.values().cloned().collect::<Vec<_>>());
        }
        let name = path.strip_prefix("/api/v1/nodes/").unwrap_or_else(|| panic!("not needed: {path}"));
        let Some(node) = self.nodes.get_mut(name) else { return status(404, "not found") };
        if request.method == "PATCH" {
            if self.conflicts > 0 {
                // Somebody else adds a taint at this moment.
                self.conflicts -= 1;
                node["metadata"]["resourceVersion"] = json!("2");
                let taints = node["spec"]["taints"].as_array_mut().expect("taints");
                taints.push(json!({"key": "new", "effect": "NoSchedule"}));
                return status(409, "the object has been modified");
            }
            assert_eq!(request.body["metadata"]["resourceVersion"], node["metadata"]["resourceVersion"]);
            node["spec"]["taints"] = request.body["spec"]["taints"].clone();
            self.writes.push(name.to_owned());
        }
        (200, node.clone())
    }

    fn taints(&self, node: &str) -> Vec<String> {
        let taints = self.nodes[node]["spec"]["taints"].as_array().expect("taints");
        taints.iter().map(|taint| taint["key"].as_str().expect("a key").to_owned()).collect()
    }
}

fn start(cluster: &Arc<Mutex<Cluster>>) -> SocketAddr {
    let cluster = cluster.clone();
    serve(move |request| cluster.lock().expect("no test panicked").answer(request))
}

fn open(name: &str, address: SocketAddr, more: &[&str]) -> Output {
    let kubeconfig = kubeconfig(&format!("open-{name}"), address);
    let mut args = vec!["open", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    args.extend(more);
    poolwright(&args, "")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const RESERVED: &str = "poolwright.dev/reserved";

#[test]
fn all_closed_nodes_open_and_keep_their_other_taints() {
    let all = cluster(&[node("a", &[RESERVED, "gpu"]), node("b", &["gpu"]), node("c", &[RESERVED])]);
    all.lock().unwrap().conflicts = 1;
    let address = start(&all);
    let dry = open("dry", address, &["--all", "--dry-run"]);
    assert_eq!(text(&dry.stdout), "Node a would be opened.\nNode c would be opened.\n");
    assert!(all.lock().unwrap().writes.is_empty());
    let output = open("all", address, &["--all"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "Node a is open now.\nNode c is open now.\n");
    let known = all.lock().unwrap();
    assert_eq!(known.writes, ["a", "c"]);
    assert_eq!((known.taints("a"), known.taints("c")), (vec!["gpu".to_owned(), "new".to_owned()], vec![]));
    drop(known);
    let again = open("again", address, &["--all"]);
    assert_eq!(text(&again.stdout), "No node is closed: none has the taint poolwright.dev/reserved.\n");
}

#[test]
fn one_node_opens_by_name_and_a_name_that_does_not_exist_changes_nothing() {
    let all = cluster(&[node("a", &[RESERVED]), node("b", &[])]);
    let address = start(&all);
    let output = open("missing", address, &["a", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), "error: the cluster has no node `x`; `kubectl get nodes` lists them\n");
    assert!(all.lock().unwrap().writes.is_empty());
    let output = open("named", address, &["a", "b"]);
    assert_eq!(
        text(&output.stdout),
        "Node a is open now.\nNode b is open: it does not have the taint poolwright.dev/reserved.\n"
    );
    let output = open("none", address, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("<NODE|--all>"), "{}", text(&output.stderr));
    assert_eq!(open("both", address, &["a", "--all"]).status.code(), Some(2));
}

#[test]
fn while_a_controller_leads_nothing_is_opened() {
    let all = cluster(&[node("a", &[RESERVED])]);
    let lease = |renewed: Timestamp| {
        json!({"metadata": {"name": "poolwright-controller", "namespace": "poolwright"},
            "spec": {"holderIdentity": "poolwright-0", "renewTime": format!("{renewed:.6}"), "leaseDurationSeconds": 15}})
    };
    all.lock().unwrap().leases = vec![lease(SystemClock::new().now())];
    let address = start(&all);
    let output = open("led", address, &["--all"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: a controller runs (poolwright-0 leads) and would close"), "{said}");
    assert!(said.contains("`spec.disruption.retire: Never`"), "{said}");
    assert!(all.lock().unwrap().writes.is_empty());
    all.lock().unwrap().leases = vec![lease(Timestamp::UNIX_EPOCH)];
    assert!(open("dead", address, &["--all"]).status.success(), "its Lease has expired");
    assert_eq!(all.lock().unwrap().writes, ["a"]);
}

#[test]
fn a_misspelt_node_is_told_with_the_name_that_is_meant() {
    let all = cluster(&[node("gpu-x7k2", &[RESERVED]), node("cpu-aaaa", &[])]);
    let output = open("misspelt", start(&all), &["gpu-x7k3"]);
    assert_eq!(output.status.code(), Some(2));
    let said = "error: the cluster has no node `gpu-x7k3`; did you mean gpu-x7k2?\n";
    assert_eq!(text(&output.stderr), said);
    assert!(all.lock().unwrap().writes.is_empty());
}

#[test]
fn a_node_that_may_not_be_changed_is_named_and_others_open_nevertheless() {
    let all = cluster(&[node("a", &[RESERVED]), node("b", &[RESERVED])]);
    let known = all.clone();
    let address = serve(move |request| match request.path.as_str() {
        path if path.contains("/leases") => status(403, "leases is forbidden"),
        path if request.method == "PATCH" && path.contains("/nodes/a") => status(403, "no patch for you"),
        _ => known.lock().expect("no test panicked").answer(request),
    });
    let output = open("forbidden", address, &["--all"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: these nodes could not be opened: a: "), "{said}");
    assert!(said.contains("no patch for you"), "{said}");
    assert_eq!(all.lock().unwrap().writes, ["b"]);
}
