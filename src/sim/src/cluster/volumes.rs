//! Volumes of Jobs: each lies in one zone, and is attached to the nodes on which its pods run, as by the attach-detach controller.

use std::time::Duration;

use axum::http::Method;
use poolwright_core::{PodKey, PodPhase};
use poolwright_intake::BIND_COMPLETED;
use poolwright_terms::labels;
use serde_json::{Value, json};

use super::{Cluster, Due, read};

/// Milliseconds from the end of the last pod on a node that uses a volume until it is detached from there.
const DETACHES: (u64, u64) = (500, 20_000);
/// Milliseconds from the deletion of a node until its volumes are detached.
const FORCED: (u64, u64) = (1_000, 60_000);
const DRIVER: &str = "disk.example.com";
pub(super) const VOLUMES: &str = "/api/v1/persistentvolumes";
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// Returns the name of a Job's volume, and of the claim bound to it.
pub(super) fn volume_of(job: &str) -> String {
    format!("{job}-data")
}

/// Returns the name of the attachment of a Job's volume to a node.
pub(crate) fn attachment_of(job: &str, node: &str) -> String {
    format!("{}-{node}", volume_of(job))
}

impl Cluster {
    /// Creates the volume of a Job in this zone, and its bound claim.
    pub(super) fn make_volume(&mut self, job: &str, namespace: &str, zone: &str) {
        let name = volume_of(job);
        let here = json!({"key": labels::ZONE, "operator": "In", "values": [zone]});
        let shape = json!({"accessModes": ["ReadWriteMany"], "storageClassName": ""});
        let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
                "csi": {"driver": DRIVER, "volumeHandle": name},
                "claimRef": {"namespace": namespace, "name": name},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}}});
        let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "annotations": {(BIND_COMPLETED): "yes"}}, "spec": shape});
        claim["spec"]["volumeName"] = json!(name);
        claim["spec"]["resources"] = json!({"requests": {"storage": "1Gi"}});
        claim["status"] = json!({"phase": "Bound"});
        let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
        let Some(claim) = self.ask(&Method::POST, &claims, &claim) else { return };
        volume["spec"]["claimRef"]["uid"] = claim["metadata"]["uid"].clone();
        let Some(volume) = self.ask(&Method::POST, VOLUMES, &volume) else { return };
        let bound = json!({"status": {"phase": "Bound"}});
        let claim = self.ask(&Method::PATCH, &format!("{claims}/{name}/status"), &bound).unwrap_or(claim);
        let volume = self.ask(&Method::PATCH, &format!("{VOLUMES}/{name}/status"), &bound).unwrap_or(volume);
        let claim =
            read(&json!({"object": claim})).and_then(|read| poolwright_intake::volume_claim(&read).ok());
        let volume = read(&json!({"object": volume})).and_then(|read| poolwright_intake::volume(&read).ok());
        if let (Some(claim), Some(volume)) = (claim, volume) {
            self.index.apply_volume_claim(claim);
            self.index.apply_volume(volume);
        }
    }

    /// Attaches the volume of a pod's Job to its node, if it has one.
    pub(super) fn attach(&mut self, key: &PodKey, node: &str) {
        let Some(job) = self.job_with_volume(key) else { return };
        let name = attachment_of(&job, node);
        if self.attached.contains_key(&(job.clone(), node.to_owned())) {
            return;
        }
        self.attached.insert((job.clone(), node.to_owned()), self.time.elapsed());
        let attachment = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": name},
            "spec": {"attacher": DRIVER, "nodeName": node, "source": {"persistentVolumeName": volume_of(&job)}}});
        self.ask(&Method::POST, ATTACHMENTS, &attachment);
        self.record.say(format_args!("volume of {job} is attached to {node}"));
    }

    /// Detaches the volumes of all Jobs that have no pod on this node any more, after a while.
    pub(super) fn detach_soon(&mut self, node: &str) {
        let pause = if self.view().nodes.contains_key(node) { DETACHES } else { FORCED };
        if self.attached.keys().any(|(_, on)| on == node) {
            self.after(pause.0, pause.1, Due::Detach { node: node.to_owned() });
        }
    }

    pub(super) fn detach(&mut self, node: &str) {
        let on_node: Vec<String> =
            self.attached.keys().filter(|(_, on)| on == node).map(|(job, _)| job.clone()).collect();
        for job in on_node {
            if self.is_used(&job, node) {
                continue;
            }
            let path = format!("{ATTACHMENTS}/{}", attachment_of(&job, node));
            if self.ask(&Method::DELETE, &path, &Value::Null).is_some() {
                self.record.say(format_args!("volume of {job} is detached from {node}"));
            }
            self.attached.remove(&(job, node.to_owned()));
        }
    }

    /// Returns the Jobs whose volumes are attached to a node without a pod there that uses them, and since when they are attached.
    pub(crate) fn left_volumes(&self, node: &str) -> impl Iterator<Item = (&String, Duration)> {
        let here = self.attached.iter().filter(move |((_, on), _)| on == node);
        here.map(|((job, _), since)| (job, *since)).filter(move |(job, _)| !self.is_used(job, node))
    }

    fn is_used(&self, job: &str, node: &str) -> bool {
        let here = self.view().pods.on_node(node);
        let mut pods = here.into_iter().flat_map(|here| &here.pods);
        pods.any(|pod| {
            matches!(pod.phase, PodPhase::Bound { .. })
                && pod.labels.get("job").is_some_and(|name| name == job)
        })
    }

    /// Returns the zone of the volume of a pod's Job, if it has one.
    pub(crate) fn zone_of_volume(&self, key: &PodKey) -> Option<&str> {
        let (number, _) = self.place(key)?;
        self.jobs[number].plan.volume_in.as_deref()
    }

    fn job_with_volume(&self, key: &PodKey) -> Option<String> {
        let (number, _) = self.place(key)?;
        let plan = &self.jobs[number].plan;
        plan.volume_in.is_some().then(|| plan.name.clone())
    }
}
