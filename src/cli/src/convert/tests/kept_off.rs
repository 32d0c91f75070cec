//! Rules that keep pods off nodes of Karpenter or of a managed service, and terms of rules that contradict each other.

use serde_json::{Value, json};

use super::super::{Conversion, Outcome};
use super::workload::{deployment, of, pod, required, requiring};

const COMPUTE_TYPE: &str = "eks.amazonaws.com/compute-type";

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    if values.is_empty() {
        return json!({"key": key, "operator": operator});
    }
    json!({"key": key, "operator": operator, "values": values})
}

/// Converts a DaemonSet that requires these expressions.
fn daemonset(expressions: &Value) -> Conversion {
    let mut made = deployment(requiring(expressions));
    made["kind"] = json!("DaemonSet");
    of(&[made])
}

/// Returns the expressions of a converted object, or these if it does not change.
fn result(converted: &Conversion, expressions: &Value) -> Value {
    let changed = converted.workloads.first();
    changed.map_or_else(|| expressions.clone(), |one| required(&one["spec"]["template"]["spec"]).clone())
}

#[test]
fn pods_that_stay_off_all_nodes_of_karpenter_stay_off_those_of_poolwright() {
    let no_pool = json!({"key": "poolwright.dev/nodepool", "operator": "DoesNotExist"});
    for (key, value) in [
        ("karpenter.sh/registered", "true"),
        ("karpenter.sh/initialized", "true"),
        ("karpenter.k8s.aws/instance-tenancy", "default"),
    ] {
        for excluded in [expression(key, "NotIn", &[value]), expression(key, "DoesNotExist", &[])] {
            let (kept_off, notes) = pod(requiring(&json!([excluded])));
            assert_eq!(*required(&kept_off), json!([no_pool]), "{excluded}");
            assert_eq!(notes[0].0, Outcome::Changed, "{excluded}");
        }
    }
    // Nodes that Karpenter does not buy have an instance type, too.
    for key in ["karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-memory"] {
        let (kept_off, _) = pod(requiring(&json!([expression(key, "DoesNotExist", &[])])));
        assert_eq!(*required(&kept_off), json!([no_pool]), "{key}");
    }
    let (of_karpenter, _) =
        pod(requiring(&json!([expression("karpenter.k8s.aws/instance-size", "Exists", &[])])));
    assert_eq!(*required(&of_karpenter), json!([expression("poolwright.dev/nodepool", "Exists", &[])]));
}

#[test]
fn daemonsets_that_stay_off_nodes_of_a_managed_service_run_on_nodes_of_poolwright() {
    for (operator, values) in [("NotIn", &["fargate", "hybrid", "auto"][..]), ("DoesNotExist", &[])] {
        let addon = json!([
            expression("kubernetes.io/os", "In", &["linux"]),
            expression(COMPUTE_TYPE, operator, values),
        ]);
        let converted = daemonset(&addon);
        assert_eq!(converted.workloads, [] as [Value; 0], "{operator}");
        assert_eq!(converted.notes[0].sentence, "It uses nothing of Karpenter. Apply it unchanged.");
    }
    let agent = json!([
        expression("karpenter.sh/nodepool", "Exists", &[]),
        expression(COMPUTE_TYPE, "NotIn", &["fargate", "auto"]),
        expression("karpenter.sh/registered", "In", &["true"]),
    ]);
    let any_pool = expression("poolwright.dev/nodepool", "Exists", &[]);
    assert_eq!(result(&daemonset(&agent), &agent), json!([any_pool, agent[1], any_pool]));
}

#[test]
fn other_pods_that_stay_off_nodes_of_a_managed_service_keep_their_rule_and_the_user_decides() {
    for (operator, values) in [("NotIn", &["auto"][..]), ("DoesNotExist", &[])] {
        let converted = of(&[deployment(requiring(&json!([expression(COMPUTE_TYPE, operator, values)])))]);
        assert_eq!(converted.workloads, [] as [Value; 0], "{operator}");
        let [note] = converted.notes.as_slice() else { panic!("{:?}", converted.notes) };
        assert_eq!(note.outcome, Outcome::Changed);
        for part in
            ["It stays as it is", "EKS Auto Mode", "add `poolwright.dev/nodepool` with `DoesNotExist`"]
        {
            assert!(note.sentence.contains(part), "{part}: {}", note.sentence);
        }
    }
}

/// Returns whether a node with these labels meets all expressions.
fn meets(labels: &[(&str, &str)], expressions: &Value) -> bool {
    expressions.as_array().expect("a list").iter().all(|one| {
        let value = labels.iter().find(|(key, _)| one["key"] == *key).map(|(_, value)| json!(value));
        let is_listed = value
            .as_ref()
            .is_some_and(|value| one["values"].as_array().is_some_and(|all| all.contains(value)));
        match one["operator"].as_str() {
            Some("In") => is_listed,
            Some("NotIn") => !is_listed,
            Some("Exists") => value.is_some(),
            Some("DoesNotExist") => value.is_none(),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn any_three_rules_on_the_kind_of_node_together_mean_the_same_after_the_conversion() {
    let mut all = vec![
        expression(COMPUTE_TYPE, "NotIn", &["fargate", "auto"]),
        expression(COMPUTE_TYPE, "DoesNotExist", &[]),
    ];
    for (key, value) in [
        ("karpenter.sh/nodepool", "a"),
        ("karpenter.sh/registered", "true"),
        ("karpenter.k8s.aws/instance-tenancy", "default"),
    ] {
        all.push(expression(key, "In", &[value]));
        all.push(expression(key, "NotIn", &[value]));
        all.push(expression(key, "Exists", &[]));
        all.push(expression(key, "DoesNotExist", &[]));
    }
    let of_karpenter = |pool| {
        [
            ("karpenter.sh/nodepool", pool),
            ("karpenter.sh/registered", "true"),
            ("karpenter.k8s.aws/instance-tenancy", "default"),
        ]
    };
    let ours = |pool| [("poolwright.dev/nodepool", pool)];
    let (mut written, mut left) = (0, 0);
    for (at, first) in all.iter().enumerate() {
        for (next, second) in all.iter().enumerate().skip(at) {
            for third in &all[next..] {
                let source = json!([first, second, third]);
                let converted = daemonset(&source);
                let made = result(&converted, &source);
                for pool in ["a", "b"] {
                    assert_eq!(
                        meets(&ours(pool), &made),
                        meets(&of_karpenter(pool), &source),
                        "pool {pool}: {source} becomes {made}"
                    );
                }
                assert_eq!(meets(&[], &made), meets(&[], &source), "other nodes: {source} becomes {made}");
                let can_be_met = meets(&ours("a"), &made) || meets(&ours("b"), &made) || meets(&[], &made);
                if converted.notes.iter().any(|note| note.outcome == Outcome::NotPossible) {
                    assert_eq!(made, source, "it is left as it is");
                    left += 1;
                } else {
                    assert!(can_be_met, "{source} becomes {made}");
                    written += 1;
                }
            }
        }
    }
    assert!(written > 100 && left > 100, "{written} {left}");
}

#[test]
fn a_term_that_only_the_built_in_catalogue_cannot_meet_is_not_converted_and_says_so() {
    // There are such families, but the catalogue has none of them.
    let m5 = json!([
        expression("karpenter.k8s.aws/instance-category", "In", &["m"]),
        expression("karpenter.k8s.aws/instance-generation", "In", &["5"]),
    ]);
    let (left, notes) = pod(requiring(&m5));
    assert_eq!(*required(&left), m5);
    let [(outcome, said)] = notes.as_slice() else { panic!("{notes:?}") };
    assert_eq!(*outcome, Outcome::NotPossible);
    assert!(
        said.contains("as conditions on `poolwright.dev/instance-family`, no node would meet them"),
        "{said}"
    );
    // A selector that becomes a list may contradict a rule of the user's own.
    let mut selecting =
        requiring(&json!([expression("node.kubernetes.io/instance-type", "In", &["m5.4xlarge"])]));
    selecting["nodeSelector"] = json!({"karpenter.k8s.aws/instance-memory": "65536"});
    let (_, notes) = pod(selecting);
    let said = notes.iter().find(|(outcome, _)| *outcome == Outcome::NotPossible);
    assert!(
        said.is_some_and(|(_, said)| said.contains("on `node.kubernetes.io/instance-type`")),
        "{notes:?}"
    );
}

#[test]
fn a_topology_whose_values_no_label_of_poolwright_has_stays_and_is_named() {
    for key in [
        "karpenter.k8s.aws/instance-size",
        "karpenter.k8s.aws/instance-category",
        "karpenter.k8s.aws/instance-generation",
        "karpenter.k8s.aws/instance-memory",
        "karpenter.k8s.aws/instance-gpu-manufacturer",
    ] {
        let spread = json!([{"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]);
        let (left, notes) = pod(json!({"topologySpreadConstraints": spread}));
        assert_eq!(left["topologySpreadConstraints"], spread);
        let [(outcome, said)] = notes.as_slice() else { panic!("{notes:?}") };
        assert_eq!(*outcome, Outcome::NotPossible, "{key}");
        assert!(said.contains(&format!("has no `{key}`. No other label has the same values.")), "{said}");
    }
}
