//! Requirements that become lists of names, beside other requirements of the pool.

use poolwright_api::{Operator, Requirement};
use serde_json::{Value, json};

use super::{Conversion, note, only, problem, requiring};

const TYPE: &str = "node.kubernetes.io/instance-type";
const SIZES: [&str; 7] = ["2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge"];

fn values<'c>(converted: &'c Conversion, key: &str) -> &'c [String] {
    let found = |one: &&Requirement| one.key == key && one.operator == Operator::In;
    let all = &only(converted).spec.template.spec.requirements;
    &all.iter().find(found).unwrap_or_else(|| panic!("no list of {key}: {all:?}")).values
}

fn family(values: &[&str]) -> Value {
    json!({"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": values})
}

fn size(values: &[&str]) -> Value {
    json!({"key": "karpenter.k8s.aws/instance-size", "operator": "In", "values": values})
}

#[test]
fn sizes_of_one_family_become_the_types_of_that_family_however_many_types_have_such_sizes() {
    for requirements in [json!([family(&["g6"]), size(&SIZES)]), json!([size(&SIZES), family(&["g6"])])] {
        let converted = requiring(&requirements);
        let types = values(&converted, TYPE);
        assert!(types.len() > 3 && types.iter().all(|name| name.starts_with("g6.")), "{types:?}");
    }
    let alone = problem(&requiring(&json!([size(&SIZES)])));
    assert!(alone.contains("a requirement cannot list"), "{alone}");
}

#[test]
fn a_list_has_no_name_that_another_requirement_excludes() {
    let two = requiring(&json!([family(&["g6", "g5"]), size(&["2xlarge", "4xlarge"])]));
    assert_eq!(values(&two, TYPE), ["g5.2xlarge", "g5.4xlarge", "g6.2xlarge", "g6.4xlarge"]);
    let arm = requiring(&json!([
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g"]},
    ]));
    assert_eq!(values(&arm, "poolwright.dev/instance-family"), ["g5g"]);
}

#[test]
fn a_list_has_no_type_whose_gpus_have_less_memory_than_another_requirement_asks_for() {
    let converted = requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-gpu-memory", "operator": "Gt", "values": ["20000"]},
        family(&["g4dn", "g5"]),
        size(&["8xlarge"]),
    ]));
    assert_eq!(values(&converted, TYPE), ["g5.8xlarge"], "a T4 has 16 GB, an A10G has 24 GB");
}

#[test]
fn the_report_counts_the_names_that_the_result_has() {
    let converted = requiring(&json!([
        {"key": TYPE, "operator": "In", "values": ["p4d.24xlarge"]},
        {"key": "karpenter.k8s.aws/instance-local-nvme", "operator": "Gt", "values": ["100"]},
    ]));
    assert_eq!(values(&converted, TYPE), ["p4d.24xlarge"]);
    let said = &note(&converted, "spec.template.spec.requirements[1]").sentence;
    assert!(said.contains("and that the pool's other requirements allow, too: 1."), "{said}");
    let families = requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m", "r"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["6"]},
    ]));
    let count = values(&families, "poolwright.dev/instance-family").len();
    for at in 0..2 {
        let said = &note(&families, &format!("spec.template.spec.requirements[{at}]")).sentence;
        assert!(said.contains(&format!(": {count}. The pool buys no others")), "{said}");
    }
}

#[test]
fn requirements_on_different_labels_that_no_type_meets_together_are_a_problem() {
    let said = problem(&requiring(&json!([family(&["p5e"]), size(&["metal"])])));
    assert!(said.contains("together with the pool's other requirements"), "{said}");
}

#[test]
fn a_label_of_the_template_counts_as_the_requirement_that_it_is() {
    let pool = super::pool(|pool| {
        pool["spec"]["template"]["metadata"] = json!({"labels": {"karpenter.k8s.aws/instance-family": "g6"}});
        super::template(pool)["requirements"] = json!([size(&SIZES)]);
    });
    let converted = super::of(&pool);
    assert!(values(&converted, TYPE).iter().all(|name| name.starts_with("g6.")));
}
