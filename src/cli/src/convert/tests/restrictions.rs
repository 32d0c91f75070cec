//! Restrictions of a pool: none may vanish from the result without a word, and values that no node has are named.

use poolwright_api::Operator;
use serde_json::{Value, json};

use super::super::{Outcome, convert};
use super::{note, of, only, pool, problem, read, requiring, template};
use crate::source::Source;

const MEMORY: &str = "karpenter.k8s.aws/instance-memory";

fn one(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"key": key, "operator": operator, "values": values}])
}

/// Checks that a restriction becomes a list of types with one of these, and without the other.
fn lists_types((key, operator, value): (&str, &str, &str), listed: &str, others: &str) {
    let converted = requiring(&one(key, operator, &[value]));
    let [made] = only(&converted).spec.template.spec.requirements.as_slice() else {
        panic!("{:?}", only(&converted))
    };
    assert_eq!((made.key.as_str(), made.operator), ("node.kubernetes.io/instance-type", Operator::In));
    let has = |name: &str| made.values.iter().any(|one| one == name);
    assert!(has(listed) && !has(others), "{key} {operator} {value}: {:?}", made.values);
}

#[test]
fn a_fact_that_the_built_in_catalogue_knows_becomes_a_list_of_types() {
    for (key, operator, value, listed, others) in [
        (MEMORY, "Lt", "16385", "g5.xlarge", "g5.48xlarge"),
        (MEMORY, "In", "65536", "g5.4xlarge", "g5.xlarge"),
        ("karpenter.k8s.aws/instance-local-nvme", "Gt", "3000", "g5.48xlarge", "g5.xlarge"),
    ] {
        lists_types((key, operator, value), listed, others);
    }
    let most = requiring(&one(MEMORY, "Gt", &["8192"]));
    let made = &only(&most).spec.template.spec.requirements[0];
    assert_eq!(made.operator, Operator::NotIn);
    assert!(!made.values.is_empty() && !made.values.contains(&"g5.xlarge".to_owned()), "{:?}", made.values);
    let all = requiring(&one(MEMORY, "Gt", &["1"]));
    assert_eq!(only(&all).spec.template.spec.requirements, []);
    assert_eq!(note(&all, "spec.template.spec.requirements[0]").outcome, Outcome::Changed);
    assert!(problem(&requiring(&one(MEMORY, "Lt", &["1"]))).contains("nothing in the built-in catalogue"));
}

#[test]
fn a_fact_about_processors_becomes_a_list_of_families() {
    let cases = [
        ("karpenter.k8s.aws/instance-cpu-manufacturer", "In", "intel", Operator::In, "m6i", "g5"),
        ("karpenter.k8s.aws/instance-cpu-manufacturer", "In", "amd", Operator::In, "g5", "m6i"),
        ("karpenter.k8s.aws/instance-cpu-manufacturer", "NotIn", "aws", Operator::NotIn, "m7g", "m6i"),
        ("eks.amazonaws.com/instance-cpu-manufacturer", "In", "aws", Operator::In, "g5g", "g5"),
        ("karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz", "Gt", "3300", Operator::In, "m7a", "g5"),
    ];
    for (key, operator, value, becomes, listed, others) in cases {
        let converted = requiring(&one(key, operator, &[value]));
        let [made] = only(&converted).spec.template.spec.requirements.as_slice() else {
            panic!("{:?}", only(&converted))
        };
        assert_eq!((made.key.as_str(), made.operator), ("poolwright.dev/instance-family", becomes), "{key}");
        let has = |name: &str| made.values.iter().any(|one| one == name);
        assert!(has(listed) && !has(others), "{key} {operator} {value}: {:?}", made.values);
        let said = &note(&converted, "spec.template.spec.requirements[0]").sentence;
        assert!(said.contains("the families of AWS"), "{said}");
    }
    let unknown = one("karpenter.k8s.aws/instance-cpu-manufacturer", "In", &["arm"]);
    assert!(problem(&requiring(&unknown)).contains("nothing in the built-in catalogue"));
    let flexible = requiring(&one("karpenter.k8s.aws/instance-capability-flex", "In", &["false"]));
    assert_eq!(only(&flexible).spec.template.spec.requirements, [], "all types of the catalogue meet it");
}

#[test]
fn a_fact_of_processors_and_a_category_together_are_the_families_that_both_allow() {
    let converted = requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-cpu-manufacturer", "operator": "In", "values": ["intel"]},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c"]},
    ]));
    let [made] = only(&converted).spec.template.spec.requirements.as_slice() else {
        panic!("{:?}", only(&converted))
    };
    assert_eq!(made.values, ["c6i", "c7i"]);
}

#[test]
fn a_bandwidth_becomes_a_list_of_types_unless_too_many_meet_it_and_too_many_do_not() {
    let (network, ebs) =
        ("karpenter.k8s.aws/instance-network-bandwidth", "karpenter.k8s.aws/instance-ebs-bandwidth");
    for (key, operator, value, listed, others) in [
        (network, "Gte", "100000", "p4d.24xlarge", "g5.xlarge"),
        (network, "Lt", "2501", "g5.xlarge", "p4d.24xlarge"),
        (ebs, "Gt", "19000", "p5.48xlarge", "p4d.24xlarge"),
    ] {
        lists_types((key, operator, value), listed, others);
    }
    let half = problem(&requiring(&one(network, "Gt", &["12500"])));
    assert!(half.contains("cannot list the") && half.contains("`poolwright.dev/instance-family`"), "{half}");
}

#[test]
fn a_pool_with_a_restriction_that_poolwright_does_not_know_is_not_converted() {
    for key in [
        "karpenter.k8s.aws/nitro-sandbox",
        "karpenter.k8s.aws/placement-group-id",
        "karpenter.k8s.gcp/instance-size",
        "topology.k8s.aws/zone-id",
        "k8s.amazonaws.com/accelerator",
        "karpenter.sh/nodepool",
    ] {
        let said = problem(&requiring(&one(key, "In", &["x"])));
        assert!(said.contains(&format!("no label for `{key}`")) && said.contains("buy more"), "{said}");
    }
    let said = problem(&requiring(&one("karpenter.k8s.aws/instance-categroy", "In", &["g"])));
    assert!(said.ends_with("did you mean `karpenter.k8s.aws/instance-category`?"), "{said}");
}

#[test]
fn vcpus_become_the_cores_that_the_class_in_the_input_leaves() {
    let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": {
        "role": "r", "amiSelectorTerms": [{"alias": "al2023@latest"}], "subnetSelectorTerms": [{"tags": {"a": "b"}}],
        "securityGroupSelectorTerms": [{"tags": {"a": "b"}}], "kubelet": {"systemReserved": {"cpu": "1"}}}});
    for (operator, value, cores) in [("In", "4", "2"), ("Gt", "8", "6"), ("Lt", "16", "14")] {
        let pool = pool(|pool| {
            template(pool)["requirements"] = one("karpenter.k8s.aws/instance-cpu", operator, &[value]);
        });
        let converted = read(&format!("{pool}\n---\n{class}\n"));
        assert_eq!(only(&converted).spec.template.spec.requirements[0].values, [cores], "{operator}");
        let said = &note(&converted, "spec.template.spec.requirements[0]").sentence;
        assert!(said.contains("the node class in the input"), "{said}");
    }
}

#[test]
fn values_that_no_node_has_are_named_with_those_that_nodes_have() {
    let said = problem(&requiring(&one("karpenter.sh/capacity-type", "In", &["Spot", "ondemand"])));
    assert!(
        said.contains("no node has the value `Spot` or `ondemand`")
            && said.ends_with("write one or more of `on-demand`, `reserved`, `spot`"),
        "{said}"
    );
    let said = problem(&requiring(&one("kubernetes.io/arch", "In", &["x86_64"])));
    assert!(said.contains("`x86_64`") && said.ends_with("`amd64`, `arm64`"), "{said}");
    for (key, value, hint) in [
        ("node.kubernetes.io/instance-type", "g5.xlrge", "did you mean `g5.xlarge`?"),
        ("topology.kubernetes.io/zone", "us-east-1z", "check the spelling"),
        ("topology.kubernetes.io/region", "eu-west-1", "check the spelling"),
        ("karpenter.k8s.aws/instance-gpu-name", "A10G", "did you mean `a10g`?"),
    ] {
        let converted = requiring(&one(key, "In", &[value]));
        let said = note(&converted, "spec.template.spec.requirements[0]");
        assert!(said.outcome == Outcome::Changed && said.sentence.contains(hint), "{said:?}");
        assert!(said.sentence.contains(&format!("has no `{value}` of AWS")), "{said:?}");
    }
    let some = requiring(&one("karpenter.sh/capacity-type", "In", &["on-demand", "spt"]));
    let said = &note(&some, "spec.template.spec.requirements[0]").sentence;
    assert!(said.contains("No node has the value `spt`"), "{said}");
}

#[test]
fn one_value_is_always_left_so_that_such_a_least_number_is_left_out() {
    let converted =
        requiring(&json!([{"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In",
        "values": ["nvidia"], "minValues": 1}]));
    only(&converted);
    assert_eq!(note(&converted, "spec.template.spec.requirements[0].minValues").outcome, Outcome::Changed);
}

#[test]
fn limits_and_labels_that_do_not_do_what_they_say_are_told() {
    let converted = of(&pool(|pool| {
        pool["spec"]["limits"] = json!({"gpu": 5, "amd.com/gpu": 3, "cpu": 1000, "nvidia.com/gpu": 8});
        pool["spec"]["template"]["metadata"] = json!({"labels": {
            "nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/device-plugin.config": "sliced"}});
    }));
    for field in ["spec.limits.gpu", "spec.limits[\"amd.com/gpu\"]"] {
        let told = note(&converted, field);
        assert!(told.outcome == Outcome::NotPossible && told.sentence.contains("limits nothing"), "{told:?}");
    }
    assert_eq!(note(&converted, "spec.limits[\"nvidia.com/gpu\"]").outcome, Outcome::Kept);
    let cut = note(&converted, "spec.template.metadata.labels[\"nvidia.com/mig.config\"]");
    assert!(cut.outcome == Outcome::NotPossible && cut.sentence.contains("whole GPUs"), "{cut:?}");
    let shared = note(&converted, "spec.template.metadata.labels[\"nvidia.com/device-plugin.config\"]");
    assert!(shared.outcome == Outcome::Changed && shared.sentence.contains("stay closed"), "{shared:?}");
}

#[test]
fn a_misspelt_kind_is_a_problem_and_not_another_cloud() {
    for (api_version, kind, meant) in
        [("karpenter.sh/v1", "NodePol", "NodePool"), ("karpenter.k8s.aws/v1", "EC2NodeClas", "EC2NodeClass")]
    {
        let said = problem(&of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}})));
        assert!(said.ends_with(&format!("did you mean {meant}?")), "{said}");
    }
}

#[test]
fn a_misspelt_field_is_told_with_the_other_problems_of_its_object() {
    let converted = of(&pool(|pool| {
        pool["spec"]["wieght"] = json!(3);
        pool["spec"]["weight"] = json!(101);
    }));
    let fields: Vec<&str> = converted.problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["spec.weight", "spec.wieght"]);
}

#[test]
fn a_word_that_yaml_reads_as_a_boolean_is_not_replaced_by_another_word() {
    let said = problem(&of(&pool(|pool| template(pool)["expireAfter"] = json!(false))));
    assert!(said.contains("\"N\"") && said.contains("no and off"), "{said}");
}

#[test]
fn each_old_version_is_sent_one_step_ahead_by_its_own_name() {
    let old = |api_version: &str, kind: &str| {
        problem(&of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}})))
    };
    assert!(old("karpenter.sh/v1alpha5", "Provisioner").contains("convert it to v1beta1 first"));
    assert!(old("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate").contains("convert it to v1beta1 first"));
    let class = old("karpenter.k8s.aws/v1beta1", "EC2NodeClass");
    assert!(class.contains("`kubectl get ec2nodeclasses.v1.karpenter.k8s.aws -o yaml`"), "{class}");
    let pool = old("karpenter.sh/v1beta1", "NodePool");
    assert!(pool.contains("`kubectl get nodepools.v1.karpenter.sh -o yaml`"), "{pool}");
}

#[test]
fn an_input_without_objects_becomes_nothing_at_all() {
    for text in ["", "# nothing\n", "apiVersion: v1\nkind: List\nitems: []\n"] {
        let empty = convert(&[Source { name: "file.yaml".to_owned(), text: text.to_owned() }]);
        assert_eq!(empty, super::super::Conversion::default(), "{text}");
    }
}

#[test]
fn a_limit_on_what_machines_have_is_told_with_both_meanings_and_what_to_write() {
    let converted =
        of(&pool(|pool| pool["spec"]["limits"] = json!({"cpu": "20", "memory": "100Gi", "nodes": 5})));
    for field in ["spec.limits.cpu", "spec.limits.memory"] {
        let told = note(&converted, field);
        let parts = ["Karpenter counts what machines have", "allocatable", "`limits.nodes`"];
        assert!(
            told.outcome == Outcome::Changed && parts.iter().all(|part| told.sentence.contains(part)),
            "{told:?}"
        );
    }
    assert_eq!(note(&converted, "spec.limits.nodes").outcome, Outcome::Kept);
}
