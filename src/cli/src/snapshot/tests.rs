//! Tests that a snapshot has what plans read, and nothing that is nobody's business.

mod controllers_and_pools;

use std::fs;

use clap::Parser;
use jiff::Timestamp;
use poolwright_catalog::builtin;
use poolwright_core::SavedSnapshot;
use poolwright_core::plan::{Plan, PlanOptions, plan};
use poolwright_solver::NeverStop;
use serde_json::{Value, json};

use super::kinds::kinds;
use super::saved::{Asked, Header, Refused, SavedCluster};
use super::take::{Taken, take};
use crate::args::{Cli, Command};
use crate::exit::Failure;
use crate::plan::{Input, prepare};

/// What must not be in a snapshot.
const SECRET: &str = "hunter2-c4n4ry";

/// Returns a cluster with these objects, as an API server has them. It forbids lists of `forbidden`.
fn cluster(objects: Vec<Value>, forbidden: &[&str]) -> SavedCluster {
    let asked = kinds().into_iter().map(|kind| Asked {
        group: kind.group.to_owned(),
        resource: kind.plural.to_owned(),
        kind: kind.name.to_owned(),
        refused: forbidden
            .contains(&kind.plural)
            .then(|| Refused { code: 403, message: format!("{} is forbidden", kind.plural) }),
    });
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().expect("a time");
    let header = Header::new(now, "ml", asked.collect(), builtin());
    SavedCluster { name: "cluster".to_owned(), header, items: objects }
}

/// Takes a snapshot of a cluster.
fn taken(of: &SavedCluster) -> Taken {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let header = &of.header;
    let read = async { take(&of.client(), header.catalogue.clone(), header.taken_at).await };
    runtime.block_on(read).expect("the cluster answers")
}

/// Reads the input of `plan --snapshot` with this file.
fn read(name: &str, saved: &SavedCluster) -> (Input, PlanOptions) {
    prepared(name, saved).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn prepared(name: &str, saved: &SavedCluster) -> Result<(Input, PlanOptions), Failure> {
    let file = std::env::temp_dir().join(format!("poolwright-snapshot-{name}-{}.json", std::process::id()));
    fs::write(&file, saved.text()).expect("a file");
    let typed = ["poolwright", "plan", "--snapshot", file.to_str().expect("UTF-8")];
    let Command::Plan(flags) = Cli::try_parse_from(typed).expect("flags").command else {
        panic!("it is plan")
    };
    let read = prepare(&flags.input, None, &flags.search);
    fs::remove_file(&file).expect("the file is there");
    read
}

fn planned((input, options): &(Input, PlanOptions)) -> Plan {
    plan(&input.snapshot, "2026-03-01T12:00:00Z".parse().expect("a time"), options, &mut NeverStop)
}

/// A pod for one GPU, with rules of many kinds.
fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": name, "labels": {"app": "train"},
            "annotations": {"poolwright.dev/expected-duration": "3h"}, "creationTimestamp": "2026-03-01T11:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-5d4", "uid": "rs", "controller": true}]},
        "spec": {"priority": 10, "priorityClassName": "high", "nodeSelector": {"acme.com/tier": "gold"},
            "tolerations": [{"key": "acme.com/gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}],
            "topologySpreadConstraints": [{"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "train"}}}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["train"]}]}}]}},
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"name": "main", "image": "registry/train:1", "resources": {"requests": {"cpu": "1", "memory": "2Gi"},
                "limits": {"nvidia.com/gpu": "1"}}, "ports": [{"containerPort": 80, "hostPort": 8080}]}]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": "2026-03-01T11:59:00Z"}]}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
        pod["status"] = json!({"phase": "Running", "startTime": "2026-03-01T11:30:00Z",
            "conditions": [{"type": "Ready", "status": "True"}]});
    }
    pod
}

/// The objects of a cluster with a node, two pods that wait, and what they refer to.
fn objects() -> Vec<Value> {
    let gpu = json!({"cpu": "3920m", "memory": "14Gi", "pods": "29", "nvidia.com/gpu": "1"});
    let selector = json!({"matchLabels": {"app": "train"}});
    let taint = json!({"key": "acme.com/gpu", "value": "yes", "effect": "NoSchedule"});
    let on_nodes = json!({"acme.com/tier": "gold", "poolwright.dev/nodepool": "gpu", "kubernetes.io/hostname": "gpu-a",
        "topology.kubernetes.io/zone": "us-east-1a", "node.kubernetes.io/instance-type": "g4dn.xlarge"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "uid": "ns", "labels": {"team": "pixels"},
            "annotations": {"poolwright.dev/limit-gpus": "8"}}}),
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "KwokNodeClass", "metadata": {"name": "aws", "uid": "class"},
            "spec": {"provider": "aws"}}),
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu", "uid": "pool"},
            "spec": {"limits": {"nodes": "5"}, "template": {
                "metadata": {"labels": {"acme.com/tier": "gold"}, "annotations": {"note": "a"}},
                "spec": {"taints": [taint], "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"},
                    "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g4dn.xlarge", "g5.xlarge"]},
                        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]}]}}}}),
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
            "metadata": {"name": "gpu-a", "uid": "claim", "labels": {"poolwright.dev/nodepool": "gpu"},
                "ownerReferences": [{"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "name": "gpu", "uid": "pool", "controller": true}],
                "annotations": {"poolwright.dev/reason": "it is the cheapest for 1 pod."}, "creationTimestamp": "2026-03-01T10:00:00Z"},
            "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"}, "pods": ["ml/train-0"],
                "offerings": [{"instanceType": "g4dn.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                    "usdPerHour": "0.526", "allocatable": gpu}]},
            "status": {"providerID": "kwok://gpu-a", "nodeName": "gpu-a", "price": {"usdPerHour": "0.526", "source": "list"},
                "conditions": [{"type": "Initialized", "status": "True", "reason": "Ready", "message": "all is there",
                    "lastTransitionTime": "2026-03-01T10:05:00Z"}]}}),
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-a", "uid": "node", "labels": on_nodes},
            "spec": {"providerID": "kwok://gpu-a", "taints": [taint]},
            "status": {"allocatable": gpu, "conditions": [{"type": "Ready", "status": "True"},
                {"type": "GpuHealthy", "status": "False", "reason": "Xid", "lastTransitionTime": "2026-03-01T11:00:00Z"}]}}),
        pod("train-0", Some("gpu-a")),
        pod("train-1", None),
        pod("train-2", None),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "train-5d4", "namespace": "ml", "uid": "rs"},
            "spec": {"replicas": 3, "selector": selector, "template": {"metadata": {"labels": {"app": "train"}},
                "spec": {"containers": [{"name": "main", "image": "registry/train:1"}]}}}, "status": {"replicas": 3}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "ops", "uid": "ds"},
            "spec": {"selector": selector, "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "a", "image": "agent", "resources": {"requests": {"cpu": "100m"}}}]}}}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "ml", "uid": "pvc",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "fast", "volumeName": "vol-1",
                "resources": {"requests": {"storage": "10Gi"}}}, "status": {"phase": "Bound"}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "vol-1", "uid": "pv"},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "fast",
                "claimRef": {"namespace": "ml", "name": "data"}, "csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}},
            "status": {"phase": "Bound"}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast", "uid": "sc"},
            "provisioner": "efs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "gpu-a", "uid": "cn"},
            "spec": {"drivers": [{"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}}]}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "train", "namespace": "ml", "uid": "pdb", "generation": 1},
            "spec": {"minAvailable": 1, "selector": selector},
            "status": {"observedGeneration": 1, "expectedPods": 3, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual", "namespace": "ops", "uid": "lr"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "256Mi"}, "default": {"memory": "512Mi"}}]}}),
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high", "uid": "pc"}, "value": 10}),
        json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "lot", "namespace": "ml", "uid": "pg"},
            "spec": {"minMember": 3, "minTaskMember": {"shard-reader": 2}, "queue": "slow-lane", "networkTopology": {"highestTierAllowed": 1},
                "subGroupPolicy": [{"name": "half"}], "minResources": {"cpu": "1"}}, "status": {"phase": "Pending", "running": 1}}),
        json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "lot", "namespace": "ml", "uid": "cg"},
            "spec": {"minMember": 2, "scheduleTimeoutSeconds": 10}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "train", "namespace": "ml", "uid": "svc"},
            "spec": {"selector": {"app": "train"}}}),
    ]
}

#[test]
fn a_plan_for_a_snapshot_is_the_plan_for_its_cluster() {
    let cluster = cluster(objects(), &[]);
    let snapshot = taken(&cluster).saved;
    let (there, here) = (read("there", &cluster), read("here", &snapshot));
    assert_eq!(SavedSnapshot::from(&here.0.snapshot), SavedSnapshot::from(&there.0.snapshot));
    assert_eq!(here.1, there.1);
    let plan = planned(&here);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (2, 0), "{:?}", plan.unplaced);
    assert_eq!(here.0.now(&poolwright_controller::clock::SystemClock::new()), cluster.header.taken_at);
}

#[test]
fn a_snapshot_of_a_snapshot_is_the_same() {
    let first = taken(&cluster(objects(), &["limitranges"])).saved;
    let again = taken(&first).saved;
    assert_eq!((&again.items, &again.header.kinds), (&first.items, &first.header.kinds));
}

#[test]
fn a_plan_with_aliases_buys_the_same() {
    let cluster = cluster(objects(), &[]);
    let plain = planned(&read("plain", &taken(&cluster).saved));
    let mut anonymous = taken(&cluster);
    for item in anonymous.saved.items.iter_mut().filter(|item| item["kind"] == "NodeClaim") {
        item["status"]["price"]["source"] = json!("/home/jo/prices.csv");
    }
    anonymous.anonymise();
    let text = anonymous.saved.text();
    for name in [
        "acme",
        "\"train",
        "gpu-a",
        "pixels",
        "\"ml",
        "agent",
        "it is the cheapest",
        "fs-1",
        "all is there",
        "shard-reader",
        "slow-lane",
        "/home/jo",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
    let aliased = planned(&read("aliased", &anonymous.saved));
    assert_eq!((aliased.cost, aliased.claims.len()), (plain.cost, plain.claims.len()));
    let offerings = |plan: &Plan| {
        let offerings = plan.claims.iter().map(|claim| claim.offerings[0].offering.clone());
        offerings.collect::<Vec<_>>()
    };
    assert_eq!(offerings(&aliased), offerings(&plain));
}

/// Returns a container in which every text that a plan does not read is a secret.
fn container() -> Value {
    let probe = json!({"exec": {"command": [SECRET]}, "httpGet": {"path": SECRET, "port": SECRET, "httpHeaders": [{"name": SECRET, "value": SECRET}]}});
    let env = json!([{"name": SECRET, "value": SECRET}, {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": SECRET, "key": SECRET}}},
        {"name": "PET_NNODES", "value": SECRET}]);
    json!({"name": "main", "image": SECRET, "imagePullPolicy": SECRET, "command": [SECRET], "args": [SECRET], "workingDir": SECRET, "env": env,
        "envFrom": [{"prefix": SECRET, "secretRef": {"name": SECRET}}], "livenessProbe": probe, "readinessProbe": probe, "startupProbe": probe,
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}, "postStart": probe}, "terminationMessagePath": SECRET,
        "volumeMounts": [{"name": SECRET, "mountPath": SECRET, "subPath": SECRET}], "volumeDevices": [{"name": SECRET, "devicePath": SECRET}],
        "securityContext": {"seLinuxOptions": {"user": SECRET}}, "ports": [{"name": SECRET, "containerPort": 80}],
        "resources": {"limits": {"cpu": "1"}, "claims": [{"name": SECRET}]}, "unknownField": {"to": {"this": SECRET}}})
}

/// Returns metadata in which every text that a plan does not read is a secret.
fn metadata(name: &str) -> Value {
    json!({"name": name, "namespace": "ml", "uid": name, "generateName": SECRET, "selfLink": SECRET, "resourceVersion": SECRET,
        "finalizers": [SECRET], "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "poolwright.dev/other": SECRET,
            "vault/token": SECRET, SECRET: "x", "kubernetes.io/config.mirror": SECRET},
        "managedFields": [{"manager": SECRET, "fieldsV1": {SECRET: {}}}]})
}

/// Returns the spec of a pod in which every text that a plan does not read is a secret.
fn pod_spec() -> Value {
    json!({"containers": [container()], "initContainers": [container()], "ephemeralContainers": [container()],
        "imagePullSecrets": [{"name": SECRET}], "serviceAccountName": SECRET, "serviceAccount": SECRET, "hostname": SECRET, "subdomain": SECRET,
        "hostAliases": [{"ip": SECRET, "hostnames": [SECRET]}], "dnsConfig": {"nameservers": [SECRET], "options": [{"name": SECRET, "value": SECRET}]},
        "securityContext": {"windowsOptions": {"gmsaCredentialSpec": SECRET}, "sysctls": [{"name": SECRET, "value": SECRET}]},
        "volumes": [{"name": "a", "secret": {"secretName": SECRET, "items": [{"key": SECRET, "path": SECRET}]}},
            {"name": "b", "configMap": {"name": SECRET}}, {"name": "c", "csi": {"driver": SECRET, "volumeAttributes": {"k": SECRET},
                "nodePublishSecretRef": {"name": SECRET}}},
            {"name": "d", "ephemeral": {"volumeClaimTemplate": {"metadata": {"annotations": {"k": SECRET}}, "spec": {"volumeName": SECRET}}}},
            {"name": "e", "rbd": {"image": SECRET, "keyring": SECRET, "secretRef": {"name": SECRET}}}, {"name": "f", "hostPath": {"path": SECRET}},
            {"name": "g", "projected": {"sources": [{"secret": {"name": SECRET}}]}}, {"name": "h", "downwardAPI": {"items": [{"path": SECRET}]}}]})
}

#[test]
fn no_secret_gets_into_a_snapshot() {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": SECRET,
        "lastTransitionTime": "2026-03-01T11:59:00Z"});
    let state = json!({"waiting": {"reason": "Wait", "message": SECRET}, "terminated": {"message": SECRET}});
    let status = json!({"phase": "Pending", "message": SECRET, "podIP": SECRET, "hostIP": SECRET, "conditions": [condition],
        "containerStatuses": [{"name": "main", "image": SECRET, "imageID": SECRET, "containerID": SECRET, "state": state, "lastState": state}]});
    let template = json!({"metadata": metadata("t"), "spec": pod_spec()});
    let spec = json!({"template": template, "replicas": 1, "completions": 1, "volumeClaimTemplates": [{"metadata": metadata("v")}],
        "userData": SECRET, "tags": {"k": SECRET}, "replicatedJobs": [{"name": "r", "template": {"spec": {"template": template}}}],
        "leaderWorkerTemplate": {"workerTemplate": template, "leaderTemplate": template, "volumeClaimTemplates": [{"metadata": metadata("v")}]},
        "externalName": SECRET, "podCIDR": SECRET, "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"k": SECRET},
            "nodeStageSecretRef": {"name": SECRET}}, "drivers": [{"name": "d", "nodeID": SECRET}]});
    let mut all = Vec::new();
    for kind in kinds() {
        let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.name, "metadata": metadata(kind.plural), "parameters": {"k": SECRET},
            "description": SECRET, "data": {"token": SECRET}, "stringData": {"token": SECRET}, "status": {"conditions": [condition]}});
        object["spec"] = spec.clone();
        match kind.name {
            "Pod" => (object["spec"], object["status"]) = (pod_spec(), status.clone()),
            // Their conditions are sentences of Poolwright.
            "NodePool" | "NodeClaim" => object["status"] = json!({}),
            _ if kind.group == poolwright_terms::GROUP => {
                object["spec"] = json!({"userData": SECRET, "tags": {"k": SECRET}, "provider": "aws"});
                object["status"] = json!({});
            }
            _ => {}
        }
        all.push(object);
    }
    let taken = taken(&cluster(all, &[]));
    assert_eq!(taken.saved.items.len(), kinds().len(), "every object is there");
    let text = taken.saved.text();
    let at = text.find(SECRET).map(|at| &text[at.saturating_sub(300)..at + 20]);
    assert_eq!(at, None);
    assert!(text.contains("\"kubernetes.io/config.mirror\":\"\""), "only that it is there counts");
    assert!(taken.summary("f").join("\n").contains("PET_NNODES of 1 pod is"), "what changes plans is told");
}

#[test]
fn an_object_that_somebody_has_broken_is_named() {
    let broken = |kind: &str| {
        let mut saved = taken(&cluster(objects(), &[])).saved;
        let last = saved.items.iter_mut().rfind(|item| item["kind"] == kind).expect("an object");
        last["spec"] = "broken".into();
        prepared(kind, &saved).map(drop).map_err(|failure| format!("{failure:?}"))
    };
    for (kind, named) in [("Pod", "Pod ml/train-"), ("NodePool", "NodePool gpu: ")] {
        let said = broken(kind).expect_err("it cannot be read");
        assert!(said.contains(named), "{said}");
    }
}

#[test]
fn what_could_not_be_listed_is_named_and_stays_forbidden() {
    let taken = taken(&cluster(objects(), &["limitranges", "services"]));
    let told = taken.summary("f.json");
    assert!(told[0].starts_with("Wrote f.json: CSINode 1, DaemonSet 1, "), "{told:?}");
    assert!(told[0].contains("Pod 3, ") && told[0].contains("prices of builtin ("), "{told:?}");
    let expected = "You may not list services (services is forbidden); limitranges (limitranges is forbidden), so the snapshot lacks them";
    assert!(told.iter().any(|line| line.starts_with(expected)), "{told:?}");
    let (input, _) = read("forbidden", &taken.saved);
    let notes = input.notes_about(crate::args::Explainable::Pool, "gpu").join("\n");
    assert!(notes.contains("you may not list limitranges, so DaemonSets count"), "{notes}");
    assert!(!taken.saved.items.iter().any(|item| item["kind"] == "LimitRange"));
}

#[test]
fn a_snapshot_tells_nothing_of_leadership_and_asks_for_no_right_to_list_events() {
    let mut all = objects();
    all.push(json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "lacking", "namespace": "ml", "uid": "sts"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "lacking"}}}, "status": {"replicas": 0}}));
    all.push(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "poolwright-controller", "namespace": "ml", "uid": "lease"},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-03-01T10:00:00.000000Z"}}));
    let (input, _) = read("quiet", &taken(&cluster(all, &[])).saved);
    assert_eq!(input.leadership, None, "the Lease was released then");
    let notes = input.notes_about(crate::args::Explainable::Pool, "gpu").join("\n");
    assert!(notes.contains("; it has no events, so failed launches "), "{notes}");
    assert!(!notes.contains("ask for the right") && !notes.contains("cannot list"), "{notes}");
}

/// Compares the cluster of a snapshot with what these flags make of it.
fn what_if(name: &str, changes: &[&str]) -> Value {
    what_if_of(objects(), name, changes)
}

/// Compares a cluster of these objects with what these flags make of it.
fn what_if_of(objects: Vec<Value>, name: &str, changes: &[&str]) -> Value {
    let file = std::env::temp_dir().join(format!("poolwright-snapshot-{name}-{}.json", std::process::id()));
    fs::write(&file, taken(&cluster(objects, &["limitranges"])).saved.text()).expect("a file");
    let typed = ["poolwright", "what-if", "-o", "json", "--snapshot", file.to_str().expect("UTF-8")];
    let typed = typed.iter().chain(changes).copied();
    let Command::WhatIf(flags) = Cli::try_parse_from(typed).expect("flags").command else {
        panic!("it is what-if")
    };
    let mut out = Vec::new();
    let compared = crate::what_if::run(&flags, &mut out);
    fs::remove_file(&file).expect("the file is there");
    compared.unwrap_or_else(|failure| panic!("{failure:?}"));
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn what_if_changes_prices_and_objects_of_a_snapshot() {
    let dearer = what_if("prices", &["--price", "*=+10%"]);
    assert_eq!(dearer["difference"]["percent"], "+10.0 %", "{dearer}");
    let less = what_if("objects", &["--remove", "rs/train-5d4"]);
    assert_eq!(less["difference"]["removed"], json!(["ml/train-0", "ml/train-1", "ml/train-2"]), "{less}");
    let notes = less["notes"].to_string();
    for said in [
        "as it was at 2026-03-01T12:00:00Z",
        "count as manifests, because some change",
        "the base lacks what you may not list: limitranges (limitranges is forbidden)",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
}

#[test]
fn a_pool_that_is_replaced_by_its_equal_is_no_difference() {
    let mut pool = objects().into_iter().find(|object| object["kind"] == "NodePool").expect("a pool");
    // The file of a user has no UID.
    pool["metadata"].as_object_mut().expect("an object").remove("uid");
    let file = std::env::temp_dir().join(format!("poolwright-snapshot-equal-{}.yaml", std::process::id()));
    fs::write(&file, pool.to_string()).expect("a file");
    let path = file.to_str().expect("UTF-8");
    let same = what_if("equal", &["--pool", path]);
    let emptied = what_if("emptied", &["--remove", "rs/train-5d4", "--pool", path]);
    fs::remove_file(&file).expect("the file is there");
    assert_eq!(same["differs"], false, "{same}");
    let expected = what_if("without-work", &["--remove", "rs/train-5d4"]);
    assert_eq!(emptied["after"]["nodes"], expected["after"]["nodes"], "its idle node goes too: {emptied}");
}

#[test]
fn top_shows_a_snapshot_as_of_its_time_and_says_what_it_lacks() {
    let file = std::env::temp_dir().join(format!("poolwright-snapshot-top-{}.json", std::process::id()));
    fs::write(&file, taken(&cluster(objects(), &[])).saved.text()).expect("a file");
    let typed = ["poolwright", "top", "--once", "-o", "json", "--snapshot", file.to_str().expect("UTF-8")];
    let Command::Top(flags) = Cli::try_parse_from(typed).expect("flags").command else { panic!("it is top") };
    let mut out = Vec::new();
    let shown = crate::top::run(&flags, &mut out);
    fs::remove_file(&file).expect("the file is there");
    shown.unwrap_or_else(|failure| panic!("{failure:?}"));
    let view: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(
        (&view["readAt"], &view["nodes"][0]["node"]),
        (&json!("2026-03-01T12:00:00Z"), &json!("gpu-a"))
    );
    assert_eq!(view["unreadable"], json!({"events": "you may not list events: a snapshot has no events"}));
    assert_eq!(view["podsWaiting"]["unschedulable"], 2);
}
