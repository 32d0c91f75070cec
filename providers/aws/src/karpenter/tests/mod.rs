//! Tests of the conversion of Karpenter's EC2NodeClass.

mod class;
mod disks;
mod kept;
mod labels;

use poolwright_provider_contract::karpenter::{FromKarpenter, Note, Outcome, Report};
use serde_json::{Value, json};

use super::Karpenter;
use crate::node_class::EC2NodeClass;

/// The result of a conversion.
struct Conversion {
    class: Option<Value>,
    report: Report,
}

fn of(value: &Value) -> Conversion {
    let mut report = Report::new("file.yaml", 1, "EC2NodeClass/gpu".to_owned());
    let class = Karpenter.node_class(value, &mut report);
    Conversion { class, report }
}

/// Returns a minimal class after `change` has changed its spec.
fn class(change: impl FnOnce(&mut Value)) -> Value {
    let mut class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": {
        "role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "c"}}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}});
    change(&mut class["spec"]);
    class
}

fn only(converted: &Conversion) -> EC2NodeClass {
    assert_eq!(converted.report.problems, []);
    serde_json::from_value(converted.class.clone().expect("a class")).expect("it is a node class")
}

fn note<'a>(converted: &'a Conversion, field: &str) -> &'a Note {
    let notes = &converted.report.notes;
    let found: Vec<_> = notes.iter().filter(|note| note.field == field).collect();
    let [note] = found.as_slice() else { panic!("{field}: {found:?} in {notes:#?}") };
    note
}

fn problem(converted: &Conversion) -> String {
    let [problem] = converted.report.problems.as_slice() else { panic!("{:?}", converted.report.problems) };
    problem.to_string()
}

fn bottlerocket(spec: &mut Value) {
    spec["amiSelectorTerms"] = json!([{"alias": "bottlerocket@v1.30.0"}]);
}

fn custom(spec: &mut Value) {
    spec["amiSelectorTerms"] = json!([{"id": "ami-1"}]);
    spec["amiFamily"] = json!("Custom");
}
