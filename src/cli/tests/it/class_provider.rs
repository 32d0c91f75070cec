//! Tests that the provider of a node class holds, whatever the flags say, and that a class that sells nothing says why.

use crate::support::plan;

/// A pool with a class of this provider, and a pod.
fn files(provider: &str, capacity: &str) -> String {
    format!(
        "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {{name: own}}
spec: {{provider: {provider}}}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: gen}}
spec:
  template:
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: own}}
      requirements: [{{key: poolwright.dev/capacity-type, operator: In, values: [{capacity}]}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec: {{containers: [{{name: c, image: x, resources: {{requests: {{cpu: '3'}}}}}}]}}
"
    )
}

/// Returns what the only pod of a plan, which gets no node, is told.
fn told(flags: &[&str], files: &str) -> String {
    let plan = plan(&[&["-f", "-"][..], flags].concat(), files);
    assert_eq!(plan["pods"]["unplaced"], 1, "{plan}");
    plan["unplaced"][0]["message"].as_str().expect("a sentence").to_owned()
}

#[test]
fn a_class_of_one_provider_sells_nothing_of_another_that_a_flag_names() {
    let files = files("aws", "on-demand");
    let said = told(&["--provider", "gcp"], &files);
    for part in ["KwokNodeClass `own` sells nothing", "provider `aws`", "--provider gcp leaves them out"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(plan(&["-f", "-", "--provider", "aws"], &files)["pods"]["placed"], 1);
}

#[test]
fn a_misspelt_provider_of_a_class_is_told_the_providers_that_there_are() {
    let said = told(&[], &files("azur", "on-demand"));
    for part in ["no provider `azur`", "correct spec.provider of the class", "the catalogue has aws, gcp"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("flag"), "no flag was given: {said}");
    let near = told(&[], &files("gpc", "on-demand"));
    assert!(near.contains("did you mean `gcp`?"), "{near}");
}

#[test]
fn a_pool_of_reserved_capacity_is_told_where_reservations_are_named() {
    let said = told(&[], &files("aws", "reserved"));
    assert!(said.contains("name your reservations") && said.contains("--commitments"), "{said}");
}
