//! Tests objects that are there twice: written twice, stored twice, or stored and written; and objects that share a name.

use crate::stored_kit::{JOB, TEMPLATE, errors, names, read, stored};

#[test]
fn an_object_that_is_there_twice_is_a_problem() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{image: x, name: a}]}}";
    let found = errors(&format!("{pod}\n---\n{pod}\n"));
    assert_eq!(found, ["train.yaml: Pod default/a: it is there more than once; remove one or rename it"]);
    let set = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{replicas: 3, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}}}"
    );
    let found = errors(&format!("{set}\n---\n{set}\n"));
    assert_eq!(
        found,
        ["train.yaml: Deployment default/a: it is there more than once; remove one or rename it"]
    );
}

#[test]
fn what_a_server_printed_twice_counts_once() {
    let set = stored(
        "Deployment",
        "web",
        None,
        "spec: {replicas: 2, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let manifest = read(&format!("{set}{set}"));
    assert_eq!(
        (manifest.pods.len(), manifest.notes.as_slice()),
        (
            2,
            ["Deployment default/web: the same is there more than once, and counts once".to_owned()]
                .as_slice()
        )
    );
    let at = |version: u32, replicas: u32| {
        set.replace("uid: u-web", &format!("uid: u-web, resourceVersion: '{version}'"))
            .replace("replicas: 2", &format!("replicas: {replicas}"))
    };
    let manifest = read(&format!("{}{}", at(7, 3), at(9, 4)));
    assert_eq!(manifest.pods.len(), 4);
    assert!(manifest.notes[0].contains("with differences; the newer counts"), "{:?}", manifest.notes);
}

#[test]
fn a_written_workload_counts_instead_of_its_stored_copy_and_its_pods_are_there() {
    let stored_set = stored(
        "Deployment",
        "web",
        None,
        "spec: {replicas: 2, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let replica_set = stored(
        "ReplicaSet",
        "web-5f",
        Some(["Deployment", "web", "u-web"]),
        "spec: {replicas: 2, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let pod = |name: &str| {
        stored(
            "Pod",
            name,
            Some(["ReplicaSet", "web-5f", "u-web-5f"]),
            "spec: {containers: [{image: x, name: a}], nodeName: n1}",
        )
    };
    let there = format!("{stored_set}{replica_set}{}{}", pod("web-5f-a"), pod("web-5f-b"));
    let written = format!(
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 5, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}}}\n"
    );
    for both in [format!("{there}{written}"), format!("{written}{there}")] {
        let manifest = read(&both);
        let new = manifest.pods.iter().filter(|pod| !pod.key.name().starts_with("web-5f-")).count();
        assert_eq!((manifest.pods.len(), new), (5, 3), "{:?}", manifest.notes);
        assert_eq!(
            manifest.notes,
            [
                "Deployment default/web: it is there stored and written; the written one counts",
                "Deployment default/web: pods in the manifest: 2; pods that it lacks, planned too: 3",
            ]
        );
    }
    let again = "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-5f-a}, spec: {containers: [{image: x, name: a}]}}\n";
    let manifest = read(&format!("{there}{again}"));
    assert_eq!(manifest.pods.len(), 2);
    assert!(
        manifest.notes.iter().any(|note| note.ends_with("the stored one counts")),
        "{:?}",
        manifest.notes
    );
}

#[test]
fn objects_of_the_same_name_and_pods_of_generated_names_do_not_collide() {
    let objects = format!(
        r"
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 2, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}}}
---
{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: web}}, spec: {{replicas: 2, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, serviceName: web, {TEMPLATE}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{generateName: run-}}, spec: {{containers: [{{image: x, name: a}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{generateName: run-}}, spec: {{containers: [{{image: x, name: a}}]}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{generateName: train-}}, spec: {{{JOB}}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{generateName: train-}}, spec: {{{JOB}}}}}
"
    );
    let manifest = read(&objects);
    let names: std::collections::BTreeSet<String> = names(&manifest).into_iter().collect();
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(names.contains("default/web-0") && names.contains("default/web-deployment-0"), "{names:?}");
}

#[test]
fn a_key_that_is_there_twice_is_refused_in_yaml_and_json() {
    for text in [
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
            {"image": "x", "name": "a", "resources": {"requests": {"cpu": "1", "cpu": "2"}}}]}}"#,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\nspec: {containers: [{image: x, name: a}]}\n",
    ] {
        let found = errors(text);
        assert!(found[0].to_lowercase().contains("duplicate"), "{found:?}");
    }
}

#[test]
fn a_key_that_is_there_twice_hides_neither_other_such_keys_nor_other_documents() {
    let (first, second) = (
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"b": "c", "b": "d"}}, "spec": {
            "containers": [{"name": "a", "image": "x"}], "containers": [{"name": "b", "image": "x"}]}}"#,
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {
            "containers": [{"name": "a", "image": "x", "resources": {"requests": {"cpu": "2x"}}}]}}"#,
    );
    for text in [format!("{first}\n{second}"), format!("{first}\n---\n{second}")] {
        let found = errors(&text);
        let expected = [
            "train.yaml: Pod default/a: metadata.labels.b: duplicate key; write each key once",
            "train.yaml: Pod default/a: spec.containers: duplicate key; write each key once",
            "train.yaml: Pod default/b: spec.containers[0].resources.requests.cpu: `2x`",
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\n is not\n{expected}");
        }
    }
}

#[test]
fn an_empty_uid_is_no_uid() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME", "uid": "", "resourceVersion": ""},
        "spec": {"containers": [{"image": "x", "name": "a"}], "typo": 1}}"#;
    let found = errors(&pod.replace("NAME", "a"));
    assert!(found[0].contains("typo: unknown field"), "{found:?}");
    let pod = pod.replace(r#", "typo": 1"#, "");
    let both = read(&format!("{}\n{}", pod.replace("NAME", "a"), pod.replace("NAME", "b")));
    assert_ne!(both.pods[0].uid, both.pods[1].uid);
}
