//! What deploy/pod-policy.yaml and deploy/node-policy.yaml refuse on a real API server, beside changes of pods. And whether it
//! accepts deploy/deployment.yaml.

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use poolwright_plane::trial::WITHIN;
use poolwright_plane::{apply, unique, wait_for};
use serde_json::{Value, json};

/// Checks that the controller can nominate the pod `victim`, and change nothing else through its status.
pub async fn only_nominations_change_a_status(pods: &Api<Pod>) {
    let patch = async |patch: Value| {
        let refused = pods.patch_status("victim", &PatchParams::default(), &Patch::Merge(patch)).await;
        refused.map(drop).map_err(|error| error.to_string())
    };
    wait_for("the policy of statuses to be in force", WITHIN, async || {
        let said = patch(json!({"metadata": {"labels": {"try": unique("it")}}})).await;
        let said = said.err().context("not refused")?;
        ensure!(said.contains("through their status"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let condition = json!({"type": "Ready", "status": "True"});
    for change in
        [json!({"phase": "Failed"}), json!({"conditions": [condition]}), json!({"reason": "Evicted"})]
    {
        let said = patch(json!({"status": change})).await.expect_err(&change.to_string());
        assert!(said.contains("nothing but nominatedNodeName"), "{change}: {said}");
    }
    patch(json!({"status": {"nominatedNodeName": "n"}})).await.unwrap();
}

/// Checks that the controller ends only a pod whose UID it names, and deletes none without a node. Nothing is really ended.
pub async fn only_named_pods_are_ended(pods: &Api<Pod>) {
    let uid = pods.get("victim").await.unwrap().metadata.uid;
    let end = async |uid: Option<String>| {
        let preconditions = uid.map(|uid| Preconditions { uid: Some(uid), resource_version: None });
        let params = DeleteParams { dry_run: true, preconditions, ..DeleteParams::default() };
        pods.delete("victim", &params.grace_period(1)).await.map(drop).map_err(|error| error.to_string())
    };
    wait_for("the policy of ends to be in force", WITHIN, async || {
        let said = end(None).await.err().context("not refused")?;
        ensure!(said.contains("must name the UID"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let said = end(uid.clone()).await.expect_err("it has no node");
    assert!(said.contains("that have a node alone"), "{said}");
    let evict = async |options: Value| {
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "victim"},
            "deleteOptions": options});
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let evicted = pods.create_subresource::<_, Value>("eviction", "victim", &params, &eviction).await;
        evicted.map(drop).map_err(|error| error.to_string())
    };
    let said = evict(json!({})).await.expect_err("it names no pod");
    assert!(said.contains("must name the UID"), "{said}");
    evict(json!({"preconditions": {"uid": uid}})).await.unwrap();
}

/// Checks that the controller cannot make the node `foreign` one of its own, but can register a node that joins. Deletes `foreign`.
pub async fn only_new_nodes_get_a_pool(admin: &Client, nodes: &Api<Node>) {
    let to_pool = async |node: &str, pool: &str| {
        let change = Patch::Merge(json!({"metadata": {"labels": {"poolwright.dev/nodepool": pool}}}));
        let changed = nodes.patch(node, &PatchParams::default(), &change).await;
        changed.map(drop).map_err(|error| error.to_string())
    };
    let said = to_pool("foreign", "gpu").await.expect_err("it is not new");
    assert!(said.contains("nodes of its own pools alone"), "{said}");
    let taint = json!({"key": "poolwright.dev/unregistered", "effect": "NoExecute"});
    let joining = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "joining"},
        "spec": {"providerID": "x://2", "taints": [taint]}});
    apply(admin, "", &joining.to_string()).await.unwrap();
    to_pool("joining", "gpu").await.unwrap();
    let said = to_pool("joining", "other").await.expect_err("it has a pool");
    assert!(said.contains("to another pool"), "{said}");
    // Somebody removed the label of its pool. It can still be closed and deleted, because it names a NodeClaim.
    let claimed = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "claimed", "labels": {"poolwright.dev/nodeclaim": "c"}}, "spec": {"providerID": "x://3"}});
    apply(admin, "", &claimed.to_string()).await.unwrap();
    nodes.delete("claimed", &DeleteParams::default()).await.unwrap();
    for node in ["foreign", "joining"] {
        Api::<Node>::all(admin.clone()).delete(node, &DeleteParams::default()).await.unwrap();
    }
}

/// Checks that the API server accepts the deployment, and its pods in a namespace that admits only restricted ones. Creates neither.
pub async fn a_deployment_and_its_restricted_pods_are_accepted(admin: &Client, deployment: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata":
        {"name": "restricted", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    apply(admin, "", &namespace.to_string()).await.unwrap();
    let deployment: Value = serde_saphyr::from_str(deployment).unwrap();
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let deployments: Api<Deployment> = Api::namespaced(admin.clone(), "poolwright");
    deployments.create(&params, &deployment).await.unwrap();
    let metadata = ObjectMeta { name: Some("controller".to_owned()), ..ObjectMeta::default() };
    let pod = Pod { metadata, spec: deployment.spec.unwrap().template.spec, status: None };
    Api::<Pod>::namespaced(admin.clone(), "restricted").create(&params, &pod).await.unwrap();
}
