//! PersistentVolumeClaims of stored objects and of ephemeral volumes: they are made, and bound at once or with their first pod, as
//! by the volume controllers and the scheduler's volume binder. A new volume is there as soon as its claim is bound.

use std::sync::Arc;

use axum::http::Method;
use poolwright_core::{ObjectKey, Operator, Pod, PodVolume, StorageClass, VolumeClaim};
use poolwright_intake::BIND_COMPLETED;
use poolwright_terms::labels;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::volumes::VOLUMES;
use super::{Cluster, read};
use crate::scheduler::Supply;

fn claims(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims")
}

fn claim_path(key: &ObjectKey) -> String {
    format!("{}/{}", claims(&key.namespace), key.name)
}

fn typed<T: DeserializeOwned>(object: &Value) -> Option<T> {
    read(&json!({"object": object}))
}

impl Cluster {
    /// Tells the components about a stored object that their rules depend on. Pods and nodes are watched instead.
    pub(crate) fn know(&mut self, object: &Value) {
        match object["kind"].as_str().unwrap_or_default() {
            "Namespace" => {
                if let Some(namespace) = typed(object) {
                    self.index.apply_namespace(poolwright_intake::namespace(&namespace));
                }
            }
            "Service" => {
                if let Some(service) = typed(object) {
                    self.index.apply_service(poolwright_intake::service(&service));
                }
            }
            "StorageClass" => {
                if let Some(class) = typed(object) {
                    self.index.apply_storage_class(poolwright_intake::storage_class(&class));
                }
            }
            "PersistentVolume" => {
                let volume = typed(object).and_then(|one| poolwright_intake::volume(&one).ok());
                if let Some(volume) = volume {
                    self.index.apply_volume(volume);
                }
            }
            "PersistentVolumeClaim" => {
                let claim = typed(object).and_then(|one| poolwright_intake::volume_claim(&one).ok());
                if let Some(claim) = claim {
                    self.index.apply_volume_claim(claim);
                }
            }
            "PodDisruptionBudget" => {
                let budget = typed(object).and_then(|one| poolwright_intake::budget(&one).ok());
                if let Some(budget) = budget {
                    self.add_budget(budget);
                }
            }
            "PodGroup" => {
                let group = typed(object).and_then(|one| poolwright_intake::pod_group(&one).ok());
                if let Some(group) = group {
                    self.index.apply_pod_group(group);
                }
            }
            _ => {}
        }
    }

    /// Binds the claims that wait for no pod.
    pub(crate) fn bind_at_once(&mut self) {
        let classes = self.view().storage_classes.values().map(AsRef::as_ref);
        let default = StorageClass::default_of(classes).map(|class| class.name.clone());
        let is_open = |claim: &&Arc<VolumeClaim>| !claim.bound && !claim.lost && !claim.deleting;
        let open: Vec<Arc<VolumeClaim>> =
            self.view().volume_claims.values().filter(is_open).cloned().collect();
        for claim in open {
            let mut claim = claim.as_ref().clone();
            if claim.class.is_none() && claim.volume.is_none() && default.is_some() {
                claim.class.clone_from(&default);
                let patch = json!({"spec": {"storageClassName": default}});
                if let Some(object) = self.ask(&Method::PATCH, &claim_path(&claim.key), &patch) {
                    self.know(&object);
                }
            }
            self.nodes.set_around(self.index.view());
            let Some(supply) = self.nodes.supply_at_once(&claim) else { continue };
            let places = self.first_place_of(&supply);
            self.bind_claim(&claim.key, supply, &places);
        }
    }

    /// Returns the first place where a class creates volumes, as requirements on node labels; empty for everywhere.
    fn first_place_of(&self, supply: &Supply) -> Vec<Value> {
        let Supply::Class(name) = supply else { return Vec::new() };
        let class = self.view().storage_classes.get(name);
        let first = class.and_then(|class| class.allowed.as_ref()?.first().cloned());
        let requirements = first.map(|term| term.requirements).unwrap_or_default();
        let first_value = |requirement: poolwright_core::Requirement| match requirement.operator {
            Operator::In(values) => {
                let value = values.first()?;
                Some(json!({"key": requirement.key, "operator": "In", "values": [value]}))
            }
            _ => None,
        };
        requirements.into_iter().filter_map(first_value).collect()
    }

    /// Binds the claims of a pod that wait for it. New volumes are in the zone of its node.
    pub(super) fn bind_claims(&mut self, pod: &Pod, node: &str) {
        let supplies = self.nodes.supplies(pod, node);
        if supplies.is_empty() {
            return;
        }
        let zone = self.view().nodes.get(node).and_then(|node| node.labels.get(labels::ZONE));
        let here = zone.map(|zone| json!({"key": labels::ZONE, "operator": "In", "values": [zone]}));
        let places: Vec<Value> = here.into_iter().collect();
        for (claim, supply) in supplies {
            self.bind_claim(&claim, supply, &places);
        }
        self.nodes.set_around(self.index.view());
    }

    /// Binds a claim to its volume, and creates the volume if there is none.
    fn bind_claim(&mut self, key: &ObjectKey, supply: Supply, places: &[Value]) {
        let path = claim_path(key);
        let Some(claim) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let volume = match supply {
            Supply::Volume(name) => name,
            Supply::Class(class) => {
                let name = format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap_or_default());
                let volume = self.new_volume((&name, &class), &claim, places);
                if self.ask(&Method::POST, VOLUMES, &volume).is_none() {
                    return;
                }
                name
            }
        };
        let reference = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": key.namespace,
            "name": key.name, "uid": claim["metadata"]["uid"]});
        let of_claim =
            json!({"metadata": {"annotations": {(BIND_COMPLETED): "yes"}}, "spec": {"volumeName": volume}});
        let of_volume = json!({"spec": {"claimRef": reference}});
        let bound = json!({"status": {"phase": "Bound"}});
        for (path, patch) in [(format!("{VOLUMES}/{volume}"), of_volume), (path, of_claim)] {
            self.ask(&Method::PATCH, &path, &patch);
            if let Some(object) = self.ask(&Method::PATCH, &format!("{path}/status"), &bound) {
                self.know(&object);
            }
        }
        self.record.say(format_args!("claim {key} is bound to {volume}"));
    }

    /// Returns the volume that the provisioner of a class creates for a claim.
    fn new_volume(&self, (name, class): (&str, &str), claim: &Value, places: &[Value]) -> Value {
        let known = self.view().storage_classes.get(class);
        let driver = known.and_then(|class| class.provisioner.clone()).unwrap_or_default();
        let wants = &claim["spec"];
        let mut spec = json!({
            "capacity": {"storage": wants["resources"]["requests"]["storage"]},
            "accessModes": wants["accessModes"],
            "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": driver, "volumeHandle": name},
        });
        for field in ["volumeMode", "volumeAttributesClassName"] {
            if !wants[field].is_null() {
                spec[field] = wants[field].clone();
            }
        }
        if !places.is_empty() {
            spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": places}]}});
        }
        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
    }

    /// Makes the claims of the ephemeral volumes of a stored pod, like the ephemeral volume controller.
    pub(super) fn make_ephemeral_claims(&mut self, pod: &Value) {
        let meta = &pod["metadata"];
        let (Some(name), Some(namespace)) = (meta["name"].as_str(), meta["namespace"].as_str()) else {
            return;
        };
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": meta["uid"],
            "controller": true, "blockOwnerDeletion": true});
        let mut has_some = false;
        for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
            let template = &volume["ephemeral"]["volumeClaimTemplate"];
            let Some(volume) = volume["name"].as_str().filter(|_| template.is_object()) else { continue };
            let (labels, annotations) =
                (&template["metadata"]["labels"], &template["metadata"]["annotations"]);
            let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": format!("{name}-{volume}"), "labels": labels, "annotations": annotations,
                    "ownerReferences": [owner]},
                "spec": template["spec"]});
            if let Some(made) = self.ask(&Method::POST, &claims(namespace), &claim) {
                self.know(&made);
                has_some = true;
            }
        }
        if has_some {
            self.bind_at_once();
        }
    }

    /// Deletes the claims of the ephemeral volumes of a deleted pod, with their volumes.
    pub(super) fn drop_ephemeral_claims(&mut self, pod: &Pod) {
        for volume in &pod.volumes {
            let PodVolume::Claim { name, ephemeral: true } = volume else { continue };
            let key = ObjectKey::new(pod.key.namespace(), name);
            let claim = self.view().volume_claims.get(&key).cloned();
            let Some(claim) = claim.filter(|claim| claim.ephemeral_for.as_ref() == Some(&pod.uid)) else {
                continue;
            };
            self.ask(&Method::DELETE, &claim_path(&key), &Value::Null);
            self.index.delete_volume_claim(&key);
            if let Some(volume) = &claim.volume {
                self.ask(&Method::DELETE, &format!("{VOLUMES}/{volume}"), &Value::Null);
                self.index.delete_volume(volume);
            }
        }
    }
}
