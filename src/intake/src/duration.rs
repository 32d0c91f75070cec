//! What a pod says about how long it runs.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::parse_duration;
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{PodDuration, template};
use poolwright_terms::keys::{EXPECTED_DURATION_ANNOTATION, QUEUE_LABEL, RAN_FOR_ANNOTATION};
use serde_json::Value;

/// Kinds of controllers that keep their pods running.
const SERVICES: [&str; 4] = ["ReplicaSet", "ReplicationController", "StatefulSet", "Deployment"];

/// Returns what a pod says about how long it runs. Durations that cannot be read count as not given
/// ([`ignored_annotations`]).
pub(crate) fn of(from: &k8s::Pod, requests: &ResourceList, priority: i32) -> PodDuration {
    let meta = &from.metadata;
    let status = from.status.as_ref();
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let annotation =
        |key: &str| meta.annotations.as_ref()?.get(key).and_then(|text| parse_duration(text).ok());
    let deadline = from.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let mut duration = PodDuration {
        started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
        ran_before: annotation(RAN_FOR_ANNOTATION).unwrap_or_default(),
        expected: annotation(EXPECTED_DURATION_ANNOTATION),
        reported: None,
        deadline: deadline.map(SignedDuration::from_secs),
        is_evicted: status.is_some_and(is_evicted),
        is_service: false,
        kinds: kinds(from, requests, priority),
    };
    if owner.is_some_and(|owner| keeps_running(&owner.kind)) {
        duration.make_service();
    }
    duration
}

/// Returns whether a pod is evicted, preempted, or lost with its node:
/// <https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions>
fn is_evicted(status: &k8s::PodStatus) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|condition| condition.type_ == "DisruptionTarget" && condition.status == "True")
}

/// Returns whether controllers of this kind keep their pods running.
pub(crate) fn keeps_running(kind: &str) -> bool {
    SERVICES.contains(&kind)
}

/// Returns the annotations about its duration that cannot be read and so count as not given, with the remedy.
pub fn ignored_annotations(pod: &k8s::Pod) -> Option<String> {
    let annotations = pod.metadata.annotations.as_ref()?;
    problems(|key| annotations.get(key).map(String::as_str))
}

/// Returns the same for an object of a manifest: for a pod, or for the template in a workload.
pub(crate) fn ignored_in(object: &Value) -> Option<String> {
    let annotations = object.get("metadata").and_then(|meta| meta.get("annotations"));
    let own = annotations.and_then(|all| problems(|key| all.get(key)?.as_str()));
    own.or_else(|| match object {
        Value::Object(fields) => fields.values().find_map(ignored_in),
        Value::Array(items) => items.iter().find_map(ignored_in),
        _ => None,
    })
}

fn problems<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let problem = |key: &str| {
        let error = parse_duration(annotation(key)?).err()?;
        Some(format!("annotation {key}: {error}"))
    };
    let problems = [EXPECTED_DURATION_ANNOTATION, RAN_FOR_ANNOTATION].into_iter().filter_map(problem);
    Some(problems.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty())
}

/// Returns the kinds of work that a pod belongs to, from the narrowest to the widest: its template and size, then its namespace,
/// queue and priority with the number of GPUs, then the number of GPUs. Each name is the end of the one before.
fn kinds(from: &k8s::Pod, requests: &ResourceList, priority: i32) -> Vec<String> {
    let meta = &from.metadata;
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let name = owner.map(|owner| owner.name.as_str()).or(meta.name.as_deref()).unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let queue = meta.labels.as_ref().and_then(|labels| labels.get(QUEUE_LABEL));
    let cpu = requests.get(ResourceName::CPU).div_ceil(1000);
    let memory = requests.get(ResourceName::MEMORY) >> 30;
    let gpus = requests.iter().filter(|(name, _)| name.as_str().starts_with("nvidia.com/"));
    let gpus: u64 = gpus.map(|(_, amount)| amount).sum();
    let widest = format!("{gpus} GPUs");
    let queue = queue.map_or_else(String::new, |queue| format!(", queue {queue}"));
    let priority = if priority == 0 { String::new() } else { format!(", priority {priority}") };
    let middle = format!("namespace {namespace}{queue}{priority}/{widest}");
    vec![format!("{} with {cpu} CPUs, {memory} GiB/{middle}", template(name)), middle, widest]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(annotations: &Value, owner: Option<(&str, &str)>) -> k8s::Pod {
        let owners: Vec<Value> = owner
            .iter()
            .map(|(kind, name)| json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": "o", "controller": true}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "p-7", "namespace": "ml", "annotations": annotations, "ownerReferences": owners,
                "labels": {"kueue.x-k8s.io/queue-name": "night"}},
            "spec": {"activeDeadlineSeconds": 600, "priority": 5, "containers": [{"name": "c", "resources": {"requests":
                {"cpu": "7500m", "memory": "64Gi"}, "limits": {"nvidia.com/gpu": "2"}}}]},
            "status": {"startTime": "2026-01-01T01:00:00Z"},
        }))
        .unwrap()
    }

    fn read(annotations: &Value, owner: Option<(&str, &str)>) -> PodDuration {
        crate::pod(&object(annotations, owner)).unwrap().duration
    }

    #[test]
    fn a_pod_says_how_long_it_runs_and_when_it_began() {
        let said = json!({"poolwright.dev/expected-duration": "1h30m", "poolwright.dev/ran-for": "35h"});
        let duration = read(&said, Some(("Job", "train-28471200")));
        assert_eq!(duration.expected, Some(SignedDuration::from_mins(90)));
        assert_eq!(duration.ran_before, SignedDuration::from_hours(35));
        assert_eq!(duration.deadline, Some(SignedDuration::from_mins(10)));
        assert_eq!(duration.started, Some("2026-01-01T01:00:00Z".parse().unwrap()));
        assert!(!duration.is_service);
        assert_eq!(
            duration.kinds,
            [
                "train with 8 CPUs, 64 GiB/namespace ml, queue night, priority 5/2 GPUs",
                "namespace ml, queue night, priority 5/2 GPUs",
                "2 GPUs"
            ]
        );
        assert_eq!(ignored_annotations(&object(&said, None)), None);
    }

    #[test]
    fn an_annotation_that_is_no_duration_is_named_and_does_not_drop_the_pod() {
        let said = json!({"poolwright.dev/expected-duration": "two hours", "poolwright.dev/ran-for": "-1h"});
        let duration = read(&said, None);
        assert_eq!((duration.expected, duration.ran_before), (None, SignedDuration::ZERO));
        let problem = ignored_annotations(&object(&said, None)).unwrap();
        assert!(
            problem.starts_with(
                "annotation poolwright.dev/expected-duration: `two hours` is not a duration; write"
            ),
            "{problem}"
        );
        assert!(
            problem.contains("; annotation poolwright.dev/ran-for: `-1h` is not a duration"),
            "{problem}"
        );
    }

    #[test]
    fn services_have_kinds_of_their_own() {
        let (service, job) =
            (read(&json!({}), Some(("ReplicaSet", "web"))), read(&json!({}), Some(("Job", "web"))));
        let widest = |duration: &PodDuration| duration.kinds.last().cloned().unwrap_or_default();
        assert_eq!(
            (widest(&service), widest(&job)),
            ("services with 2 GPUs".to_owned(), "2 GPUs".to_owned())
        );
        for (narrow, wide) in service.kinds.iter().zip(&service.kinds[1..]) {
            assert!(narrow.ends_with(&format!("/{wide}")), "{narrow} {wide}");
        }
    }

    #[test]
    fn an_evicted_pod_is_known_by_its_condition() {
        let with = |status: &str| {
            let mut pod = object(&json!({}), Some(("ReplicaSet", "web")));
            let conditions = json!([{"type": "DisruptionTarget", "status": status}]);
            pod.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
            crate::pod(&pod).unwrap().duration.is_evicted
        };
        assert!(with("True") && !with("False"));
    }

    #[test]
    fn pods_of_deployments_and_statefulsets_are_services() {
        for kind in ["ReplicaSet", "StatefulSet", "ReplicationController"] {
            assert!(read(&json!({}), Some((kind, "web"))).is_service, "{kind}");
        }
        assert!(!read(&json!({}), Some(("Job", "web"))).is_service);
        assert!(!read(&json!({}), None).is_service);
    }
}
