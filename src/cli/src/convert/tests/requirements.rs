//! Requirements that become requirements on Poolwright's labels.

use poolwright_api::{Operator, Requirement};
use serde_json::{Value, json};

use super::super::Outcome;
use super::{note, of, only, pool, problem, requiring};

fn required(requirements: &Value) -> Vec<Requirement> {
    only(&requiring(requirements)).spec.template.spec.requirements.clone()
}

#[test]
fn karpenters_labels_are_ours() {
    let requirements = json!([
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot", "reserved"]},
        {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Lt", "values": ["5"]},
        {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]},
    ]);
    let keys: Vec<_> =
        required(&requirements).into_iter().map(|one| (one.key, one.operator, one.values)).collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        keys,
        [
            (text("poolwright.dev/capacity-type"), Operator::In, vec![text("spot"), text("reserved")]),
            (text("poolwright.dev/gpu-count"), Operator::Lt, vec![text("5")]),
            (text("poolwright.dev/gpu-model"), Operator::Exists, vec![]),
        ]
    );
}

#[test]
fn category_and_generation_together_are_the_families_that_both_allow() {
    let all = required(&json!([
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["p"]},
        {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["5"]},
        {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["p6-b200", "g5"]},
    ]));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(
        (all[0].key.as_str(), all[0].values.as_slice()),
        ("poolwright.dev/instance-family", &["p6-b200".to_owned()][..])
    );
}

#[test]
fn requirements_that_nothing_meets_are_a_problem_and_not_left_out() {
    let said = problem(&requiring(&json!([
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["zz"]},
    ])));
    assert!(
        said.starts_with("file.yaml: document 1: NodePool/gpu: spec.template.spec.requirements[0]: nothing"),
        "{said}"
    );
}

#[test]
fn vcpus_of_every_type_of_the_built_in_catalogue_are_one_more_than_its_label() {
    let catalogue = poolwright_catalog::builtin();
    let mut tried = 0;
    for kind in catalogue.types().values().filter(|kind| kind.provider.as_str() == "aws") {
        let Some(size) = kind.name.as_str().split_once('.').and_then(|(_, size)| size.strip_suffix("xlarge"))
        else {
            continue;
        };
        let Some(vcpus) =
            (if size.is_empty() { Some(4) } else { size.parse::<u64>().ok().map(|number| number * 4) })
        else {
            continue;
        };
        let cores = kind.allocatable.get(poolwright_catalog::ResourceName::CPU) / 1000;
        assert_eq!(cores + 1, vcpus, "{}", kind.name);
        tried += 1;
    }
    assert!(tried > 100, "{tried}");
    let bound = |operator: &str, value: &str| {
        let all = required(
            &json!([{"key": "karpenter.k8s.aws/instance-cpu", "operator": operator, "values": [value]}]),
        );
        (all[0].operator, all[0].values[0].clone())
    };
    assert_eq!(bound("Gt", "4"), (Operator::Gt, "3".to_owned()));
    assert_eq!(bound("Gt", "0"), (Operator::Gte, "0".to_owned()));
    assert_eq!(bound("In", "8"), (Operator::In, "7".to_owned()));
    assert_eq!(bound("In", "372"), (Operator::In, "371".to_owned()));
    assert_eq!(bound("In", "384"), (Operator::In, "382".to_owned()));
    assert_eq!(bound("In", "896"), (Operator::In, "893".to_owned()));
}

#[test]
fn min_values_stay_and_their_policy_is_named() {
    let converted = requiring(&json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 5},
        {"key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["g", "p"], "minValues": 2},
        {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "Exists", "minValues": 2},
    ]));
    let outcome =
        |at: usize| note(&converted, &format!("spec.template.spec.requirements[{at}].minValues")).outcome;
    assert_eq!([outcome(0), outcome(1), outcome(2)], [Outcome::Kept, Outcome::Changed, Outcome::NotPossible]);
    let kept = note(&converted, "spec.template.spec.requirements[0].minValues");
    assert!(kept.sentence.contains("--min-values-policy BestEffort"), "{}", kept.sentence);
    let least = |key: &str| {
        let all = &only(&converted).spec.template.spec.requirements;
        all.iter().find(|one| one.key == key).and_then(|one| one.min_values)
    };
    assert_eq!(least("node.kubernetes.io/instance-type"), Some(5));
    assert_eq!(least("poolwright.dev/instance-family"), Some(2));
    assert_eq!(least("poolwright.dev/gpu-model"), None);
}

#[test]
fn min_values_that_no_launch_could_meet_are_a_problem() {
    let asking = |least: i32| {
        requiring(&json!([
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a", "us-east-1b"], "minValues": least},
        ]))
    };
    assert!(problem(&asking(3)).contains("minValues asks for 3 values"));
    assert!(problem(&asking(51)).contains("51 is not between 1 and 50"));
}

#[test]
fn a_template_label_that_an_offering_decides_is_a_requirement() {
    let converted = of(&pool(|pool| {
        pool["spec"]["template"]["metadata"] =
            json!({"labels": {"karpenter.sh/capacity-type": "spot", "team": "a"}});
    }));
    let template = &only(&converted).spec.template;
    assert_eq!(template.spec.requirements[0].key, "poolwright.dev/capacity-type");
    assert_eq!(template.metadata.labels.keys().collect::<Vec<_>>(), ["team"]);
}

#[test]
fn requirements_that_contradict_each_other_or_a_label_are_one_problem_that_names_both() {
    let zone = "topology.kubernetes.io/zone";
    let cpu = "karpenter.k8s.aws/instance-cpu";
    let contradictions = [
        json!([{"key": zone, "operator": "In", "values": ["a"]}, {"key": zone, "operator": "In", "values": ["b"]}]),
        json!([{"key": zone, "operator": "In", "values": ["a"]}, {"key": zone, "operator": "NotIn", "values": ["a"]}]),
        json!([{"key": cpu, "operator": "In", "values": ["4"]}, {"key": cpu, "operator": "Gt", "values": ["8"]}]),
        json!([{"key": cpu, "operator": "Lt", "values": ["4"]}, {"key": cpu, "operator": "Gt", "values": ["8"]}]),
    ];
    for requirements in contradictions {
        let said = problem(&requiring(&requirements));
        assert!(
            said.ends_with(
                "requirements[1]: no node meets it together with spec.template.spec.requirements[0]; correct one of them"
            ),
            "{said}"
        );
    }
    let labelled = |operator: &str, values: Value| {
        of(&pool(|pool| {
            pool["spec"]["template"]["metadata"] = json!({"labels": {"team": "x"}});
            pool["spec"]["template"]["spec"]["requirements"] =
                json!([{"key": "team", "operator": operator, "values": values}]);
        }))
    };
    for (operator, values) in [("NotIn", json!(["x"])), ("DoesNotExist", json!([])), ("In", json!(["y"]))] {
        let said = problem(&labelled(operator, values));
        assert!(said.contains("requirements[0]: contradicts the label `team: x` of the nodes"), "{said}");
    }
    only(&labelled("NotIn", json!(["y"])));
    // Karpenter would give nodes the value that a pod asks for.
    for (operator, values) in [("NotIn", json!(["q"])), ("Exists", json!([])), ("In", json!(["a", "b"]))] {
        let made = requiring(&json!([{"key": "example.com/y", "operator": operator, "values": values}]));
        let said = note(&made, "spec.template.spec.requirements[0]");
        assert_eq!(said.outcome, Outcome::NotPossible, "{operator}");
        assert!(only(&made).spec.template.spec.requirements.is_empty(), "{operator}");
    }
    only(&requiring(&json!([
        {"key": cpu, "operator": "Gt", "values": ["4"]}, {"key": cpu, "operator": "Lt", "values": ["9"]},
    ])));
}

#[test]
fn a_requirement_on_a_label_of_the_nodes_is_left_out_if_they_meet_it_and_a_problem_if_they_do_not() {
    let labelled = |operator: &str, values: &[&str]| {
        of(&pool(|pool| {
            pool["spec"]["template"]["metadata"] = json!({"labels": {"rack": "5"}});
            pool["spec"]["template"]["spec"]["requirements"] =
                json!([{"key": "rack", "operator": operator, "values": values}]);
        }))
    };
    let met: [(&str, &[&str]); 7] = [
        ("Exists", &[]),
        ("In", &["5", "6"]),
        ("NotIn", &["6"]),
        ("Gt", &["4"]),
        ("Gte", &["5"]),
        ("Lt", &["6"]),
        ("Lte", &["5"]),
    ];
    for (operator, values) in met {
        let converted = labelled(operator, values);
        let left_out = note(&converted, "spec.template.spec.requirements[0]");
        assert_eq!(left_out.outcome, Outcome::Changed, "{operator}");
        assert_eq!(left_out.sentence, "Left out: the label `rack: 5` of the nodes meets it.", "{operator}");
        let template = &only(&converted).spec.template;
        assert_eq!((template.metadata.labels["rack"].as_str(), template.spec.requirements.len()), ("5", 0));
    }
    let unmet: [(&str, &[&str]); 7] = [
        ("DoesNotExist", &[]),
        ("In", &["6", "7"]),
        ("NotIn", &["5"]),
        ("Gt", &["5"]),
        ("Gte", &["6"]),
        ("Lt", &["5"]),
        ("Lte", &["4"]),
    ];
    for (operator, values) in unmet {
        let said = problem(&labelled(operator, values));
        assert!(said.contains("contradicts the label `rack: 5` of the nodes"), "{operator}: {said}");
    }
}

#[test]
fn a_label_that_a_later_requirement_gives_the_nodes_counts_for_an_earlier_one() {
    let converted = requiring(&json!([
        {"key": "team", "operator": "Exists"},
        {"key": "team", "operator": "In", "values": ["a"]},
    ]));
    assert_eq!(only(&converted).spec.template.metadata.labels["team"], "a");
    let earlier = note(&converted, "spec.template.spec.requirements[0]");
    assert_eq!(earlier.sentence, "Left out: the label `team: a` of the nodes meets it.");
}
