//! Contract cases about Poolwright's custom resources.

use serde_json::{Value, json};

use super::ask::Asker;
use super::cases::Cases;
use super::compare;

const POOLS: &str = "/apis/poolwright.dev/v1alpha1/nodepools";
const CLAIMS: &str = "/apis/poolwright.dev/v1alpha1/nodeclaims";

/// Returns the plain object of a kind under another name.
fn plain(kind: &str, name: &str) -> Value {
    let mut object = Cases::load().bases[kind].clone();
    object["metadata"]["name"] = json!(name);
    object
}

#[tokio::test]
async fn the_server_defaults_pools_prunes_unknown_fields_and_counts_generations() {
    compare("pools", |mut ask: Asker| async move {
        let mut made = plain("NodePool", "contract-pool");
        made["spec"]["nonsense"] = json!(1);
        made["status"] = json!({"conditions": []});
        ask.post(POOLS, made).await;
        let one = format!("{POOLS}/contract-pool");
        ask.merge(&one, json!({"spec": {"weight": 7}})).await;
        ask.merge(&one, json!({"metadata": {"labels": {"a": "b"}}, "status": {"nodes": 3}})).await;
        ask.merge(&one, json!({"spec": {"weight": "heavy"}})).await;
        ask.merge(&one, json!({"spec": {"weight": -1}})).await;
        ask.merge(&one, json!({"spec": {"limits": {"cpu": "many"}}})).await;
        ask.merge(&one, json!({"spec": {"template": {"spec": {"nodeClassRef": null}}}})).await;
        let current = ask.get(&one).await.object;
        let mut unversioned = current.clone();
        unversioned["metadata"]["resourceVersion"] = json!(null);
        ask.put(&one, unversioned).await;
        let mut through = current.clone();
        through["metadata"]["labels"] = json!({"through": "status"});
        through["spec"]["weight"] = json!(9);
        through["status"] = json!({"unknown": "field", "conditions": [{"type": "Ready", "status": "True",
            "reason": "Because", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        ask.put(&format!("{one}/status"), through.clone()).await;
        ask.put(&format!("{one}/status"), through).await;
        ask.post(
            POOLS,
            json!({"apiVersion": "poolwright.dev/v1", "kind": "NodePool",
            "metadata": {"name": "other-version"}}),
        )
        .await;
        ask.post(
            POOLS,
            json!({"kind": "NodePool", "apiVersion": "poolwright.dev/v1alpha1",
            "metadata": {"name": "empty"}, "spec": {}}),
        )
        .await;
        ask.delete(&one, json!({})).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_claim_keeps_its_spec_and_finalizer() {
    compare("claims", |mut ask: Asker| async move {
        let mut claim = plain("NodeClaim", "contract-claim");
        claim["metadata"]["finalizers"] = json!(["poolwright.dev/termination"]);
        ask.post(CLAIMS, claim).await;
        let one = format!("{CLAIMS}/contract-claim");
        ask.merge(&one, json!({"spec": {"offerings": []}})).await;
        ask.delete(&one, json!({})).await;
        ask.merge(&one, json!({"metadata": {"finalizers": null}})).await;
        ask.get(&one).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn the_server_enforces_every_validation_rule_of_the_crds() {
    compare("rules", |mut ask: Asker| async move {
        let cases = Cases::load();
        for case in &cases.cases {
            let plural = format!("{}s", case.kind.to_lowercase()).replace("classs", "classes");
            let path = format!("/apis/poolwright.dev/v1alpha1/{plural}");
            let (accepted, mut rejected) = (cases.accepted(case), cases.rejected(case));
            ask.note(&case.name, case.message.as_str());
            if case.update {
                let made = ask.post(&path, accepted).await;
                rejected["metadata"]["resourceVersion"] = json!(made.version());
                let name = made.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                ask.put(&format!("{path}/{name}"), rejected).await;
                ask.delete(&format!("{path}/{name}"), json!({})).await;
            } else {
                ask.post(&format!("{path}?dryRun=All"), accepted).await;
                ask.post(&format!("{path}?dryRun=All"), rejected).await;
            }
        }
        ask.transcript
    })
    .await;
}
