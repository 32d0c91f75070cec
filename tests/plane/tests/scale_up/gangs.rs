//! Gangs that arrive in bursts, and pods that preempt others, on the real scheduler.

use crate::cluster;
use anyhow::ensure;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{WITHIN, is_running, node_class, node_pool, pod, taint_keys};
use poolwright_plane::{unique, wait_for};
use serde_json::json;

/// Four pods with these requests fill a g5.12xlarge.
fn large() -> serde_json::Value {
    json!({"cpu": "10", "nvidia.com/gpu": "1"})
}

#[tokio::test]
async fn one_plan_buys_for_a_job_whose_pods_arrive_in_bursts() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("gang"), cluster.namespace("gang").await.unwrap());
    // Nodes join slowly, so that all bursts arrive before the first node does.
    let class = node_class(&name, json!({"registrationDelay": "15s"}));
    cluster.apply("", &[class, node_pool(&name, json!({"scaleToZero": {"after": "5m"}}))]).await.unwrap();
    // Admission admits four pods at first, and four more each time, like a gang that arrives slowly.
    let index = "batch.kubernetes.io/job-completion-index";
    let gate = |below: u32| {
        let rule = format!(
            "!has(object.metadata.labels) || !('{index}' in object.metadata.labels) || \
             int(object.metadata.labels['{index}']) < {below}"
        );
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": {"failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
                "validations": [{"expression": rule}]}})
    };
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}}});
    cluster.apply("", &[gate(4), binding]).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
    wait_for("admission to keep pods out", WITHIN, async || {
        let mut probe = pod("probe", &name, large());
        probe["metadata"]["labels"] = json!({index: "99"});
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        ensure!(pods.create(&dry, &serde_json::from_value(probe)?).await.is_err(), "it lets them in");
        Ok(())
    })
    .await
    .unwrap();
    let template = pod("unused", &name, large());
    let mut spec = template["spec"].clone();
    spec["restartPolicy"] = json!("Never");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
        "spec": {"parallelism": 16, "completions": 16, "completionMode": "Indexed", "template": {"spec": spec}}});
    cluster.apply(&namespace, &[job]).await.unwrap();
    let claims = wait_for("the whole gang to be bought", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.len() == 4, "{} claims", claims.len());
        Ok(claims)
    })
    .await
    .unwrap();
    let there = cluster.pods(&namespace).await.unwrap().len();
    assert!(there < 16, "all {there} pods were there when it was bought");
    for claim in &claims {
        assert_eq!(claim.spec.offerings[0].instance_type, "g5.12xlarge");
        assert_eq!(claim.spec.pods.len(), 4, "{:?}", claim.spec.pods);
    }
    let mut bought: Vec<String> = claims.iter().map(ResourceExt::name_any).collect();
    for pods in [8, 12, 16] {
        cluster.apply("", &[gate(pods)]).await.unwrap();
        // The Job controller retries at its own pace. A change of the Job makes it retry now.
        let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &namespace);
        wait_for(&format!("{pods} pods"), WITHIN, async || {
            let nudge = json!({"metadata": {"annotations": {"nudge": unique("nudge")}}});
            jobs.patch("train", &PatchParams::default(), &Patch::Merge(nudge)).await?;
            let there = cluster.pods(&namespace).await?.len();
            ensure!(there == pods as usize, "{there} are there");
            Ok(())
        })
        .await
        .unwrap();
    }
    cluster.wait_running(&namespace, 16).await.unwrap();
    let mut kept: Vec<String> =
        cluster.claims(&name).await.unwrap().iter().map(ResourceExt::name_any).collect();
    bought.sort();
    kept.sort();
    assert_eq!(kept, bought, "the first plan holds all of them, and no other was needed");
    let jobs: Api<Job> = Api::namespaced(cluster.client.clone(), &namespace);
    jobs.delete("train", &DeleteParams::background()).await.unwrap();
}

#[tokio::test]
async fn a_preempting_pod_buys_nothing() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("preempt"), cluster.namespace("preempt").await.unwrap());
    let keep = json!({"scaleToZero": {"after": "5m"}, "limits": {"nodes": 1}});
    let important = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": 1000});
    cluster.apply("", &[important, node_class(&name, json!({})), node_pool(&name, keep)]).await.unwrap();
    let mut first = pod("first", &name, large());
    // The pod takes time to end, as real workloads do.
    first["spec"]["terminationGracePeriodSeconds"] = json!(5);
    cluster.apply(&namespace, &[first]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    let before = cluster.claims(&name).await.unwrap();
    // As long as the node is reserved for its planned pods, the scheduler preempts nobody there.
    wait_for("the node to be anybody's", WITHIN, async || {
        let nodes = cluster.nodes(&name).await?;
        ensure!(nodes.iter().all(|node| taint_keys(node).is_empty()), "it is reserved");
        Ok(())
    })
    .await
    .unwrap();
    let roomy = json!({"limits": {"nodes": 5}, "scaleToZero": {"after": "5m"}});
    cluster.apply("", &[node_pool(&name, roomy)]).await.unwrap();
    let mut second = pod("second", &name, large());
    second["spec"]["priorityClassName"] = json!(name);
    cluster.apply(&namespace, &[second]).await.unwrap();
    let running = wait_for("the important pod to run where the other was", WITHIN, async || {
        let pods = cluster.pods(&namespace).await?;
        ensure!(pods.len() == 1 && pods[0].name_any() == "second" && is_running(&pods[0]), "{}", pods.len());
        Ok(pods)
    })
    .await
    .unwrap();
    let after = cluster.claims(&name).await.unwrap();
    assert_eq!(after.len(), 1, "nothing was bought for it");
    assert_eq!(after[0].name_any(), before[0].name_any());
    assert_eq!(running[0].spec.as_ref().unwrap().node_name, after[0].status.as_ref().unwrap().node_name);
    let said = cluster.said_about("Pod", "second").await.unwrap();
    assert!(
        said.iter().all(|one| one.reason != "NodePlanned"),
        "{:?}",
        said.iter().map(ToString::to_string).collect::<Vec<_>>()
    );
    cluster.delete_pods(&namespace).await.unwrap();
}
