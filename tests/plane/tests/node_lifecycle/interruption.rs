//! An interruption: the node closes, replacements are bought before pods are evicted, and all pods have ended before the
//! deadline.

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{WITHIN, condition, node_class, node_pool, pod, taint_keys};
use poolwright_plane::{unique, wait_for};
use poolwright_terms::InterruptionKind;
use serde_json::{Value, json};

const DISRUPTED: &str = "poolwright.dev/disrupted";

/// Returns a Deployment of one pod.
fn served(name: &str, pool: &str, annotations: &Value) -> Value {
    let mut template = pod("-", pool, json!({"cpu": "500m"}));
    template["spec"]["terminationGracePeriodSeconds"] = json!(5);
    template["metadata"] = json!({"labels": {"app": name}, "annotations": annotations});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}

#[tokio::test]
async fn an_interrupted_node_is_replaced_and_then_drained_in_time() {
    let trial = crate::trial().await;
    let cluster = trial.cluster().unwrap();
    let (name, namespace) = (unique("taken"), cluster.namespace("taken").await.unwrap());
    let faults = json!({"faults": {"interruptions": [{"after": "25s", "notice": "40s"}]}});
    cluster.apply("", &[node_class(&name, faults), node_pool(&name, json!({}))]).await.unwrap();
    let protected = json!({"poolwright.dev/do-not-disrupt": "true"});
    let guard = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
    let work = [guard, served("web", &name, &json!({})), served("train", &name, &protected)];
    cluster.apply(&namespace, &work).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    let claims = cluster.claims(&name).await.unwrap();
    assert_eq!(claims.len(), 1, "one node holds both");
    let taken = claims[0].name_any();
    // The class no longer interrupts, so the replacement stays.
    cluster.apply("", &[node_class(&name, json!({}))]).await.unwrap();

    let api: Api<NodeClaim> = Api::all(cluster.client.clone());
    let interruption = wait_for("what the cloud says to be recorded", WITHIN, async || {
        let status = api.get(&taken).await?.status.context("no status")?;
        status.interruption.context("nothing is recorded")
    })
    .await
    .unwrap();
    assert_eq!(interruption.kind, InterruptionKind::Reclaim);
    let deadline = interruption.deadline.expect("it says when").0;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    wait_for("the node to be closed", WITHIN, async || {
        ensure!(taint_keys(&nodes.get(&taken).await?).iter().any(|key| key == DISRUPTED), "it is open");
        Ok(())
    })
    .await
    .unwrap();
    let said = cluster.wait_said("NodeClaim", &taken, "Interrupted").await.unwrap();
    assert!(said.contains("spot capacity is taken back at"), "{said}");

    let (new, old) = wait_for("a claim in its place, and it to be deleted", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        let new = claims.iter().find(|claim| claim.name_any() != taken).context("nothing is bought")?;
        let old = claims.iter().find(|claim| claim.name_any() == taken).context("it is gone already")?;
        let deleted = old.metadata.deletion_timestamp.clone().context("it is not deleted")?;
        Ok((new.metadata.creation_timestamp.clone().context("no time")?, deleted))
    })
    .await
    .unwrap();
    assert!(new <= old, "nobody was asked to go before what they need was ordered: {new:?}, {old:?}");

    // Remember the last condition seen, because the claim may be gone before the next look.
    let mut drained = None;
    wait_for("the old node to be drained and gone", WITHIN, async || {
        let Some(claim) = api.get_opt(&taken).await? else { return Ok(()) };
        let status = claim.status.context("no status")?;
        if let Some(now) = condition(&status.conditions, "Drained") {
            drained = Some(now.clone());
        }
        anyhow::bail!("{drained:?}")
    })
    .await
    .unwrap();
    let drained = drained.expect("it said how far it is");
    assert!(drained.last_transition_time.0 <= deadline, "{drained:?}, and it was taken at {deadline}");
    assert_ne!(drained.reason, "TimeIsUp", "{drained:?}");
    let pods = cluster.wait_running(&namespace, 2).await.unwrap();
    for pod in &pods {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        assert_ne!(node, Some(taken.as_str()));
    }

    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &namespace);
    for one in ["web", "train"] {
        deployments.delete(one, &DeleteParams::default()).await.unwrap();
    }
    cluster.wait_nothing_left(&name).await.unwrap();
}
