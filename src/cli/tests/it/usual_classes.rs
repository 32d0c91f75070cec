//! Plans without a node class: they count on nothing that a class of the usual settings would not sell.

use serde_json::Value;

use crate::support::{notes, plan};

/// A pod for a whole machine of eight GPUs. The cheapest such type, `g4dn.metal`, is bare metal.
const EIGHT_GPUS: &str = "apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: 40, memory: 200Gi}, limits: {nvidia.com/gpu: 8}}}]
";

fn types(plan: &Value) -> Vec<&str> {
    let nodes = plan["nodes"].as_array().expect("nodes");
    nodes.iter().map(|node| node["instanceType"].as_str().expect("a text")).collect()
}

#[test]
fn without_a_pool_a_plan_buys_no_bare_metal_and_says_so() {
    let plan = plan(&["-f", "-"], EIGHT_GPUS);
    assert!(!types(&plan).is_empty() && types(&plan).iter().all(|one| !one.contains("metal")), "{plan}");
    let said = "the plan may use the whole catalogue except g4dn.metal, g5g.metal, which node classes do not sell by default";
    assert!(notes(&plan).contains(said), "{}", notes(&plan));
}

#[test]
fn without_a_pool_a_pod_that_names_bare_metal_gets_it_and_a_note_names_the_field_of_the_class() {
    let named = EIGHT_GPUS
        .replace("spec:\n", "spec:\n  nodeSelector: {node.kubernetes.io/instance-type: g4dn.metal}\n");
    let plan = plan(&["-f", "-"], &named);
    assert_eq!(types(&plan), ["g4dn.metal"], "{plan}");
    let notes = notes(&plan);
    let said =
        "by default, node classes do not sell g4dn.metal, asked for by Pod default/train: it is bare metal";
    assert!(notes.contains(said) && notes.contains("alsoInstanceTypes"), "{notes}");
    assert!(!notes.contains("except g4dn.metal"), "{notes}");
}

#[test]
fn a_class_that_the_files_lack_sells_no_bare_metal_either() {
    let pool = |also: &str| {
        format!(
            "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: gpu}}
spec:
  template:
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: EC2NodeClass, name: gpu}}
      requirements:
      - {{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}}
{also}---
{EIGHT_GPUS}"
        )
    };
    let any = plan(&["-f", "-"], &pool(""));
    assert!(!types(&any).is_empty() && types(&any).iter().all(|one| !one.contains("metal")), "{any}");
    let metal = "      - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.metal]}\n";
    let only = plan(&["-f", "-"], &pool(metal));
    assert!(types(&only).is_empty(), "{only}");
    let said = "EC2NodeClass `gpu`: it does not sell g4dn.metal, asked for by NodePool gpu: it is bare metal";
    assert!(notes(&only).contains(said), "{}", notes(&only));
}
