//! Tests of `-n`: with files, and with an API server that gives the answers of the test.

use serde_json::{Value, json};

use crate::api::{Request, kubeconfig_in, list, serve};
use crate::support::{plan, poolwright};

fn pod(name: &str, namespace: Option<&str>) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}});
    if let Some(namespace) = namespace {
        pod["metadata"]["namespace"] = namespace.into();
    }
    pod
}

fn planned(args: &[&str], pods: &[Value]) -> Vec<String> {
    let stdin = json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string();
    let plan = plan(&[args, &["-f", "-"]].concat(), &stdin);
    let nodes = plan["nodes"].as_array().expect("nodes");
    let pods = nodes.iter().flat_map(|node| node["pods"].as_array().expect("pods"));
    let mut pods: Vec<String> = pods.map(|pod| pod.as_str().expect("a name").to_owned()).collect();
    pods.sort();
    pods
}

#[test]
fn a_namespace_narrows_a_plan_and_holds_the_objects_that_name_none() {
    let pods = [pod("a", None), pod("b", Some("ml")), pod("c", Some("shop"))];
    assert_eq!(planned(&[], &pods), ["default/a", "ml/b", "shop/c"]);
    assert_eq!(planned(&["-A"], &pods), ["default/a", "ml/b", "shop/c"]);
    assert_eq!(planned(&["-n", "shop"], &pods), ["shop/a", "shop/c"]);
    assert_eq!(planned(&["--namespace", "ml"], &pods), ["ml/a", "ml/b"]);
}

#[test]
fn limits_of_namespaces_hold_in_plans_of_files_too() {
    let of_ml = |nodes: &str| {
        let metadata = json!({"name": "ml", "annotations": {"poolwright.dev/limit-nodes": nodes}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        [pod("b", Some("ml")), pod("c", Some("shop")), namespace]
    };
    assert_eq!(planned(&[], &of_ml("1")), ["ml/b", "shop/c"]);
    assert_eq!(planned(&[], &of_ml("0")), ["shop/c"]);
    let flag = ["--namespace-limit", "nodes=0"];
    assert_eq!(planned(&flag, &of_ml("1")), ["ml/b"], "the annotation replaces the flag");
    assert_eq!(planned(&flag, &of_ml("many")), [""; 0], "an unreadable limit counts as the flag");
}

#[test]
fn a_namespace_that_nothing_is_in_is_an_error() {
    let text =
        json!({"apiVersion": "v1", "kind": "List", "items": [pod("b", Some("ml")), pod("c", Some("shop"))]});
    let output = poolwright(&["plan", "-n", "shob", "-f", "-"], &text.to_string());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("-n shob: the files have nothing in the namespace `shob`; did you mean shop?"),
        "{said}"
    );
}

fn explained(args: &[&str], stdin: &str) -> Result<String, String> {
    let output = poolwright(&[&["explain"], args].concat(), stdin);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn a_pod_is_named_with_its_kind_its_namespace_or_the_flag() {
    let text = json!({"apiVersion": "v1", "kind": "List", "items": [pod("b", Some("ml")), pod("a", None)]})
        .to_string();
    for args in [
        &["pod/b", "-n", "ml"][..],
        &["po", "b", "--namespace=ml"],
        &["pods", "ml/b"],
        &["pod/ml/b", "-n", "ml"],
    ] {
        let said = explained(&[args, &["-f", "-"]].concat(), &text).expect("it is explained");
        assert!(said.starts_with("Pod ml/b asks for 1 cpu"), "{args:?}: {said}");
    }
    let said = explained(&["pod/a", "-f", "-"], &text).expect("it is explained");
    assert!(said.starts_with("Pod default/a asks"), "{said}");
    let error = explained(&["pod", "ml/b", "-n", "shop", "-f", "-"], &text).expect_err("a contradiction");
    assert!(
        error.contains("-n shop: ml/b is a pod of the namespace ml; leave out -n, or write b -n shop"),
        "{error}"
    );
    let error = explained(&["pod/b", "-f", "-"], &text).expect_err("it is in another namespace");
    assert!(error.contains("no pod `b` in the namespace default; did you mean ml/b?"), "{error}");
}

#[test]
fn in_a_cluster_a_pod_is_in_the_namespace_of_the_context() {
    let answer = |request: &Request| match request.path.split('?').next().unwrap_or_default() {
        "/api/v1/pods" => list(&[pod("b", Some("ml")), pod("b", Some("shop"))]),
        _ => list(&[]),
    };
    let kubeconfig = kubeconfig_in("namespaces", serve(answer), "ml");
    let more = ["--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    let said = explained(&[&["pod/b"][..], &more].concat(), "").expect("it is explained");
    assert!(said.starts_with("Pod ml/b asks"), "{said}");
    let said = explained(&[&["pod/b", "-n", "shop"][..], &more].concat(), "").expect("it is explained");
    assert!(said.starts_with("Pod shop/b asks"), "{said}");
}
