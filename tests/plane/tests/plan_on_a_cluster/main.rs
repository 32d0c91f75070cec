//! `poolwright plan` and `poolwright what-if` against a cluster: they print the purchases and buy nothing. The controller then buys
//! exactly that.

mod agreement;
mod world;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{Cluster, Controller, Trial, WITHIN, node_class, node_pool, pod, run_plan};
use poolwright_plane::{install_crds, poolwright_binary, unique, wait_for};
use serde_json::{Value, json};

#[tokio::test]
async fn plan_buys_nothing_and_the_controller_then_buys_the_same_nodes() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("plan").await.unwrap();
    let requirements = json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "poolwright.dev/gpu-model", "operator": "In", "values": ["a10g", "l4"]},
    ]);
    let pool = node_pool("gpu", json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[node_class("gpu", json!({})), pool]).await.unwrap();
    let mut pods: Vec<Value> = (0..5)
        .map(|n| pod(&format!("small-{n}"), "gpu", json!({"cpu": "2", "nvidia.com/gpu": "1"})))
        .collect();
    pods.push(pod("large", "gpu", json!({"cpu": "20", "memory": "100Gi", "nvidia.com/gpu": "4"})));
    let mut model = pod("a10g", "gpu", json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    model["spec"]["nodeSelector"]["poolwright.dev/gpu-model"] = json!("a10g");
    pods.push(model);
    pods.push(pod("too-large", "gpu", json!({"cpu": "10000"})));
    cluster.create_pods(&namespace, &pods).await.unwrap();

    let kubeconfig = plane.kubeconfig_path().display().to_string();
    let ask = || run_plan(&[], &[("KUBECONFIG", &kubeconfig)]);
    let plan = wait_for("a plan for all pods, once the scheduler has given them up", WITHIN, async || {
        let plan = ask()?;
        let unplaced = plan["unplaced"].as_array().context("no list")?;
        ensure!(
            plan["pods"] == json!({"total": 8, "placed": 7, "unplaced": 1})
                && unplaced[0]["reason"] == json!("NoOfferingFits"),
            "{plan}"
        );
        Ok(plan)
    })
    .await
    .unwrap();
    assert_eq!(plan["unplaced"][0]["pod"], json!(format!("{namespace}/too-large")));
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    assert!(claims.list(&ListParams::default()).await.unwrap().items.is_empty(), "a plan buys nothing");
    assert_eq!(ask().unwrap()["nodes"], plan["nodes"], "asked again, it answers the same");

    let mut controller = Controller::start(&plane, "controller", &["--batch-idle", "300ms"]).unwrap();
    wait_for("what was planned to run", WITHIN, async || {
        controller.ensure_running()?;
        let pods = cluster.pods(&namespace).await?;
        let running = pods.iter().filter(|pod| poolwright_plane::trial::is_running(pod)).count();
        ensure!(running == 7, "{running} run");
        Ok(())
    })
    .await
    .unwrap();
    let mut planned: Vec<Value> = plan["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| json!([node["instanceType"], node["capacityType"], node["pods"]]))
        .collect();
    let mut bought: Vec<Value> = cluster
        .claims("gpu")
        .await
        .unwrap()
        .iter()
        .map(|claim| {
            let status = serde_json::to_value(claim.status.as_ref()).unwrap_or_default();
            assert!(!claim.name_any().is_empty());
            json!([status["offering"]["instanceType"], status["offering"]["capacityType"], claim.spec.pods])
        })
        .collect();
    planned.sort_by_key(Value::to_string);
    bought.sort_by_key(Value::to_string);
    assert_eq!(bought, planned, "type by type and pod by pod");

    // Now every pod but one has a place.
    let after = ask().unwrap();
    assert_eq!((&after["nodes"], &after["pods"]["unplaced"]), (&json!([]), &json!(1)), "{after}");
}

/// Returns a program that is `poolwright` with one more registration (`src/cli/tests/third_cloud`).
fn with_a_third_cloud() -> PathBuf {
    let beside = poolwright_binary().unwrap();
    let program = beside.with_file_name("examples").join("third_cloud");
    assert!(
        program.is_file(),
        "no {}: build it with `cargo build --workspace --examples`",
        program.display()
    );
    program
}

#[tokio::test]
async fn the_controller_launches_in_a_cloud_known_only_by_its_registration() {
    let program = with_a_third_cloud();
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let folder = std::env::temp_dir().join(unique(&format!("poolwright-third-cloud-{}", std::process::id())));
    let crds = Command::new(&program).args(["crds", "--dir"]).arg(&folder).status().unwrap();
    assert!(crds.success());
    install_crds(&cluster.client, &folder).await.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let class = json!({
        "apiVersion": "poolwright.dev/v1alpha1", "kind": "HazeNodeClass",
        "metadata": {"name": "gpu"}, "spec": {"density": 3},
    });
    let reference = json!({"group": "poolwright.dev", "kind": "HazeNodeClass", "name": "gpu"});
    let pool =
        node_pool("gpu", json!({"template": {"spec": {"nodeClassRef": reference, "requirements": []}}}));
    cluster.apply("", &[class, pool]).await.unwrap();
    let namespace = cluster.namespace("haze").await.unwrap();
    let train = pod("train", "gpu", json!({"cpu": "2", "nvidia.com/gpu": "1"}));
    cluster.create_pods(&namespace, &[train]).await.unwrap();

    let flags = ["--batch-idle", "300ms", "--haze-account", "test"];
    let mut controller = Controller::start_program(&plane, "haze", &program, &flags, |_| {}).unwrap();
    wait_for("an instance of the third cloud", WITHIN, async || {
        controller.ensure_running()?;
        let claims = cluster.claims("gpu").await?;
        let [claim] = claims.as_slice() else { bail!("{} claims", claims.len()) };
        let launched = claim.status.as_ref().and_then(|status| status.provider_id.as_deref());
        ensure!(launched == Some(&format!("haze://{}", claim.name_any())), "{:?}", claim.status);
        Ok(())
    })
    .await
    .unwrap();
}
