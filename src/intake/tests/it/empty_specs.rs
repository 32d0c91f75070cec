//! Tests that of a written object with an empty spec, the problem is what its spec lacks.

use serde_json::{Value, json};

use crate::json_kit::{object, refused};

#[test]
fn of_an_empty_spec_it_is_told_what_is_missing_in_it() {
    let problems = |version: &str, kind: &str| refused(&object(version, kind, "a", json!({})));
    let none = "containers: a pod needs at least one container; add one";
    assert_eq!(problems("v1", "Pod"), [format!("all.json: Pod default/a: spec.{none}")]);
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        let found = problems("apps/v1", kind);
        let own = format!("all.json: {kind} default/a: spec.");
        for part in [
            format!("template.spec.{none}"),
            "selector: missing; add matchLabels with labels of the template".to_owned(),
        ] {
            assert!(found.contains(&format!("{own}{part}")), "{part} is not in {found:#?}");
        }
    }
    let mut set = object("apps/v1", "DaemonSet", "a", json!({}));
    set["spec"] = Value::Null;
    assert_eq!(refused(&set), ["all.json: DaemonSet default/a: spec: missing; add it"]);
}
