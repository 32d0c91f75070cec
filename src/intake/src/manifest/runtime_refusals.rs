//! What is refused of the runtime of a `TrainJob` that no API server has stored. Nobody looks at its templates before a `TrainJob`
//! makes pods of them, which then fails.

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::names::items;
use super::operator_refusals;
use super::refusals::Problems;
use crate::error::add_untold;
use crate::pod_sets::below;
use crate::workload::unreadable_job_set;

/// The label of a job with its step, and the container that each step must have (`trainingruntime_webhook.go` in kubeflow/trainer).
const STEP: &str = "trainer.kubeflow.org/trainjob-ancestor-step";
const CONTAINERS: [(&str, &str); 3] = [
    ("trainer", "node"),
    ("dataset-initializer", "dataset-initializer"),
    ("model-initializer", "model-initializer"),
];

/// The policies of which a runtime has at most one.
const POLICIES: [&str; 5] = ["torch", "mpi", "flux", "jax", "xgboost"];

/// The path of the JobSet in a runtime.
const JOB_SET: &str = "spec.template.spec";

/// Checks the spec of a runtime.
pub(super) fn check(spec: &Value) -> Problems {
    let job_set = &spec["template"]["spec"];
    // One that is missing is told elsewhere.
    let mut problems =
        if job_set.is_null() { Vec::new() } else { below(JOB_SET, unreadable_job_set(job_set)) };
    let mut found = Vec::new();
    operator_refusals::jobs(JOB_SET, job_set, &mut found);
    let policies: Vec<&str> =
        POLICIES.into_iter().filter(|name| !spec["mlPolicy"][*name].is_null()).collect();
    if policies.len() > 1 {
        let cause = format!("a runtime has one policy, and this has {}", policies.join(" and "));
        found.push(FieldProblem::new("spec.mlPolicy", cause, "keep one of them"));
    }
    for (at, replicated) in items(&job_set["replicatedJobs"]).iter().enumerate() {
        let path = format!("{JOB_SET}.replicatedJobs[{at}]");
        let step = &replicated["template"]["metadata"]["labels"][STEP];
        let Some((step, name)) = CONTAINERS.iter().find(|(known, _)| *step == *known) else { continue };
        if let Some(replicas) = replicated["replicas"].as_i64().filter(|replicas| *replicas != 1) {
            let cause = format!("`{replicas}` is not 1, so the operator refuses the runtime");
            let next = "write 1, and the number of nodes in spec.mlPolicy.numNodes";
            found.push(FieldProblem::new(format!("{path}.replicas"), cause, next));
        }
        let containers = items(&replicated["template"]["spec"]["template"]["spec"]["containers"]);
        // Containers that are missing are told elsewhere.
        if !containers.is_empty() && containers.iter().all(|container| container["name"] != *name) {
            let cause = format!("none has the name `{name}`, so the operator refuses the runtime");
            let next = format!("give the container of the step `{step}` this name");
            found.push(FieldProblem::new(
                format!("{path}.template.spec.template.spec.containers"),
                cause,
                next,
            ));
        }
    }
    add_untold(found, &mut problems);
    problems
}
