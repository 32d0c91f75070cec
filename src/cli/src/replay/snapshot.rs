//! Reads manifests of a cluster as a workload: every running or waiting pod arrives at the beginning, and so does every pod that
//! a controller lacks.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use poolwright_core::{PodPhase, PodRole};
use poolwright_intake::manifest::MissingPods;
use poolwright_intake::{Admission, manifest};
use poolwright_sim::cluster::JobPlan;
use serde_json::{Value, json};

use super::work::{Names, Work};
use crate::args::runs_for;
use crate::clouds::{is_node_class, not_built};
use crate::exit::Failure;
use crate::node_classes;
use crate::problems::Problems;
use crate::source::{self, Source};

/// The annotation with the run time of a pod, on pods and pod templates.
const RUNS_FOR: &str = "poolwright.dev/runs-for";

/// The kinds of objects that are created unchanged, before any pod.
const SURROUNDINGS: [&str; 7] = [
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "Service",
    "StorageClass",
    "DaemonSet",
];

/// The kinds that keep their pods running.
const SERVICES: [&str; 8] = [
    "CloneSet",
    "Deployment",
    "DeploymentConfig",
    "LeaderWorkerSet",
    "RayService",
    "ReplicaSet",
    "Rollout",
    "StatefulSet",
];

/// Reads the files.
pub fn read(files: &[PathBuf]) -> Result<Result<Work, Problems>, Failure> {
    if files.is_empty() {
        return Err(Failure::bad_input(
            "nothing to play: give a trace (--trace FILE) or manifests (--snapshot FILE)",
        ));
    }
    Ok(of_sources(&source::manifests(files)?))
}

fn of_sources(sources: &[Source]) -> Result<Work, Problems> {
    let (mut manifest, mut errors) = source::parsed(sources, &[]);
    // Our own objects are not played, but a misspelt kind may be that of one that should be. A cloud that this build does not have
    // is not needed to play the others.
    let is_built = |kind: &str| not_built(|cloud| cloud.node_class == kind).is_none();
    manifest.node_classes.retain(|class| is_built(&class.reference.kind));
    let (_, found) = node_classes::read(&manifest.node_classes, &mut Vec::new());
    errors.extend(found);
    let told: BTreeSet<&str> = errors.iter().map(|error| error.object.as_str()).collect();
    let mut problems = Problems::all(&errors);
    let mut objects: Vec<(String, Value)> = Vec::new();
    for source in sources {
        let read = manifest::objects(&source.name, &source.text).unwrap_or_default();
        objects.extend(read.into_iter().map(|object| (source.name.clone(), object)));
    }
    let owners: BTreeSet<String> = objects.iter().filter_map(|(_, object)| owner(object)).collect();
    let planned = manifest.pods.iter();
    let mut planned: BTreeSet<(String, String)> =
        planned.map(|pod| (pod.key.namespace().to_owned(), pod.key.name().into_owned())).collect();
    let mut missing = Missing::of(&manifest.missing);
    let mut work = Work { notes: manifest.notes, ..Work::default() };
    let mut names = Names::default();
    let mut counts = Left::default();
    // Nothing follows from what has a problem or cannot be created.
    let is_left_out =
        |name: &String| told.contains(name.as_str()) || manifest.not_created.contains(name.as_str());
    objects.retain(|(_, object)| !names_in_messages(object).iter().any(is_left_out));
    // The simulated API server admits pods as they are.
    let admission = Admission::of(objects.iter().map(|(_, object)| object));
    for (file, object) in &objects {
        let kind = object["kind"].as_str().unwrap_or_default();
        let owns_some = object["metadata"]["uid"].as_str().is_some_and(|uid| owners.contains(uid));
        match kind {
            "Node" => counts.nodes += 1,
            "NodeClaim" | "NodePool" => counts.ours += 1,
            kind if is_node_class(kind) => counts.ours += 1,
            kind if SURROUNDINGS.contains(&kind) => {
                let mut object = bare(object);
                if kind == "DaemonSet" {
                    admission.fill_in_json(
                        namespace_of(&object).as_deref(),
                        &mut object["spec"]["template"]["spec"],
                    );
                }
                work.objects.push(object);
            }
            // A quota or an autoscaler may leave it out, and the same pod may be there twice.
            "Pod" if name_of(object).is_some_and(|name| !planned.remove(&name)) => {}
            _ => match templates(object, &objects) {
                Ok(mut templates) => {
                    let is_stored_pod = kind == "Pod" && object["metadata"]["uid"].is_string();
                    if kind != "Pod" {
                        missing.count_of(object, &mut templates);
                    }
                    for mut template in templates {
                        if !is_stored_pod {
                            admission.fill_in_json(Some(&template.namespace), &mut template.spec);
                        }
                        let Some(job) = template.plan(&mut names) else { continue };
                        // The pods that a Job has already end at times that nobody knows.
                        let waves = if owns_some { Vec::new() } else { waves(object, &job, &mut names) };
                        if !waves.is_empty() {
                            work.notes.push(format!(
                                "Job {}/{}: its completions beyond its parallelism follow in {} waves, each when the pods before it \
                                 would have ended",
                                job.namespace,
                                job.name,
                                waves.len()
                            ));
                        }
                        work.jobs.push(job);
                        work.jobs.extend(waves);
                    }
                }
                Err(problem) => problems.push(format!("{file}: {problem}")),
            },
        }
    }
    missing.tell(&mut work.notes);
    work.objects = with_namespaces(std::mem::take(&mut work.objects), &work.jobs);
    let all: Vec<Value> = work.objects.iter().cloned().chain(work.jobs.iter().map(first_pod)).collect();
    for refusal in node_classes::refused(&all) {
        problems.push(refusal);
    }
    if problems.is_empty() && work.jobs.is_empty() {
        problems.push(
            "the files of --snapshot have no running or waiting pod; write them with `kubectl get pods,jobs,deployments -A -o yaml`",
        );
    }
    let pods: u32 = work.jobs.iter().map(|job| job.pods).sum();
    let endless: u32 = work.jobs.iter().filter(|job| job.length.is_none()).map(|job| job.pods).sum();
    work.notes.insert(
        0,
        format!("pods that start at the beginning: {pods}; of these, {endless} run for ever (set how long with the annotation {RUNS_FOR})"),
    );
    counts.tell(&mut work.notes);
    problems.or(work)
}

/// Returns the pods that a Job makes when its first ones have ended: those of its completions beyond its parallelism.
fn waves(object: &Value, first: &JobPlan, names: &mut Names) -> Vec<JobPlan> {
    let (Some(completions), Some(length)) = (object["spec"]["completions"].as_u64(), first.length) else {
        return Vec::new();
    };
    if object["kind"] != "Job" || first.pods == 0 {
        return Vec::new();
    }
    let ended = object["status"]["succeeded"].as_u64().unwrap_or(0);
    let mut left = completions.saturating_sub(ended).saturating_sub(first.pods.into());
    let mut waves = Vec::new();
    while left > 0 && waves.len() < MOST_WAVES {
        let pods = u32::try_from(left).unwrap_or(u32::MAX).min(first.pods);
        left -= u64::from(pods);
        let arrives = length.saturating_mul(waves.len() as u32 + 1);
        let name = names.take(&first.namespace, &first.name);
        waves.push(JobPlan { name, arrives, pods, ..first.clone() });
    }
    waves
}

fn namespace_of(object: &Value) -> Option<String> {
    object["metadata"]["namespace"].as_str().map(str::to_owned)
}

/// The most waves of one Job.
const MOST_WAVES: usize = 1_000;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Adds the namespaces that are used but missing, because lists of pods do not contain them. Namespaces come first.
fn with_namespaces(objects: Vec<Value>, jobs: &[JobPlan]) -> Vec<Value> {
    let (given, others): (Vec<Value>, Vec<Value>) =
        objects.into_iter().partition(|object| object["kind"] == "Namespace");
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let of = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
    let known: BTreeSet<String> = given.iter().map(name).chain(NAMESPACES.map(str::to_owned)).collect();
    let used: BTreeSet<String> =
        others.iter().filter_map(of).chain(jobs.iter().map(|job| job.namespace.clone())).collect();
    let missing = used
        .difference(&known)
        .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let missing: Vec<Value> = missing.collect();
    let given = given.into_iter().filter(|namespace| !NAMESPACES.contains(&name(namespace).as_str()));
    given.chain(missing).chain(others).collect()
}

/// Returns a pod of the Job, to check it against the rules of the API server.
fn first_pod(job: &JobPlan) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": job.name, "namespace": job.namespace, "labels": job.labels}, "spec": job.spec})
}

/// Returns the namespace and name of an object, unless an API server would make up its name.
fn name_of(object: &Value) -> Option<(String, String)> {
    let namespace = namespace_of(object).filter(|name| !name.is_empty());
    let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty())?;
    Some((namespace.unwrap_or_else(|| "default".to_owned()), name.to_owned()))
}

/// The pods that controllers lack, as a plan counts them.
struct Missing {
    /// By kind, namespace and name of the controller, and then by the beginning of their names.
    all: BTreeMap<(String, String, String), BTreeMap<String, u32>>,
}

impl Missing {
    fn of(all: &[MissingPods]) -> Self {
        let mut missing = Self { all: BTreeMap::new() };
        for pods in all {
            let key = (pods.kind.clone(), pods.namespace.clone(), pods.controller.clone());
            let count = missing.all.entry(key).or_default().entry(pods.name.clone()).or_default();
            *count = count.saturating_add(u32::try_from(pods.count).unwrap_or(u32::MAX));
        }
        missing
    }

    /// Lets the templates of a controller have as many pods as it lacks. Pods that it has are objects of their own.
    fn count_of(&mut self, object: &Value, templates: &mut [Template]) {
        for template in templates.iter_mut() {
            template.count = 0;
        }
        let Some(key) = self.key_of(object) else { return };
        let Some(left) = self.all.get_mut(&key) else { return };
        match templates {
            [only] if only.spec.is_object() => {
                only.count = left.values().fold(0_u32, |sum, count| sum.saturating_add(*count));
                left.clear();
            }
            more => {
                for template in more {
                    template.count = left.remove(&template.name).unwrap_or(0);
                }
            }
        }
        if left.is_empty() {
            self.all.remove(&key);
        }
    }

    /// Returns the key of a controller. Of one whose name an API server would make up, only the beginning is known.
    fn key_of(&self, object: &Value) -> Option<(String, String, String)> {
        let kind = object["kind"].as_str()?.to_owned();
        if let Some((namespace, name)) = name_of(object) {
            return Some((kind, namespace, name));
        }
        let namespace = namespace_of(object).unwrap_or_else(|| "default".to_owned());
        let begin = object["metadata"]["generateName"].as_str()?;
        let is_it = |key: &&(String, String, String)| {
            (key.0.as_str(), key.1.as_str()) == (kind.as_str(), namespace.as_str())
                && key.2.starts_with(begin)
        };
        self.all.keys().find(is_it).cloned()
    }

    /// Names the controllers with missing pods whose templates are not read here.
    fn tell(&self, notes: &mut Vec<String>) {
        for ((kind, namespace, name), pods) in &self.all {
            let count: u64 = pods.values().map(|count| u64::from(*count)).sum();
            notes.push(format!("{kind} {namespace}/{name}: {count} of its pods are not simulated, because their template is not read"));
        }
    }
}

/// Counts the objects that are not played.
#[derive(Default)]
struct Left {
    nodes: usize,
    ours: usize,
}

impl Left {
    fn tell(&self, notes: &mut Vec<String>) {
        if self.nodes > 0 {
            notes.push(format!("ignored Nodes of the snapshot: {}; all nodes are bought anew", self.nodes));
        }
        if self.ours > 0 {
            notes.push(format!(
                "ignored pools, node classes and claims of the snapshot: {}; pass pools with --pools",
                self.ours
            ));
        }
    }
}

/// Returns the names that an object may have in messages, with and without a namespace.
fn names_in_messages(object: &Value) -> [String; 2] {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (kind, meta) = (text(&object["kind"]).unwrap_or_default(), &object["metadata"]);
    let name = text(&meta["name"]).or_else(|| text(&meta["generateName"])).unwrap_or_default();
    let namespace = text(&meta["namespace"]).unwrap_or_else(|| "default".to_owned());
    [format!("{kind} {namespace}/{name}"), format!("{kind} {name}")]
}

/// Returns the UID of the controller of an object.
fn owner(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let controller = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(controller["uid"].as_str()?.to_owned())
}

/// Returns an object as its author wrote it, without the fields that the cluster sets.
pub(super) fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
            "ownerReferences",
            "selfLink",
        ] {
            meta.remove(field);
        }
    }
    object
}

/// A group of equal pods.
struct Template {
    name: String,
    namespace: String,
    count: u32,
    labels: BTreeMap<String, String>,
    spec: Value,
    length: Option<Duration>,
    /// Whether its controller keeps its pods running.
    is_service: bool,
}

impl Template {
    fn plan(self, names: &mut Names) -> Option<JobPlan> {
        (self.count > 0).then(|| {
            let name = names.take(&self.namespace, &self.name);
            JobPlan {
                namespace: self.namespace,
                labels: self.labels,
                length: self.length,
                kept: Some(Duration::ZERO),
                is_set: self.is_service,
                ..JobPlan::new(name, Duration::ZERO, self.count, self.spec)
            }
        })
    }
}

/// Returns the pods of an object: as many as a plan would count. `all` are the objects of the files, with their files.
fn templates(object: &Value, all: &[(String, Value)]) -> Result<Vec<Template>, String> {
    if object["kind"] == "JobSet" {
        return job_set(object);
    }
    if let Some(set) = manifest::job_set_of(object, all.iter().map(|(_, object)| object)) {
        return job_set(&set);
    }
    if let Some(sets) = manifest::described_pods(object) {
        let of = |set: manifest::DescribedPods| {
            let mut named = object.clone();
            named["metadata"]["name"] = set.name.into();
            template(&named, &set.template, (u32::try_from(set.count).unwrap_or(u32::MAX), &Value::Null))
        };
        return sets.into_iter().map(of).collect();
    }
    let Ok(read) = manifest::parse("", &object.to_string()) else { return Ok(Vec::new()) };
    let counts = |pod: &&poolwright_core::Pod| {
        pod.role == PodRole::Workload && !matches!(pod.phase, PodPhase::Finished)
    };
    let count = u32::try_from(read.pods.iter().filter(counts).count()).unwrap_or(u32::MAX);
    let (pod, deadline) = if object["kind"] == "Pod" {
        (object, &Value::Null)
    } else {
        (&object["spec"]["template"], &object["spec"]["activeDeadlineSeconds"])
    };
    Ok(vec![template(object, pod, (count, deadline))?])
}

fn template(object: &Value, pod: &Value, (count, deadline): (u32, &Value)) -> Result<Template, String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name =
        text(&object["metadata"]["name"]).or(text(&object["metadata"]["generateName"])).unwrap_or_default();
    let namespace = text(&object["metadata"]["namespace"]).unwrap_or_else(|| "default".to_owned());
    let owner = &object["metadata"]["ownerReferences"][0]["kind"];
    let kind = if object["kind"] == "Pod" { owner } else { &object["kind"] };
    let is_service = kind.as_str().is_some_and(|kind| SERVICES.contains(&kind));
    let mut spec = pod["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        for field in ["nodeName", "schedulingGates", "activeDeadlineSeconds"] {
            fields.remove(field);
        }
        // All other pods become pods of Jobs, which need a restart policy other than `Always`.
        fields.insert("restartPolicy".to_owned(), json!(if is_service { "Always" } else { "Never" }));
    }
    let annotation = pod["metadata"]["annotations"][RUNS_FOR].as_str();
    let length = match annotation {
        Some(said) => Some(runs_for(said).map_err(|cause| {
            format!(
                "{} {namespace}/{name}: metadata.annotations[{RUNS_FOR}]: `{said}` is {cause}",
                object["kind"].as_str().unwrap_or_default()
            )
        })?),
        None => deadline.as_u64().or(pod["spec"]["activeDeadlineSeconds"].as_u64()).map(Duration::from_secs),
    };
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    Ok(Template { name, namespace, count, labels, spec, length, is_service })
}

/// Returns the Jobs of a JobSet.
fn job_set(object: &Value) -> Result<Vec<Template>, String> {
    let mut all = Vec::new();
    for replicated in object["spec"]["replicatedJobs"].as_array().into_iter().flatten() {
        let (set, name) = (
            object["metadata"]["name"].as_str().unwrap_or_default(),
            replicated["name"].as_str().unwrap_or_default(),
        );
        for replica in 0..replicated["replicas"].as_u64().unwrap_or(1) {
            let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": object["metadata"],
                "spec": replicated["template"]["spec"]});
            job["metadata"]["name"] = json!(format!("{set}-{name}-{replica}"));
            // The JobSet's own controller sets it where it is left out.
            let policy = &mut job["spec"]["template"]["spec"]["restartPolicy"];
            if policy.is_null() {
                *policy = json!("OnFailure");
            }
            all.extend(templates(&job, &[])?);
        }
    }
    Ok(all)
}
