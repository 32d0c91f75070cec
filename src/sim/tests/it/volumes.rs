//! Replays of pods that use PersistentVolumeClaims: the simulated cluster binds them as Kubernetes does.

use std::time::Duration;

use poolwright_report::replay::{End, History};
use poolwright_sim::cluster::JobPlan;
use poolwright_terms::labels::ZONE;
use serde_json::{Value, json};

use crate::kit;

/// A StorageClass that creates volumes in this zone.
fn class(mode: &str, zone: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
        "provisioner": "disk.example.com", "volumeBindingMode": mode,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]})
}

fn claim_spec() -> Value {
    json!({"storageClassName": "disk", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}}})
}

fn claim() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"},
        "spec": claim_spec()})
}

/// Plays a Job of one pod with this volume. All nodes are in zone `us-east-1a`.
fn played(objects: Vec<Value>, mut volume: Value) -> History {
    let mut spec = kit::gpu_pod(1);
    volume["name"] = json!("data");
    spec["volumes"] = json!([volume]);
    let job = JobPlan {
        length: Some(Duration::from_mins(5)),
        kept: Some(Duration::ZERO),
        ..JobPlan::new("train", Duration::ZERO, 1, spec)
    };
    kit::replay(&["g4dn.xlarge"], None, objects, vec![job]).run(&mut |_| true).expect("it is played")
}

fn is_finished(history: &History) -> bool {
    let ends: Vec<_> = history.pods.iter().map(|pod| pod.ended).collect();
    matches!(ends[..], [Some((_, End::Finished))])
}

fn of_claim() -> Value {
    json!({"persistentVolumeClaim": {"claimName": "data"}})
}

#[test]
fn a_claim_that_waits_for_its_pod_is_bound_where_its_class_creates_volumes_and_nowhere_else() {
    let here = played(vec![class("WaitForFirstConsumer", "us-east-1a"), claim()], of_claim());
    assert!(is_finished(&here), "{:?}", here.waiting);
    let elsewhere = played(vec![class("WaitForFirstConsumer", "us-east-1d"), claim()], of_claim());
    assert_eq!(elsewhere.machines.len(), 0, "no node of zone us-east-1a is of use");
    assert!(elsewhere.waiting[0].reason.is_some(), "the pod hears why it waits");
}

#[test]
fn a_claim_of_a_class_that_does_not_wait_is_bound_at_once() {
    let history = played(vec![class("Immediate", "us-east-1a"), claim()], of_claim());
    assert!(is_finished(&history), "{:?}", history.waiting);
}

#[test]
fn a_bound_claim_leads_its_pod_to_the_zone_of_its_volume_also_by_the_label_of_a_csi_driver() {
    let bound = |zone: &str| {
        let here = json!({"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]});
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
                "claimRef": {"namespace": "default", "name": "data"},
                "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}});
        let mut claim = claim();
        claim["spec"]["volumeName"] = json!("pv");
        played(vec![volume, claim], of_claim())
    };
    assert!(is_finished(&bound("us-east-1a")));
    assert_eq!(bound("us-east-1d").machines.len(), 0);
}

/// Plays two pods with one claim of this access mode. Each fills a node.
fn sharing(mode: &str, length: Option<Duration>) -> History {
    sharing_of(kit::gpu_pod(1), mode, length)
}

fn sharing_of(mut spec: Value, mode: &str, length: Option<Duration>) -> History {
    let mut claim = claim();
    claim["spec"]["accessModes"] = json!([mode]);
    let mut volume = of_claim();
    volume["name"] = json!("data");
    spec["volumes"] = json!([volume]);
    let job = |name: &str| JobPlan {
        length,
        kept: Some(Duration::ZERO),
        pod_names: vec![name.to_owned()],
        ..JobPlan::new(name, Duration::ZERO, 1, spec.clone())
    };
    let objects = vec![class("Immediate", "us-east-1a"), claim];
    let jobs = vec![job("first"), job("second")];
    kit::replay(&["g4dn.xlarge"], None, objects, jobs).run(&mut |_| true).expect("it is played")
}

#[test]
fn a_pod_starts_when_no_pod_of_another_node_uses_its_volume_for_one_node() {
    let history = sharing("ReadWriteOnce", Some(Duration::from_mins(5)));
    let mut spans: Vec<_> =
        history.pods.iter().map(|pod| (pod.started, pod.ended.map(|(at, _)| at))).collect();
    spans.sort();
    let [(Some(_), Some(ended)), (Some(next), Some(_))] = spans[..] else { panic!("{:?}", history.pods) };
    assert!(next >= ended, "the second starts at {next:?}, and the first ends at {ended:?}");
    let endless = sharing("ReadWriteOnce", None);
    let [told] = &endless.waiting[..] else { panic!("{:?}", endless.waiting) };
    assert_eq!((told.reason.as_deref(), told.count), (Some("FailedAttachVolume"), 1));
    assert!(told.example.contains("PersistentVolumeClaim default/data (ReadWriteOnce)"), "{}", told.example);
    let started = |history: &History| history.pods.iter().filter(|pod| pod.started.is_some()).count();
    assert_eq!((started(&endless), started(&sharing("ReadWriteMany", None))), (1, 2));
}

#[test]
fn a_pod_that_waits_for_a_claim_for_one_pod_hears_why_from_the_scheduler() {
    // The node of the first has room for both.
    let mut spec = kit::gpu_pod(1);
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
    let history = sharing_of(spec, "ReadWriteOncePod", None);
    let [told] = &history.waiting[..] else { panic!("{:?}", history.waiting) };
    assert_eq!((told.reason.as_deref(), told.count), (Some("Unschedulable"), 1));
    assert!(told.example.contains("ReadWriteOncePod access mode already in-use"), "{}", told.example);
}

#[test]
fn pods_keep_the_names_that_their_plan_gives_them() {
    let history = sharing("ReadWriteMany", None);
    let names: Vec<String> = history.pods.iter().map(|pod| pod.model.key.name().into_owned()).collect();
    assert!(names.len() == 2 && names.iter().all(|name| name == "first" || name == "second"), "{names:?}");
}

#[test]
fn the_claim_of_an_ephemeral_volume_is_made_with_its_pod() {
    let volume = json!({"ephemeral": {"volumeClaimTemplate": {"spec": claim_spec()}}});
    let history = played(vec![class("WaitForFirstConsumer", "us-east-1a")], volume);
    assert!(is_finished(&history), "{:?}", history.waiting);
}

#[test]
fn the_pods_of_a_pod_group_run_together_or_not_at_all() {
    let played = |limit: u32| {
        let group = json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
            "metadata": {"name": "llm", "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}});
        let mut spec = kit::gpu_pod(1);
        spec["schedulingGroup"] = json!({"podGroupName": "llm"});
        // Two Jobs, like the masters and the workers of a training.
        let job = |name: &str, pods: u32| JobPlan::new(name, Duration::ZERO, pods, spec.clone());
        let jobs = vec![job("master", 1), job("worker", 3)];
        let mut replay = kit::replay(&["g4dn.xlarge"], None, vec![group], jobs);
        replay.objects[1]["spec"]["limits"] = json!({"nodes": limit});
        replay.run(&mut |_| true).expect("it is played")
    };
    let running = |history: &History| history.pods.iter().filter(|pod| pod.started.is_some()).count();
    assert_eq!(running(&played(4)), 4);
    let short = played(3);
    assert_eq!((running(&short), short.machines.len()), (0, 0), "three nodes are of no use");
}
