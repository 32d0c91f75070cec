//! JobSets and LeaderWorkerSets, with the CRDs of their projects, which are installed while the controller runs. Poolwright plans
//! a whole gang when only its leader exists. The test acts as their controllers.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use poolwright_plane::trial::{Cluster, Trial, WITHIN, node_class, node_pool, pod};
use poolwright_plane::{install_crds, unique, wait_for};
use serde_json::{Value, json};

/// Returns the folder of the pinned CRDs.
fn crds() -> anyhow::Result<PathBuf> {
    let tool = concat!(env!("CARGO_MANIFEST_DIR"), "/../tools.py");
    let done =
        Command::new("python3").args([tool, "gang-crds"]).output().context("python3 tests/tools.py")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(PathBuf::from(String::from_utf8(done.stdout)?.trim()))
}

/// Returns a cluster with both kinds, and with a controller that knows them.
async fn cluster() -> (&'static Trial, Cluster) {
    let trial = Trial::shared(&[]).await.unwrap();
    let cluster = trial.cluster().unwrap();
    let names = install_crds(&cluster.client, &crds().unwrap()).await.unwrap();
    assert_eq!(names, ["jobsets.jobset.x-k8s.io", "leaderworkersets.leaderworkerset.x-k8s.io"]);
    for kind in ["JobSet", "LeaderWorkerSet"] {
        wait_for(&format!("{kind}s to be watched"), WITHIN, async || {
            let synced = trial.metric(&format!("poolwright_watch_synced{{kind=\"{kind}\"}}")).await?;
            ensure!(synced > 0.0, "not listed yet");
            Ok(())
        })
        .await
        .unwrap();
    }
    (trial, cluster)
}

/// Returns a pod template. Four of its pods fill a g5.12xlarge.
fn template(pool: &str) -> Value {
    let mut spec = pod("unused", pool, json!({"cpu": "10", "nvidia.com/gpu": "1"}))["spec"].clone();
    spec["restartPolicy"] = json!("Always");
    json!({"metadata": {"labels": {"app": pool}}, "spec": spec})
}

/// Creates the object and returns an owner reference to it.
async fn owner(cluster: &Cluster, namespace: &str, object: Value) -> Value {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap();
    let kind = object["kind"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), namespace, &resource);
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let created = api.create(&kube::api::PostParams::default(), &object).await.unwrap();
    json!([{"apiVersion": resource.api_version, "kind": kind, "name": created.name_any(),
        "uid": created.uid().unwrap(), "controller": true}])
}

/// Waits until one claim reserves room for four pods, three of which do not exist yet.
async fn bought_whole(cluster: &Cluster, pool: &str, to_come: &str) -> String {
    let claims = wait_for("the whole gang to be bought", WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        ensure!(!claims.is_empty(), "nothing is bought");
        Ok(claims)
    })
    .await
    .unwrap();
    assert_eq!(claims.len(), 1);
    let claim = &claims[0];
    assert_eq!(claim.spec.offerings[0].instance_type, "g5.12xlarge");
    let expected = claim.spec.pods.iter().filter(|pod| pod.contains(to_come)).count();
    assert_eq!((claim.spec.pods.len(), expected), (4, 3), "{:?}", claim.spec.pods);
    claim.name_any()
}

#[tokio::test]
async fn a_jobset_gets_all_its_nodes_when_only_its_leader_exists() {
    let (_, cluster) = cluster().await;
    let (name, namespace) = (unique("jobset"), cluster.namespace("jobset").await.unwrap());
    let class = node_class(&name, json!({"registrationDelay": "10s"}));
    cluster.apply("", &[class, node_pool(&name, json!({"scaleToZero": {"after": "5m"}}))]).await.unwrap();
    let mut pods = template(&name);
    pods["spec"]["restartPolicy"] = json!("Never");
    let spec = |parallel: u32| json!({"parallelism": parallel, "completions": parallel, "template": pods});
    let replicated = |name: &str, replicas: u32, parallel: u32| json!({"name": name, "replicas": replicas, "template": {"spec": spec(parallel)}});
    let set = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"},
        "spec": {"replicatedJobs": [replicated("leader", 1, 1), replicated("workers", 1, 3)]}});
    let owned_by = owner(&cluster, &namespace, set).await;
    let job = |name: &str, parallel: u32| {
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "ownerReferences": owned_by}, "spec": spec(parallel)})
    };
    cluster.apply(&namespace, &[job("train-leader-0", 1)]).await.unwrap();
    let bought = bought_whole(&cluster, &name, "JobSet:train.workers#").await;
    cluster.apply(&namespace, &[job("train-workers-0", 3)]).await.unwrap();
    cluster.wait_running(&namespace, 4).await.unwrap();
    let claims = cluster.claims(&name).await.unwrap();
    assert_eq!(claims.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [bought]);
}

#[tokio::test]
async fn a_leaderworkerset_gets_nodes_for_workers_that_do_not_exist_yet() {
    let (_, cluster) = cluster().await;
    let (name, namespace) = (unique("lws"), cluster.namespace("lws").await.unwrap());
    let class = node_class(&name, json!({"registrationDelay": "10s"}));
    cluster.apply("", &[class, node_pool(&name, json!({"scaleToZero": {"after": "5m"}}))]).await.unwrap();
    let pods = template(&name);
    let set = json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "vllm"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 4, "workerTemplate": pods}}});
    let owned_by = owner(&cluster, &namespace, set).await;
    let stateful = |name: &str, replicas: u32, owned_by: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": name, "ownerReferences": owned_by}, "spec": {"replicas": replicas,
                "serviceName": "vllm", "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": pods["metadata"]["labels"]}, "template": pods}})
    };
    cluster.apply(&namespace, &[stateful("vllm", 1, &owned_by)]).await.unwrap();
    let bought = bought_whole(&cluster, &name, "LeaderWorkerSet:vllm.workers#").await;
    let leader = cluster.pods(&namespace).await.unwrap();
    let of_leader = json!([{"apiVersion": "v1", "kind": "Pod", "name": leader[0].name_any(),
        "uid": leader[0].uid().unwrap(), "controller": true}]);
    // Own labels, so that no StatefulSet adopts the other's pods.
    let mut workers = stateful("vllm-0", 3, &of_leader);
    workers["spec"]["template"]["metadata"]["labels"] = json!({"app": format!("{name}-0")});
    workers["spec"]["selector"] = json!({"matchLabels": {"app": format!("{name}-0")}});
    cluster.apply(&namespace, &[workers]).await.unwrap();
    cluster.wait_running(&namespace, 4).await.unwrap();
    let claims = cluster.claims(&name).await.unwrap();
    assert_eq!(claims.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), [bought]);
}

#[tokio::test]
async fn events_report_an_unsatisfiable_budget_on_the_budget_and_its_pod() {
    let (_, cluster) = cluster().await;
    let (name, namespace) = (unique("budget"), cluster.namespace("budget").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": name}}}});
    let mut one = pod(&name, &name, json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    one["metadata"]["labels"]["app"] = json!(name);
    cluster.apply(&namespace, &[budget, one]).await.unwrap();
    for kind in ["PodDisruptionBudget", "Pod"] {
        let note = cluster.wait_said(kind, &name, "BudgetNeverMet").await.unwrap();
        assert!(
            note.contains("spec.maxUnavailable is 0") && note.contains("raise it to at least 1"),
            "{note}"
        );
    }
    cluster.wait_running(&namespace, 1).await.unwrap();
    let planned = cluster.wait_said("Pod", &name, "NodePlanned").await.unwrap();
    assert!(planned.lines().count() > 3 && planned.contains("Considered "), "the whole story: {planned}");
    let said = cluster.said_about("PodDisruptionBudget", &name).await.unwrap();
    assert_eq!(said.len(), 1, "once: {said:?}");
    cluster.delete_pods(&namespace).await.unwrap();
}
