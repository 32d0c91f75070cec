//! A wave of pods from a real trace gets the planned nodes and no more.

use std::collections::BTreeMap;
use std::fs;

use kube::ResourceExt;
use poolwright_plane::trace::{self, TracePod};
use poolwright_plane::trial::{Trial, node_class, node_pool, pod, run_plan, usd_per_hour};
use serde_json::{Value, json};

const PODS: usize = 60;

#[tokio::test]
async fn sixty_pods_of_the_trace_get_exactly_the_planned_nodes() {
    // All pods must be in one batch and be solved to the end, even on a busy machine, because the plan from a file is.
    let trial = Trial::start(&["--batch-idle", "3s", "--time-limit", "10s"]).await.unwrap();
    let cluster = trial.cluster().unwrap();
    let namespace = cluster.namespace("wave").await.unwrap();
    let requirements = json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]);
    let class = node_class("wave", json!({}));
    let pool = node_pool("wave", json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[class.clone(), pool.clone()]).await.unwrap();
    let pods = trace_pods(&namespace).unwrap();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    cluster.wait_running(&namespace, PODS).await.unwrap();
    let claims = cluster.claims("wave").await.unwrap();

    // The same objects, planned from a file.
    let documents: Vec<String> = [class, pool].iter().chain(&pods).map(Value::to_string).collect();
    let file = trial.plane().dir().join("wave.yaml");
    fs::write(&file, documents.join("\n---\n")).unwrap();
    let plan = run_plan(&["--time-limit", "10s", "-f", &file.display().to_string()], &[]).unwrap();
    assert_eq!(plan["pods"]["placed"], json!(PODS), "{plan}");
    let planned = types(plan["nodes"].as_array().unwrap().iter().map(|node| node["instanceType"].as_str()));
    let bought = types(claims.iter().map(|claim| {
        claim.status.as_ref().and_then(|status| Some(status.offering.as_ref()?.instance_type.as_str()))
    }));
    let cost = (plan["costUsdPerHour"].as_f64().unwrap() * 1e6).round() as u64;
    let paid = usd_per_hour(&claims).unwrap();
    assert_eq!(paid, cost, "planned {planned:?}, bought {bought:?}");

    // The scheduler followed the plan: every pod is on the node of the claim that lists it.
    let homes: BTreeMap<String, String> = claims
        .iter()
        .flat_map(|claim| {
            let node = claim.status.as_ref().and_then(|status| status.node_name.clone()).unwrap_or_default();
            claim.spec.pods.iter().map(move |pod| (pod.clone(), node.clone()))
        })
        .collect();
    let elsewhere: Vec<String> = cluster
        .pods(&namespace)
        .await
        .unwrap()
        .iter()
        .filter(|pod| {
            let key = format!("{namespace}/{}", pod.name_any());
            homes.get(&key) != pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref())
        })
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(elsewhere, [] as [&str; 0], "not on the node they were planned for");

    // A pod that fits on nothing causes one more plan, which buys nothing.
    let before: Vec<String> = claims.iter().map(ResourceExt::name_any).collect();
    cluster.apply(&namespace, &[pod("too-large", "wave", json!({"cpu": "10000"}))]).await.unwrap();
    cluster.wait_said("Pod", "too-large", "NoOfferingFits").await.unwrap();
    let after: Vec<String> =
        cluster.claims("wave").await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(after, before, "nothing comes or goes once all pods run");
    assert_eq!(cluster.instances("wave").await.unwrap().len(), before.len());
    let refused = trial.metric("poolwright_plans_refused_total").await.unwrap();
    assert!(refused.abs() < f64::EPSILON, "the independent check refused {refused} plans");

    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left("wave").await.unwrap();
}

fn types<'a>(names: impl Iterator<Item = Option<&'a str>>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name.unwrap_or("?").to_owned()).or_default() += 1;
    }
    counts
}

/// Returns pods evenly spread over the trace, so that the mix is the trace's.
fn trace_pods(namespace: &str) -> anyhow::Result<Vec<Value>> {
    let of_pool = |pod: TracePod| {
        let mut pod = pod.object(namespace);
        pod["spec"]["nodeSelector"] = json!({"poolwright.dev/nodepool": "wave"});
        pod
    };
    Ok(trace::read(PODS)?.into_iter().map(of_pool).collect())
}
