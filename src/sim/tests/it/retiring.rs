//! Nodes that are closed to newcomers when their controller ends: it opens them if it is stopped. If it is killed, its successor
//! decides.

use std::time::Duration;

use axum::http::Method;
use poolwright_sim::sandbox::{Sandbox, play};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::{EXPECTED_DURATION_ANNOTATION, RESERVED_TAINT};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::kit::{self, wait_until};

/// The path of the pods.
const PODS: &str = "/api/v1/namespaces/default/pods";

fn list(sandbox: &Sandbox, path: &str) -> Vec<Value> {
    let (_, all) = sandbox.server().ask(&Method::GET, path, "application/json", &Value::Null);
    all["items"].as_array().cloned().unwrap_or_default()
}

/// Returns the names of the nodes that admit no pods but planned ones.
fn closed(sandbox: &Sandbox) -> Vec<String> {
    let is_closed = |node: &Value| {
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        taints.any(|taint| taint["key"] == RESERVED_TAINT)
    };
    let nodes = list(sandbox, "/api/v1/nodes").into_iter().filter(is_closed);
    nodes.filter_map(|node| Some(node["metadata"]["name"].as_str()?.to_owned())).collect()
}

/// Returns whether a claim says that its node retires.
fn retires(sandbox: &Sandbox) -> bool {
    let says_so = |claim: &Value| {
        let mut conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|one| one["type"] == ConditionType::Retiring.as_str() && one["status"] == "True")
    };
    list(sandbox, "/apis/poolwright.dev/v1alpha1/nodeclaims").iter().any(says_so)
}

/// Starts a world with one retiring node. A pod that takes three of its four GPUs is expected to end within hours. Another pod
/// like the one on the small node would keep it for days.
async fn start() -> Sandbox {
    let world = kit::replay(&["g4dn.xlarge", "g4dn.12xlarge"], None, Vec::new(), Vec::new());
    let sandbox = Sandbox::start(world.catalogue, &world.classes, world.seed);
    let pod = |name: &str, gpus: u64, lasts: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {(EXPECTED_DURATION_ANNOTATION): lasts}},
            "spec": kit::gpu_pod(gpus)})
    };
    let pods = [pod("large", 3, "1h"), pod("long", 1, "100h")];
    for object in world.objects.iter().chain(&pods) {
        sandbox.create(object).expect("the API server accepts it");
    }
    wait_until("the pods run, and one node is closed, because it retires", Duration::from_mins(15), || {
        let is_bound = |pod: &Value| pod["spec"]["nodeName"].is_string();
        list(&sandbox, PODS).iter().all(is_bound) && retires(&sandbox) && closed(&sandbox).len() == 1
    })
    .await;
    sandbox
}

#[test]
fn a_controller_that_is_stopped_has_opened_its_retiring_nodes_when_its_run_ends() {
    let done = play(async || {
        let mut sandbox = start().await;
        sandbox.stop().await.expect("it ends without a failure");
        assert_eq!(closed(&sandbox), [""; 0]);
    });
    done.expect("the world runs");
}

#[test]
fn a_node_that_a_killed_controller_left_closed_stays_so_until_its_successor_wants_it_open() {
    let done = play(async || {
        let mut sandbox = start().await;
        sandbox.kill();
        // No recent pod would keep the node longer now. The decision is void, and nobody is there to carry that out.
        let (code, answer) =
            sandbox.server().ask(&Method::DELETE, &format!("{PODS}/long"), "application/json", &json!({}));
        assert_eq!(code, 200, "{answer}");
        wait_until("the pod has ended", Duration::from_mins(1), || list(&sandbox, PODS).len() == 1).await;
        sleep(Duration::from_mins(20)).await;
        assert_eq!(closed(&sandbox).len(), 1);
        sandbox.succeed();
        wait_until("the node is open", Duration::from_mins(2), || closed(&sandbox).is_empty()).await;
        assert_eq!(list(&sandbox, PODS).len(), 1, "its pod still runs");
    });
    done.expect("the world runs");
}
