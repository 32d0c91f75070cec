//! Tests of what plans say that their rules cost.

use crate::support::poolwright;

/// A pool of spot and on-demand nodes, and pods that prefer on-demand nodes.
const PREFERS_ON_DEMAND: &str = "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: aws}
spec: {provider: aws}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gen}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: poolwright.dev/instance-family, operator: In, values: [g5, g6]}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: '1', memory: 4Gi}, limits: {nvidia.com/gpu: 1}}}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 100, preference: {matchExpressions: [{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}]}}
";

#[test]
fn a_cost_that_counts_the_loss_of_the_other_plan_says_so_even_if_this_plan_loses_nothing() {
    let output = poolwright(&["plan", "-f", "-"], PREFERS_ON_DEMAND);
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!said.contains("Interruptions $"), "an on-demand node loses nothing: {said}");
    let of_preferences = said.split_once("Preferences cost ").expect("preferences cost something").1;
    let sentence =
        of_preferences.split_once(" One pod per node").map_or(of_preferences, |(before, _)| before);
    assert!(sentence.contains("without them these pods would cost"), "{sentence}");
    assert!(sentence.contains("expected loss included"), "{sentence}");
}

/// A pool that keeps one node on demand, and a dearer one with minValues, from which nobody buys.
const KEEPS_ONE_ON_DEMAND: &str = "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: aws}
spec: {provider: aws}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: choosy}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [g6e]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
        - {key: topology.kubernetes.io/zone, operator: Exists, minValues: 2}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: mixed}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand, spot]}
        - {key: poolwright.dev/instance-family, operator: In, values: [g4dn]}
  spot: {onDemandFloor: '1'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: ml}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers: [{name: c, image: x, resources: {requests: {cpu: '2', memory: 20Gi}, limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: two, namespace: ml}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: 500m, memory: 4Gi}, limits: {nvidia.com/gpu: 2}}}]
";

#[test]
fn a_cheaper_way_is_not_said_to_break_a_rule_of_a_pool_from_which_nobody_buys() {
    let output = poolwright(&["plan", "-f", "-"], KEEPS_ONE_ON_DEMAND);
    let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Spot rules cost at most $"), "the bound is below this plan: {said}");
    assert!(
        said.contains("less: it does not keep the pools' rules on spot nodes, and the plan does"),
        "{said}"
    );
    assert!(!said.contains("minValues"), "{said}");
}
