//! What the operators of other projects refuse of an object that no API server has stored, and gangs that never have the pods that
//! they wait for. An operator makes no pods of such an object, or pods that wait in vain.

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::names::items;
use super::refusals::Problems;

/// Checks a training job of Kubeflow with its templates in a field.
pub(super) fn training_job(version: &str, kind: &str, field: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let Some(roles) = spec[field].as_object().filter(|roles| !roles.is_empty()) else { return problems };
    let has = |name: &str| roles.keys().any(|role| role.eq_ignore_ascii_case(name));
    // `validateLauncherReplicaSpec` in kubeflow/mpi-operator.
    if kind == "MPIJob" && version == "kubeflow.org/v2beta1" && !has("Launcher") {
        let next = "add it, because the operator makes no pods of an MPIJob without a launcher";
        problems.push(FieldProblem::new(format!("spec.{field}.Launcher"), "missing", next));
    }
    if kind == "PyTorchJob" {
        // `validatePyTorchReplicaSpecs` in kubeflow/training-operator.
        for (role, of_role) in roles {
            let containers = items(&of_role["template"]["spec"]["containers"]);
            let has_name = containers.iter().any(|container| container["name"] == "pytorch");
            // Containers that are missing are told elsewhere.
            if !containers.is_empty() && !has_name {
                let path = format!("spec.{field}.{role}.template.spec.containers");
                let cause = "none has the name `pytorch`, so the operator refuses the job";
                problems.push(FieldProblem::new(path, cause, "give the container that trains this name"));
            }
        }
    }
    // Numbers that cannot be read are told elsewhere.
    let Some(all) = roles.values().map(|role| pods_of(&role["replicas"])).sum::<Option<i64>>() else {
        return problems;
    };
    let elastic = &spec["elasticPolicy"];
    let (least, most) = (elastic["minReplicas"].as_i64(), elastic["maxReplicas"].as_i64());
    if let (Some(least), Some(most)) = (least, most)
        && most < least
    {
        let cause = format!("`{most}` is less than minReplicas ({least})");
        problems.push(FieldProblem::new("spec.elasticPolicy.maxReplicas", cause, "raise it"));
    }
    // With metrics, an autoscaler adds workers.
    let all = if elastic["metrics"].is_null() { all } else { all.max(most.unwrap_or(i64::MAX)) };
    let minimums = [
        ("spec.elasticPolicy.minReplicas", least),
        (
            "spec.runPolicy.schedulingPolicy.minAvailable",
            spec["runPolicy"]["schedulingPolicy"]["minAvailable"].as_i64(),
        ),
    ];
    for (path, least) in minimums {
        problems.extend(least.and_then(|least| out_of_reach(path, least, all, "job")));
    }
    problems
}

/// Checks that the pods of a job of Volcano, and those of each of its tasks, can be as many as it needs (its admission webhook).
pub(super) fn volcano_job(spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let mut all = Some(0_i64);
    for (at, task) in items(&spec["tasks"]).iter().enumerate() {
        let pods = pods_of(&task["replicas"]);
        all = all.zip(pods).map(|(all, pods)| all.saturating_add(pods));
        let path = format!("spec.tasks[{at}].minAvailable");
        let least = task["minAvailable"].as_i64().zip(pods);
        problems.extend(least.and_then(|(least, pods)| out_of_reach(&path, least, pods, "task")));
    }
    let least = spec["minAvailable"].as_i64().zip(all.filter(|_| spec["tasks"].is_array()));
    problems.extend(least.and_then(|(least, all)| out_of_reach("spec.minAvailable", least, all, "job")));
    problems
}

/// Checks the jobs of a JobSet. Its webhook makes them indexed unless they say otherwise.
pub(super) fn job_set(spec: &Value) -> Problems {
    let mut problems = Vec::new();
    for (at, replicated) in items(&spec["replicatedJobs"]).iter().enumerate() {
        let path = format!("spec.replicatedJobs[{at}].template.spec");
        let job = &replicated["template"]["spec"];
        if job["template"]["spec"]["restartPolicy"] == "Always" {
            let at = format!("{path}.template.spec.restartPolicy");
            let next = "write OnFailure or Never, because the pods of a Job must end";
            problems.push(FieldProblem::new(at, "an API server refuses `Always` in a Job", next));
        }
        let mode = &job["completionMode"];
        let is_indexed = mode.is_null() || *mode == "" || *mode == "Indexed";
        // Without either number, both are 1.
        if is_indexed && job["completions"].is_null() && !job["parallelism"].is_null() {
            let next = "add it, because the jobs of a JobSet are Indexed by default, and have one pod for each index";
            problems.push(FieldProblem::new(format!("{path}.completions"), "missing", next));
        }
    }
    problems
}

/// Checks the size of the groups of a LeaderWorkerSet (its admission webhook). A negative one is told elsewhere.
pub(super) fn leader_worker_set(spec: &Value) -> Problems {
    let is_empty = spec["leaderWorkerTemplate"]["size"].as_i64() == Some(0);
    let problem = || {
        let next = "write 1 or more, because the leader is one of them";
        FieldProblem::new("spec.leaderWorkerTemplate.size", "a group cannot have 0 pods", next)
    };
    is_empty.then(problem).into_iter().collect()
}

/// Reads a number of pods, which is 1 if it is missing.
fn pods_of(replicas: &Value) -> Option<i64> {
    if replicas.is_null() { Some(1) } else { replicas.as_i64().filter(|pods| (0..=MOST).contains(pods)) }
}

/// More pods than any object has. A sum of such numbers fits its type.
const MOST: i64 = 1 << 40;

/// Returns the problem of a minimum that is negative, or that so many pods never reach.
fn out_of_reach(path: &str, least: i64, pods: i64, of: &str) -> Option<FieldProblem> {
    if least < 0 {
        return Some(FieldProblem::new(path, format!("`{least}` is negative"), "write zero or more"));
    }
    (least > pods).then(|| {
        let cause =
            format!("`{least}` is more than all pods of the {of} ({pods}), so they would wait for ever");
        FieldProblem::new(path, cause, "lower it, or raise replicas")
    })
}
