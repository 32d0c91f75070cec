//! Pods: defaults, immutable fields, bindings and evictions.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{Selector, SelectorExt};
use poolwright_terms::keys::{NOT_READY_TAINT, UNREACHABLE_TAINT};
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::answer::Refusal;
use super::kinds::Kind;
use super::objects::second;

/// Seconds that pods tolerate a node that is not ready (kube-apiserver's DefaultTolerationSeconds).
const TOLERATED: u32 = 300;

/// Adds the defaults of kube-apiserver (`pkg/apis/core/v1/defaults.go`, and its admission of priorities and tolerations), as far
/// as they affect scheduling and the life of pods.
pub(super) fn complete(pod: &mut Value, now: Timestamp) {
    if !pod["spec"].is_object() {
        pod["spec"] = json!({});
    }
    let spec = &mut pod["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
        ("priority", json!(0)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
    ] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for key in [NOT_READY_TAINT, UNREACHABLE_TAINT] {
        let tolerated = tolerations.iter().any(|one| {
            let (of, effect) =
                (one["key"].as_str().unwrap_or_default(), one["effect"].as_str().unwrap_or_default());
            (of == key || of.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED}),
            );
        }
    }
    spec["tolerations"] = json!(tolerations);
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            for (field, value) in [
                ("resources", json!({})),
                ("terminationMessagePath", json!("/dev/termination-log")),
                ("terminationMessagePolicy", json!("File")),
                ("imagePullPolicy", json!("Always")),
            ] {
                if container[field].is_null() {
                    container[field] = value;
                }
            }
            // Limits are the default of requests.
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, amount) in limits {
                if container["resources"]["requests"][&name].is_null() {
                    container["resources"]["requests"][&name] = amount;
                }
            }
        }
    }
    let class = quality(&pod["spec"]);
    pod["status"] = json!({"phase": "Pending", "qosClass": class});
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": null,
            "lastTransitionTime": second(now)}]);
    }
}

/// Returns the quality of service class of a pod.
fn quality(spec: &Value) -> &'static str {
    let containers = || {
        ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| spec[list].as_array().into_iter().flatten())
    };
    let asks = |what: &str, resource: &str, container: &Value| container["resources"][what][resource].clone();
    let any = containers().any(|one| {
        ["requests", "limits"]
            .iter()
            .any(|what| ["cpu", "memory"].iter().any(|of| !asks(what, of, one).is_null()))
    });
    let all = containers().all(|one| {
        ["cpu", "memory"].iter().all(|of| {
            !asks("limits", of, one).is_null() && asks("limits", of, one) == asks("requests", of, one)
        })
    });
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Checks an update of a pod (`ValidatePodUpdate`). Only these fields may change: images, the deadline (not later), tolerations
/// (only added), scheduling gates (only removed).
pub(super) fn check_update(kind: &Kind, before: &Value, after: &Value) -> Result<(), Refusal> {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let list = |pod: &Value, field: &str| pod["spec"][field].as_array().cloned().unwrap_or_default();
    let refuse = |field: &str, sentence: &str| {
        Err(Refusal::invalid(kind, name, &[(field.to_owned(), sentence.to_owned())]))
    };
    let (had, has) = (list(before, "tolerations"), list(after, "tolerations"));
    if had.iter().any(|one| !has.contains(one)) {
        return refuse(
            "spec.tolerations",
            "Forbidden: existing toleration can not be modified except its tolerationSeconds",
        );
    }
    let (had, has) = (list(before, "schedulingGates"), list(after, "schedulingGates"));
    if let Some(new) = has.iter().find(|one| !had.contains(one)) {
        let sentence = format!("Forbidden: only deletion is allowed, but found new scheduling gate {new}");
        return refuse("spec.schedulingGates", &sentence);
    }
    let rest = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        for field in
            ["tolerations", "schedulingGates", "activeDeadlineSeconds", "terminationGracePeriodSeconds"]
        {
            super::objects::remove(&mut spec, field);
        }
        for field in ["containers", "initContainers"] {
            for container in spec[field].as_array_mut().into_iter().flatten() {
                super::objects::remove(container, "image");
            }
        }
        spec
    };
    if rest(before) != rest(after) {
        return refuse(
            "spec",
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        );
    }
    Ok(())
}

/// Binds a pod to a node.
pub(super) fn bind(kind: &Kind, pod: &Value, binding: &Value, now: Timestamp) -> Result<Value, Refusal> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let of_binding = Kind { plural: "pods/binding".to_owned(), ..kind.clone() };
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(Refusal::invalid(kind, name, &[("target.name".to_owned(), "Required value".to_owned())]));
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return Err(Refusal::conflict(
            &of_binding,
            name,
            "pod is being deleted, cannot be assigned to a host",
        ));
    }
    if let Some(on) = pod["spec"]["nodeName"].as_str().filter(|on| !on.is_empty()) {
        let why = format!("pod {name} is already assigned to node \"{on}\"");
        return Err(Refusal::conflict(&of_binding, name, &why));
    }
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        return Err(Refusal::conflict(&of_binding, name, "pod has non-empty .spec.schedulingGates"));
    }
    let mut bound = pod.clone();
    bound["spec"]["nodeName"] = json!(node);
    let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": second(now)});
    let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let others = conditions.into_iter().filter(|one| one["type"] != "PodScheduled");
    bound["status"]["conditions"] = others.chain([scheduled]).collect();
    super::objects::remove(&mut bound["status"], "nominatedNodeName");
    Ok(bound)
}

/// Returns whether a pod has ended.
pub(super) fn is_finished(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Returns whether the eviction of this pod needs no disruption of its budget, because the pod is not ready. With the policy
/// `IfHealthyBudget`, enough other pods must be healthy (`unhealthyPodEvictionPolicy`).
pub(super) fn is_free_to_go(pod: &Value, budget: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    let count = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let healthy = count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
    !ready && (healthy || budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow")
}

/// Returns the grace period of a pod in seconds: 0 if nothing runs.
pub(super) fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    if is_finished(pod) || pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    asked.unwrap_or(own).max(0)
}

/// Returns the pod with a deletion timestamp and this grace period.
pub(super) fn deleting(pod: &Value, grace: i64, now: Timestamp) -> Value {
    let mut pod = pod.clone();
    let until = now.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    pod["metadata"]["deletionTimestamp"] = json!(second(until));
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    pod
}

/// Returns whether a PodDisruptionBudget selects a pod. An empty selector selects all pods of the namespace, a missing one none.
pub(super) fn is_budgeted(budget: &Value, pod: &Value) -> bool {
    if budget["metadata"]["namespace"] != pod["metadata"]["namespace"] || budget["spec"]["selector"].is_null()
    {
        return false;
    }
    let Ok(selector) = serde_json::from_value::<LabelSelector>(budget["spec"]["selector"].clone()) else {
        return false;
    };
    let Ok(selector) = Selector::try_from(selector) else { return false };
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: BTreeMap<String, String> =
        labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect();
    selector.matches(&labels)
}
