//! Reservations: on the real scheduler, new nodes take only the pods that they were bought for. Retiring nodes are closed alike.

mod policies;
mod retiring;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::AuthInfo;
use kube::{Api, Client, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Controller, Random, ScaleUp, Trial, WITHIN, is_running, is_true, node_class, node_pool, pod,
    taint_keys, usd_per_hour,
};
use poolwright_plane::{ControlPlane, apply, unique, wait_for};
use serde_json::{Value, json};

const RESERVED: &str = "poolwright.dev/reserved";
/// The user that deploy/pod-policy.yaml and deploy/node-policy.yaml restrict.
const CONTROLLER: &str = "system:serviceaccount:poolwright:poolwright";

async fn cluster() -> Cluster {
    Trial::shared(&[]).await.unwrap().cluster().unwrap()
}

fn home(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref())
}

/// Returns the values of the reservations that the pod tolerates.
fn let_in(pod: &Pod) -> Vec<String> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
    let ours = tolerations.into_iter().filter(|one| one.key.as_deref() == Some(RESERVED));
    ours.filter_map(|one| one.value).collect()
}

async fn nodes_without_reservation(cluster: &Cluster, pool: &str) -> Vec<Node> {
    wait_for("every node to be open to all", WITHIN, async || {
        let nodes = cluster.nodes(pool).await?;
        for node in &nodes {
            ensure!(!taint_keys(node).iter().any(|key| key == RESERVED), "{} is reserved", node.name_any());
        }
        Ok(nodes)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_small_pod_does_not_take_the_node_of_a_large_pod() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("thief"), cluster.namespace("thief").await.unwrap());
    let requirements = json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge", "g5.12xlarge"]},
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]);
    let class = node_class(&name, json!({"registrationDelay": "2s"}));
    // A node that retires because of the pods of other tests has the same taint.
    let disruption = json!({"retire": "Never"});
    let pool = node_pool(
        &name,
        json!({"template": {"spec": {"requirements": requirements}}, "disruption": disruption}),
    );
    cluster.apply("", &[class, pool]).await.unwrap();
    // The large pod needs the four GPUs of a large node. The small pod fits anywhere, and its priority makes the scheduler try it
    // first.
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
        "value": 1000, "preemptionPolicy": "Never"});
    cluster.apply("", &[class]).await.unwrap();
    let large = pod("large", &name, json!({"cpu": "40", "memory": "64Gi", "nvidia.com/gpu": "4"}));
    let mut small = pod("small", &name, json!({"cpu": "2500m", "memory": "4Gi", "nvidia.com/gpu": "1"}));
    small["spec"]["priorityClassName"] = json!(name);
    cluster.create_pods(&namespace, &[large, small]).await.unwrap();
    let running = cluster.wait_running(&namespace, 2).await.unwrap();
    let claims = cluster.claims(&name).await.unwrap();
    assert_eq!(claims.len(), 2, "nothing was bought beyond the plan");
    for claim in &claims {
        let [planned] = claim.spec.pods.as_slice() else { panic!("{:?}", claim.spec.pods) };
        let pod = running.iter().find(|pod| format!("{namespace}/{}", pod.name_any()) == *planned).unwrap();
        assert_eq!(home(pod), claim.status.as_ref().unwrap().node_name.as_deref(), "as planned");
        assert_eq!(let_in(pod), [claim.name_any()], "one toleration, of its own node");
    }
    let nodes = nodes_without_reservation(&cluster, &name).await;
    assert_eq!(nodes.len(), 2);
    // The rest of the nodes is now open to all pods.
    cluster.apply(&namespace, &[pod("guest", &name, json!({"cpu": "500m"}))]).await.unwrap();
    let running = cluster.wait_running(&namespace, 3).await.unwrap();
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 2);
    let guest = running.iter().find(|pod| pod.name_any() == "guest").unwrap();
    assert_eq!(let_in(guest), [] as [&str; 0], "it needed nothing");
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn small_scale_ups_of_the_trace_have_the_planned_cost() {
    for seed in [11, 12] {
        let cluster = cluster().await;
        let (name, namespace) = (unique("wave"), cluster.namespace("wave").await.unwrap());
        cluster.apply("", &ScaleUp::definitions(&name)).await.unwrap();
        let pods = 50 + Random::new(seed).below(20) as usize;
        let realised =
            ScaleUp::new(seed, pods, &namespace, &name).unwrap().run(&cluster, &namespace).await.unwrap();
        println!("{realised}");
        assert_eq!(realised.stuck, 0, "{realised}");
        assert!(realised.realised * 100 <= realised.planned * 101, "{realised}");
        // The pool's status has the same sums.
        wait_for("the pool's sums", WITHIN, async || {
            let status = cluster.pool(&name).await?.status.context("no status")?;
            let micros = |text: Option<String>| {
                anyhow::Ok((text.context("not there yet")?.parse::<f64>()? * 1e6).round() as u64)
            };
            let (planned, cost) = (micros(status.planned_usd_per_hour)?, micros(status.usd_per_hour)?);
            ensure!((planned, cost) == (realised.planned, realised.realised), "{planned}, {cost}");
            Ok(())
        })
        .await
        .unwrap();
        cluster.delete_pods(&namespace).await.unwrap();
        cluster.wait_nothing_left(&name).await.unwrap();
    }
}

#[tokio::test]
async fn a_reservation_ends_although_its_pod_never_comes() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("waits"), cluster.namespace("waits").await.unwrap());
    let class = node_class(&name, json!({"registrationDelay": "3s"}));
    cluster.apply("", &[class, node_pool(&name, json!({"scaleToZero": {"after": "10m"}}))]).await.unwrap();
    let requests = json!({"cpu": "1", "nvidia.com/gpu": "1"});
    cluster.apply(&namespace, &[pod("leaves", &name, requests)]).await.unwrap();
    wait_for("the claim", WITHIN, async || {
        ensure!(!cluster.claims(&name).await?.is_empty(), "none");
        Ok(())
    })
    .await
    .unwrap();
    // The pod is deleted while its node starts. The node that opens is reserved for nobody, so any pod may use it.
    cluster.delete_pod(&namespace, "leaves").await.unwrap();
    wait_for("the node to open", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.iter().all(|claim| is_true(claim, "Initialized")), "not yet");
        Ok(())
    })
    .await
    .unwrap();
    nodes_without_reservation(&cluster, &name).await;
    cluster.apply(&namespace, &[pod("comes", &name, json!({"cpu": "1"}))]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_controller_killed_between_open_and_toleration_continues() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("killed").await.unwrap();
    let class = node_class("gpu", json!({"registrationDelay": "1s"}));
    cluster.apply("", &[class, node_pool("gpu", json!({}))]).await.unwrap();
    let flags = ["--identity", "killed", "--batch-idle", "200ms", "--list-interval", "1s"];
    let requests = json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"});
    let pods: Vec<Value> = (0..6).map(|at| pod(&format!("train-{at}"), "gpu", requests.clone())).collect();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    let mut controller = Controller::start(&plane, "controller", &flags).unwrap();
    wait_for("a claim with a node", WITHIN, async || {
        controller.ensure_running()?;
        let claims = cluster.claims("gpu").await?;
        let joined =
            |claim: &NodeClaim| claim.status.as_ref().is_some_and(|status| status.node_name.is_some());
        ensure!(claims.iter().any(joined), "none");
        Ok(())
    })
    .await
    .unwrap();
    controller.kill();
    // Simulates a controller that has opened the joined nodes, still reserved, and has not yet added the tolerations.
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    for node in cluster.nodes("gpu").await.unwrap() {
        if !node.labels().contains_key("poolwright.dev/registered") {
            continue;
        }
        let claim = &node.labels()["poolwright.dev/nodeclaim"];
        let opened = json!({
            "metadata": {"annotations": {"poolwright.dev/cordoned-until": null}},
            "spec": {"unschedulable": null, "taints": [{"key": RESERVED, "value": claim, "effect": "NoSchedule"}]},
        });
        nodes.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(opened)).await.unwrap();
    }
    let mut controller = Controller::start(&plane, "controller", &flags).unwrap();
    let running = cluster.wait_running(&namespace, 6).await.unwrap();
    controller.ensure_running().unwrap();
    let claims = cluster.claims("gpu").await.unwrap();
    assert_eq!(
        (claims.len(), cluster.instances("gpu").await.unwrap().len()),
        (6, 6),
        "one node each, bought once"
    );
    assert_eq!(usd_per_hour(&claims).unwrap(), 6 * 1_006_000);
    assert!(running.iter().all(is_running));
    nodes_without_reservation(&cluster, "gpu").await;
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left("gpu").await.unwrap();
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

/// Gives the controller's service account the rights of deploy/rbac.yaml, `without` this verb on this resource, and the rights
/// that the KWOK provider needs. Returns a kubeconfig for that service account.
async fn service_account(plane: &ControlPlane, without: Option<(&str, &str)>) -> PathBuf {
    let client = plane.client().unwrap();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "poolwright"}});
    apply(&client, "", &namespace.to_string()).await.unwrap();
    apply(&client, "", &fs::read_to_string(deploy().join("rbac.yaml")).unwrap()).await.unwrap();
    if let Some((resource, verb)) = without {
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let mut role = roles.get("poolwright-controller").await.unwrap();
        role.metadata.managed_fields = None;
        for rule in role.rules.iter_mut().flatten() {
            if rule.resources.as_deref() == Some(&[resource.to_owned()]) {
                rule.verbs.retain(|one| one != verb);
                rule.verbs.push("get".to_owned());
            }
        }
        roles.replace("poolwright-controller", &PostParams::default(), &role).await.unwrap();
    }
    // The additional rights of the KWOK provider.
    let kwok = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
    "metadata": {"name": "kwok-provider"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["create", "patch", "update", "get", "list", "watch", "delete"]},
        {"apiGroups": ["poolwright.dev"], "resources": ["kwoknodeclasses", "kwoknodeclasses/status"], "verbs": ["*"]},
    ]});
    apply(&client, "", &kwok.to_string()).await.unwrap();
    let subject = json!({"kind": "ServiceAccount", "name": "poolwright", "namespace": "poolwright"});
    for role in ["poolwright-controller", "kwok-provider"] {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": role}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}});
        apply(&client, "", &binding.to_string()).await.unwrap();
    }
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "poolwright-controller", "namespace": "poolwright"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "poolwright-controller"}});
    apply(&client, "poolwright", &binding.to_string()).await.unwrap();
    let text = fs::read_to_string(plane.kubeconfig_path()).unwrap();
    let kubeconfig = plane.dir().join("kubeconfig-controller");
    let acting = format!(
        "{{as: '{CONTROLLER}', as-groups: ['system:serviceaccounts', 'system:authenticated'], token:"
    );
    fs::write(&kubeconfig, text.replace("{token:", &acting)).unwrap();
    kubeconfig
}

/// Returns a client that acts as the controller's service account.
fn as_controller(plane: &ControlPlane) -> Client {
    let mut config = plane.config().clone();
    config.auth_info = AuthInfo { impersonate: Some(CONTROLLER.to_owned()), ..config.auth_info };
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn the_documented_rights_allow_reservations_and_no_other_change_of_a_pod_or_of_a_foreign_node() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let kubeconfig = service_account(&plane, None).await;
    let deployment = fs::read_to_string(deploy().join("deployment.yaml")).unwrap();
    policies::a_deployment_and_its_restricted_pods_are_accepted(&cluster.client, &deployment).await;
    let policy = fs::read_to_string(deploy().join("pod-policy.yaml")).unwrap();
    apply(&cluster.client, "", &policy).await.unwrap();
    let namespace = cluster.namespace("policy").await.unwrap();
    let mut victim = pod("victim", "nobody", json!({"cpu": "1"}));
    victim["spec"]["tolerations"] = json!([{"key": "team", "operator": "Exists"}]);
    cluster.apply(&namespace, &[victim]).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(as_controller(&plane), &namespace);
    let patch = async |patch: Value| {
        let refused = pods.patch("victim", &PatchParams::default(), &Patch::Strategic(patch)).await;
        refused.map(drop).map_err(|error| error.to_string())
    };
    wait_for("the policy to be in force", WITHIN, async || {
        // A new label for each try: until the policy is in force, the patch is accepted.
        let label = json!({"metadata": {"labels": {"try": unique("it")}}});
        let said = patch(label).await.err().context("not refused")?;
        ensure!(said.contains("may not change the metadata"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let there = pods.get("victim").await.unwrap().spec.unwrap().tolerations.unwrap();
    let with = |added: Value| {
        let mut list = serde_json::to_value(&there).unwrap();
        list.as_array_mut().unwrap().push(added);
        json!({"spec": {"tolerations": list}})
    };
    let refusals = [
        (json!({"spec": {"containers": [{"name": "main", "image": "other"}]}}), "may not change the spec"),
        (json!({"metadata": {"finalizers": ["a/b"]}}), "may not change the metadata"),
        (json!({"spec": {"activeDeadlineSeconds": 1}}), "may not change the spec"),
        (with(json!({"operator": "Exists"})), "of poolwright.dev/reserved alone"),
        (with(json!({"key": RESERVED, "operator": "Exists"})), "of poolwright.dev/reserved alone"),
    ];
    for (change, why) in refusals {
        let said = patch(change.clone()).await.expect_err(&change.to_string());
        assert!(said.contains(why), "{change}: {said}");
    }
    let ours = json!({"key": RESERVED, "operator": "Equal", "value": "c", "effect": "NoSchedule"});
    patch(with(ours)).await.unwrap();
    policies::only_nominations_change_a_status(&pods).await;
    policies::only_named_pods_are_ended(&pods).await;

    let policy = fs::read_to_string(deploy().join("node-policy.yaml")).unwrap();
    apply(&cluster.client, "", &policy).await.unwrap();
    let foreign = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "foreign"}, "spec": {"providerID": "x://1"}});
    apply(&cluster.client, "", &foreign.to_string()).await.unwrap();
    let nodes: Api<Node> = Api::all(as_controller(&plane));
    wait_for("the policy of nodes to be in force", WITHIN, async || {
        let change = Patch::Merge(json!({"metadata": {"annotations": {"try": unique("it")}}}));
        let changed = nodes.patch("foreign", &PatchParams::default(), &change).await;
        let said = changed.err().context("not refused")?.to_string();
        ensure!(said.contains("nodes of its own pools alone"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let said =
        nodes.delete("foreign", &DeleteParams::default()).await.expect_err("it is not ours").to_string();
    assert!(said.contains("nodes of its own pools alone"), "{said}");
    policies::only_new_nodes_get_a_pool(&cluster.client, &nodes).await;

    // The whole product works with these rights and these policies.
    let class = node_class("gpu", json!({}));
    cluster.apply("", &[class, node_pool("gpu", json!({}))]).await.unwrap();
    let kubeconfig = kubeconfig.display().to_string();
    let flags = ["--kubeconfig", &kubeconfig, "--lease-namespace", "poolwright"];
    let mut controller = Controller::start(&plane, "controller", &flags).unwrap();
    cluster.delete_pod(&namespace, "victim").await.unwrap();
    let train = pod("train", "gpu", json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    cluster.apply(&namespace, &[train]).await.unwrap();
    let running = wait_for("the pod to run", WITHIN, async || {
        controller.ensure_running()?;
        let pod = Api::<Pod>::namespaced(cluster.client.clone(), &namespace).get("train").await?;
        ensure!(is_running(&pod), "not yet; the controller says\n{}", controller.process().tail(20));
        Ok(pod)
    })
    .await
    .unwrap();
    let claims = cluster.claims("gpu").await.unwrap();
    assert_eq!(let_in(&running), [claims[0].name_any()]);
    nodes_without_reservation(&cluster, "gpu").await;
}

#[tokio::test]
async fn without_the_right_to_patch_pods_they_are_nominated() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let kubeconfig = service_account(&plane, Some(("pods", "patch"))).await.display().to_string();
    let namespace = cluster.namespace("forbidden").await.unwrap();
    cluster.apply("", &[node_class("gpu", json!({})), node_pool("gpu", json!({}))]).await.unwrap();
    let flags = ["--kubeconfig", &kubeconfig, "--lease-namespace", "poolwright"];
    let mut controller = Controller::start(&plane, "controller", &flags).unwrap();
    let requests = json!({"cpu": "3", "memory": "8Gi", "nvidia.com/gpu": "1"});
    let pods: Vec<Value> = (0..3).map(|at| pod(&format!("train-{at}"), "gpu", requests.clone())).collect();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    let running = wait_for("three pods to run", WITHIN, async || {
        controller.ensure_running()?;
        let pods = cluster.pods(&namespace).await?;
        let running = pods.iter().filter(|pod| is_running(pod)).count();
        ensure!(running == 3, "{running} run; the controller says\n{}", controller.process().tail(20));
        Ok(pods)
    })
    .await
    .unwrap();
    assert!(running.iter().all(|pod| let_in(pod).is_empty()));
    nodes_without_reservation(&cluster, "gpu").await;
    let mut said = Vec::new();
    for pod in &running {
        let about = cluster.said_about("Pod", &pod.name_any()).await.unwrap();
        said.extend(about.into_iter().filter(|one| one.reason == "ReservationRefused"));
    }
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].note.contains("cannot patch resource \"pods\""), "{said:?}");
    let counted =
        controller.metric(r#"poolwright_tolerations_refused_total{cause="forbidden"}"#).await.unwrap();
    assert!(counted > 0.5, "{counted}");
}
