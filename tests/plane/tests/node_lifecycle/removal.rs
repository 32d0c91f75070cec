//! Removal of nodes: not too early, never with running pods, and never forgotten.

use crate::initialized_claim;
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Trial, WITHIN, condition, is_running, node_class, node_pool, pod, taint_keys,
};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

const DISRUPTED: &str = "poolwright.dev/disrupted";

async fn trial() -> (&'static Trial, Cluster) {
    let trial = crate::trial().await;
    (trial, trial.cluster().unwrap())
}

fn gpu_pod(name: &str, pool: &str) -> Value {
    pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))
}

/// Makes a pool with one node and a pod on it. Returns the initialized claim.
async fn one_node(cluster: &Cluster, name: &str, namespace: &str) -> NodeClaim {
    one_node_with(cluster, (name, namespace), json!({}), &[gpu_pod("first", name)]).await
}

/// Does the same with this spec of the pool and these pods.
async fn one_node_with(
    cluster: &Cluster,
    (name, namespace): (&str, &str),
    spec: Value,
    pods: &[Value],
) -> NodeClaim {
    cluster.apply("", &[node_class(name, json!({})), node_pool(name, spec)]).await.unwrap();
    cluster.apply(namespace, pods).await.unwrap();
    cluster.wait_running(namespace, pods.len()).await.unwrap();
    initialized_claim(cluster, name).await
}

fn node_name(claim: &NodeClaim) -> String {
    claim
        .status
        .as_ref()
        .and_then(|status| status.node_name.clone())
        .expect("an initialized claim has a node")
}

#[tokio::test]
async fn a_node_stays_if_a_pod_is_bound_while_it_closes() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("late-pod"), cluster.namespace("late-pod").await.unwrap());
    let claim = one_node(&cluster, &name, &namespace).await;
    let node = node_name(&claim);
    cluster.delete_pod(&namespace, "first").await.unwrap();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    wait_for("the empty node to be closed", WITHIN, async || {
        ensure!(taint_keys(&nodes.get(&node).await?).iter().any(|key| key == DISRUPTED), "it is open");
        Ok(())
    })
    .await
    .unwrap();
    // To everybody else, the pod looks as if it was bound before the taint came.
    let mut late = gpu_pod("late", &name);
    late["spec"]["nodeName"] = json!(node);
    cluster.apply(&namespace, &[late]).await.unwrap();
    wait_for("the node to be open again, and its claim to say why", WITHIN, async || {
        ensure!(!taint_keys(&nodes.get(&node).await?).iter().any(|key| key == DISRUPTED), "it is closed");
        let claims = cluster.claims(&name).await?;
        let status = claims.first().and_then(|claim| claim.status.as_ref()).context("its claim is gone")?;
        let disrupting = condition(&status.conditions, "Disrupting").context("it never said so")?;
        ensure!(disrupting.status == "False" && disrupting.message.contains("late"), "{disrupting:?}");
        Ok(())
    })
    .await
    .unwrap();
    let pods = cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(pods[0].spec.as_ref().unwrap().node_name.as_deref(), Some(node.as_str()));
    assert_eq!(
        cluster.claims(&name).await.unwrap()[0].name_any(),
        claim.name_any(),
        "the same node all along"
    );
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_deleted_claim_waits_for_its_protected_pod_before_termination() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("by-hand"), cluster.namespace("by-hand").await.unwrap());
    let mut first = gpu_pod("first", &name);
    first["metadata"]["annotations"] = json!({"poolwright.dev/do-not-disrupt": "true"});
    let claim = one_node_with(&cluster, (&name, &namespace), json!({}), &[first]).await;
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    claims.delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
    let waiting = wait_for("the claim to say what it waits for", WITHIN, async || {
        let status = claims.get(&claim.name_any()).await?.status.context("no status")?;
        let found = condition(&status.conditions, "Drained").context("nothing said")?;
        ensure!(found.status == "False" && found.reason == "PodsProtected", "{found:?}");
        Ok(found.message.clone())
    })
    .await
    .unwrap();
    assert!(waiting.contains(&format!("{namespace}/first")), "the pod is named: {waiting}");
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let node = nodes.get(&node_name(&claim)).await.unwrap();
    assert!(
        taint_keys(&node).iter().any(|key| key == DISRUPTED),
        "nothing new gets in: {:?}",
        taint_keys(&node)
    );
    assert!(cluster.pods(&namespace).await.unwrap().iter().all(is_running), "the work goes on");
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1, "and so does its instance");

    // A new pod gets a node of its own.
    cluster.apply(&namespace, &[gpu_pod("second", &name)]).await.unwrap();
    let pods = cluster.wait_running(&namespace, 2).await.unwrap();
    let home = |name: &str| {
        let pod = pods.iter().find(|pod| pod.name_any() == name).expect("it was listed");
        pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
    };
    assert_ne!(home("second"), home("first"));

    cluster.delete_pod(&namespace, "first").await.unwrap();
    wait_for("the old node, its claim and its instance to go, and no other", WITHIN, async || {
        let left: Vec<String> = cluster.claims(&name).await?.iter().map(ResourceExt::name_any).collect();
        let (nodes, instances) = (cluster.nodes(&name).await?, cluster.instances(&name).await?);
        ensure!(
            left.len() == 1 && left[0] != claim.name_any() && nodes.len() == 1 && instances.len() == 1,
            "claims {left:?}, {} nodes, {} instances",
            nodes.len(),
            instances.len()
        );
        Ok(())
    })
    .await
    .unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}

/// Deletes a claim like a user.
async fn delete(cluster: &Cluster, claim: &NodeClaim) {
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    claims.delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
}

async fn wait_for_event(cluster: &Cluster, namespace: &str, reason: &str, words: &str) {
    let events: Api<Event> = Api::namespaced(cluster.client.clone(), namespace);
    wait_for(&format!("an event {reason}"), WITHIN, async || {
        let all = events.list(&ListParams::default()).await?;
        let of = all.iter().filter(|event| event.reason.as_deref() == Some(reason));
        let notes: Vec<&str> = of.filter_map(|event| event.note.as_deref()).collect();
        ensure!(notes.iter().any(|note| note.contains(words)), "{notes:?}");
        Ok(())
    })
    .await
    .unwrap();
}

async fn wait_until_it_is_gone(cluster: &Cluster, claim: &NodeClaim) {
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    wait_for("the claim and its node to go", WITHIN, async || {
        if let Some(left) = claims.get_opt(&claim.name_any()).await? {
            anyhow::bail!("{:?}", left.status.map(|status| status.conditions));
        }
        ensure!(nodes.get_opt(&node_name(claim)).await?.is_none(), "its node is there");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_draining_node_waits_for_a_disruption_budget_and_reports_it() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("budget"), cluster.namespace("budget").await.unwrap());
    let template = |app: &str| {
        let mut pod = gpu_pod("-", &name);
        pod["metadata"] = json!({"labels": {"app": app}});
        pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
        json!({"metadata": pod["metadata"], "spec": pod["spec"]})
    };
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "served"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "served"}}, "template": template("served")}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "served"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "served"}}}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[budget, deployment]).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    let before = cluster.claims(&name).await.unwrap();
    for claim in &before {
        delete(&cluster, claim).await;
    }
    wait_for_event(&cluster, &namespace, "EvictionRefused", "disruption budget").await;
    assert_eq!(cluster.pods(&namespace).await.unwrap().iter().filter(|pod| is_running(pod)).count(), 2);
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(cluster.client.clone(), &namespace);
    let less = Patch::Merge(json!({"spec": {"minAvailable": 1}}));
    budgets.patch("served", &PatchParams::default(), &less).await.unwrap();
    for claim in &before {
        wait_until_it_is_gone(&cluster, claim).await;
    }
    wait_for_event(&cluster, &namespace, "Evicted", "its node will be terminated").await;
    let pods = cluster.wait_running(&namespace, 2).await.unwrap();
    let old: Vec<String> = before.iter().map(node_name).collect();
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    assert!(pods.iter().filter_map(node_of).all(|node| !old.contains(&node)));
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), &namespace);
    deployments.delete("served", &DeleteParams::default()).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_protected_pod_gets_its_full_grace_period_before_the_deadline_of_its_node() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("in-time"), cluster.namespace("in-time").await.unwrap());
    let mut guarded = gpu_pod("guarded", &name);
    guarded["metadata"]["annotations"] = json!({"poolwright.dev/do-not-disrupt": "true"});
    guarded["spec"]["terminationGracePeriodSeconds"] = json!(90);
    let spec = json!({"template": {"spec": {"deadlines": {"termination": "100s"}}}});
    let claim = one_node_with(&cluster, (&name, &namespace), spec, &[guarded]).await;
    delete(&cluster, &claim).await;
    wait_for_event(&cluster, &namespace, "Ended", "deleted with a grace period of 90 s").await;
    cluster.delete_pods(&namespace).await.unwrap();
    wait_until_it_is_gone(&cluster, &claim).await;
}

#[tokio::test]
async fn daemonset_pods_do_not_keep_a_node() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("daemons"), cluster.namespace("daemons").await.unwrap());
    let daemonset = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "nodeSelector": {"poolwright.dev/nodepool": name},
                    "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "agent", "image": "none", "resources": {"requests": {"cpu": "100m"}}}],
                },
            },
        },
    });
    cluster.apply(&namespace, &[daemonset]).await.unwrap();
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("train", &name)]).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    cluster.delete_pod(&namespace, "train").await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn an_instance_terminated_by_somebody_else_is_replaced() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("ended"), cluster.namespace("ended").await.unwrap());
    let claim = one_node(&cluster, &name, &namespace).await;
    let instance = cluster.instances(&name).await.unwrap().remove(0);
    cluster.instance_store().delete(&instance.name_any(), &DeleteParams::default()).await.unwrap();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    nodes.delete(&node_name(&claim), &DeleteParams::default()).await.unwrap();
    // A workload controller would do this when the node is gone: delete the pod and create another.
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
    pods.delete("first", &DeleteParams::default().grace_period(0)).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("again", &name)]).await.unwrap();
    wait_for("the pod to run on another instance, and the lost claim to be gone", WITHIN, async || {
        ensure!(is_running(&pods.get("again").await?), "it waits");
        let left: Vec<String> = cluster.claims(&name).await?.iter().map(ResourceExt::name_any).collect();
        let instances = cluster.instances(&name).await?.len();
        ensure!(
            left.len() == 1 && left[0] != claim.name_any() && instances == 1,
            "claims {left:?}, {instances} instances"
        );
        Ok(())
    })
    .await
    .unwrap();
    let said = cluster.said_about("NodeClaim", &claim.name_any()).await.unwrap();
    assert!(
        said.iter().any(|one| one.reason == "NodeGone" || one.reason == "InstanceGone"),
        "the loss was told: {said:?}"
    );
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn an_instance_without_a_claim_is_terminated() {
    let (trial, cluster) = trial().await;
    let (name, namespace) = (unique("orphan"), cluster.namespace("orphan").await.unwrap());
    one_node(&cluster, &name, &namespace).await;
    let known = cluster.instances(&name).await.unwrap().remove(0);
    let mut orphan: Value = serde_json::from_str(&known.data.as_ref().unwrap()["instance"]).unwrap();
    let key = "00000000-0000-4000-8000-000000000000";
    orphan["key"] = json!(key);
    orphan["claim"] = json!(format!("{name}-nobody"));
    orphan["launched"] = json!("2020-01-01T00:00:00Z");
    orphan["state"] = json!("Launched");
    orphan["neverRegisters"] = json!(true);
    let mut stored = ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(format!("i-{key}")),
            labels: known.metadata.labels.clone(),
            ..Default::default()
        },
        data: Some([("instance".to_owned(), orphan.to_string())].into()),
        ..Default::default()
    };
    stored.labels_mut().insert("poolwright.dev/nodeclaim".into(), format!("{name}-nobody"));
    let store = cluster.instance_store();
    store.create(&PostParams::default(), &stored).await.unwrap();
    wait_for("the orphan to be given back", WITHIN, async || {
        ensure!(store.get_opt(&stored.name_any()).await?.is_none(), "it is there");
        Ok(())
    })
    .await
    .unwrap();
    wait_for("it to be counted", WITHIN, async || {
        ensure!(trial.metric("poolwright_instances_reaped_total").await? >= 1.0, "not counted");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1, "the one that a claim explains stays");
    assert!(cluster.pods(&namespace).await.unwrap().iter().all(is_running));
    cluster.delete_pods(&namespace).await.unwrap();
}
