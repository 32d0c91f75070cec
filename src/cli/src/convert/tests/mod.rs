//! Tests of `convert`: what objects become, and what the report says of it.

mod kept;
mod kept_off;
mod labels;
mod node_classes;
mod pool;
mod problems;
mod report;
mod requirements;
mod restrictions;
mod scope;
mod words;
mod workload;

use poolwright_api::NodePool;
use serde_json::{Value, json};

use super::{Conversion, Note, convert};
use crate::source::Source;

const FIXTURES: [&str; 4] = [
    include_str!("../../../../../fixtures/karpenter/gpu.yaml"),
    include_str!("../../../../../fixtures/karpenter/general.yaml"),
    include_str!("../../../../../fixtures/karpenter/static-and-overlays.yaml"),
    include_str!("../../../../../fixtures/karpenter/eks-auto-mode.yaml"),
];

fn read(text: &str) -> Conversion {
    convert(&[Source { name: "file.yaml".to_owned(), text: text.to_owned() }])
}

fn of(value: &Value) -> Conversion {
    read(&value.to_string())
}

/// Returns a minimal pool after `change` has changed it.
fn pool(change: impl FnOnce(&mut Value)) -> Value {
    let mut pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}, "expireAfter": "336h"}}}});
    change(&mut pool);
    pool
}

fn template(pool: &mut Value) -> &mut Value {
    &mut pool["spec"]["template"]["spec"]
}

fn only(converted: &Conversion) -> &NodePool {
    assert_eq!(converted.problems, [], "{:?}", converted.problems);
    let [pool] = converted.manifests.as_slice() else { panic!("{:?}", converted.manifests) };
    pool
}

fn requiring(requirements: &Value) -> Conversion {
    of(&pool(|pool| template(pool)["requirements"] = requirements.clone()))
}

fn note<'a>(converted: &'a Conversion, field: &str) -> &'a Note {
    let mut found = converted.notes.iter().filter(|note| note.field == field);
    let note = found.next().unwrap_or_else(|| panic!("no note on {field}: {:#?}", converted.notes));
    assert!(found.next().is_none(), "two notes on {field}");
    note
}

fn problem(converted: &Conversion) -> String {
    assert!(converted.manifests.is_empty() && converted.notes.is_empty(), "{converted:?}");
    let [problem] = converted.problems.as_slice() else { panic!("{:?}", converted.problems) };
    problem.to_string()
}
