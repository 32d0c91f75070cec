//! Contract cases about deletion: preconditions and finalizers.

use serde_json::json;

use super::ask::Asker;
use super::compare;

#[tokio::test]
async fn an_object_stays_until_its_last_finalizer_is_removed() {
    compare("finalizers", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        let one = format!("{maps}/one");
        ask.post(
            &maps,
            json!({"metadata": {"name": "one", "finalizers": ["example.com/a", "example.com/b"]}}),
        )
        .await;
        ask.delete(&one, json!({})).await;
        ask.get(&one).await;
        let again = ask.delete(&one, json!({})).await;
        ask.merge(
            &one,
            json!({"metadata": {"finalizers": ["example.com/a", "example.com/b", "example.com/c"]}}),
        )
        .await;
        ask.merge(&one, json!({"metadata": {"deletionTimestamp": null, "labels": {"still": "here"}}})).await;
        ask.merge(&one, json!({"metadata": {"finalizers": ["example.com/a"]}})).await;
        ask.merge(&one, json!({"metadata": {"uid": again.uid(), "finalizers": []}})).await;
        ask.get(&one).await;
        ask.delete(&one, json!({})).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_deletion_checks_its_preconditions() {
    compare("preconditions", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        let one = format!("{maps}/one");
        let made = ask.post(&maps, json!({"metadata": {"name": "one"}})).await;
        let stranger = "11111111-1111-4111-8111-111111111111";
        ask.delete(&one, json!({"preconditions": {"uid": stranger}})).await;
        ask.merge(&one, json!({"data": {"changed": "yes"}})).await;
        ask.delete(&one, json!({"preconditions": {"resourceVersion": made.version()}})).await;
        ask.delete(&one, json!({"preconditions": {"uid": made.uid()}, "dryRun": ["All"]})).await;
        ask.get(&one).await;
        ask.delete(&one, json!({"preconditions": {"uid": made.uid()}})).await;
        ask.get(&one).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_terminating_namespace_rejects_new_objects() {
    compare("ending", |mut ask: Asker| async move {
        let (maps, own) = (ask.core("configmaps"), format!("/api/v1/namespaces/{}", ask.namespace));
        ask.post(&maps, json!({"metadata": {"name": "one"}})).await;
        ask.delete(&own, json!({})).await;
        ask.post(&maps, json!({"metadata": {"name": "two"}})).await;
        ask.get(&format!("{maps}/one")).await;
        ask.get(&own).await;
        ask.transcript
    })
    .await;
}
