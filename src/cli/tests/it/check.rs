//! Tests of `poolwright check` with an API server that gives the answers of the test.

use std::fs;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::SignedDuration;
use poolwright_controller::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

const POOLS: &str = "/apis/poolwright.dev/v1alpha1/nodepools";

fn lease(renewed_seconds_ago: i64) -> Value {
    let now = SystemClock::new().now();
    let renewed = now - SignedDuration::from_secs(renewed_seconds_ago);
    let today = now.to_string()[..10].to_owned();
    json!({"metadata": {"name": "poolwright-controller", "namespace": "gpus",
            "annotations": {"poolwright.dev/version": env!("CARGO_PKG_VERSION"), "poolwright.dev/prices-as-of": today}},
        "spec": {"holderIdentity": "poolwright-0", "leaseDurationSeconds": 15,
            "acquireTime": format!("{:.6}", renewed - SignedDuration::from_hours(2)), "renewTime": format!("{renewed:.6}")}})
}

fn pool() -> Value {
    let class = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
    json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {"nodeClassRef": class}}},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "LimitReached",
            "message": "its limit of 3 nodes is reached", "lastTransitionTime": "2026-03-01T11:00:00Z"}]}})
}

fn answered(request: &Request, leases: (u16, Value)) -> (u16, Value) {
    match request.path.split('?').next().unwrap_or_default() {
        "/version" => (
            200,
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "buildDate": "",
            "gitTreeState": "", "goVersion": "", "compiler": "", "platform": ""}),
        ),
        path if path.contains("/leases") => leases,
        POOLS => list(&[pool()]),
        path if path.ends_with("accessreviews") => (
            201,
            json!({"apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview", "spec": {}, "status": {"allowed": true}}),
        ),
        path if path.contains("customresourcedefinitions/") => status(404, "not found"),
        _ => list(&[]),
    }
}

/// Returns the exit code and the findings about the controller: what, verdict and message.
fn checked(name: &str, leases: fn() -> (u16, Value)) -> (Option<i32>, Vec<[String; 3]>) {
    let kubeconfig = kubeconfig(&format!("check-{name}"), serve(move |request| answered(request, leases())));
    let output =
        poolwright(&["check", "-o", "json", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")], "");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    let findings = document["findings"].as_array().expect("findings").iter();
    let own = findings.filter(|finding| finding["group"] == "Controller");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let all = own.map(|finding| ["what", "verdict", "message"].map(|key| text(finding, key))).collect();
    (output.status.code(), all)
}

#[test]
fn the_leader_its_version_its_prices_and_pools_that_are_not_ready_are_shown() {
    let (code, all) = checked("led", || list(&[lease(2)]));
    let verdicts: Vec<[&str; 2]> =
        all.iter().map(|[what, verdict, _]| [what.as_str(), verdict.as_str()]).collect();
    let wanted = [
        ["leader", "fine"],
        ["version", "fine"],
        ["prices", "fine"],
        ["NodePool gpu", "wrong"],
        ["money limits", "undetermined"],
    ];
    assert_eq!(verdicts, wanted, "{all:?}");
    assert!(
        all[0][2]
            .starts_with("poolwright-0 leads for 2h00m; it renewed the Lease gpus/poolwright-controller"),
        "{all:?}"
    );
    assert_eq!(all[3][2], "not ready (LimitReached): its limit of 3 nodes is reached");
    assert_eq!(code, Some(5));
}

#[test]
fn a_lease_that_nobody_renews_is_wrong_and_names_its_last_holder() {
    let (code, all) = checked("dead", || list(&[lease(120)]));
    assert_eq!((all[0][1].as_str(), code), ("wrong", Some(5)));
    assert!(
        all[0][2].starts_with(
            "no controller leads: poolwright-0 last renewed the Lease gpus/poolwright-controller "
        ),
        "{all:?}"
    );
}

#[test]
fn with_a_namespace_only_the_lease_there_counts() {
    let answers = |request: &Request| {
        let is_there = request.path.contains("/namespaces/gpus/leases/poolwright-controller");
        answered(request, if is_there { (200, lease(2)) } else { status(404, "not found") })
    };
    let kubeconfig = kubeconfig("check-namespace", serve(answers));
    let said = |namespace: &str| {
        let flags = ["check", "-n", namespace, "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
        String::from_utf8_lossy(&poolwright(&flags, "").stdout).into_owned()
    };
    let there = said("gpus");
    assert!(there.contains("it renewed the Lease gpus/poolwright-controller"), "{there}");
    let elsewhere = said("ml");
    let none = "no controller leads in the namespace ml: it has no Lease poolwright-controller";
    assert!(elsewhere.contains(none), "{elsewhere}");
}

#[test]
fn who_may_not_list_leases_is_told_what_could_not_be_read() {
    let (_, all) = checked("blind", || status(403, "no leases for you"));
    assert_eq!(all[0][1], "undetermined", "{all:?}");
}

#[test]
fn an_expired_token_is_named_by_each_command_that_reads_the_cluster() {
    let address = serve(|_| status(401, "Unauthorized"));
    let path = kubeconfig("check-expired", address);
    let mut config: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
    let claims = json!({"sub": "system:serviceaccount:ml:ci", "iat": 1_767_222_000, "exp": 1_767_225_600});
    let token = format!("e30.{}.c2lnbmVk", URL_SAFE_NO_PAD.encode(claims.to_string()));
    config["users"][0]["user"]["token"] = json!(token);
    fs::write(&path, config.to_string()).expect("a file");
    let kubeconfig = ["--kubeconfig", path.to_str().expect("UTF-8")];

    let expired = "the token `system:serviceaccount:ml:ci` expired at 2026-01-01T00:00:00Z";
    let refused = format!("the API server http://{address} does not accept our credentials: {expired}");
    for command in [&["plan"][..], &["top", "--once"]] {
        let output = poolwright(&[command, &kubeconfig].concat(), "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains(&refused) && said.contains("kubectl create token"), "{command:?}: {said}");
    }

    let output = poolwright(&[&["check", "-o", "json"][..], &kubeconfig].concat(), "");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    let finding = |what: &str| findings.iter().find(|one| one["what"] == what).expect("a finding");
    assert!(finding("API server")["message"].as_str().expect("text").contains(&refused));
    let fix = finding("API server")["fix"].as_str().expect("text");
    assert!(fix.starts_with("do what the line above says"), "another context would not help: {fix}");
    for other in ["clock", "custom resources", "rights", "device plugin"] {
        let said = &finding(other)["message"];
        assert_eq!(said, "not checked, because the API server cannot be used", "it did answer: {other}");
    }
    let token = finding("token");
    assert_eq!(token["verdict"], "wrong");
    assert!(token["message"].as_str().expect("text").starts_with(expired), "{token}");
}

#[test]
fn who_may_only_read_sees_the_controller_first_and_no_missing_right_as_a_problem() {
    let answers = |request: &Request| {
        if request.path.contains("/subjectaccessreviews") {
            return status(403, "subjectaccessreviews is forbidden");
        }
        let (code, mut answer) = answered(request, list(&[lease(2)]));
        if request.path.contains("/selfsubjectaccessreviews") {
            let verb = request.body["spec"]["resourceAttributes"]["verb"].as_str().expect("a verb");
            answer["status"]["allowed"] = json!(["get", "list", "watch"].contains(&verb));
        }
        (code, answer)
    };
    let kubeconfig = kubeconfig("check-reader", serve(answers));
    let rights = |more: &[&str]| {
        let flags = ["check", "-o", "json", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
        let output = poolwright(&[&flags[..], more].concat(), "");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(document["findings"][0]["group"], "Controller");
        let findings = document["findings"].as_array().expect("findings").iter();
        let of_rights =
            findings.filter(|one| one["what"].as_str().is_some_and(|what| what.starts_with("right")));
        let told = of_rights
            .map(|one| ["verdict", "message"].map(|key| one[key].as_str().unwrap_or_default().to_owned()));
        told.collect::<Vec<_>>()
    };
    let [[verdict, said]] = &rights(&[])[..] else { panic!("one line") };
    assert_eq!(verdict, "undetermined");
    assert!(said.starts_with("those of the controller are not checked: pass --service-account"), "{said}");
    assert!(said.contains("create pods/eviction") && !said.contains("list"), "{said}");
    let [[verdict, said]] = &rights(&["--service-account", "gpus/pw"])[..] else { panic!("one line") };
    assert_eq!(verdict, "undetermined");
    assert!(said.starts_with("you may not ask what gpus/pw may do; somebody who may create"), "{said}");
}

#[test]
fn a_field_of_a_stored_node_class_that_is_not_read_is_named() {
    let class = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "KwokNodeClass",
        "metadata": {"name": "aws", "uid": "u"}, "spec": {"future": 1}});
    let answers = move |request: &Request| {
        if request.path.contains("/kwoknodeclasses") {
            return list(std::slice::from_ref(&class));
        }
        answered(request, list(&[lease(2)]))
    };
    let kubeconfig = kubeconfig("check-future", serve(answers));
    let output = poolwright(&["check", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")], "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("spec.future: this version does not know the field, and ignores it"), "{said}");
}

#[test]
fn a_flag_of_a_cloud_that_would_have_no_effect_is_refused_and_a_variable_is_not() {
    let nowhere = ["--kubeconfig", "no-such-file"];
    let run = |more: &[&str], variable: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_poolwright"));
        let output = command.arg("check").args(nowhere).args(more).env("POOLWRIGHT_AWS_CLUSTER", variable);
        let output = output.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let flag = ["--aws-cluster", "blue"];
    let (code, said) = run(&flag, "green");
    assert_eq!(code, Some(2), "{said}");
    let told =
        "--aws-cluster: only used with --provider aws or --audit; add one of them, or remove --aws-cluster";
    assert!(said.contains(told), "{said}");
    assert!(!run(&[], "green").1.contains("only used with"), "the variable is that of a controller");
    assert!(!run(&[&flag[..], &["--audit"]].concat(), "green").1.contains("only used with"));
}
