//! Tests of `what-if` as scripts see it: exit codes, and the forms of the answer.

use std::process::Output;

use crate::support::poolwright;

/// Compares a base of two pods with itself and these changes.
fn what_if(more: &[&str]) -> Output {
    let base = ["what-if", "--base", "fixtures/manifests/pool.yaml", "fixtures/manifests/two-gpu-pods.yaml"];
    let args: Vec<_> = base.iter().chain(more).copied().collect();
    poolwright(&args, "")
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn exit_codes_are_those_of_kubectl_diff_and_a_limit_has_its_own() {
    let same = ["-f", "fixtures/manifests/two-gpu-pods.yaml"];
    let dearer = ["--price", "*=+10%"];
    for (changes, limit, code) in [
        (&same[..], None, 0),
        (&dearer, None, 1),
        (&dearer, Some("percent=20"), 1),
        (&dearer, Some("percent=5"), 6),
        (&dearer, Some("usd=100"), 6),
        (&["--without", "nothing"], None, 2),
        (&["--price", "*=0"], None, 2),
        (&[], None, 2),
    ] {
        let limit = limit.map(|limit| ["--fail-above", limit]);
        let more: Vec<_> = changes.iter().chain(limit.iter().flatten()).copied().collect();
        let output = what_if(&more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {said}");
    }
}

#[test]
fn every_form_tells_the_same_difference() {
    let of = |format| printed(&what_if(&["--price", "*=+10%", "-o", format]));
    let json: serde_json::Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_eq!(json["difference"]["percent"], "+10.0 %");
    let verdict = json["verdict"].as_str().expect("the verdict").to_owned();
    assert!(verdict.starts_with("+$0.2012/h (+10.0 %), +$146.88/month; "), "{verdict}");
    assert!(of("table").starts_with(&verdict));
    assert!(of("markdown").starts_with("<!-- poolwright what-if -->\n**+\\$0.2012/h (+10.0 %), "));
    assert!(of("yaml").contains("kind: WhatIf"));
    assert_eq!(of("csv").lines().count(), 2, "one kind of node");
}
