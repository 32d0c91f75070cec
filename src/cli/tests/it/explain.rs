//! Tests of `poolwright explain` with an API server that gives the answers of the test.

use jiff::SignedDuration;
use poolwright_controller::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

const PODS: &str = "/api/v1/pods";
const NODES: &str = "/api/v1/nodes";
const CLAIMS: &str = "/apis/poolwright.dev/v1alpha1/nodeclaims";
const LIVES: &str = "poolwright-lives";

/// A retiring node with one pod, whose author wrote a duration that nobody can read.
fn cluster(request: &Request) -> (u16, Value) {
    let an_hour_ago = SystemClock::new().now() - SignedDuration::from_hours(1);
    let condition = |kind: &str, message: &str| {
        json!({"type": kind, "status": "True", "reason": "CheaperElsewhere", "message": message,
            "lastTransitionTime": "2026-03-01T11:59:00Z"})
    };
    match request.path.split('?').next().unwrap_or_default() {
        PODS => list(&[json!({"metadata": {"name": "train-7", "namespace": "ml", "uid": "u",
                "annotations": {"poolwright.dev/expected-duration": "soon"}},
            "spec": {"nodeName": "gpu-a", "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running", "startTime": an_hour_ago.to_string()}})]),
        NODES => list(&[json!({"metadata": {"name": "gpu-a"},
            "spec": {"providerID": "kwok://gpu-a",
                "taints": [{"key": "poolwright.dev/reserved", "value": "gpu-a", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "4", "nvidia.com/gpu": "1"},
                "conditions": [{"type": "Ready", "status": "True"}]}})]),
        CLAIMS => list(&[json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "gpu-a", "uid": "c", "labels": {"poolwright.dev/nodepool": "gpu"},
                "creationTimestamp": "2026-03-01T11:00:00Z"},
            "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "gpu"},
                "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                    "usdPerHour": "1.006", "allocatable": {"cpu": "4", "nvidia.com/gpu": "1"}}]},
            "status": {"providerID": "kwok://gpu-a", "nodeName": "gpu-a", "conditions": [
                condition("Launched", "runs"), condition("Registered", "joined"), condition("Initialized", "is ready"),
                condition("Retiring", "admits only planned pods, because a pod like ml/x costs less elsewhere")]}})]),
        _ => list(&[]),
    }
}

fn explain(name: &str, answer: fn(&Request) -> (u16, Value), what: &[&str]) -> String {
    let kubeconfig = kubeconfig(&format!("explain-{name}"), serve(answer));
    let more = ["--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    let output = poolwright(&[&["explain"], what, &more].concat(), "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn what_cannot_be_read_about_durations_is_said_and_nothing_fails() {
    let forbidden = |request: &Request| {
        if request.path.contains("/configmaps") { status(403, "not for you") } else { cluster(request) }
    };
    let said = explain("forbidden", forbidden, &["pod", "ml/train-7"]);
    assert!(said.contains("\nIt is expected to run for another "), "{said}");
    assert!(
        said.contains(": no such pod has ended yet.\nConfigMap poolwright-lives cannot be read ("),
        "{said}"
    );
    assert!(said.contains("not for you"), "{said}");
    let said = explain("node", forbidden, &["node", "gpu-a"]);
    assert!(
        said.contains("When that began: admits only planned pods, because a pod like ml/x costs"),
        "{said}"
    );
    assert!(said.contains("ConfigMap poolwright-lives cannot be read"), "{said}");
}

#[test]
fn a_pod_is_explained_by_what_the_controller_has_learned() {
    let learned = |request: &Request| {
        let path = request.path.as_str();
        if path.starts_with("/api/v1/configmaps") {
            return status(403, "only in its own namespace");
        }
        if !path.starts_with("/api/v1/namespaces/poolwright/configmaps/poolwright-lives") {
            return cluster(request);
        }
        let lives = json!({"version": 1, "until": "2026-03-01T11:00:00Z",
            "kinds": {"0 GPUs": {"ended": [0, 0, 0, 40], "lost": [], "used": 0}}});
        (200, json!({"metadata": {"name": LIVES}, "data": {"lives.json": lives.to_string()}}))
    };
    let said = explain("learned", learned, &["pod", "ml/train-7"]);
    assert!(said.contains(": pods of kind 0 GPUs run for "), "{said}");
    assert!(said.contains(" (40 ended).\n"), "{said}");
    assert!(!said.contains("cannot be read"), "{said}");
}

#[test]
fn a_plan_names_the_pods_whose_durations_it_ignores() {
    let kubeconfig = kubeconfig("plan-ignored", serve(cluster));
    let output = poolwright(&["plan", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")], "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // Notes are wrapped.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "Pod ml/train-7: ignored annotation poolwright.dev/expected-duration: `soon` is not a duration"
        ),
        "{said}"
    );
}
