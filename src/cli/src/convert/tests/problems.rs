//! Documents that are not converted, and why.

use serde_json::json;

use super::super::{Conversion, Outcome};
use super::{note, of, only, pool, problem, read, template};

#[test]
fn a_schedule_that_cannot_be_read_is_a_problem() {
    let said = problem(&of(&pool(|pool| {
        pool["spec"]["disruption"] =
            json!({"budgets": [{"nodes": "0", "schedule": "often", "duration": "8h"}]});
    })));
    assert!(said.contains("spec.disruption.budgets[0].schedule"), "{said}");
}

#[test]
fn old_versions_are_sent_to_karpenters_own_tools() {
    let said = problem(&of(&pool(|pool| pool["apiVersion"] = json!("karpenter.sh/v1beta1"))));
    assert!(
        said.contains("`karpenter.sh/v1beta1` cannot be converted") && said.contains("v1-migration"),
        "{said}"
    );
}

#[test]
fn a_malformed_document_is_a_problem_and_the_others_are_converted() {
    let text = format!(
        "{}\n---\na: [1\n---\n# nothing\n---\n{}\n",
        pool(|_| {}),
        pool(|pool| pool["metadata"]["name"] = json!("b"))
    );
    let converted = read(&text);
    assert_eq!(converted.manifests.len(), 2);
    let [problem] = converted.problems.as_slice() else { panic!("{:?}", converted.problems) };
    assert_eq!((problem.document, problem.file.as_str()), (2, "file.yaml"));
    assert_eq!(problem.next_step, "correct the syntax");
}

#[test]
fn a_list_where_a_text_belongs_a_missing_name_and_a_second_pool_of_a_name_are_problems() {
    let said = problem(&of(&pool(|pool| template(pool)["expireAfter"] = json!(["1h"]))));
    assert!(
        said.contains(
            "NodePool/gpu: spec.template.spec.expireAfter: a list where a text belongs; write one text"
        ),
        "{said}"
    );
    let said = problem(&of(&pool(|pool| pool["metadata"] = json!({}))));
    assert!(said.contains("document 1: NodePool: metadata.name: missing"), "{said}");
    let converted = read(&format!("{0}\n---\n{0}\n", pool(|_| {})));
    assert_eq!((converted.manifests.len(), converted.problems.len()), (1, 1));
}

#[test]
fn lists_are_taken_apart_and_what_the_cluster_writes_is_left_out() {
    let one = pool(|pool| {
        pool["status"] = json!({"nodes": 1});
        pool["metadata"]["uid"] = json!("1-2");
    });
    let converted = of(&json!({"apiVersion": "v1", "kind": "List", "items": [one]}));
    only(&converted);
    assert_eq!(note(&converted, "status").outcome, Outcome::Changed);
    assert_eq!(note(&converted, "metadata.uid").outcome, Outcome::Changed);
}

fn fields(converted: &Conversion) -> Vec<&str> {
    assert!(converted.manifests.is_empty() && converted.node_classes.is_empty(), "{converted:?}");
    let mut fields: Vec<&str> = converted.problems.iter().map(|problem| problem.field.as_str()).collect();
    fields.sort_unstable();
    fields
}

#[test]
fn all_problems_of_a_pool_are_told_at_once_by_the_fields_that_the_user_wrote() {
    let mut invalid = pool(|pool| {
        pool["spec"]["disruption"] = json!({"consolidationPolicy": "Sometimes", "consolidateAfter": "soon",
            "budgets": [{"nodes": "many", "schedule": "often", "duration": "8h"}, {"schedule": "@daily", "duration": 5}]});
        pool["spec"]["limits"] = json!({"cpu": "ten"});
        template(pool)["taints"] = json!([{"key": "karpenter.sh/x", "effect": "NoSchedule"},
            {"key": "poolwright.dev/x", "effect": "NoSchedule"}]);
        template(pool)["requirements"] = json!([
            {"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["a", "b"]},
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["has blanks"]},
        ]);
    });
    invalid["metadata"] = json!({"labels": {"team": "a"}});
    let converted = of(&invalid);
    assert_eq!(
        fields(&converted),
        [
            "metadata.name",
            "spec.disruption.budgets[0].nodes",
            "spec.disruption.budgets[0].schedule",
            "spec.disruption.budgets[1].duration",
            "spec.disruption.budgets[1].nodes",
            "spec.disruption.consolidateAfter",
            "spec.disruption.consolidationPolicy",
            "spec.limits.cpu",
            "spec.template.spec.requirements[0]",
            "spec.template.spec.requirements[0]",
            "spec.template.spec.requirements[1].values[0]",
            "spec.template.spec.taints",
        ],
        "{:#?}",
        converted.problems
    );
}

#[test]
fn what_stands_in_the_place_of_an_unreadable_field_has_no_problems_of_its_own() {
    for (field, value) in [("duration", json!(5)), ("duration", json!("soon")), ("nodes", json!(3))] {
        let mut budget = json!({"nodes": "1", "schedule": "@daily", "duration": "1h"});
        budget[field] = value;
        let converted = of(&pool(|pool| pool["spec"]["disruption"] = json!({"budgets": [budget]})));
        assert_eq!(fields(&converted), [format!("spec.disruption.budgets[0].{field}")]);
    }
    let no_kind = of(&pool(|pool| template(pool)["nodeClassRef"] = json!({"name": "gpu"})));
    assert_eq!(fields(&no_kind), ["spec.template.spec.nodeClassRef.kind"]);
    let no_text = of(&pool(|pool| {
        template(pool)["requirements"] = json!([{"key": "team", "operator": "In", "values": [7]}]);
    }));
    assert_eq!(fields(&no_text), ["spec.template.spec.requirements[0].values[0]"]);
}

#[test]
fn all_values_of_wrong_types_in_a_class_are_told_at_once() {
    let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"},
        "spec": {"role": 7, "tags": {"team": 1}, "amiFamily": "Custom", "amiSelectorTerms": [{"id": "ami-1"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
    let converted = of(&class);
    assert_eq!(fields(&converted), ["spec.role", "spec.tags.team"], "{:#?}", converted.problems);
}

#[test]
fn of_an_empty_object_it_is_told_what_it_lacks() {
    for (spec, missing) in [
        (json!(null), vec!["spec"]),
        (json!({}), vec!["spec.template"]),
        (json!({"template": {}}), vec!["spec.template.spec"]),
        (json!({"template": {"spec": {}}}), vec!["spec.template.spec.nodeClassRef"]),
        (
            json!({"template": {"spec": {"nodeClassRef": {}}}}),
            vec!["spec.template.spec.nodeClassRef.kind", "spec.template.spec.nodeClassRef.name"],
        ),
    ] {
        let converted = of(&pool(|pool| pool["spec"] = spec));
        assert_eq!(fields(&converted), missing, "{:#?}", converted.problems);
    }
    let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": {}});
    let converted = of(&class);
    assert!(fields(&converted).contains(&"spec.subnetSelectorTerms"), "{:#?}", converted.problems);
    assert!(converted.problems.iter().all(|one| one.field != "spec" || one.cause != "missing"));
}

#[test]
fn a_problem_of_a_node_class_is_told_once_and_at_the_field_that_the_user_wrote() {
    let class = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut spec = json!({"amiFamily": "Custom", "userData": "#!/bin/bash\necho hi", "role": "node",
            "amiSelectorTerms": [{"name": "my-ami-*"}, {"tags": {"x": "z"}}],
            "subnetSelectorTerms": [{"tags": {"a": "b"}}], "securityGroupSelectorTerms": [{"tags": {"a": "b"}}]});
        change(&mut spec);
        of(
            &json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "a"}, "spec": spec}),
        )
    };
    // Each term becomes two, of two owners.
    let said = problem(&class(&|spec: &mut serde_json::Value| {
        spec["amiSelectorTerms"][1]["tags"]["x"] = json!(true);
    }));
    assert!(said.contains(": spec.amiSelectorTerms[1].tags.x: "), "{said}");
    let renamed = class(&|spec: &mut serde_json::Value| spec["placementGroupSelector"] = json!({"name": 7}));
    let fields: Vec<_> = renamed.problems.iter().map(|problem| problem.field.as_str()).collect();
    assert!(!fields.is_empty(), "{renamed:?}");
    for field in fields {
        assert!(field.starts_with("spec.placementGroupSelector"), "{field}");
    }
}
