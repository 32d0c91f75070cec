//! Tests of what a plan says about nodes that no waiting pod needs: room that pools keep free, and nodes of static pools.

use crate::support::{plan, poolwright};

const CLASS: &str = "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: any}
spec: {provider: aws}
---
";

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: x}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1}}}]}
---
";

/// Three units of one GPU, on at most two nodes.
const THREE_UNITS: &str =
    "  buffer: [{units: 3, requests: {nvidia.com/gpu: 1, cpu: 2}}]\n  limits: {nodes: 2}";

/// A pool that buys on-demand nodes, with these further fields of its spec.
fn pool(name: &str, fields: &str) -> String {
    format!(
        "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: any}}
      requirements:
        - {{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}}
        - {{key: kubernetes.io/arch, operator: In, values: [amd64]}}
{fields}
---
"
    )
}

fn table(input: &str) -> String {
    let output = poolwright(&["plan", "-f", "-"], input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_headline_and_the_table_name_the_units_that_nodes_are_bought_for() {
    let said = table(&format!("{CLASS}{}{POD}", pool("warm", THREE_UNITS)));
    assert!(said.starts_with("1 pod waiting and 3 units of room to keep free: buy 1 node for"), "{said}");
    assert!(said.contains("PODS UNITS 1 g4dn.12xlarge us-east-1a on-demand $3.91 $3.91 1 3 "), "{said}");
    let none = table(&format!("{CLASS}{}", pool("warm", THREE_UNITS)));
    assert!(
        none.starts_with("No pod waits for a node; 3 units of room to keep free: buy 1 node for"),
        "{none}"
    );
}

#[test]
fn a_simpler_way_names_the_pods_and_the_units_that_it_leaves_out() {
    let input = format!("{CLASS}{}{POD}", pool("warm", THREE_UNITS));
    let said = table(&input);
    // The two nodes go to the two largest, which are units.
    let left = ", without 1 pod and 1 unit of room to keep free: within the limits it finds no node for them";
    assert!(said.contains(left), "{said}");
    let plan = plan(&["-f", "-"], &input);
    assert_eq!(plan["baselines"]["onePodPerNodeUnplaced"], 1);
    assert_eq!(plan["baselines"]["onePodPerNodeUnitsUnplaced"], 1);
    assert_eq!(plan["pods"]["total"], 1);
    assert_eq!(plan["units"], serde_json::json!({"total": 3, "placed": 3, "unplaced": 0}));
    assert_eq!(plan["nodes"][0]["units"], 3);
    crate::plans::assert_follows_schema(&plan);
}

#[test]
fn units_that_a_limit_leaves_without_room_are_counted_in_the_headline() {
    let fields =
        "  buffer: [{units: 5, requests: {nvidia.com/gpu: 1}}]\n  limits: {nodes: 1, nvidia.com/gpu: 1}";
    let said = table(&format!("{CLASS}{}{POD}", pool("warm", fields)));
    assert!(said.starts_with("1 pod waiting and 5 units of room to keep free: buy 1 node for"), "{said}");
    assert!(said.contains("; 4 units left without room."), "{said}");
    let left = ", without 1 unit of room to keep free: within the limits it finds no node for it";
    assert!(said.contains(left), "the only pod has a node: {said}");
}

#[test]
fn nodes_of_static_pools_are_named_besides_the_pods() {
    let input = format!("{CLASS}{}{}{POD}", pool("always", "  replicas: 2"), pool("own", ""));
    let said = table(&input);
    assert!(said.starts_with("1 pod waiting and 2 nodes of static pools to add: buy"), "{said}");
    let plan = plan(&["-f", "-"], &input);
    assert_eq!(plan["staticNodes"], 2);
    crate::plans::assert_follows_schema(&plan);
}
