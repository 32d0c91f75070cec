//! The PersistentVolumeClaims and StorageClasses that pods of a replay need and the files do not have: those that controllers make,
//! and those that a plan assumes.

use std::sync::Arc;

use poolwright_core::{Operator, Pod, PodPhase, Requirement, Snapshot, StorageClass, VolumeClaim};
use poolwright_intake::{DEFAULT_CLASS, Manifest, SELECTED_NODE};
use serde_json::{Value, json};

use super::left_out::why_left_out;
use crate::plan::assumed_volumes;

/// Returns the claims and classes that the pods of a manifest need besides its own. Adds a note for each that is assumed.
pub(super) fn needed(manifest: &Manifest, notes: &mut Vec<String>) -> Vec<Value> {
    // All pods wait at the beginning, also those that run in the cluster.
    let waiting = |pod: &Pod| {
        let phase = match &pod.phase {
            PodPhase::Bound { .. } => PodPhase::Waiting,
            other => other.clone(),
        };
        (pod.key.clone(), Arc::new(Pod { phase, ..pod.clone() }))
    };
    let claims = manifest.made_claims.iter().chain(&manifest.volume_claims);
    let classes = manifest.storage_classes.iter();
    let mut snapshot = Snapshot {
        pods: manifest.pods.iter().filter(|pod| why_left_out(pod).is_none()).map(waiting).collect(),
        // A claim of the files takes precedence over the claim that its controller would make.
        volume_claims: claims.map(|claim| (claim.key.clone(), Arc::new(claim.clone()))).collect(),
        storage_classes: classes.map(|class| (class.name.clone(), Arc::new(class.clone()))).collect(),
        ..Snapshot::default()
    };
    assumed_volumes::assume(&mut snapshot, &manifest.left_out, notes);
    let is_new =
        |class: &&Arc<StorageClass>| manifest.storage_classes.iter().all(|one| one.name != class.name);
    let classes = snapshot.storage_classes.values().filter(is_new).map(|class| class_object(class));
    // The simulated cluster makes the claims of ephemeral volumes with their pods.
    let is_missing = |claim: &&Arc<VolumeClaim>| {
        claim.ephemeral_for.is_none()
            && claim.over_quota.is_none()
            && manifest.volume_claims.iter().all(|one| one.key != claim.key)
    };
    let claims = snapshot.volume_claims.values().filter(is_missing).map(|claim| claim_object(claim));
    classes.chain(claims).collect()
}

/// Removes what ties a claim to a node of the snapshot: all nodes are new.
pub(super) fn untie(claim: &mut Value) {
    if let Some(annotations) = claim.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(SELECTED_NODE);
    }
}

/// Returns whether a claim is of an ephemeral volume. The simulated cluster makes it anew with its pod.
pub(super) fn is_ephemeral(claim: &Value) -> bool {
    let owners = claim["metadata"]["ownerReferences"].as_array();
    claim["kind"] == "PersistentVolumeClaim"
        && owners.into_iter().flatten().any(|owner| owner["kind"] == "Pod")
}

fn class_object(class: &StorageClass) -> Value {
    let mode = if class.waits_for_pod { "WaitForFirstConsumer" } else { "Immediate" };
    let mut object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": class.name}, "provisioner": class.provisioner, "volumeBindingMode": mode});
    if class.default_since.is_some() {
        object["metadata"]["annotations"] = json!({(DEFAULT_CLASS[0]): "true"});
    }
    object
}

fn claim_object(claim: &VolumeClaim) -> Value {
    let mut modes: Vec<&str> = claim.shape.access_modes.iter().map(String::as_str).collect();
    if modes.is_empty() {
        modes.push(VolumeClaim::ONE_NODE);
    }
    let mut spec = json!({"accessModes": modes,
        "resources": {"requests": {"storage": claim.shape.size.to_string()}}});
    if let Some(class) = &claim.class {
        spec["storageClassName"] = json!(class);
    }
    if let Some(volume) = &claim.volume {
        spec["volumeName"] = json!(volume);
    }
    if claim.shape.block {
        spec["volumeMode"] = json!("Block");
    }
    if !claim.shape.attributes_class.is_empty() {
        spec["volumeAttributesClassName"] = json!(claim.shape.attributes_class);
    }
    if !claim.selector.is_empty() {
        let expressions: Vec<Value> = claim.selector.iter().filter_map(expression).collect();
        spec["selector"] = json!({"matchExpressions": expressions});
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim.key.name, "namespace": claim.key.namespace}, "spec": spec})
}

/// Returns a requirement on labels as in a label selector, which has no comparisons of numbers.
fn expression(requirement: &Requirement) -> Option<Value> {
    let key = &requirement.key;
    Some(match &requirement.operator {
        Operator::In(values) => json!({"key": key, "operator": "In", "values": values}),
        Operator::NotIn(values) => json!({"key": key, "operator": "NotIn", "values": values}),
        Operator::Exists => json!({"key": key, "operator": "Exists"}),
        Operator::DoesNotExist => json!({"key": key, "operator": "DoesNotExist"}),
        Operator::Gt(_) | Operator::Lt(_) | Operator::Gte(_) | Operator::Lte(_) => return None,
    })
}
