//! Tests of the words in the report: what it says must be true, and its next step must help.

use poolwright_api::{Deadlines, Disruption};
use serde_json::{Value, json};

use super::super::Outcome;
use super::{note, of, only, pool, problem, requiring, template};

/// Returns what the report says of an object as a whole.
fn said_of(object: &Value) -> String {
    let converted = of(object);
    assert_eq!(converted.problems, []);
    note(&converted, "").sentence.clone()
}

#[test]
fn an_object_of_others_that_selects_nodes_by_labels_of_karpenter_is_not_to_be_applied_unchanged() {
    let flavor = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor",
        "metadata": {"name": "spot", "managedFields": [{"fieldsV1": {"karpenter.sh/nodepool": {}}}]},
        "spec": {"nodeLabels": {"karpenter.sh/capacity-type": "spot", "team": "ml"},
            "tolerations": [{"key": "karpenter.sh/disrupted", "operator": "Exists"}]}});
    assert_eq!(
        said_of(&flavor),
        "kueue.x-k8s.io/v1beta1 ResourceFlavor is not an object of Karpenter: left out. It names labels of \
         Karpenter, which nodes of Poolwright lack, at spec.nodeLabels[\"karpenter.sh/capacity-type\"], \
         spec.tolerations[0].key: replace them as in the converted pools before you apply it."
    );
    let terms: Vec<Value> = (0..6)
        .map(|_| json!({"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "Exists"}]}))
        .collect();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
    let said = said_of(&volume);
    assert!(
        said.contains("at spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key, ")
            && said.contains("nodeSelectorTerms[3].matchExpressions[0].key (and 2 more): replace"),
        "{said}"
    );
}

#[test]
fn an_object_of_others_without_labels_of_karpenter_may_be_applied_unchanged() {
    let other = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "w", "ownerReferences": [{"apiVersion": "karpenter.sh/v1"}],
            "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"nodeSelector": {"team": "ml"}, "templates": [{"container": {"image": "karpenter/x"}}]}});
    let said = said_of(&other);
    assert!(said.ends_with("left out. Apply it unchanged if you need it."), "{said}");
}

#[test]
fn a_price_of_an_overlay_is_written_with_its_provider_region_and_zones() {
    for field in ["price", "priceAdjustment"] {
        let converted = of(&json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
            "metadata": {"name": "o"}, "spec": {field: "0.9"}}));
        let said = &note(&converted, &format!("spec.{field}")).sentence;
        assert!(said.contains("needs the columns `provider`, `region` and `zones`"), "{said}");
    }
}

#[test]
fn a_number_of_vcpus_says_what_a_class_with_more_reserved_needs() {
    let converted =
        requiring(&json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["8"]}]));
    let said = &note(&converted, "spec.template.spec.requirements[0]").sentence;
    assert!(said.ends_with("If the node class reserves more, lower the numbers further."), "{said}");
}

#[test]
fn a_requirement_that_contradicts_a_label_is_a_problem() {
    let labelled = |value: &str| {
        of(&pool(|pool| {
            pool["spec"]["template"]["metadata"] = json!({"labels": {"team": "a"}});
            template(pool)["requirements"] = json!([{"key": "team", "operator": "In", "values": [value]}]);
        }))
    };
    assert_eq!(only(&labelled("a")).spec.template.metadata.labels["team"], "a");
    let twice = requiring(&json!([
        {"key": "team", "operator": "In", "values": ["a"]},
        {"key": "team", "operator": "In", "values": ["b"]},
    ]));
    for converted in [labelled("b"), twice] {
        let said = problem(&converted);
        assert!(
            said.contains("contradicts the label `team: a`") && said.ends_with("; correct one of them"),
            "{said}"
        );
    }
}

#[test]
fn gpus_of_other_manufacturers_stay_with_karpenter() {
    let said = problem(&requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["amd"]},
    ])));
    assert!(
        said.ends_with("keep this pool in Karpenter: Poolwright buys NVIDIA GPUs only")
            && !said.contains("by name"),
        "{said}"
    );
}

#[test]
fn a_number_where_a_duration_belongs_needs_a_unit_and_not_quotes() {
    for converted in [
        of(&pool(|pool| pool["spec"]["disruption"] = json!({"consolidateAfter": 30}))),
        of(&pool(|pool| template(pool)["expireAfter"] = json!(30))),
        of(&pool(|pool| template(pool)["terminationGracePeriod"] = json!(30))),
    ] {
        let said = problem(&converted);
        assert!(
            said.contains("30 has no unit; write a duration such as \"30s\"") && !said.contains("quotes"),
            "{said}"
        );
    }
}

#[test]
fn images_of_windows_stay_with_karpenter() {
    let class = |field: &str, value: Value| {
        let mut class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "w"}, "spec": {"role": "node", "amiSelectorTerms": [{"id": "ami-1"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
        class["spec"][field] = value;
        problem(&of(&class))
    };
    for said in [
        class("amiSelectorTerms", json!([{"alias": "windows2022@latest"}])),
        class("amiFamily", json!("Windows2022")),
    ] {
        assert!(
            said.contains("Poolwright buys Linux nodes only: keep this pool in Karpenter")
                && !said.contains("by its id"),
            "{said}"
        );
    }
}

#[test]
fn settings_that_karpenter_does_not_have_are_noted_with_their_defaults() {
    let converted = of(&pool(|_| {}));
    let spec = &only(&converted).spec;
    assert_eq!(spec.disruption.retire, Disruption::default().retire);
    assert_eq!(spec.disruption.repair, Disruption::default().repair);
    for (field, default) in [
        ("spec.limits.usdPerHour", "--default-usd-per-hour (500)".to_owned()),
        ("spec.disruption.retire", "`WhenCheaper`".to_owned()),
        ("spec.disruption.repair", Disruption::default().repair[0].after.0.clone()),
        ("spec.template.spec.deadlines.initialization", Deadlines::default().initialization.0),
    ] {
        let note = note(&converted, field);
        assert_eq!(note.outcome, Outcome::Changed);
        let said = &note.sentence;
        assert!(said.starts_with("Absent: Karpenter has no ") && said.contains(&default), "{said}");
    }
}

#[test]
fn a_limit_on_money_that_karpenter_ignores_has_one_note() {
    let converted = of(&pool(|pool| pool["spec"]["limits"] = json!({"usdPerHour": "40"})));
    assert_eq!(note(&converted, "spec.limits.usdPerHour").outcome, Outcome::NotPossible);
}
