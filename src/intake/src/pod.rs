//! Pods.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use poolwright_api::FieldProblem;
use poolwright_core::{ObjectKey, Pod, PodHealth, PodKey, PodPhase, PodRole, PodSpec, Uid};

use crate::error::{IntakeError, OfObject, object_name};
use crate::others::{self, Owner};
use crate::{
    admission, duration, ending, gang_marks, pod_groups, preferences, quota_scope, requests, rules,
    unmodelled, volumes,
};

/// The scheduler of pods that name none.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// Set by the kubelet on the API object of a static pod.
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

/// Converts a pod.
///
/// Fails only for quantities and host ports that an API server would refuse. Scheduling rules that cannot be evaluated do not
/// fail. They go into [`PodSpec::unmodelled`], so a bound pod still counts and a waiting pod gets an explanation.
pub fn pod(from: &k8s::Pod) -> Result<Pod, IntakeError> {
    let meta = &from.metadata;
    convert(from, "spec").map_err(|problem| {
        problem.of(object_name("Pod", meta.namespace.as_deref().or(Some("default")), meta.name.as_deref()))
    })
}

/// Converts a pod. `path` is the path of the spec in the user's object.
pub(crate) fn convert(from: &k8s::Pod, path: &str) -> Result<Pod, FieldProblem> {
    let meta = &from.metadata;
    let nothing = k8s::PodSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let nominated = from.status.as_ref().and_then(|status| status.nominated_node_name.clone());
    let key = key_of(meta);
    let priority = priority(spec);
    let labels = meta.labels.clone().unwrap_or_default();
    let owner = Owner { namespace: &key.namespace, labels: &labels };
    let model = pod_spec(path, owner, spec, from.status.as_ref())?;
    let (gang, mark) = gang_marks::of_pod(from, spec).unzip();
    Ok(Pod {
        uid: uid_of(meta),
        duration: duration::of(from, &model.requests, priority),
        spec: model.into(),
        request_origins: requests::request_origins(path, spec, from.status.as_ref())?,
        labels: labels.into(),
        owner: owner_of(meta),
        volumes: volumes::of_pod(&key.name, spec),
        priority,
        scheduler: spec.scheduler_name.clone().unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned()),
        group: pod_groups::group_of(spec).or_else(|| gang_marks::other_group(meta)).or(gang),
        gang: mark.map(Box::new),
        role: role(meta),
        daemonset: daemonset_of(meta),
        replaces: None,
        phase: phase(from, spec),
        health: health(from.status.as_ref()),
        reserved_for: rules::reserved_for(spec.tolerations.as_deref().unwrap_or_default()),
        nominated_node: nominated.filter(|name| !name.is_empty()),
        deleting_since: meta.deletion_timestamp.as_ref().map(|time| time.0),
        created: meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        ending: ending::of(from, spec),
        scopes: quota_scope::of_pod(spec),
        key: PodKey::Existing(key),
    })
}

/// Returns the spec of a pod in core's model. `path` is the path of the spec. The status has the sizes of a resized pod.
pub(crate) fn pod_spec(
    path: &str,
    owner: Owner<'_>,
    spec: &k8s::PodSpec,
    status: Option<&k8s::PodStatus>,
) -> Result<PodSpec, FieldProblem> {
    let mut unmodelled = unmodelled::find(path, spec);
    let (host_ports, problems) = others::host_ports(path, spec);
    if let Some(first) = problems.into_iter().next() {
        return Err(first);
    }
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let node_affinity =
        rules::node_affinity(&format!("{path}.affinity.nodeAffinity"), affinity, &mut unmodelled);
    let tolerations =
        rules::tolerations(path, spec.tolerations.as_deref().unwrap_or_default(), &mut unmodelled);
    Ok(PodSpec {
        requests: requests::requests(path, spec, status)?,
        node_selector: spec.node_selector.clone().unwrap_or_default(),
        node_affinity,
        enforced: None,
        tolerations,
        gpu_share: None,
        volumes: Vec::new(),
        host_ports,
        spreads: others::spreads(path, owner, spec, &mut unmodelled),
        preferences: preferences::preferences(path, owner, spec),
        affinity: others::affinity(path, owner, spec, &mut unmodelled),
        anti_affinity: others::anti_affinity(path, owner, spec, &mut unmodelled),
        unmodelled,
    })
}

pub(crate) fn key_of(meta: &ObjectMeta) -> ObjectKey {
    let namespace = meta.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default");
    ObjectKey::new(namespace, meta.name.clone().unwrap_or_default())
}

/// Returns the UID, or one derived from the name for an object that was never stored.
pub(crate) fn uid_of(meta: &ObjectMeta) -> Uid {
    let made_up = || meta.namespace.iter().chain(&meta.name).cloned().collect::<Vec<_>>().join("/");
    Uid(meta.uid.clone().unwrap_or_else(made_up))
}

/// Returns the priority from admission. For a pod without admission, that of Kubernetes' two built-in classes.
fn priority(spec: &k8s::PodSpec) -> i32 {
    let class = spec.priority_class_name.as_deref();
    spec.priority.or_else(|| admission::built_in(class?)).unwrap_or_default()
}

pub(crate) fn owner_of(meta: &ObjectMeta) -> Option<Uid> {
    controller_of(meta).map(|owner| Uid(owner.uid.clone()))
}

fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Returns the name of the DaemonSet that is the controller of a pod, if it is written.
fn daemonset_of(meta: &ObjectMeta) -> Option<String> {
    let owner = controller_of(meta).filter(|_| role(meta) == PodRole::DaemonSet)?;
    Some(owner.name.clone()).filter(|name| !name.is_empty())
}

fn role(meta: &ObjectMeta) -> PodRole {
    if meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR_ANNOTATION)) {
        return PodRole::Mirror;
    }
    match controller_of(meta)
        .map(|owner| (owner.api_version.split('/').next().unwrap_or_default(), owner.kind.as_str()))
    {
        Some(("apps", "DaemonSet")) => PodRole::DaemonSet,
        Some(("v1", "Node")) => PodRole::Mirror,
        _ => PodRole::Workload,
    }
}

/// Returns the health of a pod. A pod without a phase was never stored, so nothing is known about it.
fn health(status: Option<&k8s::PodStatus>) -> PodHealth {
    let Some(status) = status else { return PodHealth::default() };
    let mut conditions = status.conditions.iter().flatten();
    match status.phase.as_deref() {
        None => PodHealth::default(),
        Some("Pending") => PodHealth::Pending,
        Some(_) if conditions.any(|one| one.type_ == "Ready" && one.status == "True") => PodHealth::Ready,
        Some(_) => PodHealth::NotReady,
    }
}

fn phase(from: &k8s::Pod, spec: &k8s::PodSpec) -> PodPhase {
    let status = from.status.as_ref();
    if matches!(status.and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed")) {
        return PodPhase::Finished;
    }
    if let Some(node) = spec.node_name.as_ref().filter(|name| !name.is_empty()) {
        return PodPhase::Bound { node: node.clone() };
    }
    if spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        return PodPhase::Gated;
    }
    let scheduled = status
        .and_then(|status| status.conditions.as_ref())
        .and_then(|conditions| conditions.iter().find(|condition| condition.type_ == "PodScheduled"));
    match scheduled {
        Some(condition)
            if condition.status == "False" && condition.reason.as_deref() == Some("Unschedulable") =>
        {
            let created = from.metadata.creation_timestamp.as_ref();
            let since = condition.last_transition_time.as_ref().or(created);
            PodPhase::Unschedulable {
                since: since.map_or(Timestamp::UNIX_EPOCH, |time| time.0),
                message: condition.message.clone().unwrap_or_default(),
            }
        }
        _ => PodPhase::Waiting,
    }
}
