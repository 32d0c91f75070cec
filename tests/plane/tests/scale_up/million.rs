//! One tenant asks for a million pods. That costs neither money beyond the limits nor the service to other tenants.

use anyhow::{Context, ensure};
use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{Hold, Trial, WITHIN, Writes, is_running, node_class, node_pool, pod};
use poolwright_plane::{unique, wait_for};
use serde_json::json;

use crate::cluster;

/// The number of pods that the Job asks for.
const WANTED: u64 = 1_000_000;
/// The number of nodes that its pool may have.
const LIMIT: usize = 2;
/// The metric of the controller's memory, in bytes.
const MEMORY: &str = "process_resident_memory_bytes";
/// The most memory that the Job may add, in bytes. A copy of its pod for each missing one would need several times as much.
const MOST_MORE: f64 = 512.0 * 1024.0 * 1024.0;
/// The creation of the Job's pods. Hundreds of thousands of pods would fill the control plane.
const CREATING_ITS_PODS: Writes = Writes {
    operation: "CREATE",
    group: "",
    resource: "pods",
    when: "has(object.metadata.labels) && 'example.com/million' in object.metadata.labels",
};

#[tokio::test]
async fn a_job_of_a_million_pods_buys_within_its_limits_and_others_get_their_nodes() {
    let (cluster, trial) = (cluster().await, Trial::shared(&[]).await.unwrap());
    let (name, namespace) = (unique("million"), cluster.namespace("million").await.unwrap());
    let (other, elsewhere) = (unique("modest"), cluster.namespace("modest").await.unwrap());
    let limited = node_pool(&name, json!({"limits": {"nodes": LIMIT}}));
    let classes = [&name, &other].map(|class| node_class(class, json!({})));
    cluster.apply("", &classes).await.unwrap();
    cluster.apply("", &[limited, node_pool(&other, json!({}))]).await.unwrap();
    let small = |pod_name: &str, pool: &str| pod(pod_name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}));

    // The refusal stays, because the Job controller would go on at once. It concerns no other pods.
    Hold::place(&cluster.client, CREATING_ITS_PODS).await.unwrap();
    let mut spec = small("unused", &name)["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"parallelism": WANTED, "template": {
            "metadata": {"labels": {"example.com/million": "true"}}, "spec": spec}}});
    cluster.apply(&namespace, &[job]).await.unwrap();
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &namespace);
    let job = jobs.get("train").await.unwrap();

    // Its only pod, as the Job controller would create it. Without the label of the template, it is not refused.
    let selector = job.spec.as_ref().and_then(|spec| spec.selector.clone());
    let mut first = small("train-first", &name);
    first["metadata"]["labels"] = json!(selector.and_then(|selector| selector.match_labels));
    first["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train",
        "uid": job.uid(), "controller": true}]);
    let before = trial.metric(MEMORY).await.unwrap();
    assert!(before > 0.0, "the controller does not tell its memory");
    cluster.create_pods(&namespace, &[first]).await.unwrap();
    cluster.create_pods(&elsewhere, &[small("modest", &other)]).await.unwrap();

    let mut most = before;
    let note = wait_for("the event, nodes for the Job, and the other pod to run", WITHIN, async || {
        most = most.max(trial.metric(MEMORY).await?);
        let bought = cluster.claims(&name).await?.len();
        assert!(bought <= LIMIT, "{bought} nodes were bought, and the limit is {LIMIT}");
        ensure!(bought > 0, "nothing is bought for the Job");
        ensure!(cluster.pods(&elsewhere).await?.iter().any(is_running), "the other pod waits");
        let said = cluster.said_about("Pod", "train-first").await?;
        let told = said.into_iter().find(|one| one.reason == "TooManyPodsExpected");
        Ok(told.context("there is no event TooManyPodsExpected")?.note)
    })
    .await
    .unwrap();
    let told = format!(
        "Job {namespace}/train is about to create {} pods; 5000 of them are planned for now, and the others when they exist",
        WANTED - 1
    );
    assert!(note.starts_with(&told), "{note}");
    assert!(most - before < MOST_MORE, "the controller took {before} bytes, and then {most}");
    trial.ensure_running().unwrap();
    jobs.delete("train", &DeleteParams::background()).await.unwrap();
    cluster.delete_pods(&elsewhere).await.unwrap();
}
