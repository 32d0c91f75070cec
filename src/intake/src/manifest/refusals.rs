//! What an API server refuses of an object that it has not stored yet. The rules of admission about pods are elsewhere.

use poolwright_api::{FieldProblem, key_segment, meant};
use poolwright_catalog::ResourceName;
use poolwright_catalog::quantity::amount;
use serde_json::Value;

use super::names::{NameRule, items};
use super::objects::{Object, group, meta};
use super::pod_refusals::{self, required, tolerates};
use super::slips::slip;
use super::{
    job_refusals, labels, operator_refusals, operator_values, ray_refusals, runtime_refusals,
    volume_refusals, workload_refusals,
};
use crate::admission::built_in;
use crate::error::{IntakeError, OfObject, add_untold, quantity_problem};
use crate::pod_sets;
use crate::quota::REQUESTS;

pub(super) type Problems = Vec<FieldProblem>;

/// The roles of training jobs of Kubeflow, and the field that has them.
const ROLES: [(&str, &str, &[&str]); 6] = [
    ("PyTorchJob", "pytorchReplicaSpecs", &["Master", "Worker"]),
    ("MPIJob", "mpiReplicaSpecs", &["Launcher", "Worker"]),
    ("TFJob", "tfReplicaSpecs", &["Chief", "Master", "PS", "Worker", "Evaluator"]),
    ("XGBoostJob", "xgbReplicaSpecs", &["Master", "Worker"]),
    ("PaddleJob", "paddleReplicaSpecs", &["Master", "Worker"]),
    ("JAXJob", "jaxReplicaSpecs", &["Worker"]),
];

/// The roles of which a training job has one pod.
const SINGLE: [(&str, &str); 3] =
    [("PyTorchJob", "master"), ("MPIJob", "launcher"), ("XGBoostJob", "master")];

/// The largest value of a PriorityClass that is not of the system.
const MOST_PRIORITY: i64 = 1_000_000_000;

/// The beginning of the names of PriorityClasses that only the system may have.
const OF_SYSTEM: &str = "system-";

/// The resources without a domain in their name, besides huge pages.
const STANDARD: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "storage", "pods"];

/// GPUs of a vendor, who is the first part of the domain.
const GPUS: [&str; 2] = [ResourceName::NVIDIA_GPU, "amd.com/gpu"];

impl Object {
    /// Returns what an API server would refuse of the object. One that it has stored has passed these checks.
    pub(super) fn refusals(&self) -> Problems {
        if self.is_stored() {
            return Vec::new();
        }
        let spec = &self.value["spec"];
        let name = meta(&self.value, "name").unwrap_or_default();
        let mut problems = match (group(&self.api_version), self.kind.as_str()) {
            ("batch", "Job") => job_refusals::job(&self.value),
            ("batch", "CronJob") => job_refusals::cron_job(spec),
            ("apps", kind @ ("Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet"))
            | ("", kind @ "ReplicationController") => workload_refusals::keeps_running(kind, spec),
            ("policy", "PodDisruptionBudget") => workload_refusals::budget(spec),
            ("", "PersistentVolumeClaim") => volume_refusals::claim("spec", spec),
            ("", "PersistentVolume") => volume_refusals::volume(spec),
            ("storage.k8s.io", "StorageClass") => volume_refusals::storage_class(&self.value),
            ("node.k8s.io", "RuntimeClass") => runtime_class(&self.value),
            ("scheduling.k8s.io", "PriorityClass") => priority_class(&self.value),
            ("kubeflow.org", kind) => training_job(&self.api_version, kind, name, spec),
            ("batch.volcano.sh", "Job") => operator_refusals::volcano_job(name, spec),
            ("jobset.x-k8s.io", "JobSet") => operator_refusals::job_set(name, spec),
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => operator_refusals::leader_worker_set(spec),
            ("ray.io", kind) => ray_refusals::check(kind, name, spec),
            _ if self.is_runtime() => runtime_refusals::check(spec),
            _ => Vec::new(),
        };
        let mut of_values = Vec::new();
        operator_values::check(&self.api_version, &self.kind, &self.value, &mut of_values);
        add_untold(of_values, &mut problems);
        for Stated { path, name, amount: stated } in self.resources_of_containers() {
            // The conversion of a pod stops at its first error.
            if let Err(error) = amount(&name, &stated) {
                problems.push(quantity_problem(&path, &error));
            }
            if let Some(Misspelt { is_refused: true, meant }) = misspelt(&name) {
                let cause = if name.contains('/') {
                    format!("`{name}` begins with `{REQUESTS}`, which only quotas write before a resource")
                } else {
                    format!("`{name}` must be a standard resource type or fully qualified")
                };
                let next = match meant {
                    Some(meant) => format!("did you mean {meant}?"),
                    None if name.contains('/') => format!("write it without `{REQUESTS}`"),
                    None => "use cpu, memory, ephemeral-storage, or a name with a domain".to_owned(),
                };
                problems.push(FieldProblem::new(path, cause, next));
            }
        }
        add_untold(self.misnamed(), &mut problems);
        let mut of_labels = Vec::new();
        labels::of_meta("metadata", &self.value["metadata"], &mut of_labels);
        add_untold(of_labels, &mut problems);
        add_untold(self.wrong_choices(), &mut problems);
        if self.has_new_templates() {
            let mut of_pods = Vec::new();
            pod_refusals::check(&self.value, &mut of_pods);
            add_untold(of_pods, &mut problems);
            add_untold(self.without_image(), &mut problems);
        }
        problems
    }

    /// Returns a note for each resource of a written object that an API server accepts, but that is probably misspelt or lacks its
    /// unit.
    pub(super) fn doubts(&self) -> Vec<String> {
        let doubt = |Stated { path, name, amount }| {
            if let Some(slip) = slip(&name, &amount) {
                return Some(format!("{}: {path}: {slip}", self.name()));
            }
            let found = misspelt(&name).filter(|found| !found.is_refused)?;
            Some(format!("{}: {path}: did you mean {}?", self.name(), found.meant?))
        };
        self.resources_of_containers().into_iter().filter_map(doubt).collect()
    }

    /// Returns the resources that the containers of a written object state.
    fn resources_of_containers(&self) -> Vec<Stated> {
        let mut found = Vec::new();
        if self.has_new_templates() {
            containers_below("spec", &self.value["spec"], &mut |path, container| {
                stated(&format!("{path}.resources"), &container["resources"], &mut found);
            });
        }
        if self.kind == "TrainJob" && !self.is_stored() {
            const PLACE: &str = "spec.trainer.resourcesPerNode";
            stated(PLACE, &self.value["spec"]["trainer"]["resourcesPerNode"], &mut found);
        }
        found
    }

    /// Returns a problem for each container without an image. Other projects than Kubernetes may add one to their templates.
    fn without_image(&self) -> Problems {
        let mut problems = Vec::new();
        if ["", "apps", "batch"].contains(&group(&self.api_version)) {
            containers_below("spec", &self.value["spec"], &mut |path, container| {
                let next = "add it, such as registry.example.com/app:1.0";
                if container.is_object() {
                    required(&format!("{path}.image"), &container["image"], next, &mut problems);
                }
            });
        }
        problems
    }

    /// Returns whether it is a written object of a kind whose pod templates are known.
    fn has_new_templates(&self) -> bool {
        let makes_known = || self.makes_pods() && (self.is_read() || self.kind == "CronJob");
        !self.is_stored() && (self.is_runtime() || makes_known())
    }

    /// Returns whether it is the runtime of a `TrainJob`, which has the templates of its pods.
    fn is_runtime(&self) -> bool {
        pod_sets::train_job::is_runtime(group(&self.api_version), &self.kind)
    }
}

/// A request or limit of a container, as it is written.
struct Stated {
    path: String,
    name: String,
    amount: String,
}

/// Calls a function with each container below a path, and with the path of the container.
fn containers_below(path: &str, value: &Value, tell: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            for (key, inner) in fields {
                let path = format!("{path}{}", key_segment(key));
                let list = inner.as_array().filter(|_| key == "containers" || key == "initContainers");
                let Some(list) = list else {
                    containers_below(&path, inner, tell);
                    continue;
                };
                for (at, container) in list.iter().enumerate() {
                    tell(&format!("{path}[{at}]"), container);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                containers_below(&format!("{path}[{at}]"), item, tell);
            }
        }
        _ => {}
    }
}

/// Adds the requests and limits at a path.
fn stated(path: &str, resources: &Value, into: &mut Vec<Stated>) {
    for field in ["limits", "requests"] {
        let amounts = resources[field].as_object().into_iter().flatten();
        let path = format!("{path}.{field}");
        into.extend(amounts.filter_map(|(name, amount)| {
            Some(Stated {
                path: format!("{path}{}", key_segment(name)),
                name: name.clone(),
                amount: written_amount(amount)?,
            })
        }));
    }
}

/// Returns an amount as it is written; `None` if it is neither a text nor a number.
pub(super) fn written_amount(amount: &Value) -> Option<String> {
    match amount {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A name that is probably not the one that its author had in mind.
struct Misspelt {
    /// Whether an API server refuses it.
    is_refused: bool,
    meant: Option<&'static str>,
}

/// Returns what is wrong with the name of a resource; `None` if it may be right.
fn misspelt(name: &str) -> Option<Misspelt> {
    let lower = name.to_lowercase();
    let Some((domain, own)) = lower.split_once('/') else {
        if STANDARD.contains(&name) || name.starts_with("hugepages-") {
            return None;
        }
        let meant = match lower.as_str() {
            "core" | "cores" => Some("cpu"),
            "mem" | "ram" => Some("memory"),
            other if other.contains("gpu") => Some(ResourceName::NVIDIA_GPU),
            other => meant(other, ["cpu", "memory", "ephemeral-storage"]),
        };
        return Some(Misspelt { is_refused: true, meant });
    };
    let is_of_vendor = |gpu: &&&'static str| {
        let vendor = gpu.split('.').next().unwrap_or_default();
        domain.split('.').any(|part| part == vendor)
    };
    let is_gpu = own == "gpu" || own == "gpus";
    let gpu = GPUS.iter().find(is_of_vendor).copied().filter(|gpu| is_gpu && name != *gpu);
    // Only quotas count extended resources under such names. Names in the domain of Kubernetes are not checked for it.
    let is_refused = name.starts_with(REQUESTS) && !name.contains("kubernetes.io/");
    (is_refused || gpu.is_some()).then_some(Misspelt { is_refused, meant: gpu })
}

/// Checks a RuntimeClass (`ValidateRuntimeClass`).
fn runtime_class(class: &Value) -> Problems {
    let (mut problems, handler) = (Vec::new(), &class["handler"]);
    required("handler", handler, "add the name that the nodes have for it, such as nvidia", &mut problems);
    let name = handler.as_str().filter(|name| !name.is_empty());
    problems.extend(name.and_then(|name| NameRule::Label.broken_by("handler", name)));
    for (at, toleration) in items(&class["scheduling"]["tolerations"]).iter().enumerate() {
        tolerates(&format!("scheduling.tolerations[{at}]"), toleration, &mut problems);
    }
    problems
}

fn priority_class(class: &Value) -> Problems {
    let mut problems = Vec::new();
    let name = meta(class, "name").unwrap_or_default();
    let value = &class["value"];
    // A value of a wrong type is told elsewhere.
    let value = if value.is_null() { Some(0) } else { value.as_i64() };
    if let Some(fixed) = built_in(name).map(i64::from) {
        if let Some(value) = value.filter(|value| *value != fixed) {
            let cause = format!("`{value}` is not {fixed}, the value of {name} in every cluster");
            problems.push(FieldProblem::new("value", cause, format!("write {fixed}, or rename your class")));
        }
        if class["globalDefault"] == true {
            let cause = format!("an API server refuses {name} as the default");
            problems.push(FieldProblem::new("globalDefault", cause, "remove it"));
        }
    } else if name.starts_with(OF_SYSTEM) {
        let cause = format!("an API server refuses `{name}`, because it reserves names with `{OF_SYSTEM}`");
        problems.push(FieldProblem::new("metadata.name", cause, "rename it"));
    }
    if let Some(value) = value.filter(|value| *value > MOST_PRIORITY && built_in(name).is_none()) {
        let cause = format!("`{value}` is more than {MOST_PRIORITY}, the most for your own classes");
        problems.push(FieldProblem::new("value", cause, "lower it"));
    }
    let policy = class["preemptionPolicy"].as_str().filter(|policy| !policy.is_empty());
    if let Some(policy) = policy.filter(|policy| !["PreemptLowerPriority", "Never"].contains(policy)) {
        let cause = format!("`{policy}` is not a policy of preemption");
        problems.push(FieldProblem::new("preemptionPolicy", cause, "use PreemptLowerPriority or Never"));
    }
    problems
}

/// Returns a problem for each written PriorityClass that would be a second default of the cluster (admission plugin `Priority`).
pub(super) fn second_defaults(objects: &[Object]) -> Vec<IntakeError> {
    let is_default = |object: &&Object| {
        object.kind == "PriorityClass"
            && group(&object.api_version) == "scheduling.k8s.io"
            && object.value["globalDefault"] == true
    };
    let defaults: Vec<&Object> = objects.iter().filter(is_default).collect();
    // What an API server has stored is there first.
    let Some(first) = defaults.iter().find(|class| class.is_stored()).or(defaults.first()) else {
        return Vec::new();
    };
    let name = meta(&first.value, "name").unwrap_or_default();
    let others =
        defaults.iter().filter(|class| !class.is_stored() && meta(&class.value, "name") != Some(name));
    let problem = |class: &&Object| {
        let cause = format!("PriorityClass `{name}` is the default already, and a cluster has only one");
        let error = FieldProblem::new("globalDefault", cause, "remove it from one of them").of(class.name());
        IntakeError { file: Some(class.file.clone()), ..error }
    };
    others.map(problem).collect()
}

/// Checks the roles of a training job. Some versions of its operator accept them in lower case.
fn training_job(version: &str, kind: &str, name: &str, spec: &Value) -> Problems {
    let of_operator = pod_sets::replica_specs(kind)
        .map(|field| operator_refusals::training_job(version, kind, field, name, spec))
        .unwrap_or_default();
    let Some((_, field, roles)) = ROLES.iter().find(|(known, ..)| *known == kind) else {
        return of_operator;
    };
    let mut problems = Vec::new();
    for (role, of_role) in spec[*field].as_object().into_iter().flatten() {
        let path = format!("spec.{field}.{role}");
        if !roles.iter().any(|known| known.eq_ignore_ascii_case(role)) {
            let next = match meant(role, roles.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("use one of {}", roles.join(", ")),
            };
            problems.push(FieldProblem::new(path, format!("{kind} has no such role"), next));
        } else if SINGLE.contains(&(kind, role.to_lowercase().as_str()))
            && let Some(heads) = of_role["replicas"].as_u64().filter(|heads| *heads != 1)
        {
            let (role, a) = (role.to_lowercase(), if kind == "PyTorchJob" { "a" } else { "an" });
            let cause = format!("`{heads}` is not the one {role} that {a} {kind} has");
            problems.push(FieldProblem::new(format!("{path}.replicas"), cause, "write 1, and add workers"));
        }
    }
    problems.extend(of_operator);
    problems
}
