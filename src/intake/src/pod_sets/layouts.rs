//! Where each kind has its pod templates, and how many pods it makes of each.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use poolwright_api::{FieldProblem, meant};
use poolwright_core::UnmodelledRule;
use serde_json::{Value, json};

use super::{PodSet, Problems, Sets, at, below, has_condition, number, suspended_or_ended};
use crate::error::{Keep, all_or_problems, object_name};
use crate::owned::{Maker, Service, Turn};
use crate::template::{GangOf, Role, count, missing, one};

/// The training jobs of Kubeflow, with the fields of their templates.
pub(super) const TRAINING_JOBS: [(&str, &str); 7] = [
    ("PyTorchJob", "pytorchReplicaSpecs"),
    ("TFJob", "tfReplicaSpecs"),
    ("MPIJob", "mpiReplicaSpecs"),
    ("XGBoostJob", "xgbReplicaSpecs"),
    ("PaddleJob", "paddleReplicaSpecs"),
    ("JAXJob", "jaxReplicaSpecs"),
    ("MXJob", "mxReplicaSpecs"),
];

/// The field of a training job of Kubeflow with its templates.
pub(super) fn replica_specs(kind: &str) -> Option<&'static str> {
    TRAINING_JOBS.iter().find(|(known, _)| *known == kind).map(|(_, field)| *field)
}

/// The label of a pod of a training job with the name of the job.
pub(crate) const TRAINING_JOB: &str = "training.kubeflow.org/job-name";
/// The label of a pod of a training job with its role.
pub(crate) const TRAINING_ROLE: &str = "training.kubeflow.org/replica-type";
/// The same for the operator of MPIJobs `v2beta1`.
pub(crate) const MPI_ROLE: &str = "training.kubeflow.org/job-role";

/// Returns the name of a role of a training job in messages, if the other pods do nothing without it.
pub(crate) fn needed_role(role: &str) -> Option<&str> {
    match role {
        "worker" | "evaluator" => None,
        "ps" => Some("parameter server"),
        own => Some(own),
    }
}

/// A training job of Kubeflow: all its pods start together, or as many as its policies say.
pub(super) fn training_job(object: &Value, name: &str) -> Result<Sets, Problems> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let field = replica_specs(kind).unwrap_or_default();
    let spec = &object["spec"];
    let ended = has_condition(object, &["Succeeded", "Failed"]);
    if let Some(none) = suspended_or_ended(spec["runPolicy"]["suspend"] == true, ended) {
        return Ok(none);
    }
    if let Some(by) = spec["runPolicy"]["managedBy"].as_str().filter(|by| !by.starts_with("kubeflow.org/")) {
        return Ok(Sets::none(format!("`{by}` manages it, and may make its pods elsewhere")));
    }
    let roles = spec[field].as_object().filter(|roles| !roles.is_empty());
    let roles = roles.ok_or_else(|| lacking(&format!("spec.{field}"), &spec[field]))?;
    let (mut sets, mut total, mut workers) = (Sets::default(), 0_i64, 0);
    for (role, replicas) in roles {
        let path = format!("spec.{field}.{role}");
        let wanted = number(object, &format!("{path}.replicas"), 1).keep(&mut sets.problems).unwrap_or(0);
        let lower = role.to_lowercase();
        // MPIJobs `v2beta1` have an operator of their own, with another label (`defaultLabels` in kubeflow/mpi-operator). It makes
        // a Service first (`syncHandler`). That of the other jobs makes Services after the pods of a role (`ReconcileJobs`).
        let (of_role, services) = match object["apiVersion"].as_str() {
            Some("kubeflow.org/v2beta1") => (MPI_ROLE, vec![Service::named(name)]),
            _ => (TRAINING_ROLE, Vec::new()),
        };
        let pods =
            PodSet::new(format!("{name}-{lower}"), wanted, format!("{path}.template"), &replicas["template"])
                .labelled([(TRAINING_JOB, name), (of_role, &lower)]);
        // The launcher of an MPIJob is a Job, and the operator makes the other pods itself.
        let is_launcher = kind == "MPIJob" && role == "Launcher";
        let maker = if is_launcher { Maker::Other("Job", pods.name.clone()) } else { Maker::Itself };
        let is_last = is_launcher && spec["launcherCreationPolicy"] == "WaitForWorkersReady";
        let turn = if is_last { Turn::Last } else { Turn::Any };
        // Whatever the policies say, workers do nothing without the master, the launcher or the parameter servers.
        let role = needed_role(&lower);
        let role = role.map(|of| Role { name: of.to_owned(), label: (of_role, lower.clone()), spare: 0 });
        sets.all.push(PodSet { maker, fixed: !is_launcher, turn, role, services, ..pods });
        total += wanted;
        workers += if lower == "worker" { wanted } else { 0 };
    }
    // The operator creates the launcher after the workers.
    sets.all.sort_by_key(|set| set.maker != Maker::Itself);
    let least = spec["runPolicy"]["schedulingPolicy"]["minAvailable"].as_i64();
    let elastic = spec["elasticPolicy"]["minReplicas"].as_i64();
    let may_grow = !spec["elasticPolicy"]["metrics"].is_null();
    let of_elastic = |least: i64| {
        // More than all pods never start, unless an autoscaler adds workers.
        if least > total && !may_grow { least } else { total - workers + least.min(workers).max(0) }
    };
    let least = least.or_else(|| elastic.map(of_elastic));
    Ok(sets.together(named(object, name), total.saturating_sub(least.unwrap_or(total))))
}

/// A LeaderWorkerSet (<https://lws.sigs.k8s.io>): groups of a leader and its workers, each of which starts together.
pub(super) fn leader_worker_set(object: &Value, name: &str) -> Result<Sets, Problems> {
    const EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
    let (replicas, size) = ("spec.replicas", "spec.leaderWorkerTemplate.size");
    let template = &object["spec"]["leaderWorkerTemplate"];
    if !template["workerTemplate"].is_object() {
        return Err(lacking("spec.leaderWorkerTemplate.workerTemplate", &template["workerTemplate"]));
    }
    let mut problems = Vec::new();
    let size = number(object, size, 1).keep(&mut problems).unwrap_or(1).max(1);
    let groups = number(object, replicas, 1).and_then(|groups| count(replicas, groups, size));
    let groups = groups.keep(&mut problems).unwrap_or(0);
    // One group with a worker has both templates, which are checked all the same.
    let (groups, size) = if problems.is_empty() { (groups, size) } else { (1, 2) };
    let has_leader = template["leaderTemplate"].is_object();
    let of = |part: &str| (format!("spec.leaderWorkerTemplate.{part}"), &template[part]);
    let (leader_path, leader) = of(if has_leader { "leaderTemplate" } else { "workerTemplate" });
    let (worker_path, worker) = of("workerTemplate");
    let claims = template["volumeClaimTemplates"].as_array().into_iter().flatten().enumerate();
    let claims = claims.map(|(at, claim)| {
        let path = format!("spec.leaderWorkerTemplate.volumeClaimTemplates[{at}]");
        poolwright_api::strict::read::<PersistentVolumeClaim>(claim).map_err(|found| below(&path, found))
    });
    let claims = all_or_problems(claims).keep(&mut problems).unwrap_or_default();
    let exclusive = object["metadata"]["annotations"][EXCLUSIVE].as_str().map(|_| UnmodelledRule {
        field: format!("metadata.annotations[{EXCLUSIVE:?}]"),
        rule: "one group of a LeaderWorkerSet per topology domain".to_owned(),
    });
    // The Service of a set comes after its leaders, but that of a single group before its workers (`PodReconciler` in
    // kubernetes-sigs/lws).
    let has_own_services = object["spec"]["networkConfig"]["subdomainPolicy"] == "UniquePerReplica";
    let mut sets = Sets { keeps_running: true, problems, ..Sets::default() };
    let mut all_workers = Vec::new();
    for group in 0..groups {
        let (index, of_group) = (group.to_string(), format!("{name}-{group}"));
        let gang = (size > 1).then(|| {
            let gang = format!("group {group} of {}", named(object, name));
            sets.gangs.push(GangOf { name: gang, optional: 0, roles: Vec::new() });
            sets.gangs.len() - 1
        });
        let labels = [
            ("leaderworkerset.sigs.k8s.io/name", name),
            ("leaderworkerset.sigs.k8s.io/group-index", index.as_str()),
        ];
        let made = |pods: PodSet, maker: String| {
            let maker = Maker::Other("StatefulSet", maker);
            let (extra, claims) = (exclusive.iter().cloned().collect(), claims.clone());
            PodSet { maker, fixed: true, gang, extra, claims, ..pods.labelled(labels) }
        };
        let one = PodSet::new(name.to_owned(), 1, leader_path.clone(), leader);
        sets.all.push(made(PodSet { first: group, turn: Turn::First, ..one }, name.to_owned()));
        if size > 1 {
            let workers = PodSet::new(of_group.clone(), size - 1, worker_path.clone(), worker);
            let services = has_own_services.then(|| Service::named(of_group.clone())).into_iter().collect();
            all_workers.push(made(PodSet { first: 1, services, ..workers }, of_group));
        }
    }
    // One StatefulSet creates all leaders at once. Each leader that is there gets one for its workers.
    sets.all.extend(all_workers);
    Ok(sets)
}

/// A cluster of Ray: its head and workers. An autoscaler needs only the least number of workers to start.
pub(super) fn ray_cluster(object: &Value, name: &str) -> Result<Sets, Problems> {
    if let Some(none) = suspended_or_ended(object["spec"]["suspend"] == true, false) {
        return Ok(none);
    }
    ray(object, "spec", name, Maker::Itself)
}

/// How a job of Ray is submitted to its cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Submission {
    /// By a pod of a Job.
    Job,
    /// By a container beside the head.
    Sidecar,
    /// By no pod: over HTTP, or by the user.
    Elsewhere,
}

impl Submission {
    /// Reads the mode. Errors: everything that `KubeRay` refuses of it (`ValidateRayJobSpec`).
    fn of(spec: &Value) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let mut refuse = |is_refused: bool, field: &str, cause: &str, next: &str| {
            if is_refused {
                let cause = format!("KubeRay refuses {cause}");
                problems.push(FieldProblem::new(format!("spec.{field}"), cause, next));
            }
        };
        let submission = match spec["submissionMode"].as_str().filter(|mode| !mode.is_empty()) {
            None | Some("K8sJobMode") => Self::Job,
            Some("HTTPMode") => Self::Elsewhere,
            Some("InteractiveMode") => {
                let retries = spec["backoffLimit"].as_i64().is_some_and(|limit| limit > 0);
                refuse(retries, "backoffLimit", "retries with InteractiveMode", "write 0, or remove it");
                Self::Elsewhere
            }
            Some("SidecarMode") => {
                const POLICY: &str = "rayClusterSpec.headGroupSpec.template.spec.restartPolicy";
                let it = "it with SidecarMode";
                for field in ["submitterPodTemplate", "submitterConfig"] {
                    refuse(spec[field].is_object(), field, it, "remove it");
                }
                refuse(has_selector(spec), "clusterSelector", it, "write K8sJobMode");
                let policy = at(spec, POLICY).as_str();
                let restarts = policy.is_some_and(|policy| !["", "Never"].contains(&policy));
                refuse(restarts, POLICY, "other policies than Never with SidecarMode", "write Never");
                Self::Sidecar
            }
            Some(other) => {
                let next = match meant(other, MODES) {
                    Some(mode) => format!("did you mean `{mode}`?"),
                    None => format!("use one of {}", MODES.join(", ")),
                };
                let cause = format!("`{other}` is not a mode");
                return Err(one(FieldProblem::new("spec.submissionMode", cause, next)));
            }
        };
        if problems.is_empty() { Ok(submission) } else { Err(problems) }
    }
}

/// The modes in which a job of Ray is submitted.
const MODES: [&str; 4] = ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"];

/// Returns whether a job of Ray runs on a cluster that is there already.
fn has_selector(spec: &Value) -> bool {
    spec["clusterSelector"].as_object().is_some_and(|selector| !selector.is_empty())
}

/// Returns `KubeRay`'s own container that submits a job.
fn submitter() -> Value {
    let amounts = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let resources = json!({"limits": amounts("1", "1Gi"), "requests": amounts("500m", "200Mi")});
    json!({"name": "ray-job-submitter", "resources": resources})
}

/// A job of Ray: the cluster that it runs on, and the pod that submits it, if there is one.
#[expect(clippy::unnecessary_wraps, reason = "the readers of all kinds have one signature")]
pub(super) fn ray_job(object: &Value, name: &str) -> Result<Sets, Problems> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let state = status["jobDeploymentStatus"].as_str().unwrap_or_default();
    let ended = ["Complete", "Failed", "ValidationFailed"].contains(&state);
    if let Some(none) = suspended_or_ended(spec["suspend"] == true || state == "Suspended", ended) {
        return Ok(none);
    }
    let mut problems = Vec::new();
    let submission = Submission::of(spec).keep(&mut problems);
    let mut sets = if has_selector(spec) {
        Sets::default()
    } else {
        let mut cluster = object.clone();
        let head = "/spec/rayClusterSpec/headGroupSpec/template/spec/containers";
        let containers = cluster.pointer_mut(head).and_then(Value::as_array_mut);
        if submission == Some(Submission::Sidecar)
            && let Some(containers) = containers
        {
            containers.push(submitter());
        }
        let maker = Maker::Begins("RayCluster", format!("{name}-"));
        ray(&cluster, "spec.rayClusterSpec", name, maker).keep(&mut problems).unwrap_or_default()
    };
    problems.append(&mut sets.problems);
    sets.problems = problems;
    let Some(submission) = submission else { return Ok(sets) };
    if submission == Submission::Job {
        let usual = json!({"spec": {"restartPolicy": "Never", "containers": [submitter()]}});
        let own = &spec["submitterPodTemplate"];
        let template = if own.is_object() { own } else { &usual };
        let submitter =
            PodSet::new(format!("{name}-submitter"), 1, "spec.submitterPodTemplate".to_owned(), template);
        // It comes when the cluster is ready, as a pod of a Job. Without room for the cluster, it would never come: a node
        // for it alone would stay empty, so it belongs to the gang of the cluster. The cluster does not wait for it.
        let gang = (!sets.gangs.is_empty()).then_some(0);
        let maker = Maker::Other("Job", name.to_owned());
        sets.all.push(PodSet { maker, gang, turn: Turn::Last, ..submitter });
    } else if has_selector(spec) {
        return Ok(Sets::none("it runs on a RayCluster that is there already, and makes no pods of its own"));
    }
    Ok(sets)
}

/// A service of Ray: the cluster that it runs on.
pub(super) fn ray_service(object: &Value, name: &str) -> Result<Sets, Problems> {
    if let Some(none) = suspended_or_ended(object["spec"]["suspend"] == true, false) {
        return Ok(none);
    }
    let cluster = Maker::Begins("RayCluster", format!("{name}-"));
    let sets = ray(object, "spec.rayClusterConfig", name, cluster)?;
    Ok(Sets { keeps_running: true, ..sets })
}

/// The label of a pod of Ray that says whether it is the head.
pub(crate) const RAY_NODE: &str = "ray.io/node-type";
/// The label of a pod of Ray with the name of its group.
const RAY_GROUP: &str = "ray.io/group";

fn ray(object: &Value, path: &str, name: &str, maker: Maker) -> Result<Sets, Problems> {
    let spec = at(object, path);
    let head = &spec["headGroupSpec"]["template"];
    if !head.is_object() {
        return Err(lacking(&format!("{path}.headGroupSpec.template"), head));
    }
    let scales = spec["enableInTreeAutoscaling"] == true;
    let mut head = head.clone();
    if scales && let Some(containers) = head["spec"]["containers"].as_array_mut() {
        // The operator adds the autoscaler to the head, with these resources unless others are written.
        let usual = json!({"cpu": "500m", "memory": "512Mi"});
        let own = &spec["autoscalerOptions"]["resources"];
        let usual = json!({"limits": usual, "requests": usual});
        let resources = if own.is_object() { own } else { &usual };
        containers.push(json!({"name": "autoscaler", "resources": resources}));
    }
    let labels = |group: &str, node: &str| {
        [("ray.io/cluster", name.to_owned()), (RAY_GROUP, group.to_owned()), (RAY_NODE, node.to_owned())]
    };
    let services = services_of_ray(spec, name);
    let mut sets = Sets::default();
    let mut add = |set: PodSet, group: &str, node: &str| {
        let labels = labels(group, node);
        let set = set.labelled(labels.each_ref().map(|(key, value)| (*key, value.as_str())));
        sets.all.push(PodSet { maker: maker.clone(), services: services.clone(), ..set });
    };
    let template = format!("{path}.headGroupSpec.template");
    let head = PodSet::new(format!("{name}-head"), 1, template, &head);
    // The operator makes no worker while it cannot make the head.
    let role = Role { name: "head".to_owned(), label: (RAY_NODE, "head".to_owned()), spare: 0 };
    add(PodSet { turn: Turn::First, role: Some(role), ..head }, "headgroup", "head");
    let (mut optional, mut problems, mut notes) = (0, Vec::new(), Vec::new());
    let groups = spec["workerGroupSpecs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, group) in groups.iter().enumerate() {
        let path = format!("{path}.workerGroupSpecs[{index}]");
        if group["suspend"] == true {
            continue;
        }
        let least = number(object, &format!("{path}.minReplicas"), 0).keep(&mut problems).unwrap_or(0);
        let most = match &group["maxReplicas"] {
            Value::Null => i64::MAX,
            most => most.as_i64().unwrap_or(i64::MAX),
        };
        if most < least {
            let cause = format!("it is less than minReplicas ({least})");
            problems.push(FieldProblem::new(format!("{path}.maxReplicas"), cause, "raise it"));
        }
        let hosts = number(object, &format!("{path}.numOfHosts"), 1).keep(&mut problems).unwrap_or(1).max(1);
        let of_group = format!("{path}.replicas");
        let wanted = number(object, &of_group, least).map(|wanted| wanted.clamp(least, most.max(least)));
        let wanted = wanted.and_then(|wanted| count(&of_group, wanted, hosts));
        let wanted = wanted.keep(&mut problems).unwrap_or(0);
        // `GetWorkerGroupDesiredReplicas` in ray-project/kuberay.
        if let Some(written) = group["replicas"].as_i64().filter(|written| *written != wanted) {
            notes.push(format!(
                "{of_group}: KubeRay makes {wanted} instead of {written}, because minReplicas and maxReplicas limit them"
            ));
        }
        let may_lack = if scales { (wanted - least) * hosts } else { 0 };
        optional += may_lack;
        let of = group["groupName"].as_str().unwrap_or("worker");
        let set = PodSet::new(
            format!("{name}-{of}-worker"),
            wanted * hosts,
            format!("{path}.template"),
            &group["template"],
        );
        let role = Role { name: format!("{of} worker"), label: (RAY_GROUP, of.to_owned()), spare: may_lack };
        add(PodSet { role: Some(role), ..set }, of, "worker");
    }
    let mut sets = Sets { notes, problems, ..sets.together(named(object, name), optional) };
    if scales {
        sets.notes.push(
            "Ray's autoscaler may ask for more workers later; the replicas as written are planned".to_owned(),
        );
    }
    Ok(sets)
}

/// Returns the Services that `KubeRay` makes before the pods of a cluster (`reconcileFuncs` in `raycluster_controller.go`): that of the
/// head, and one for groups whose workers have several hosts.
fn services_of_ray(spec: &Value, name: &str) -> Vec<Service> {
    let head = &spec["headGroupSpec"];
    let own = &head["headService"];
    let named = own["metadata"]["name"].as_str().filter(|name| !name.is_empty());
    let kind = own["spec"]["type"].as_str().or_else(|| head["serviceType"].as_str());
    let of_head = Service {
        name: named.map_or_else(|| format!("{name}-head-svc"), str::to_owned),
        kind: kind.map(str::to_owned),
    };
    let mut groups = spec["workerGroupSpecs"].as_array().into_iter().flatten();
    let has_hosts = groups.any(|group| group["numOfHosts"].as_i64().is_some_and(|hosts| hosts > 1));
    let of_hosts = has_hosts.then(|| Service::named(format!("{name}-headless")));
    [of_head].into_iter().chain(of_hosts).collect()
}

/// The label of a pod of Volcano with the name of its task.
pub(crate) const VOLCANO_TASK: &str = "volcano.sh/task-spec";

/// A job of Volcano: its tasks. As many pods as `minAvailable` start together.
pub(super) fn volcano_job(object: &Value, name: &str) -> Result<Sets, Problems> {
    let spec = &object["spec"];
    let phase = object["status"]["state"]["phase"].as_str().unwrap_or_default();
    let ended = ["Completed", "Failed", "Terminated", "Completing", "Terminating"].contains(&phase);
    if let Some(none) = suspended_or_ended(["Aborted", "Aborting"].contains(&phase), ended) {
        return Ok(none);
    }
    let tasks = spec["tasks"].as_array().filter(|tasks| !tasks.is_empty());
    let tasks = tasks.ok_or_else(|| lacking("spec.tasks", &spec["tasks"]))?;
    let scheduler = spec["schedulerName"].as_str().filter(|name| !name.is_empty()).unwrap_or("volcano");
    // The plugin `svc` makes its Service when the job comes (`OnJobAdd`), and the pods follow.
    let services: Vec<Service> =
        (!spec["plugins"]["svc"].is_null()).then(|| Service::named(name)).into_iter().collect();
    let (mut sets, mut total, mut least) = (Sets::default(), 0, 0);
    for (index, task) in tasks.iter().enumerate() {
        let path = format!("spec.tasks[{index}]");
        let wanted = number(object, &format!("{path}.replicas"), 1).keep(&mut sets.problems).unwrap_or(0);
        total += wanted;
        let of_task = number(object, &format!("{path}.minAvailable"), wanted);
        let of_task = of_task.keep(&mut sets.problems).unwrap_or(wanted);
        least += of_task;
        let own = task["name"].as_str().map_or_else(|| format!("default{index}"), str::to_owned);
        let mut template = task["template"].clone();
        if template["spec"].is_object() && template["spec"]["schedulerName"].is_null() {
            template["spec"]["schedulerName"] = scheduler.into();
        }
        let set = PodSet::new(format!("{name}-{own}"), wanted, format!("{path}.template"), &template)
            .labelled([("volcano.sh/job-name", name), (VOLCANO_TASK, &own)]);
        let role = Role { name: own.clone(), label: (VOLCANO_TASK, own), spare: (wanted - of_task).max(0) };
        sets.all.push(PodSet { fixed: true, role: Some(role), services: services.clone(), ..set });
    }
    let of_tasks = least;
    let least = number(object, "spec.minAvailable", of_tasks).keep(&mut sets.problems).unwrap_or(of_tasks);
    if least < of_tasks {
        // Volcano then counts all pods alike (`JobInfo.CheckTaskValid`).
        for set in &mut sets.all {
            set.role = None;
        }
    }
    Ok(sets.together(named(object, name), total - least))
}

/// A Rollout of Argo, which works like a Deployment.
pub(super) fn rollout(object: &Value, name: &str) -> Result<Sets, Problems> {
    if object["spec"]["workloadRef"].is_object() {
        return Ok(Sets::none(
            "its template is that of another object (spec.workloadRef), whose pods are planned if it is in the files",
        ));
    }
    let mut sets = replicas(object, name)?;
    let maker = Maker::Begins("ReplicaSet", format!("{name}-"));
    sets.all.iter_mut().for_each(|set| set.maker = maker.clone());
    Ok(sets)
}

/// A kind that has `replicas` and `template`.
pub(super) fn replicas(object: &Value, name: &str) -> Result<Sets, Problems> {
    let template = &object["spec"]["template"];
    if !template.is_object() {
        return Err(lacking("spec.template", template));
    }
    let mut problems = Vec::new();
    let wanted = number(object, "spec.replicas", 1).keep(&mut problems).unwrap_or(0);
    let set = PodSet::new(name.to_owned(), wanted, "spec.template".to_owned(), template);
    let maker = match object["kind"].as_str() {
        Some("DeploymentConfig") => Maker::Begins("ReplicationController", format!("{name}-")),
        _ => Maker::Itself,
    };
    Ok(Sets { all: vec![PodSet { maker, ..set }], keeps_running: true, problems, ..Sets::default() })
}

/// Returns the problem of a map or a list that an object must have: it is missing or empty, or a value of another type.
fn lacking(path: &str, value: &Value) -> Problems {
    let cause = match value {
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(list) if !list.is_empty() => "a list",
        Value::Object(map) if !map.is_empty() => "a map",
        _ => return missing(path),
    };
    one(FieldProblem::new(path, format!("invalid type: {cause}"), "correct the value"))
}

/// Kind, namespace and name.
fn named(object: &Value, name: &str) -> String {
    let namespace = object["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    object_name(object["kind"].as_str().unwrap_or_default(), Some(namespace.unwrap_or("default")), Some(name))
}
