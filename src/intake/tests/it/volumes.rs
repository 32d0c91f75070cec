//! Tests volumes of pods, their claims, bound volumes, storage classes and volume limits.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use poolwright_core::rules::check_volumes;
use poolwright_core::{ObjectKey, PodVolume, Uid};
use poolwright_intake::manifest::parse;
use poolwright_intake::{node_drivers, pod, storage_class, volume, volume_claim};
use serde_json::{Value, json};

fn claim(meta: Value, spec: Value) -> poolwright_core::VolumeClaim {
    let object = json!({"metadata": meta, "spec": spec});
    let object: PersistentVolumeClaim = serde_json::from_value(object).expect("a claim");
    volume_claim(&object).expect("it converts")
}

fn persistent(meta: Value, spec: Value) -> poolwright_core::Volume {
    let object: PersistentVolume =
        serde_json::from_value(json!({"metadata": meta, "spec": spec})).expect("a volume");
    volume(&object).expect("it converts")
}

#[test]
fn a_pod_names_its_claims_and_ephemeral_ones_bear_its_name() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "ml"},
        "spec": {"containers": [{"image": "x", "name": "a"}], "volumes": [
            {"name": "tmp", "emptyDir": {}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "old", "azureDisk": {"diskName": "d", "diskURI": "/d"}},
        ]},
    });
    let object: Pod = serde_json::from_value(object).unwrap();
    let named = |name: &str, ephemeral| PodVolume::Claim { name: name.into(), ephemeral };
    let attached = PodVolume::Attached { driver: "disk.csi.azure.com".into(), handle: "/d".into() };
    let converted = pod(&object).unwrap();
    assert_eq!(converted.volumes, [named("shared", false), named("web-scratch", true), attached]);
    assert_eq!(converted.spec.unmodelled, []);
}

#[test]
fn a_claim_says_what_it_wants_and_is_bound_when_both_sides_know() {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "gp3", "volumeName": "v",
        "resources": {"requests": {"storage": "5Gi"}},
    });
    let known =
        json!({"name": "data", "namespace": "ml", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}});
    let bound = claim(known, spec.clone());
    assert_eq!(bound.key, ObjectKey::new("ml", "data"));
    assert_eq!((bound.volume.as_deref(), bound.bound, bound.shape.size), (Some("v"), true, 5 << 30));
    assert_eq!(bound.class.as_deref(), Some("gp3"));
    assert!(!claim(json!({"name": "data"}), spec).bound);
    let none = claim(json!({"name": "data"}), json!({}));
    assert_eq!((none.class, none.volume, none.selected_node), (None, None, None));
    let chosen = json!({"name": "d", "annotations": {"volume.kubernetes.io/selected-node": "n1"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": true}]});
    let chosen = claim(chosen, json!({}));
    assert_eq!(chosen.selected_node.as_deref(), Some("n1"));
    assert_eq!(chosen.ephemeral_for, Some(Uid("u1".into())));
}

#[test]
fn a_volume_can_be_used_where_its_affinity_and_its_zone_labels_say() {
    let labels = |zone: &str| BTreeMap::from([("topology.kubernetes.io/zone".to_owned(), zone.to_owned())]);
    let usable =
        |volume: &poolwright_core::Volume, zone: &str| check_volumes(&volume.topology, &labels(zone)).is_ok();
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}]});
    let csi = json!({"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"});
    let spec = json!({"nodeAffinity": {"required": required}, "csi": csi, "capacity": {"storage": "1Gi"}});
    let modern = persistent(json!({"name": "v"}), spec);
    assert!(usable(&modern, "a") && !usable(&modern, "b"));
    assert_eq!(modern.attached, Some(("ebs.csi.aws.com".into(), "vol-1".into())));
    // Old volumes have zone labels, which apply to nodes with a zone label. Two zones are alternatives.
    for key in ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"] {
        let old = persistent(json!({"name": "v", "labels": {key: "a__b"}}), json!({}));
        assert!(usable(&old, "a") && usable(&old, "b") && !usable(&old, "c"), "{key}");
        assert!(check_volumes(&old.topology, &BTreeMap::new()).is_ok(), "{key}");
    }
}

#[test]
fn a_class_without_a_provisioner_makes_no_volumes_and_one_is_the_default() {
    let class = |value: Value| -> poolwright_core::StorageClass {
        storage_class(&serde_json::from_value::<StorageClass>(value).expect("a class"))
    };
    let local = class(json!({"metadata": {"name": "local"}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer"}));
    assert_eq!((local.provisioner, local.waits_for_pod, local.default_since), (None, true, None));
    let default = class(json!({
        "metadata": {"name": "gp3", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "ebs.csi.aws.com",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}],
    }));
    assert!(!default.waits_for_pod, "what is not said is Immediate");
    assert_eq!(default.default_since, Some("2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()));
    assert_eq!(default.allowed.unwrap()[0].requirements[0].to_string(), "zone In [a, b]");
}

#[test]
fn a_node_says_how_many_volumes_it_takes_of_the_drivers_that_limit_them() {
    let object = json!({"metadata": {"name": "n1"}, "spec": {"drivers": [
        {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}},
        {"name": "efs.csi.aws.com", "nodeID": "i-1"},
    ]}});
    let drivers = node_drivers(&serde_json::from_value::<CSINode>(object).unwrap());
    assert_eq!(drivers.node, "n1");
    assert_eq!(drivers.limits, [("ebs.csi.aws.com".to_owned(), 25)].into());
    assert_eq!(drivers.unlimited, ["efs.csi.aws.com".to_owned()].into());
}

const STATEFUL_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: ml}
spec:
  replicas: 2
  selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {storageClassName: gp3, resources: {requests: {storage: 1Gi}}}}
  template:
    spec:
      volumes:
      - name: scratch
        ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
      containers: [{image: x, name: a}]
";

#[test]
fn pods_of_a_file_get_the_claims_that_controllers_would_make() {
    let manifest = parse("db.yaml", STATEFUL_SET).expect("it is read");
    let claims: Vec<String> = manifest
        .made_claims
        .iter()
        .map(|claim| format!("{} {}", claim.key, claim.class.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        claims,
        ["ml/db-0-scratch fast", "ml/data-db-0 gp3", "ml/db-1-scratch fast", "ml/data-db-1 gp3"]
    );
    assert_eq!(manifest.made_claims[0].ephemeral_for.as_ref(), Some(&manifest.pods[0].uid));
    let named = |name: &str, ephemeral| PodVolume::Claim { name: name.into(), ephemeral };
    assert_eq!(manifest.pods[1].volumes, [named("db-1-scratch", true), named("data-db-1", false)]);
}

#[test]
fn a_file_may_hold_claims_volumes_and_classes_and_none_twice() {
    let text = "
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: gp3, accessModes: [ReadWriteOnce],
  resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
  hostPath: {path: /data}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: gp3}, provisioner: ebs.csi.aws.com}
";
    let manifest = parse("storage.yaml", text).expect("it is read");
    assert_eq!(
        (manifest.volume_claims.len(), manifest.volumes.len(), manifest.storage_classes.len()),
        (1, 1, 1)
    );
    let twice = parse("storage.yaml", &format!("{text}---{text}")).expect_err("each is there twice");
    let said: Vec<String> = twice.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("PersistentVolume v: it is there more than once"), "{said:?}");
}

#[test]
fn a_size_that_is_no_quantity_names_the_claim() {
    let object = json!({"metadata": {"name": "data", "namespace": "ml"},
        "spec": {"resources": {"requests": {"storage": "much"}}}});
    let object: PersistentVolumeClaim = serde_json::from_value(object).unwrap();
    let error = volume_claim(&object).expect_err("no quantity").to_string();
    assert!(error.starts_with("PersistentVolumeClaim ml/data: spec.resources.requests.storage: "), "{error}");
}
