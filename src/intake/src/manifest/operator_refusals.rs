//! What the operators of other projects refuse of an object that no API server has stored, and gangs that never have the pods that
//! they wait for. An operator makes no pods of such an object, or pods that wait in vain.

use poolwright_api::{FieldProblem, meant};
use serde_json::Value;

use super::counted::counted;
use super::names::{NameRule, items};
use super::pod_refusals::one_of;
use super::refusals::Problems;
use super::workload_refusals;

/// The name that one container of each role must have (`pkg/webhooks` in kubeflow/training-operator).
const CONTAINERS: [(&str, &str); 5] = [
    ("PyTorchJob", "pytorch"),
    ("TFJob", "tensorflow"),
    ("XGBoostJob", "xgboost"),
    ("PaddleJob", "paddle"),
    ("JAXJob", "jax"),
];

/// What the pods of a role do when they end (`RestartPolicy` in kubeflow/training-operator and in kubeflow/mpi-operator).
const RESTARTS: [&str; 4] = ["Always", "OnFailure", "Never", "ExitCode"];
const RESTARTS_OF_MPI: [&str; 2] = ["Never", "OnFailure"];

/// Checks a training job of Kubeflow with its templates in a field.
pub(super) fn training_job(version: &str, kind: &str, field: &str, name: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let Some(roles) = spec[field].as_object().filter(|roles| !roles.is_empty()) else { return problems };
    let is_mpi = kind == "MPIJob" && version == "kubeflow.org/v2beta1";
    let has = |name: &str| roles.keys().any(|role| role.eq_ignore_ascii_case(name));
    // `validateLauncherReplicaSpec` in kubeflow/mpi-operator.
    if is_mpi && !has("Launcher") {
        let next = "add it, because the operator makes no pods of an MPIJob without a launcher";
        problems.push(FieldProblem::new(format!("spec.{field}.Launcher"), "missing", next));
    }
    // `validateXGBReplicaSpecs` in kubeflow/training-operator.
    if kind == "XGBoostJob" && !has("Master") {
        let next = "add it, because the operator refuses an XGBoostJob without a master";
        problems.push(FieldProblem::new(format!("spec.{field}.Master"), "missing", next));
    }
    // `validateTFReplicaSpecs` in kubeflow/training-operator.
    if kind == "TFJob" && has("Chief") && has("Master") {
        let cause = "the operator refuses a TFJob with a Chief and a Master";
        problems.push(FieldProblem::new(format!("spec.{field}"), cause, "remove one of them"));
    }
    let wanted = CONTAINERS.iter().find(|(of, _)| *of == kind).map(|(_, name)| *name);
    for (role, of_role) in roles {
        let path = format!("spec.{field}.{role}");
        let known: &[&'static str] = if is_mpi { &RESTARTS_OF_MPI } else { &RESTARTS };
        one_of(&format!("{path}.restartPolicy"), &of_role["restartPolicy"], known, &mut problems);
        let containers = items(&of_role["template"]["spec"]["containers"]);
        // Containers that are missing are told elsewhere.
        if let Some(wanted) = wanted.filter(|_| !containers.is_empty())
            && containers.iter().all(|container| container["name"] != wanted)
        {
            let cause = format!("none has the name `{wanted}`, so the operator refuses the job");
            let next = "give the container that trains this name";
            problems.push(FieldProblem::new(format!("{path}.template.spec.containers"), cause, next));
        }
    }
    if kind == "PyTorchJob" && spec["elasticPolicy"].is_object() {
        elastic(field, spec, has("Worker"), &mut problems);
    }
    if is_mpi {
        // `validateMPIJobName` in kubeflow/mpi-operator.
        let workers = spec[field]["Worker"]["replicas"].as_i64().filter(|workers| *workers > 0);
        let last = format!("{name}-worker-{}", workers.unwrap_or(1) - 1);
        problems.extend(made_name("metadata.name", name, &last));
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

/// Checks what a PyTorchJob with an elastic policy needs (`validateSpec` in `pytorchjob_webhook.go` of kubeflow/training-operator).
fn elastic(field: &str, spec: &Value, has_workers: bool, into: &mut Problems) {
    if !has_workers {
        let next = "add it, because an elastic job consists of workers";
        into.push(FieldProblem::new(format!("spec.{field}.Worker"), "missing", next));
    }
    if !spec["nprocPerNode"].is_null() && !spec["elasticPolicy"]["nProcPerNode"].is_null() {
        let cause = "the operator refuses it beside spec.nprocPerNode";
        into.push(FieldProblem::new("spec.elasticPolicy.nProcPerNode", cause, "remove it"));
    }
}

/// Returns the problem of a field, if it makes a name that nothing can have of the object's own name. One that is wrong itself, or not
/// known yet, is told elsewhere.
fn made_name(path: &str, own: &str, made: &str) -> Option<FieldProblem> {
    if own.is_empty() || NameRule::OfService.broken_by("", own).is_some() {
        return None;
    }
    let found = NameRule::OfService.broken_by(path, made)?;
    Some(FieldProblem { cause: format!("it makes the name `{made}`: {}", found.cause), ..found })
}

/// Checks a job of Volcano as its admission webhook does (`validateJobCreate` in volcano-sh/volcano).
pub(super) fn volcano_job(name: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    let tasks = items(&spec["tasks"]);
    let mut all = Some(0_i64);
    for (at, task) in tasks.iter().enumerate() {
        let pods = pods_of(&task["replicas"]);
        partitions(&format!("spec.tasks[{at}].partitionPolicy"), task, &mut problems);
        let pod = format!("{name}-{}-{at}", task_name(at, task));
        if pod.len() > MOST_OF_LABEL && !name.is_empty() {
            let cause =
                format!("its pod `{pod}` has {} characters, and {MOST_OF_LABEL} are the most", pod.len());
            let next = "shorten this name, or that of the job";
            problems.push(FieldProblem::new(format!("spec.tasks[{at}].name"), cause, next));
        }
        all = all.zip(pods).map(|(all, pods)| all.saturating_add(pods));
        let path = format!("spec.tasks[{at}].minAvailable");
        let least = task["minAvailable"].as_i64().zip(pods);
        problems.extend(least.and_then(|(least, pods)| out_of_reach(&path, least, pods, "task")));
    }
    let least = spec["minAvailable"].as_i64().zip(all.filter(|_| spec["tasks"].is_array()));
    problems.extend(least.and_then(|(least, all)| out_of_reach("spec.minAvailable", least, all, "job")));
    follows(tasks, &mut problems);
    problems
}

/// The most characters of a pod's name that labels repeat.
const MOST_OF_LABEL: usize = 63;

/// Returns the name of a task. One without a name gets it from its place (`mutateSpec` in volcano-sh/volcano).
fn task_name(at: usize, task: &Value) -> String {
    let own = task["name"].as_str().filter(|name| !name.is_empty());
    own.map_or_else(|| format!("default{at}"), str::to_owned)
}

/// Checks that the partitions of a task have all its pods (`validatePartitionPolicy` in volcano-sh/volcano).
fn partitions(path: &str, task: &Value, into: &mut Problems) {
    let policy = &task["partitionPolicy"];
    let of = |field: &str| policy[field].as_i64().filter(|number| (1..MOST).contains(number));
    let pods = task["replicas"].as_i64();
    let (Some(partitions), Some(size), Some(pods)) = (of("totalPartitions"), of("partitionSize"), pods)
    else {
        return;
    };
    if partitions.saturating_mul(size) != pods {
        let are = if partitions == 1 { "is" } else { "are" };
        let (parts, all) = (counted(partitions, "partition"), counted(pods, "pod"));
        let cause = format!("{parts} of {} {are} not the {all} of the task", counted(size, "pod"));
        into.push(FieldProblem::new(path, cause, "make their product equal to replicas"));
    }
    if let (Some(least), Some(stated)) = (of("minPartitions"), task["minAvailable"].as_i64())
        && least.saturating_mul(size) != stated
    {
        let (are, parts) = (if least == 1 { "is" } else { "are" }, counted(least, "partition"));
        let cause = format!("{parts} of {} {are} not minAvailable ({stated})", counted(size, "pod"));
        let next = "make their product equal to minAvailable";
        into.push(FieldProblem::new(format!("{path}.minPartitions"), cause, next));
    }
}

/// Checks that each task follows only tasks that exist, and that none follows itself (`topoSort` in volcano-sh/volcano).
fn follows(tasks: &[Value], into: &mut Problems) {
    let names: Vec<String> = tasks.iter().enumerate().map(|(at, task)| task_name(at, task)).collect();
    let before = |at: usize| items(&tasks[at]["dependsOn"]["name"]).iter().filter_map(Value::as_str);
    for at in 0..tasks.len() {
        for (place, on) in before(at).enumerate().filter(|(_, on)| names.iter().all(|name| name != on)) {
            let next = match meant(on, names.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `{name}`?"),
                None => "name one of the tasks".to_owned(),
            };
            let path = format!("spec.tasks[{at}].dependsOn.name[{place}]");
            into.push(FieldProblem::new(path, format!("no task is named `{on}`"), next));
        }
    }
    // What is left follows a task that is left, and is followed by one.
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    loop {
        let all = left.clone();
        let is_after = |at: usize, other: usize| before(at).any(|on| on == names[other]);
        left.retain(|at| {
            all.iter().any(|other| is_after(*at, *other)) && all.iter().any(|other| is_after(*other, *at))
        });
        if left.len() == all.len() {
            break;
        }
    }
    if let Some(first) = left.first() {
        let circle: Vec<&str> = left.iter().map(|at| names[*at].as_str()).collect();
        let cause = format!("tasks wait for each other in a circle ({}), so none starts", circle.join(", "));
        into.push(FieldProblem::new(
            format!("spec.tasks[{first}].dependsOn"),
            cause,
            "remove one of their names",
        ));
    }
}

/// Checks the jobs of a JobSet. Its webhook makes them indexed unless they say otherwise.
pub(super) fn job_set(name: &str, spec: &Value) -> Problems {
    let mut problems = Vec::new();
    jobs("spec", spec, &mut problems);
    for (at, replicated) in items(&spec["replicatedJobs"]).iter().enumerate() {
        let path = format!("spec.replicatedJobs[{at}]");
        let job = &replicated["template"]["spec"];
        let mode = &job["completionMode"];
        let is_indexed = mode.is_null() || *mode == "" || *mode == "Indexed";
        // Without either number, both are 1.
        if is_indexed && job["completions"].is_null() && !job["parallelism"].is_null() {
            let next = "add it, because the jobs of a JobSet are Indexed by default, and have one pod for each index";
            let at = format!("{path}.template.spec.completions");
            problems.push(FieldProblem::new(at, "missing", next));
        }
        let last = |count: &Value| count.as_i64().filter(|count| *count > 0).unwrap_or(1) - 1;
        let of_job = format!(
            "{name}-{}-{}",
            replicated["name"].as_str().unwrap_or_default(),
            last(&replicated["replicas"])
        );
        // The end of a pod's name stands for the five letters that nobody can know.
        let of_pod = (is_indexed && !job["completions"].is_null())
            .then(|| format!("{of_job}-{}-abcde", last(&job["completions"])));
        let path = format!("{path}.name");
        let found = made_name(&path, name, &of_job);
        problems.extend(found.or_else(|| made_name(&path, name, &of_pod?)));
    }
    problems
}

/// Adds what the webhook refuses of the spec of a JobSet at a path (`ValidateCreate` in `jobset_webhook.go` of kubernetes-sigs/jobset).
pub(super) fn jobs(path: &str, spec: &Value, into: &mut Problems) {
    let jobs = items(&spec["replicatedJobs"]);
    for (at, replicated) in jobs.iter().enumerate() {
        if replicated["template"]["spec"]["template"]["spec"]["restartPolicy"] == "Always" {
            let at = format!("{path}.replicatedJobs[{at}].template.spec.template.spec.restartPolicy");
            let next = "write OnFailure or Never, because the pods of a Job must end";
            into.push(FieldProblem::new(at, "an API server refuses `Always` in a Job", next));
        }
    }
    let mut target = |path: String, name: &Value| {
        let Some(name) = name.as_str().filter(|name| jobs.iter().all(|job| job["name"] != *name)) else {
            return;
        };
        let next = match meant(name, jobs.iter().filter_map(|job| job["name"].as_str())) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "name one of replicatedJobs".to_owned(),
        };
        into.push(FieldProblem::new(path, format!("no job is named `{name}`"), next));
    };
    const TARGETS: &str = "targetReplicatedJobs";
    for (at, name) in items(&spec["successPolicy"][TARGETS]).iter().enumerate() {
        target(format!("{path}.successPolicy.{TARGETS}[{at}]"), name);
    }
    for (rule, policy) in items(&spec["failurePolicy"]["rules"]).iter().enumerate() {
        for (at, name) in items(&policy[TARGETS]).iter().enumerate() {
            target(format!("{path}.failurePolicy.rules[{rule}].{TARGETS}[{at}]"), name);
        }
    }
    target(format!("{path}.coordinator.replicatedJob"), &spec["coordinator"]["replicatedJob"]);
    let in_order = spec["startupPolicy"]["startupPolicyOrder"] == "InOrder";
    if let Some(at) = jobs.iter().position(|job| in_order && !job["dependsOn"].is_null()) {
        let cause = "an API server refuses it beside startupPolicyOrder InOrder";
        let next = "remove one of them";
        into.push(FieldProblem::new(format!("{path}.replicatedJobs[{at}].dependsOn"), cause, next));
    }
}

/// Checks a LeaderWorkerSet (`generalValidate` in `leaderworkerset_webhook.go` of kubernetes-sigs/lws).
pub(super) fn leader_worker_set(spec: &Value) -> Problems {
    let mut problems = group_size(spec);
    workload_refusals::groups(spec, &mut problems);
    problems
}

/// Checks the size of the groups, and of the parts of a group. A negative size is told elsewhere.
fn group_size(spec: &Value) -> Problems {
    let template = &spec["leaderWorkerTemplate"];
    let size = if template["size"].is_null() { Some(1) } else { template["size"].as_i64() };
    if size == Some(0) {
        let next = "write 1 or more, because the leader is one of them";
        let path = "spec.leaderWorkerTemplate.size";
        return vec![FieldProblem::new(path, "a group cannot have 0 pods", next)];
    }
    let policy = &template["subGroupPolicy"];
    let part = policy["subGroupSize"].as_i64().filter(|part| *part > 0);
    let (Some(size), Some(part)) = (size.filter(|size| *size > 0), part) else { return Vec::new() };
    let without_leader = (size - 1) % part == 0;
    let is_divided = without_leader || (size % part == 0 && policy["subGroupPolicyType"] != "LeaderExcluded");
    if is_divided && part <= size {
        return Vec::new();
    }
    let cause = format!("a group of {} cannot be divided into parts of {part}", counted(size, "pod"));
    let next = "write a number that divides the size, or the size without the leader";
    vec![FieldProblem::new("spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize", cause, next)]
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
