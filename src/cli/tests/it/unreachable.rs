//! Tests of what all commands say about a cluster that does not answer, or that refuses them.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

/// The commands that read a cluster.
const COMMANDS: [&[&str]; 5] =
    [&["plan"], &["explain", "pod", "a"], &["explain", "node", "a"], &["top", "--once"], &["open", "--all"]];

fn said(command: &[&str], kubeconfig: &str) -> (Option<i32>, String) {
    let output = poolwright(&[command, &["--kubeconfig", kubeconfig]].concat(), "");
    assert!(output.stdout.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&output.stdout));
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn every_command_says_why_a_cluster_does_not_answer_and_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    drop(listener);
    let kubeconfig = kubeconfig("unreachable", address);
    for command in COMMANDS {
        let (code, said) = said(command, kubeconfig.to_str().expect("UTF-8"));
        assert_eq!(code, Some(1), "{command:?}");
        assert!(said.starts_with("error: cannot read the cluster"), "{command:?}: {said}");
        assert!(said.contains(&format!("{address} failed: ")), "{command:?}: {said}");
        assert!(said.contains("; make sure that the cluster runs"), "{command:?}: {said}");
        assert!(!said.contains("ServiceError") && !said.contains("(Connect)"), "{command:?}: {said}");
    }
}

#[test]
fn a_user_without_the_right_learns_which_one_and_whom_to_ask() {
    fn refuses(request: &Request) -> (u16, Value) {
        match request.path.split('?').next().unwrap_or_default() {
            "/api/v1/nodes" => status(403, "nodes is forbidden: User \"op\" cannot list resource"),
            path if path.ends_with("/leases") => list(&[]),
            path if path.contains("/configmaps") => (404, json!({})),
            _ => list(&[]),
        }
    }
    let kubeconfig = kubeconfig("no-right", serve(refuses));
    for command in [&["plan"][..], &["open", "--all"]] {
        let (code, said) = said(command, kubeconfig.to_str().expect("UTF-8"));
        assert_eq!(code, Some(1), "{command:?}");
        let cause = "cannot list nodes: nodes is forbidden: User \"op\" cannot list resource; ask whoever runs the cluster";
        assert!(said.contains(cause) && said.contains("kubectl auth can-i --list"), "{command:?}: {said}");
        assert!(!said.contains("ApiError") && !said.contains("Status {"), "{command:?}: {said}");
    }
}
