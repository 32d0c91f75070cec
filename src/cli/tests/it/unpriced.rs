//! Tests that a plan says what it could not consider, because prices are unknown.

use crate::support::{plan, poolwright};

/// Pods without GPUs. The builtin catalogue has spot prices of types with GPUs only.
const PODS: &str = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {replicas: 12, \
                    selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, \
                    spec: {containers: [{image: x, name: c, resources: {requests: {cpu: 2, memory: 1Gi}}}]}}}}";

fn printed(flags: &[&str]) -> String {
    let told = poolwright(&[&["plan", "-f", "-", "--provider", "aws"][..], flags].concat(), PODS);
    String::from_utf8_lossy(&told.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_plan_that_does_not_know_prices_of_types_that_might_cost_less_claims_no_more_than_it_knows() {
    let spot = printed(&["--spot"]);
    assert!(spot.contains("as cheap as any of offerings with known prices"), "{spot}");
    assert!(spot.contains("the catalogue has no spot price of "), "{spot}");
    let json = plan(&["-f", "-", "--provider", "aws", "--spot"], PODS);
    assert!(json["unpricedTypes"].as_u64() > Some(0), "{json}");

    let on_demand = printed(&[]);
    assert!(on_demand.contains("as cheap as any can be"), "{on_demand}");
    assert!(!on_demand.contains("no spot price"), "{on_demand}");
    let json = plan(&["-f", "-", "--provider", "aws"], PODS);
    assert_eq!(json.get("unpricedTypes"), None);
}
