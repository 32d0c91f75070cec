//! Contract cases about creation and changes.

use axum::http::Method;
use poolwright_terms::keys::FIELD_MANAGER;
use serde_json::json;

use super::ask::Asker;
use super::compare;

#[tokio::test]
async fn create_assigns_names_uids_and_versions_and_rejects_invalid_objects() {
    compare("create", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        ask.post(&maps, json!({"metadata": {"name": "one", "labels": {"a": "b"}}, "data": {"k": "v"}})).await;
        // The same name again, another kind, no name, and invalid names.
        ask.post(&maps, json!({"metadata": {"name": "one"}})).await;
        ask.post(&maps, json!({"kind": "Secret", "metadata": {"name": "two"}})).await;
        ask.post(&maps, json!({"metadata": {}})).await;
        ask.post(&maps, json!({"metadata": {"name": "Not_A_Name"}})).await;
        ask.post(&maps, json!({"metadata": {"name": "two", "namespace": "elsewhere"}})).await;
        ask.post(&maps, json!({"metadata": {"name": "two", "resourceVersion": "1"}})).await;
        ask.post("/api/v1/namespaces/nowhere/configmaps", json!({"metadata": {"name": "two"}})).await;
        ask.post(&format!("{maps}?dryRun=All"), json!({"metadata": {"name": "dry"}})).await;
        ask.get(&format!("{maps}/dry")).await;
        let made = ask.post(&maps, json!({"metadata": {"generateName": "some-"}})).await;
        let _ = ask.transcript.pop();
        let name = made.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        ask.note("a name is made", name.starts_with("some-") && name.len() == 10);
        ask.ask(Method::POST, &format!("{maps}/one"), "application/json", json!({})).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn an_unserved_path_returns_not_found() {
    compare("nowhere", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        for path in [
            "/apis/poolwright.dev/v1alpha1/nothings".to_owned(),
            "/apis/nobody.example/v1/things".to_owned(),
            ask.core("nothings"),
            format!("{maps}/absent"),
        ] {
            let found = ask.ask(Method::GET, &path, "", json!(null)).await;
            // A path that is not served is answered without an object.
            assert_eq!(found.code, 404);
        }
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn an_update_with_an_old_version_changes_nothing() {
    compare("update", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        let one = format!("{maps}/one");
        let first = ask.post(&maps, json!({"metadata": {"name": "one"}, "data": {"k": "1"}})).await;
        let mut object = first.object.clone();
        object["data"]["k"] = json!("2");
        let second = ask.put(&one, object.clone()).await;
        ask.note("it has another version", first.version() != second.version());
        ask.put(&one, object.clone()).await;
        ask.get(&one).await;
        // Without a version, the last write wins.
        ask.put(&one, json!({"metadata": {"name": "one"}, "data": {"k": "3"}})).await;
        ask.put(&one, json!({"metadata": {"name": "other"}})).await;
        ask.put(&format!("{maps}/absent"), json!({"metadata": {"name": "absent"}})).await;
        let stranger = "11111111-1111-4111-8111-111111111111";
        ask.put(&one, json!({"metadata": {"name": "one", "uid": stranger}, "data": {}})).await;
        // A write that changes nothing makes no new version.
        let now = ask.get(&one).await;
        let same = ask.put(&one, now.object.clone()).await;
        ask.note("the version stays", now.version() == same.version());
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_lease_changes_only_with_its_current_version() {
    compare("lease", |mut ask: Asker| async move {
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", ask.namespace);
        let one = format!("{leases}/one");
        let spec = |holder: &str| json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0});
        let made = ask.post(&leases, json!({"metadata": {"name": "one"}, "spec": spec("a")})).await;
        ask.put(&one, json!({"metadata": {"name": "one"}, "spec": spec("b")})).await;
        let version = made.version().to_owned();
        let taken = json!({"metadata": {"name": "one", "resourceVersion": version}, "spec": spec("b")});
        ask.put(&one, taken.clone()).await;
        ask.put(&one, taken).await;
        ask.get(&one).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn patches_change_the_named_fields_and_check_preconditions() {
    compare("patch", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        let one = format!("{maps}/one");
        let object = json!({"metadata": {"name": "one", "labels": {"a": "1", "b": "2"}}, "data": {"k": "1"}});
        let made = ask.post(&maps, object).await;
        ask.merge(&one, json!({"metadata": {"labels": {"a": null, "c": "3"}}, "data": {"l": "2"}})).await;
        ask.merge(&one, json!({"metadata": {"resourceVersion": made.version()}, "data": {"l": "3"}})).await;
        let stranger = "11111111-1111-4111-8111-111111111111";
        ask.merge(&one, json!({"metadata": {"uid": stranger}, "data": {"l": "3"}})).await;
        ask.merge(&one, json!({"metadata": {"uid": made.uid()}, "data": {"l": "4"}})).await;
        let before = ask.get(&one).await;
        let after = ask.merge(&one, json!({"data": {"l": "4"}})).await;
        ask.note("the version stays", before.version() == after.version());
        ask.patch(
            &one,
            json!([{"op": "test", "path": "/data/l", "value": "4"},
            {"op": "replace", "path": "/data/l", "value": "5"}]),
        )
        .await;
        ask.patch(
            &one,
            json!([{"op": "test", "path": "/data/l", "value": "4"},
            {"op": "replace", "path": "/data/l", "value": "6"}]),
        )
        .await;
        ask.patch(&one, json!([{"op": "remove", "path": "/data/nothing"}])).await;
        ask.ask(Method::PATCH, &one, "text/plain", json!({})).await;
        ask.merge(&one, json!({"metadata": {"name": "other"}})).await;
        ask.merge(&format!("{maps}/absent"), json!({"data": {}})).await;
        ask.merge(&format!("{one}?dryRun=All&fieldManager={FIELD_MANAGER}"), json!({"data": {"dry": "run"}}))
            .await;
        ask.get(&one).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn the_status_subresource_changes_only_the_status_of_a_node() {
    compare("node", |mut ask: Asker| async move {
        let nodes = "/api/v1/nodes";
        let one = "/api/v1/nodes/contract-node";
        ask.post(
            nodes,
            json!({"metadata": {"name": "contract-node", "labels": {"a": "b"}},
            "spec": {"providerID": "sim://one", "taints": [{"key": "k", "effect": "NoSchedule"}]}}),
        )
        .await;
        ask.merge(one, json!({"spec": {"taints": null}, "status": {"capacity": {"cpu": "4"}}})).await;
        let status = json!({"metadata": {"labels": {"through": "status"}}, "spec": {"unschedulable": true},
            "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "7"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "r", "message": "m"}]}});
        ask.merge(&format!("{one}/status"), status).await;
        ask.get(&format!("{one}/status")).await;
        ask.merge(one, json!({"spec": {"unschedulable": true}})).await;
        ask.delete(one, json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}})).await;
        ask.delete(one, json!({})).await;
        ask.get(one).await;
        ask.transcript
    })
    .await;
}
