//! Controllers whose template has changed, while their pods still have the old one. No plan makes room for the rollout, and a note says so.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use poolwright_catalog::quantity;
use serde::Deserialize;
use serde_json::Value;

use super::family::Family;
use super::objects::{Object, group};
use super::scale_down::{HASH, is_active_pod, number, replicas};

/// What is said of such a controller.
pub(super) const NOT_PLANNED: &str =
    "its pods that are there keep the old template: a rollout of the new one is not planned";

/// The label of the pods of a StatefulSet with the name of their revision.
const REVISION_OF_POD: &str = "controller-revision-hash";

/// Numbers that a server leaves out of what it stores if they are zero.
const LEFT_OUT_AS_ZERO: [&str; 2] = ["hostPort", "initialDelaySeconds"];

/// Returns a note for each Deployment and StatefulSet with pods of an old template. Of one that is there stored and written, another
/// note says it.
pub(super) fn unplanned(family: &Family<'_>) -> Vec<String> {
    let has_old_pods = |at: &usize| {
        let object = family.all[*at];
        if object.replaced.is_some() || !object.value["metadata"]["deletionTimestamp"].is_null() {
            return false;
        }
        match (group(&object.api_version), object.kind.as_str()) {
            ("apps", "Deployment") => is_deployment_changed(family, *at),
            ("apps", "StatefulSet") => is_stateful_set_changed(family, *at),
            _ => false,
        }
    };
    let changed = (0..family.here).filter(has_old_pods);
    changed
        .map(|at| format!("{}: its template has changed, and {NOT_PLANNED}", family.all[at].name()))
        .collect()
}

/// Returns whether the pods of a Deployment are of ReplicaSets with another template only. Its controller makes a ReplicaSet as soon as it
/// sees a change, so of a stored one that its controller has seen, the template is not compared.
fn is_deployment_changed(family: &Family<'_>, at: usize) -> bool {
    let object = family.all[at];
    let template = &object.value["spec"]["template"];
    let is_unseen = object.value["spec"]["paused"] == true || is_unseen(object);
    if object.is_stored() && !is_unseen {
        return false;
    }
    let has_pods = |at: &usize| family.all[*at].kind == "ReplicaSet" && replicas(family.all[*at]) > 0;
    let mut sets = family.children(at).into_iter().filter(has_pods).peekable();
    if sets.peek().is_some() {
        return sets.all(|set| !is_newest(object, family.all[set]));
    }
    // The template of a stored one has defaults that its pods have, too.
    let mut pods = family.of_absent_sets(at).into_values().flatten().map(|at| family.all[at]);
    pods.any(|pod| is_active_pod(pod) && !is_of(&pod.value, template))
}

/// Returns whether a ReplicaSet has the template that its Deployment has now.
pub(super) fn is_newest(deployment: &Object, set: &Object) -> bool {
    let (template, own) = (&deployment.value["spec"]["template"], &set.value["spec"]["template"]);
    if deployment.is_stored() { without_hash(own) == without_hash(template) } else { is_of(own, template) }
}

/// Returns whether pods of a StatefulSet from its partition on are of another revision, or, if nobody has made a revision of its template
/// yet, of another template.
fn is_stateful_set_changed(family: &Family<'_>, at: usize) -> bool {
    let object = family.all[at];
    let (spec, status) = (&object.value["spec"], &object.value["status"]);
    let number_at = |value: &Value| value.as_u64().unwrap_or(0);
    let partition = number_at(&spec["updateStrategy"]["rollingUpdate"]["partition"]);
    let first = number_at(&spec["ordinals"]["start"]).saturating_add(partition);
    let pods = family.children(at).into_iter().map(|at| family.all[at]);
    let mut pods = pods.filter(|pod| is_active_pod(pod) && number(pod).is_some_and(|number| number >= first));
    if object.is_stored() && !is_unseen(object) {
        let Some(newest) = status["updateRevision"].as_str() else { return false };
        return pods.any(|pod| {
            let revision = pod.value["metadata"]["labels"][REVISION_OF_POD].as_str();
            revision.is_some_and(|revision| revision != newest)
        });
    }
    pods.any(|pod| !is_of(&pod.value, &spec["template"]))
}

/// Returns whether the controller of a stored object has not seen its newest spec yet.
fn is_unseen(object: &Object) -> bool {
    let seen = object.value["status"]["observedGeneration"].as_u64().unwrap_or(0);
    object.value["metadata"]["generation"].as_u64().is_some_and(|generation| generation > seen)
}

/// Reads a template without the label that its controller adds.
fn without_hash(template: &Value) -> Option<PodTemplateSpec> {
    let mut template = PodTemplateSpec::deserialize(template).ok()?;
    if let Some(labels) = template.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.remove(HASH);
    }
    Some(template)
}

/// Returns whether a pod, or another template, has all that a template says. A server adds defaults, and others add more.
pub(super) fn is_of(pod: &Value, template: &Value) -> bool {
    let of = |place: [&str; 2]| is_within(&template[place[0]][place[1]], &pod[place[0]][place[1]]);
    of(["metadata", "labels"])
        && of(["metadata", "annotations"])
        && is_within(&template["spec"], &pod["spec"])
}

/// Returns whether a value has all that another says.
fn is_within(stated: &Value, there: &Value) -> bool {
    match stated {
        Value::Object(fields) => fields.iter().all(|(name, value)| {
            let (name, there) = (name.as_str(), &there[name.as_str()]);
            let is_zero = *value == 0 && there.is_null() && LEFT_OUT_AS_ZERO.contains(&name);
            is_zero || is_within(value, there)
        }),
        Value::Array(items) => {
            let has = |item: &Value| there.as_array().into_iter().flatten().any(|one| is_within(item, one));
            items.iter().all(has)
        }
        // A field without a value is left out of what a server stores.
        one => {
            let is_empty = *one == false || *one == "";
            one.is_null() || (is_empty && there.is_null()) || is_same(one, there)
        }
    }
}

/// Returns whether two texts or numbers are the same, as they are or as quantities.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (one, other) = (text(one), text(other));
    one == other
        || quantity::parse(&one).is_ok_and(|one| quantity::parse(&other).is_ok_and(|other| one == other))
}
