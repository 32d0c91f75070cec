//! What goes when a controller gets fewer replicas: the controllers between it and its pods get fewer too, and delete pods.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::objects::{Object, REVISION, group, meta};

/// The kinds of controllers that other controllers scale.
pub(super) const SETS: [&str; 3] = ["ReplicaSet", "ReplicationController", "StatefulSet"];

/// The label that tells the pods of the ReplicaSets of a Deployment apart.
pub(super) const HASH: &str = "pod-template-hash";

/// The same of a Rollout of Argo.
const ROLLOUT_HASH: &str = "rollouts-pod-template-hash";

/// The annotation of a pod that makes a ReplicaSet keep it longer than others.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Returns how many replicas the set of a controller has, if only one set of it has any. During a rollout several have some, and
/// together they may have more than their controller.
pub(super) fn replicas_of_only_set(objects: &[Object], controller: usize) -> u64 {
    let sizes = sets_of(objects, controller).into_iter().map(|at| replicas(&objects[at]));
    match sizes.filter(|replicas| *replicas > 0).collect::<Vec<_>>().as_slice() {
        [only] => *only,
        _ => 0,
    }
}

/// Gives the sets of a controller at most this many replicas together, and removes the pods that are deleted then. Returns their
/// number.
pub(super) fn scale_down(objects: &mut Vec<Object>, controller: usize, most: u64) -> usize {
    let sets = sets_of(objects, controller);
    let stand = sets.iter().map(|at| replicas(&objects[*at])).fold(0, u64::saturating_add);
    let mut excess = stand.saturating_sub(most);
    let mut makers: Vec<(Owner, u64)> = Vec::new();
    for at in sets {
        let stated = replicas(&objects[at]);
        let fewer = excess.min(stated);
        excess -= fewer;
        if fewer > 0 {
            objects[at].value["spec"]["replicas"] = json!(stated - fewer);
        }
        makers.push((Owner::of(&objects[at]), stated - fewer));
    }
    if makers.is_empty() {
        makers.push((Owner::of(&objects[controller]), most));
    }
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    for (maker, keeps) in makers {
        gone.extend(maker.deleted(objects, keeps));
    }
    with_controlled(objects, &mut gone);
    let pods = gone.iter().filter(|at| objects[**at].kind == "Pod").count();
    let mut at = 0;
    objects.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    pods
}

/// Returns the sets that an object controls, in the order in which it scales them down: a Deployment begins with the oldest.
fn sets_of(objects: &[Object], controller: usize) -> Vec<usize> {
    let owner = Owner::of(&objects[controller]);
    let is_set = |at: &usize| {
        let object = &objects[*at];
        SETS.contains(&object.kind.as_str()) && object.value["spec"].is_object() && owner.controls(object)
    };
    let mut sets: Vec<usize> = (0..objects.len()).filter(is_set).collect();
    let revision = |at: &usize| {
        let stated = &objects[*at].value["metadata"]["annotations"][REVISION];
        stated.as_str().and_then(|revision| revision.parse::<u64>().ok())
    };
    sets.sort_by_key(revision);
    sets
}

pub(super) fn replicas(set: &Object) -> u64 {
    set.value["spec"]["replicas"].as_u64().unwrap_or(1)
}

/// Adds everything that these objects control, at any depth, as the garbage collector would.
fn with_controlled(objects: &[Object], gone: &mut BTreeSet<usize>) {
    let mut by_owner: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, object) in objects.iter().enumerate() {
        if let Some(uid) = controller(object).and_then(|controller| controller["uid"].as_str()) {
            by_owner.entry(uid).or_default().push(at);
        }
    }
    let mut open: Vec<usize> = gone.iter().copied().collect();
    while let Some(at) = open.pop() {
        let controlled = meta(&objects[at].value, "uid").and_then(|uid| by_owner.get(uid));
        open.extend(controlled.into_iter().flatten().filter(|other| gone.insert(**other)));
    }
}

/// Returns the reference of an object to its controller.
pub(super) fn controller(object: &Object) -> Option<&Value> {
    let references = object.value["metadata"]["ownerReferences"].as_array()?;
    references.iter().find(|one| one["controller"] == true)
}

/// Returns the kind of the sets that a controller makes and names; `None` if it makes its pods itself.
/// Other groups have kinds of the same names that make none, such as the Rollouts of OpenKruise.
pub(super) fn kind_of_sets(group: &str, controller: &str) -> Option<&'static str> {
    match (group, controller) {
        ("apps", "Deployment") | ("argoproj.io", "Rollout") => Some("ReplicaSet"),
        ("apps.openshift.io", "DeploymentConfig") => Some("ReplicationController"),
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => Some("StatefulSet"),
        _ => None,
    }
}

/// Returns whether the labels of a pod allow that it is of a ReplicaSet of this controller. A Deployment and a Rollout of Argo may have
/// one name, and so may name their ReplicaSets alike.
pub(super) fn is_labelled_by(controller: &str, pod: &Object) -> bool {
    let labels = &pod.value["metadata"]["labels"];
    match controller {
        "Deployment" => labels[ROLLOUT_HASH].is_null(),
        "Rollout" => labels[HASH].is_null() || !labels[ROLLOUT_HASH].is_null(),
        _ => true,
    }
}

/// Returns whether a set of this kind is named as that of a controller of this name. A set of `web` is named `web-` and a hash or number;
/// that of a LeaderWorkerSet has its name.
pub(super) fn is_named_after(controller: &str, kind: &str, set: &str) -> bool {
    match set.strip_prefix(controller) {
        Some("") => kind == "StatefulSet",
        Some(rest) => kind != "StatefulSet" && rest.starts_with('-') && !rest[1..].contains('-'),
        None => false,
    }
}

/// Returns whether it is a pod that has not ended and is not being deleted.
pub(super) fn is_active_pod(object: &Object) -> bool {
    let has_ended = matches!(object.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    object.kind == "Pod" && !has_ended && object.value["metadata"]["deletionTimestamp"].is_null()
}

/// A controller.
pub(super) struct Owner {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    uid: Option<String>,
    /// The number of its first pod, if they are numbered.
    first: u64,
}

impl Owner {
    pub fn of(object: &Object) -> Self {
        Self {
            group: group(&object.api_version).to_owned(),
            kind: object.kind.clone(),
            namespace: object.namespace().to_owned(),
            name: meta(&object.value, "name").unwrap_or_default().to_owned(),
            uid: meta(&object.value, "uid").map(str::to_owned),
            first: object.value["spec"]["ordinals"]["start"].as_u64().unwrap_or(0),
        }
    }

    /// Returns whether it controls an object: by its UID, and where either side has none, by its name.
    fn controls(&self, object: &Object) -> bool {
        object.namespace() == self.namespace
            && controller(object).is_some_and(|one| match (self.uid.as_deref(), one["uid"].as_str()) {
                (Some(own), Some(uid)) if !uid.is_empty() => own == uid,
                _ => one["kind"] == *self.kind && one["name"] == *self.name,
            })
    }

    /// Returns whether it makes a pod: itself, or through a set that is not among the objects and that its name shows.
    fn makes(&self, pod: &Object) -> bool {
        let Some(set) = kind_of_sets(&self.group, &self.kind) else { return self.controls(pod) };
        let is_of = |set_name: &str| is_named_after(&self.name, set, set_name);
        pod.namespace() == self.namespace
            && is_labelled_by(&self.kind, pod)
            && controller(pod)
                .is_some_and(|one| one["kind"] == set && one["name"].as_str().is_some_and(is_of))
    }

    /// Returns the pods that it deletes to have this many.
    fn deleted(&self, objects: &[Object], keeps: u64) -> Vec<usize> {
        let pods = objects.iter().enumerate();
        let pods = pods.filter(|(_, object)| is_active_pod(object) && self.makes(object));
        self.surplus(pods.collect(), keeps)
    }

    /// Returns which of its active pods it deletes to have this many: those with the highest numbers if they are numbered, otherwise
    /// those that are the least use (`ActivePodsWithRanks` in Kubernetes).
    pub fn surplus(&self, mut pods: Vec<(usize, &Object)>, keeps: u64) -> Vec<usize> {
        if ["StatefulSet", "LeaderWorkerSet"].contains(&self.kind.as_str()) {
            let kept = self.first..self.first.saturating_add(keeps);
            pods.retain(|(_, pod)| number(pod).is_some_and(|number| !kept.contains(&number)));
        } else {
            pods.sort_by_cached_key(|(_, pod)| usefulness(pod));
            let keeps = usize::try_from(keeps).unwrap_or(usize::MAX);
            pods.truncate(pods.len().saturating_sub(keeps));
        }
        pods.into_iter().map(|(at, _)| at).collect()
    }
}

/// Returns the number at the end of a pod's name.
pub(super) fn number(pod: &Object) -> Option<u64> {
    meta(&pod.value, "name")?.rsplit_once('-')?.1.parse().ok()
}

/// Returns a key that sorts the pods of a ReplicaSet in the order in which it deletes them: pods without a node, that do not run,
/// that are not ready, that cost little to delete, and new ones first.
fn usefulness(pod: &Object) -> (bool, u8, bool, i64, Reverse<String>, String) {
    let (meta_data, status) = (&pod.value["metadata"], &pod.value["status"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let has_node = pod.value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let phase = match status["phase"].as_str() {
        Some("Running") => 2,
        Some("Unknown") => 1,
        _ => 0,
    };
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_ready = conditions.any(|one| one["type"] == "Ready" && one["status"] == "True");
    let cost = meta_data["annotations"][DELETION_COST].as_str().and_then(|cost| cost.parse().ok());
    let created = Reverse(text(&meta_data["creationTimestamp"]));
    (has_node, phase, is_ready, cost.unwrap_or(0), created, text(&meta_data["name"]))
}
