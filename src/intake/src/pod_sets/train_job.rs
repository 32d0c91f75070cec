//! `TrainJob` of Kubeflow's trainer: a JobSet made from a runtime, which is another object.

use poolwright_api::FieldProblem;
use poolwright_api::strict::{self, UNKNOWN_FIELD};
use serde_json::{Value, json};

use crate::template::{Expanded, Expansion, Making, one};
use crate::workload::{job_set, unreadable_job_set};
use crate::workloads::{ENDED, SUSPENDED};

/// The beginning of the path of what is wrong with the runtime.
pub(crate) const OF_RUNTIME: &str = "(runtime) ";

/// The label of the job that trains, in the runtime.
const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";

/// Kind and name of the runtime of a `TrainJob`.
pub(crate) fn runtime_of(object: &Value) -> (&str, &str) {
    let reference = &object["spec"]["runtimeRef"];
    let kind = reference["kind"].as_str().unwrap_or("ClusterTrainingRuntime");
    (kind, reference["name"].as_str().unwrap_or_default())
}

/// Expands a `TrainJob` with its runtime.
pub(crate) fn expand(object: &Value, runtime: &Value, making: Making<'_>) -> Expanded {
    if object["spec"]["suspend"] == true {
        return Ok(Expansion::none(SUSPENDED));
    }
    if super::has_condition(object, &["Complete", "Failed"]) {
        return Ok(Expansion::none(ENDED));
    }
    for field in ["podTemplateOverrides", "podSpecOverrides", "runtimePatches"] {
        if object["spec"][field].as_array().is_some_and(|list| !list.is_empty()) {
            let problem = FieldProblem::new(
                format!("spec.{field}"),
                "changes to the pods of the runtime are not read",
                "give the JobSet that it makes (`kubectl get jobset -o yaml`)",
            );
            return Err(one(problem));
        }
    }
    let mut set = made(object, runtime);
    let notes = if is_stored(runtime) { without_unknown(&mut set["spec"]) } else { Vec::new() };
    let place =
        |problem: FieldProblem| FieldProblem { path: format!("{OF_RUNTIME}{}", problem.path), ..problem };
    let mut expansion =
        job_set(&set, making).map_err(|found| found.into_iter().map(place).collect::<Vec<_>>())?;
    expansion.notes.extend(notes);
    Ok(expansion)
}

fn is_stored(object: &Value) -> bool {
    ["uid", "resourceVersion"].iter().any(|field| object["metadata"][*field].is_string())
}

/// Removes the fields of a JobSet's spec that this version does not know. A stored runtime may be of a newer version. Returns a note for
/// each.
fn without_unknown(spec: &mut Value) -> Vec<String> {
    let unknown = unreadable_job_set(spec).into_iter().filter(|problem| problem.cause == UNKNOWN_FIELD);
    let remove = |FieldProblem { path, .. }| {
        strict::remove(spec, &path);
        format!("{OF_RUNTIME}spec.{path}: this version does not know the field, and ignores it")
    };
    unknown.map(remove).collect()
}

/// Returns the JobSet that a `TrainJob` makes from its runtime. It keeps the kind of the `TrainJob`, for messages.
pub(crate) fn made(object: &Value, runtime: &Value) -> Value {
    let trainer = &object["spec"]["trainer"];
    let of_runtime = [&runtime["spec"]["mlPolicy"]["numNodes"], &trainer["numNodes"]];
    let nodes = of_runtime.into_iter().rfind(|number| !number.is_null());
    let mut spec = runtime["spec"]["template"]["spec"].clone();
    for replicated in spec["replicatedJobs"].as_array_mut().into_iter().flatten() {
        let is_trainer =
            replicated["template"]["metadata"]["labels"][STEP] == "trainer" || replicated["name"] == "node";
        if !is_trainer {
            continue;
        }
        let job = &mut replicated["template"]["spec"];
        if let Some(nodes) = nodes {
            job["parallelism"] = nodes.clone();
            job["completions"] = nodes.clone();
        }
        let resources = &trainer["resourcesPerNode"];
        let containers = job["template"]["spec"]["containers"].as_array_mut();
        for container in containers.into_iter().flatten().filter(|one| one["name"] == "node") {
            if resources.is_object() {
                container["resources"] = resources.clone();
            }
        }
    }
    let status = json!({"replicatedJobsStatus": object["status"]["jobsStatus"]});
    json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": object["kind"],
        "metadata": object["metadata"], "spec": spec, "status": status})
}

/// Returns whether a kind of runtime is in a namespace. Such a runtime serves only TrainJobs there.
pub(crate) fn is_namespaced(kind: &str) -> bool {
    kind == "TrainingRuntime"
}

/// Returns whether an object is a runtime of a `TrainJob`.
pub(crate) fn is_runtime(group: &str, kind: &str) -> bool {
    group == "trainer.kubeflow.org" && kind.ends_with("TrainingRuntime")
}
