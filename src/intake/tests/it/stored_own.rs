//! Tests of Poolwright's own objects as an API server prints them: one that cannot be read does not refuse the rest.

use poolwright_intake::manifest::parse;
use serde_json::{Value, json};

use crate::json_kit::{object, read, stored};

fn pool(name: &str, more: Value) -> Value {
    let reference = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "k"});
    let mut spec = json!({"template": {"spec": {"nodeClassRef": reference}}});
    if let Some((field, value)) = more.as_object().and_then(|more| more.iter().next()) {
        spec[field] = value.clone();
    }
    object(poolwright_terms::API_VERSION, "NodePool", name, spec)
}

#[test]
fn a_printed_pool_that_cannot_be_read_is_left_out_and_told_before_other_notes() {
    let newer = stored(pool("newer", json!({"futureField": 1})), None);
    let broken = stored(pool("broken", json!({"disruption": {"consolidationPolicy": "WhenMoon"}})), None);
    let manifest = read(&[newer, broken]);
    assert_eq!(manifest.pools.iter().map(|pool| pool.name.0.as_str()).collect::<Vec<_>>(), ["newer"]);
    assert!(manifest.left_out.contains("NodePool broken"), "{:?}", manifest.left_out);
    let notes = &manifest.notes;
    assert!(notes[0].starts_with("NodePool broken: spec.disruption.consolidationPolicy"), "{notes:?}");
    assert!(notes[0].ends_with("the object is left out, so nothing is bought in this pool"), "{notes:?}");
    assert!(
        notes[1].starts_with("NodePool newer: spec.futureField: this version does not know"),
        "{notes:?}"
    );
}

#[test]
fn a_written_pool_that_cannot_be_read_is_an_error() {
    let written = pool("mine", json!({"futureField": 1}));
    assert!(parse("pool.yaml", &written.to_string()).is_err());
}

#[test]
fn a_printed_pod_that_has_a_node_and_cannot_be_read_says_that_its_room_counts_as_free() {
    let pod = |name: &str, node: &str| {
        let spec = json!({"nodeName": node, "containers": []});
        stored(object("v1", "Pod", name, spec), None)
    };
    let told = read(&[pod("runs", "n"), pod("waits", "")]).notes;
    let ends = |name: &str, end: &str| {
        told.iter().any(|note| note.starts_with(&format!("Pod default/{name}: ")) && note.ends_with(end))
    };
    assert!(ends("runs", "the object is left out, so a plan counts its room as free"), "{told:?}");
    assert!(ends("waits", "the object is left out"), "{told:?}");
}
