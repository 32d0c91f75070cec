//! Tests of `poolwright top --once` with an API server that gives the answers of the test.

use std::net::{SocketAddr, TcpListener};
use std::process::Output;

use serde_json::{Value, json};

use crate::api::{kubeconfig, list, serve, status};
use crate::support::poolwright;

fn top(name: &str, address: SocketAddr, more: &[&str]) -> Output {
    let kubeconfig = kubeconfig(&format!("top-{name}"), address);
    let mut args = vec!["top", "--once", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    args.extend(more);
    poolwright(&args, "")
}

#[test]
fn top_reports_forbidden_kinds_and_shows_all_others() {
    let address = serve(|request| {
        let path = &request.path;
        // All lists may come from the API server's memory, and the command requests only what it shows.
        assert!(path.contains("resourceVersion=0"), "{path}");
        if path.starts_with("/apis/events.k8s.io/v1/events?") {
            assert!(path.contains("reportingController"), "{path}");
            status(403, "events is forbidden: User \"op\" cannot list")
        } else if path.starts_with("/apis/poolwright.dev/v1alpha1/nodepools?") {
            status(404, "the server could not find the requested resource")
        } else {
            list(&[])
        }
    });
    let output = top("partly", address, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("Cluster     top-partly, read at "), "{text}");
    assert!(
        text.contains("\nyou may not list events: events is forbidden: User \"op\" cannot list\n"),
        "{text}"
    );
    assert!(
        text.contains("\nthe cluster has no nodepools; install the custom resources: poolwright crds |"),
        "{text}"
    );
    assert!(text.contains("\nPoolwright has no nodes.\n"), "{text}");
    let output = top("partly-json", address, &["-o", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let unreadable = document["unreadable"].as_object().expect("an object");
    assert_eq!(unreadable.keys().collect::<Vec<_>>(), ["events", "nodepools"]);
    assert_eq!((&document["kind"], &document["cluster"]), (&json!("Top"), &json!("top-partly-json")));
}

#[test]
fn a_cluster_that_does_not_answer_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    drop(listener);
    let output = top("gone", address, &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.starts_with("error: cannot read the cluster: cannot list "), "{said}");
}
