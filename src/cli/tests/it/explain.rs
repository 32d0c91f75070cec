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
            "spec": {"nodeName": "gpu-a", "containers": [{"image": "x", "name": "main", "resources": {"requests": {"cpu": "1"}}}]},
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
fn as_json_an_explanation_names_its_object_and_lists_the_lines_of_the_text() {
    let forbidden = |request: &Request| {
        if request.path.contains("/configmaps") { status(403, "not for you") } else { cluster(request) }
    };
    let said = explain("json", forbidden, &["node", "gpu-a", "-o", "json"]);
    let document: Value = serde_json::from_str(&said).expect("one document");
    assert_eq!(document["kind"], "Explanation");
    assert_eq!(document["object"], json!({"kind": "Node", "name": "gpu-a"}));
    let lines = document["lines"].as_array().expect("lines");
    let is_text = |line: &Value| line.as_str().is_some_and(|line| !line.is_empty());
    assert!(lines.len() > 2 && lines.iter().all(is_text), "{said}");
    let text = ["pod/train-7", "-n", "ml", "--output", "json"];
    let document: Value = serde_json::from_str(&explain("json-pod", forbidden, &text)).expect("one document");
    assert_eq!(document["object"], json!({"kind": "Pod", "name": "ml/train-7"}));
}

#[test]
fn wide_adds_ids_and_the_offering_below_the_lines_of_the_text() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let narrow = explain("narrow", cluster, &["node", "gpu-a"]);
    assert!(!narrow.contains("instance id"), "{narrow}");
    let wide = explain("wide", cluster, &["node", "gpu-a", "-o", "wide"]);
    let (lines, facts) = wide.split_once("\n\n").expect("an empty line between lines and facts");
    assert_eq!(
        words(lines.lines().next().unwrap_or_default()),
        words(narrow.lines().next().unwrap_or_default())
    );
    for fact in [
        "instance id kwok://gpu-a",
        "claim gpu-a",
        "created 2026-03-01T11:00:00Z, ",
        "pool gpu",
        "node class KwokNodeClass `gpu`",
        "offering g5.xlarge/us-east-1a/on-demand",
        "planned price $1.006/h",
        "taints poolwright.dev/reserved=gpu-a:NoSchedule",
    ] {
        assert!(facts.lines().any(|line| words(line).starts_with(fact)), "{fact}: {wide}");
    }
    let of_claim = explain("wide-claim", cluster, &["claim", "gpu-a", "-o", "wide"]);
    assert!(of_claim.lines().any(|line| words(line) == "uid c"), "{of_claim}");
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

/// A node for $4.61/h with one small pod of a ReplicaSet, which would run on a node for a few cents.
fn oversized(request: &Request) -> (u16, Value) {
    let path = request.path.split('?').next().unwrap_or_default();
    let objects: Vec<Value> =
        oversized_objects().into_iter().filter(|(at, _)| *at == path).map(|(_, object)| object).collect();
    list(&objects)
}

/// The objects with the paths of their collections.
fn oversized_objects() -> [(&'static str, Value); 6] {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": kind, "message": "done",
            "lastTransitionTime": "2026-03-01T11:00:00Z"})
    };
    let class = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
    let size = json!({"cpu": "95", "memory": "370Gi", "pods": "110"});
    [
        (
            PODS,
            json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-0", "namespace": "shop", "uid": "p", "creationTimestamp": "2026-03-01T11:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true}]},
            "spec": {"nodeName": "big-a", "containers": [{"image": "x", "name": "main", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": "Running", "startTime": "2026-03-01T11:00:00Z"}}),
        ),
        (
            NODES,
            json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "big-a", "labels": {"kubernetes.io/hostname": "big-a"}},
            "spec": {"providerID": "kwok://big-a"},
            "status": {"allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        (
            CLAIMS,
            json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "big-a", "uid": "c", "labels": {"poolwright.dev/nodepool": "gpu"},
                "creationTimestamp": "2026-03-01T10:50:00Z"},
            "spec": {"nodeClassRef": class,
                "offerings": [{"instanceType": "m6i.24xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                    "usdPerHour": "4.608", "allocatable": size}]},
            "status": {"providerID": "kwok://big-a", "nodeName": "big-a", "conditions":
                [condition("Launched"), condition("Registered"), condition("Initialized")]}}),
        ),
        (
            "/apis/poolwright.dev/v1alpha1/nodepools",
            json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool",
            "metadata": {"name": "gpu", "uid": "n"}, "spec": {"template": {"spec": {"nodeClassRef": class}}},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NodeClassNotReady",
                "message": "this controller launches no nodes with it", "lastTransitionTime": "2026-03-01T11:00:00Z"}]}}),
        ),
        (
            "/apis/poolwright.dev/v1alpha1/kwoknodeclasses",
            json!({"apiVersion": "poolwright.dev/v1alpha1",
            "kind": "KwokNodeClass", "metadata": {"name": "aws", "uid": "k"}, "spec": {"provider": "aws"}}),
        ),
        (
            "/apis/apps/v1/replicasets",
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web", "namespace": "shop", "uid": "rs"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "x", "name": "main"}]}}},
            "status": {"replicas": 1}}),
        ),
    ]
}

#[test]
fn a_node_that_consolidation_would_empty_says_so_in_its_last_line() {
    for what in [["node", "big-a"], ["claim", "big-a"]] {
        let said = explain(&format!("oversized-{}", what[0]), oversized, &what);
        let last = said.lines().last().unwrap_or_default();
        let start = "The next search for savings would empty it: the work of its node costs $4.61/h now and ";
        assert!(last.starts_with(start), "{said}");
    }
}

#[test]
fn a_node_that_a_pod_keeps_names_the_pod_and_what_it_would_save() {
    let protected = |request: &Request| {
        let (code, mut answer) = oversized(request);
        if request.path.starts_with(PODS) {
            answer["items"][0]["metadata"]["annotations"] = json!({"poolwright.dev/do-not-disrupt": "true"});
        }
        (code, answer)
    };
    let said = explain("protected", protected, &["node", "big-a"]);
    let last: Vec<&str> = said.lines().rev().take(2).collect();
    assert!(
        last[1].starts_with("Not consolidated: pod shop/web-0 is protected by poolwright.dev/do-not-disrupt"),
        "{said}"
    );
    assert!(last[0].starts_with("Without that, emptying it might save up to $4."), "{said}");
}

#[test]
fn a_controller_that_may_not_be_read_is_said_and_no_saving_is_invented() {
    let blind = |request: &Request| {
        if request.path.contains("/replicasets") { status(403, "not for you") } else { oversized(request) }
    };
    let said = explain("blind", blind, &["node", "big-a"]);
    let last: Vec<&str> = said.lines().rev().take(2).collect();
    assert_eq!(
        last[1],
        "Not consolidated: pod shop/web-0 would not be recreated: Poolwright does not know its controller."
    );
    assert!(
        last[0].starts_with("Poolwright cannot list replicasets (") && last[0].contains("not for you"),
        "{said}"
    );
}

#[test]
fn the_same_objects_in_files_say_the_same_and_files_without_controllers_say_what_to_add() {
    let write = |name: &str, objects: &[Value]| {
        let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(&path, list.to_string()).expect("a file in cargo's folder for tests");
        path.to_str().expect("UTF-8").to_owned()
    };
    let said = |file: &str| {
        let output = poolwright(&["explain", "node", "big-a", "-f", file], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let all: Vec<Value> = oversized_objects().into_iter().map(|(_, object)| object).collect();
    let whole = said(&write("oversized.json", &all));
    let start = "The next search for savings would empty it: the work of its node costs $4.61/h now and ";
    assert!(whole.lines().last().unwrap_or_default().starts_with(start), "{whole}");
    let without: Vec<Value> = all.into_iter().filter(|object| object["kind"] != "ReplicaSet").collect();
    let said = said(&write("without-replica-set.json", &without));
    assert!(
        said.lines().last().unwrap_or_default().starts_with("The files may lack the controllers"),
        "{said}"
    );
}

#[test]
fn an_object_that_cannot_be_read_is_not_said_to_be_missing_and_others_say_what_was_left_out() {
    let pod = |name: &str, cpu: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml", "uid": name},
            "spec": {"containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": cpu}}}]}})
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [pod("bad", "1x"), pod("good", "1")]});
    let bad = poolwright(&["explain", "pod", "ml/bad", "-f", "-"], &list.to_string());
    let said = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(2), "{said}");
    assert!(said.contains("no readable pod `ml/bad`") && said.contains("`1x`"), "{said}");
    let good = poolwright(&["explain", "pod", "ml/good", "-f", "-"], &list.to_string());
    let said = String::from_utf8_lossy(&good.stdout);
    assert!(said.contains("Note: Pod ml/bad:") && said.contains("the object is left out."), "{said}");
}

#[test]
fn a_pool_says_what_its_controller_says_about_it() {
    let said = explain("pool", oversized, &["pool", "gpu"]);
    let last = said.lines().last().unwrap_or_default();
    assert_eq!(
        last,
        "The controller says that it is not ready (NodeClassNotReady): this controller launches no nodes with it."
    );
}

#[test]
fn an_explanation_begins_with_the_release_of_the_lease_and_ends_with_what_holds_the_pool_up() {
    let stopped = |request: &Request| {
        if request.path.contains("/leases") {
            return list(&[json!({"metadata": {"name": "poolwright-controller", "namespace": "gpus"},
                "spec": {"holderIdentity": "", "renewTime": "2026-03-01T11:00:00.000000Z"}})]);
        }
        let (code, mut answer) = oversized(request);
        if request.path.contains("/nodepools") {
            let condition = |kind: &str, message: &str| {
                json!({"type": kind, "status": "True", "reason": kind, "message": message,
                    "lastTransitionTime": "2026-03-01T11:00:00Z"})
            };
            answer["items"][0]["status"]["conditions"] = json!([
                condition("Ready", "6 offerings may be bought now"),
                condition("LimitReached", "20.00 is reached")
            ]);
        }
        (code, answer)
    };
    let said = explain("stopped", stopped, &["pool", "gpu"]);
    let first =
        "No controller leads: the last leader stopped and released the Lease gpus/poolwright-controller ";
    assert!(said.starts_with(first), "{said}");
    let last = "The controller says that a limit leaves pods waiting: 20.00 is reached.";
    assert_eq!(said.lines().last(), Some(last), "{said}");
}

#[test]
fn what_cannot_be_read_about_the_lease_and_failed_launches_is_said() {
    let forbidden = |request: &Request| {
        let is_hidden = request.path.contains("/leases") || request.path.contains("/events.k8s.io/");
        if is_hidden { status(403, "not for you") } else { oversized(request) }
    };
    let said = explain("hidden", forbidden, &["pool", "gpu"]);
    assert!(said.starts_with("It is not known whether a controller leads: "), "{said}");
    assert!(said.contains("Note: launches that failed lately are not known: cannot list events: "), "{said}");
}

#[test]
fn a_pool_whose_class_does_not_exist_names_those_that_do() {
    let other = |request: &Request| {
        let (code, mut answer) = oversized(request);
        if request.path.contains("/kwoknodeclasses") {
            answer["items"][0]["metadata"]["name"] = json!("trial");
        }
        (code, answer)
    };
    let said = explain("other-class", other, &["pool", "gpu"]);
    assert!(
        said.contains("KwokNodeClass `aws` does not exist")
            && said.contains("there is KwokNodeClass `trial`"),
        "{said}"
    );
}

#[test]
fn a_node_that_poolwright_did_not_buy_says_that_it_never_empties_it() {
    let foreign = |request: &Request| {
        if request.path.starts_with(CLAIMS) { list(&[]) } else { oversized(request) }
    };
    let said = explain("foreign", foreign, &["node", "big-a"]);
    assert_eq!(
        said.lines().last(),
        Some("Not consolidated: Poolwright did not buy this node, so it never empties it.")
    );
}
