//! What operators write on pods about the pods that start together with them. It tells the gangs of pods whose object is not read,
//! by the rules that [`crate::pod_sets`] has for the object.
//!
//! The facts: `ReconcilePods` and `elastic.go` in kubeflow/training-operator, `newLauncherJob` in kubeflow/mpi-operator, `pod.go` in
//! ray-project/kuberay, the labels of jobset.sigs.k8s.io and leaderworkerset.sigs.k8s.io.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_core::{GangMark, GangScheduler, GroupRole};
use poolwright_terms::one_line;

use crate::duration::ignored_annotations;
use crate::error::object_name;
use crate::pod::key_of;
use crate::pod_sets::{self, MPI_ROLE, RAY_NODE, TRAINING_JOB, TRAINING_ROLE, needed_role};

/// Labels and annotations that name the PodGroup of another scheduler. Only that PodGroup says how many pods start together.
const MARKS: [(&str, GangScheduler); 3] = [
    ("scheduling.k8s.io/group-name", GangScheduler::Volcano),
    ("scheduling.volcano.sh/group-name", GangScheduler::Volcano),
    ("scheduling.x-k8s.io/pod-group", GangScheduler::Coscheduling),
];

/// Labels by which older versions of the plugin coscheduling named a group. They are not read.
const UNREAD: [&str; 2] = ["pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"];

/// Returns the name in the model of the PodGroup of another scheduler that a pod belongs to.
pub(crate) fn other_group(meta: &ObjectMeta) -> Option<String> {
    let (labels, annotations) = (meta.labels.as_ref(), meta.annotations.as_ref());
    MARKS.into_iter().find_map(|(key, scheduler)| {
        let label = labels.and_then(|all| all.get(key));
        let name = label.or_else(|| annotations.and_then(|all| all.get(key)))?;
        (!name.is_empty()).then(|| scheduler.model_name(&one_line(name)))
    })
}

/// Returns whether a label or annotation of this key names the PodGroup of another scheduler.
pub fn is_group_mark(key: &str) -> bool {
    MARKS.iter().any(|(known, _)| *known == key)
}

/// Says that a pod without a node is planned singly, although a label names a group that is not read; `None` if there is no such
/// label.
pub fn planned_singly(from: &k8s::Pod) -> Option<String> {
    let (meta, spec) = (&from.metadata, from.spec.as_ref()?);
    let has_node = spec.node_name.as_ref().is_some_and(|node| !node.is_empty());
    if has_node || spec.scheduling_group.is_some() || other_group(meta).is_some() {
        return None;
    }
    told_of_unread(&key_of(meta).namespace, meta.labels.as_ref()?)
}

/// Says that a pod with these labels is planned singly; `None` if none of them names a group that is not read.
pub(crate) fn told_of_unread(namespace: &str, labels: &BTreeMap<String, String>) -> Option<String> {
    let (key, name) = UNREAD.into_iter().find_map(|key| Some((key, labels.get(key)?.as_str())))?;
    let group = object_name("PodGroup", Some(namespace), Some(name));
    Some(format!(
        "`{key}` names {group}, which Poolwright does not read, so the pod is planned singly, not with the others of that group"
    ))
}

/// Returns what Poolwright does not read of a pod: annotations about its duration, and a group of another scheduler.
pub fn ignored_in_pod(from: &k8s::Pod) -> Option<String> {
    let all = [ignored_annotations(from), planned_singly(from)];
    Some(all.into_iter().flatten().collect::<Vec<String>>().join("; ")).filter(|text| !text.is_empty())
}

/// Returns what the gang of a pod stands for, and the mark of the pod. `None` if no operator wrote any on it, or if it belongs to a
/// PodGroup.
pub(crate) fn of_pod(from: &k8s::Pod, spec: &k8s::PodSpec) -> Option<(String, GangMark)> {
    let meta = &from.metadata;
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
    let label = |key: &str| meta.labels.as_ref()?.get(key).map(String::as_str);
    let annotation = |key: &str| meta.annotations.as_ref()?.get(key).map(String::as_str);
    let is_unread = meta.labels.iter().flatten().any(|(key, _)| UNREAD.contains(&key.as_str()));
    if spec.scheduling_group.is_some() || is_unread || other_group(meta).is_some() {
        return None;
    }
    let key = key_of(meta);
    let named = |kind: &str, name: &str| object_name(kind, Some(&key.namespace), Some(name));
    let role = |key: &str, value: &str, name: &str| GroupRole {
        name: name.to_owned(),
        label: (key.to_owned(), value.to_owned()),
        least: 1,
    };
    let group = owner.api_version.split('/').next().unwrap_or_default();
    match (group, owner.kind.as_str()) {
        ("kubeflow.org", kind) if pod_sets::replica_specs(kind).is_some() => {
            let own = [TRAINING_ROLE, MPI_ROLE].into_iter().find_map(|key| Some((key, label(key)?)));
            let role = own.and_then(|(key, value)| {
                let lower = value.to_lowercase();
                Some(role(key, value, needed_role(&lower)?))
            });
            let enough = if kind == "PyTorchJob" { elastic_least(spec) } else { None };
            Some((named(kind, &owner.name), GangMark { role, enough }))
        }
        ("ray.io", "RayCluster") => {
            let is_head = label(RAY_NODE) == Some("head");
            // The operator adds this container to the head if Ray's autoscaler decides about the workers.
            let scales = is_head && spec.containers.iter().any(|one| one.name == "autoscaler");
            let role = is_head.then(|| role(RAY_NODE, "head", "head"));
            Some((named("RayCluster", &owner.name), GangMark { role, enough: scales.then_some(0) }))
        }
        ("batch", "Job") => {
            if let Some(set) = label("jobset.sigs.k8s.io/jobset-name") {
                return Some((named("JobSet", set), GangMark::default()));
            }
            // The launcher of an MPIJob `v2beta1` is a Job.
            let job = label(TRAINING_JOB).filter(|_| label(MPI_ROLE) == Some("launcher"))?;
            let role = Some(role(MPI_ROLE, "launcher", "launcher"));
            Some((named("MPIJob", job), GangMark { role, enough: None }))
        }
        ("apps", "StatefulSet") => {
            let set = label("leaderworkerset.sigs.k8s.io/name")?;
            let index = label("leaderworkerset.sigs.k8s.io/group-index")?;
            let is_alone = annotation("leaderworkerset.sigs.k8s.io/size") == Some("1");
            let gang =
                || (format!("group {index} of {}", named("LeaderWorkerSet", set)), GangMark::default());
            (!is_alone).then(gang)
        }
        _ => None,
    }
}

/// Returns the least number of workers of an elastic PyTorchJob, which its operator writes into the environment of its pods.
fn elastic_least(spec: &k8s::PodSpec) -> Option<u32> {
    let all = spec.containers.iter().flat_map(|container| container.env.iter().flatten());
    let nodes = all.filter(|one| one.name == "PET_NNODES").find_map(|one| one.value.as_deref());
    nodes?.split_once(':')?.0.parse().ok()
}
