//! Tests of the harness: a cluster starts, fake nodes run pods, and nothing is left behind.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use poolwright_plane::{ControlPlane, Options, apply, create_namespace, unique, wait_for};

const SOON: Duration = Duration::from_mins(1);

fn gpu_node(name: &str) -> String {
    format!(
        r#"
apiVersion: v1
kind: Node
metadata:
  name: {name}
  annotations: {{kwok.x-k8s.io/node: fake}}
  labels: {{harness.poolwright.dev/node: {name}, kubernetes.io/hostname: {name}}}
status:
  capacity: {{cpu: "96", memory: 1152Gi, pods: "110", nvidia.com/gpu: "8"}}
  allocatable: {{cpu: 95690m, memory: 1130Gi, pods: "110", nvidia.com/gpu: "8"}}
"#
    )
}

fn gpu_pod(name: &str, node: &str, gpus: u32) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeSelector: {{harness.poolwright.dev/node: {node}}}
  containers:
  - {{name: main, image: none, resources: {{limits: {{nvidia.com/gpu: "{gpus}"}}, requests: {{cpu: "1"}}}}}}
"#
    )
}

async fn create_node(client: &Client, yaml: &str) -> Node {
    let node: Node = serde_saphyr::from_str(yaml).expect("the node's YAML");
    // The node is created, not applied: a create keeps the status, as in a kubelet's registration.
    Api::all(client.clone()).create(&PostParams::default(), &node).await.expect("the node is created")
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

#[tokio::test]
async fn pods_run_on_a_fake_gpu_node_and_end_when_deleted() {
    let plane = ControlPlane::shared(Options::everything()).await.unwrap();
    let client = plane.client().unwrap();
    let namespace = create_namespace(&client, "harness").await.unwrap();
    let name = unique("gpu-node");
    let created = create_node(&client, &gpu_node(&name)).await;

    let nodes: Api<Node> = Api::all(client.clone());
    let ready = wait_for("the node to be ready and free of the not-ready taint", SOON, async || {
        plane.ensure_running()?;
        let node = nodes.get(&name).await?;
        ensure!(is_ready(&node), "its status is {:?}", node.status);
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        ensure!(taints.is_empty(), "its taints are {taints:?}");
        Ok(node)
    })
    .await
    .unwrap();
    let (promised, kept) = (created.status.unwrap(), ready.status.unwrap());
    assert_eq!(kept.allocatable, promised.allocatable, "the node's room is what its creator wrote");
    assert_eq!(kept.capacity, promised.capacity, "the node's capacity is what its creator wrote");

    for index in 0..4 {
        let pod = gpu_pod(&format!("pod-{index}"), &name, if index < 3 { 2 } else { 4 });
        apply(&client, &namespace, &pod).await.unwrap();
    }
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    wait_for("three pods to run and the fourth to find no room", SOON, async || {
        let mut running = Vec::new();
        let mut unschedulable = Vec::new();
        for pod in pods.list(&ListParams::default()).await? {
            let status = pod.status.unwrap_or_default();
            let name = pod.metadata.name.context("a pod without a name")?;
            let conditions = status.conditions.unwrap_or_default();
            if status.phase.as_deref() == Some("Running") {
                running.push(name);
            } else if conditions.iter().any(|c| c.reason.as_deref() == Some("Unschedulable")) {
                unschedulable.push(name);
            }
        }
        // The scheduler may take the pods in any order, but eight GPUs cannot hold ten.
        ensure!(
            running.len() == 3 && unschedulable.len() == 1,
            "run: {running:?}, no room: {unschedulable:?}"
        );
        Ok(())
    })
    .await
    .unwrap();

    pods.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    wait_for("all pods to be gone", SOON, async || {
        let left = pods.list(&ListParams::default()).await?.items.len();
        ensure!(left == 0, "{left} pods are left");
        Ok(())
    })
    .await
    .unwrap();
    nodes.delete(&name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_job_pod_completes_after_the_time_in_its_annotation() {
    let plane = ControlPlane::shared(Options::everything()).await.unwrap();
    let client = plane.client().unwrap();
    let namespace = create_namespace(&client, "harness").await.unwrap();
    let name = unique("job-node");
    create_node(&client, &gpu_node(&name)).await;
    let job = format!(
        r"
apiVersion: batch/v1
kind: Job
metadata: {{name: short}}
spec:
  template:
    metadata: {{annotations: {{plane.poolwright.dev/run-for: 100ms}}}}
    spec:
      restartPolicy: Never
      nodeSelector: {{harness.poolwright.dev/node: {name}}}
      containers: [{{name: main, image: none}}]
"
    );
    apply(&client, &namespace, &job).await.unwrap();
    let jobs: Api<k8s_openapi::api::batch::v1::Job> = Api::namespaced(client, &namespace);
    wait_for("the job to succeed", SOON, async || {
        let status = jobs.get("short").await?.status.unwrap_or_default();
        ensure!(status.succeeded == Some(1), "its status is {status:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_stopped_control_plane_leaves_no_process_and_no_file() {
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let client = plane.client().unwrap();
    let directory = plane.dir().to_owned();
    assert!(directory.join("kubeconfig").is_file());
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client);
    assert!(namespaces.get("default").await.is_ok());

    let mut command = std::process::Command::new("sleep");
    command.arg("1000");
    let mut ours = plane.spawn("sleeper", command).unwrap();
    assert!(ours.exited().is_none(), "it runs until it is killed");
    ours.kill();
    assert!(ours.exited().is_some());

    plane.stop();
    assert!(!directory.exists(), "{} is still there", directory.display());
    assert_eq!(marked_processes(&directory), Vec::<String>::new());
}

#[tokio::test]
async fn a_detached_control_plane_runs_until_its_script_is_run() {
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let client = plane.client().unwrap();
    let directory = plane.dir().to_owned();
    let mut command = std::process::Command::new("sleep");
    command.arg("1000");
    let sleeper = plane.spawn("sleeper", command).unwrap();
    let script = plane.detach(vec![sleeper]).unwrap();

    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client);
    assert!(namespaces.get("default").await.is_ok(), "it runs on without its owner");
    assert_eq!(marked_processes(&directory).len(), 3, "etcd, the API server and what was spawned");

    let ended = std::process::Command::new("sh").arg(script).status().unwrap();
    assert!(ended.success());
    wait_for("its processes and its directory to be gone", SOON, async || {
        let left = marked_processes(&directory);
        ensure!(left.is_empty() && !directory.exists(), "processes {left:?}, {}", directory.display());
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn an_invalid_object_is_reported_with_its_problem() {
    let plane = ControlPlane::shared(Options::everything()).await.unwrap();
    let client = plane.client().unwrap();
    let unserved = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}";
    let error = format!("{:#}", apply(&client, "default", unserved).await.unwrap_err());
    assert!(error.contains("Gadget g") && error.contains("example.com/v1"), "{error}");

    let empty = tempdir();
    let error = format!("{:#}", poolwright_plane::install_crds(&client, &empty).await.unwrap_err());
    assert!(error.contains("make crds"), "{error}");
    std::fs::remove_dir(empty).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("poolwright-harness-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// Returns the processes of this machine that carry the mark of `directory` in their environment.
fn marked_processes(directory: &Path) -> Vec<String> {
    let mark = format!("POOLWRIGHT_PLANE={}", directory.display());
    let entries = std::fs::read_dir("/proc").map(|all| all.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let marked = |path: &Path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    entries
        .iter()
        .filter(|e| marked(&e.path()))
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect()
}
