//! Tests of `poolwright top --once` with an API server that gives the answers of the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::poolwright;

/// Writes a kubeconfig for an API server at this address.
fn kubeconfig(name: &str, address: SocketAddr) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("top-{name}.kubeconfig"));
    let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": "u"}}]});
    fs::write(&path, config.to_string()).expect("a file in cargo's folder for tests");
    path
}

/// Answers one request after the other while the test runs.
fn serve(answer: fn(&str) -> (u16, Value)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that does not wait for the answer has failed the test already.
            let _ = reply(stream, answer);
        }
    });
    address
}

fn reply(mut stream: TcpStream, answer: fn(&str) -> (u16, Value)) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (code, body) = answer(path);
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {code} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn status(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 403 { "Forbidden" } else { "NotFound" };
    let body = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code,
        "message": message});
    (code, body)
}

fn nothing() -> (u16, Value) {
    (200, json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "7"}, "items": []}))
}

fn top(name: &str, address: SocketAddr, more: &[&str]) -> Output {
    let kubeconfig = kubeconfig(name, address);
    let mut args = vec!["top", "--once", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    args.extend(more);
    poolwright(&args, "")
}

#[test]
fn top_reports_forbidden_kinds_and_shows_all_others() {
    let address = serve(|path| {
        // All lists may come from the API server's memory, and the command requests only what it shows.
        assert!(path.contains("resourceVersion=0"), "{path}");
        if path.starts_with("/apis/events.k8s.io/v1/events?") {
            assert!(path.contains("reportingController"), "{path}");
            status(403, "events is forbidden: User \"op\" cannot list")
        } else if path.starts_with("/apis/poolwright.dev/v1alpha1/nodepools?") {
            status(404, "the server could not find the requested resource")
        } else {
            nothing()
        }
    });
    let output = top("partly", address, &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("Cluster     partly, read at "), "{text}");
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
    assert_eq!((&document["kind"], &document["cluster"]), (&json!("Top"), &json!("partly-json")));
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
