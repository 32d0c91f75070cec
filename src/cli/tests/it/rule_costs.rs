//! Tests of what plans say that their rules cost.

use crate::support::poolwright;

const CLASS: &str = "apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: aws}
spec: {provider: aws}
---
";

/// Returns what a plan for these pools and pods says, on one line.
fn said(objects: &str) -> String {
    let output = poolwright(&["plan", "-f", "-"], &format!("{CLASS}{objects}"));
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A pool of spot and on-demand nodes, and pods that prefer on-demand nodes.
const PREFERS_ON_DEMAND: &str = "apiVersion: poolwright.dev/v1alpha1
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
    let said = said(PREFERS_ON_DEMAND);
    assert!(!said.contains("Interruptions $"), "an on-demand node loses nothing: {said}");
    let of_preferences = said.split_once("Preferences cost ").expect("preferences cost something").1;
    let sentence =
        of_preferences.split_once(" One pod per node").map_or(of_preferences, |(before, _)| before);
    assert!(sentence.contains("without them these pods would cost"), "{sentence}");
    assert!(sentence.contains("expected loss included"), "{sentence}");
}

/// A pool that keeps one node on demand, and a dearer one with minValues, from which nobody buys.
const KEEPS_ONE_ON_DEMAND: &str = "apiVersion: poolwright.dev/v1alpha1
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
    let said = said(KEEPS_ONE_ON_DEMAND);
    assert!(said.contains("Spot rules cost at most $"), "the bound is below this plan: {said}");
    assert!(
        said.contains("less: it does not keep the pools' rules on spot nodes, and the plan does"),
        "{said}"
    );
    assert!(!said.contains("minValues"), "{said}");
}

/// Five pods, and a pool of a higher weight that may have one node for four of them.
const PREFERS_A_DEAR_POOL: &str = "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: heavy}
spec:
  weight: 50
  limits: {nodes: 1, nvidia.com/gpu: 4}
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [g6e]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: light}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [g6]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 5
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: x, resources: {requests: {cpu: '3'}, limits: {nvidia.com/gpu: 1}}}]
";

#[test]
fn a_cheaper_way_that_uses_a_heavier_pool_less_names_the_weights_and_what_they_cost() {
    let said = said(PREFERS_A_DEAR_POOL);
    let price = said.split_once("Pool weights cost at most ").expect("weights cost something").1;
    let price = price.split(':').next().expect("a price");
    let why = format!(
        "less: it leaves more pods to pools of a lower weight than the limits ask for; see `Pool weights`, {price} First fit"
    );
    assert!(said.contains(&why), "{said}");
}

/// A pod of a high priority and one of none, and a pool of a higher weight that may have one node for one of them.
const PREFERS_BY_PRIORITY: &str = "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: heavy}
spec:
  weight: 50
  limits: {nodes: 1, nvidia.com/gpu: 1}
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [g6]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: light}
spec:
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: aws}
      requirements:
        - {key: poolwright.dev/instance-family, operator: In, values: [g6e]}
        - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: ml}
spec:
  priorityClassName: high
  containers: [{name: c, image: x, resources: {requests: {cpu: '3'}, limits: {nvidia.com/gpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: ml}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: '7'}, limits: {nvidia.com/gpu: 1}}}]
";

#[test]
fn a_cheaper_way_that_serves_as_many_pods_in_the_heavier_pool_is_said_to_leave_more_important_ones() {
    let said = said(PREFERS_BY_PRIORITY);
    assert!(said.contains(" Priorities cost $"), "{said}");
    let why = "less: it leaves more pods of a higher priority to pools of a lower weight than the limits ask for; see `";
    assert!(said.contains(why), "{said}");
    assert!(!said.contains("it leaves more pods to pools"), "it leaves as many: {said}");
}

#[test]
fn places_are_not_said_to_hold_a_bound_that_is_unknown() {
    let plan = |other: &str| {
        said(&format!(
            "apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {{name: few}}
spec:
  limits: {{nodes: 1}}
  template:
    spec:
      nodeClassRef: {{group: poolwright.dev, kind: KwokNodeClass, name: aws}}
      requirements:
        - {{key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}}
        - {{key: poolwright.dev/instance-family, operator: In, values: [g6]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: c, image: x, resources: {{requests: {{cpu: '1'}}}}}}]
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {{matchLabels: {{app: web}}}}
{other}"
        ))
    };
    let bounded = plan("");
    assert!(bounded.contains("(zones, nodes to share) first; the lower bound holds with these"), "{bounded}");
    // A pod without a rule could have used the zones that are left out.
    let unknown = plan(
        "---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec:
  nodeSelector: {node.kubernetes.io/instance-type: g6.48xlarge}
  containers: [{name: c, image: x}]
",
    );
    assert!(unknown.contains("Lower bound none is known"), "{unknown}");
    assert!(unknown.contains("(zones, nodes to share) first"), "{unknown}");
    assert!(!unknown.contains("lower bound holds"), "{unknown}");
}
