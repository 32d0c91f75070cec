//! Labels of Karpenter, of managed services and of other autoscalers, whatever a requirement on them says.

use serde_json::{Value, json};

use super::super::{Conversion, Outcome};
use super::{note, of, only, pool, problem, requiring, template};

/// Returns the requirements on labels of EKS Auto Mode, or of Karpenter's provider.
fn requirements_under(domain: &str) -> Value {
    let one = |name: &str, operator: &str, values: &[&str]| json!({"key": format!("{domain}/{name}"), "operator": operator, "values": values});
    json!([
        one("instance-category", "In", &["g"]),
        one("instance-family", "In", &["g6", "g5"]),
        one("instance-size", "In", &["2xlarge", "4xlarge"]),
        one("instance-generation", "Gt", &["4"]),
        one("instance-cpu", "Lt", &["65"]),
        one("instance-gpu-manufacturer", "In", &["nvidia"]),
        one("instance-gpu-name", "In", &["l4", "a10g"]),
        one("instance-gpu-count", "In", &["1"]),
        one("instance-gpu-memory", "Gt", &["20000"]),
        one("instance-memory", "Gt", &["8191"]),
        one("instance-hypervisor", "In", &["nitro"]),
        one("instance-local-nvme", "Gt", &["100"]),
    ])
}

#[test]
fn requirements_of_eks_auto_mode_become_what_those_of_karpenter_become() {
    let (eks, karpenter) = (
        requiring(&requirements_under("eks.amazonaws.com")),
        requiring(&requirements_under("karpenter.k8s.aws")),
    );
    assert_eq!(only(&eks).spec.template, only(&karpenter).spec.template);
    assert_eq!(only(&eks).spec.template.metadata.labels.len(), 0);
    let outcomes = |of: &Conversion| -> Vec<_> {
        of.notes.iter().map(|note| (note.field.clone(), note.outcome)).collect()
    };
    assert_eq!(outcomes(&eks), outcomes(&karpenter));
}

#[test]
fn keys_of_other_autoscalers_and_clouds_are_not_possible_and_label_no_node() {
    for key in [
        "karpenter.sh/registered",
        "eks.amazonaws.com/compute-type",
        "eks.amazonaws.com/nodegroup",
        "eks.amazonaws.com/capacityType",
        "cloud.google.com/gke-accelerator",
        "topology.gke.io/zone",
        "kubernetes.azure.com/mode",
        "cluster-autoscaler.kubernetes.io/x",
    ] {
        let required = requiring(&json!([{"key": key, "operator": "In", "values": ["x"]}]));
        let labelled = of(&pool(|pool| pool["spec"]["template"]["metadata"] = json!({"labels": {key: "x"}})));
        let field = format!("spec.template.metadata.labels[\"{key}\"]");
        for (converted, field) in [(required, "spec.template.spec.requirements[0]"), (labelled, &field)] {
            let note = note(&converted, field);
            assert!(note.outcome == Outcome::NotPossible && note.sentence.contains(key), "{note:?}");
            let template = &only(&converted).spec.template;
            assert!(template.metadata.labels.is_empty() && template.spec.requirements.is_empty(), "{key}");
        }
    }
    let own = requiring(&json!([{"key": "example.com/karpenter-pool", "operator": "In", "values": ["x"]}]));
    assert_eq!(only(&own).spec.template.metadata.labels["example.com/karpenter-pool"], "x");
}

#[test]
fn a_requirement_that_no_node_meets_stops_the_conversion_of_its_pool() {
    for (key, value) in [("instance-tenancy", "dedicated"), ("instance-accelerator-manufacturer", "habana")] {
        let key = format!("karpenter.k8s.aws/{key}");
        let said = problem(&requiring(&json!([{"key": key, "operator": "In", "values": [value]}])));
        assert!(said.contains("no node of Poolwright meets it"), "{said}");
    }
}

#[test]
fn a_restriction_that_all_nodes_of_a_service_meet_does_not_let_a_pool_buy_more() {
    let converted = of(&of_auto_mode(|template| {
        template["requirements"] =
            json!([{"key": "eks.amazonaws.com/compute-type", "operator": "In", "values": ["auto"]}]);
    }));
    let sentence = &note(&converted, "spec.template.spec.requirements[0]").sentence;
    assert!(sentence.contains("Auto Mode") && !sentence.contains("buy more"), "{sentence}");
}

/// Returns a pool of EKS Auto Mode after `change` has changed the spec of its template.
fn of_auto_mode(change: impl FnOnce(&mut Value)) -> Value {
    pool(|pool| {
        template(pool)["nodeClassRef"] =
            json!({"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "default"});
        change(template(pool));
    })
}

/// Returns the outcome and the sentence of a requirement that is left out of a pool of EKS Auto Mode.
fn left_out_of_auto_mode(key: &str, operator: &str, values: &[&str]) -> (Outcome, String) {
    let required = json!([{"key": key, "operator": operator, "values": values}]);
    outcome(&of(&of_auto_mode(|template| template["requirements"] = required)))
}

/// Returns the outcome and the sentence of a requirement that is left out.
fn left_out(key: &str, operator: &str, values: &[&str]) -> (Outcome, String) {
    outcome(&requiring(&json!([{"key": key, "operator": operator, "values": values}])))
}

fn outcome(converted: &Conversion) -> (Outcome, String) {
    assert_eq!(only(converted).spec.template.spec.requirements, []);
    let note = note(converted, "spec.template.spec.requirements[0]");
    (note.outcome, note.sentence.clone())
}

#[test]
fn a_label_of_all_nodes_of_a_service_is_left_out_unless_the_requirement_excludes_these_nodes() {
    let key = "eks.amazonaws.com/compute-type";
    let met: [(&str, &[&str]); 4] =
        [("In", &["auto"]), ("In", &["hybrid", "auto"]), ("Exists", &[]), ("NotIn", &["fargate"])];
    for (operator, values) in met {
        let (outcome, sentence) = left_out_of_auto_mode(key, operator, values);
        assert_eq!(outcome, Outcome::Changed, "{operator} {values:?}: {sentence}");
        assert!(sentence.starts_with("Left out: ") && sentence.contains("EKS Auto Mode"), "{sentence}");
    }
    let unmet: [(&str, &[&str]); 5] = [
        ("In", &["hybrid"]),
        ("In", &["fargate"]),
        ("In", &["other"]),
        ("NotIn", &["auto"]),
        ("DoesNotExist", &[]),
    ];
    for (operator, values) in unmet {
        let (outcome, sentence) = left_out_of_auto_mode(key, operator, values);
        assert_eq!(outcome, Outcome::NotPossible, "{operator} {values:?}: {sentence}");
        assert!(
            sentence.contains("excludes all nodes with the value `auto`")
                && sentence.ends_with("the pool may buy more than before."),
            "{sentence}"
        );
    }
    for (value, outcome) in [("auto", Outcome::Changed), ("hybrid", Outcome::NotPossible)] {
        let mut labelled = of_auto_mode(|_| {});
        labelled["spec"]["template"]["metadata"] = json!({"labels": {key: value}});
        let labelled = of(&labelled);
        assert_eq!(
            note(&labelled, &format!("spec.template.metadata.labels[\"{key}\"]")).outcome,
            outcome,
            "{value}"
        );
        assert!(only(&labelled).spec.template.metadata.labels.is_empty(), "{value}");
    }
}

#[test]
fn no_label_is_left_out_whatever_a_requirement_on_it_says() {
    use Outcome::{Changed, NotPossible};
    let cases: [(&str, &str, &[&str], Outcome); 12] = [
        // Only nodes of Auto Mode have this label, and this pool has none.
        ("eks.amazonaws.com/compute-type", "NotIn", &["auto"], Changed),
        ("eks.amazonaws.com/compute-type", "DoesNotExist", &[], Changed),
        ("eks.amazonaws.com/compute-type", "NotIn", &["fargate"], Changed),
        ("eks.amazonaws.com/compute-type", "In", &["auto"], NotPossible),
        ("karpenter.sh/registered", "In", &["true"], Changed),
        ("karpenter.sh/initialized", "NotIn", &["true"], NotPossible),
        ("eks.amazonaws.com/nodegroup", "NotIn", &["a"], Changed),
        ("eks.amazonaws.com/nodegroup", "In", &["a"], NotPossible),
        ("cloud.google.com/gke-spot", "DoesNotExist", &[], Changed),
        ("cloud.google.com/gke-spot", "Exists", &[], NotPossible),
        ("node.kubernetes.io/windows-build", "DoesNotExist", &[], Changed),
        // No type of the built-in catalogue has another value.
        ("karpenter.k8s.aws/instance-hypervisor", "NotIn", &["xen"], Changed),
    ];
    for (key, operator, values, expected) in cases {
        let (outcome, sentence) = left_out(key, operator, values);
        assert_eq!(outcome, expected, "{key} {operator} {values:?}: {sentence}");
    }
    for (key, value) in [("node.kubernetes.io/windows-build", "10.0.20348"), ("kubernetes.io/os", "windows")]
    {
        let said = problem(&requiring(&json!([{"key": key, "operator": "In", "values": [value]}])));
        assert!(said.contains("Poolwright buys Linux nodes only"), "{said}");
    }
}
