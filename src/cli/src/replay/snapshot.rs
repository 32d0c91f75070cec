//! Reads manifests of a cluster as a workload: every running or waiting pod arrives at the beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use poolwright_core::{PodPhase, PodRole};
use poolwright_intake::{Admission, manifest};
use poolwright_sim::cluster::JobPlan;
use serde_json::{Value, json};

use super::work::{Names, Work};
use crate::args::runs_for;
use crate::clouds::of_kind;
use crate::exit::Failure;
use crate::node_classes::refused;
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
    let (manifest, mut problems) = source::parsed(sources);
    let mut objects: Vec<(String, Value)> = Vec::new();
    for source in sources {
        let read = manifest::objects(&source.name, &source.text).unwrap_or_default();
        objects.extend(read.into_iter().map(|object| (source.name.clone(), object)));
    }
    let owners: BTreeSet<String> = objects.iter().filter_map(|(_, object)| owner(object)).collect();
    let mut work = Work { notes: manifest.notes, ..Work::default() };
    let mut names = Names::default();
    let mut counts = Left::default();
    // The simulated API server admits pods as they are.
    let admission = Admission::of(objects.iter().map(|(_, object)| object));
    if problems.is_empty() {
        for (file, object) in &objects {
            let kind = object["kind"].as_str().unwrap_or_default();
            let is_shown_by_what_it_owns =
                object["metadata"]["uid"].as_str().is_some_and(|uid| owners.contains(uid));
            match kind {
                "Node" => counts.nodes += 1,
                "NodeClaim" | "NodePool" => counts.ours += 1,
                kind if of_kind(kind).is_some() => counts.ours += 1,
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
                _ if is_shown_by_what_it_owns => {}
                _ => match templates(object) {
                    Ok(templates) => {
                        let is_stored_pod = kind == "Pod" && object["metadata"]["uid"].is_string();
                        for mut template in templates {
                            if !is_stored_pod {
                                admission.fill_in_json(Some(&template.namespace), &mut template.spec);
                            }
                            let Some(job) = template.plan(&mut names) else { continue };
                            let waves = waves(object, &job, &mut names);
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
        work.objects = with_namespaces(std::mem::take(&mut work.objects), &work.jobs);
        let all: Vec<Value> = work.objects.iter().cloned().chain(work.jobs.iter().map(first_pod)).collect();
        for refusal in refused(&all) {
            problems.push(refusal);
        }
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
        (self.count > 0).then(|| JobPlan {
            name: names.take(&self.namespace, &self.name),
            namespace: self.namespace,
            labels: self.labels,
            arrives: Duration::ZERO,
            pods: self.count,
            spec: self.spec,
            length: self.length,
            declares: None,
            ran_before: Duration::ZERO,
            gated: None,
            protected: false,
            at_least: None,
            kept: Some(Duration::ZERO),
            never: false,
            is_set: self.is_service,
        })
    }
}

/// Returns the pods of an object: as many as a plan would count.
fn templates(object: &Value) -> Result<Vec<Template>, String> {
    if object["kind"] == "JobSet" {
        return job_set(object);
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
            all.extend(templates(&job)?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(text: &str) -> Result<Work, String> {
        let source = Source { name: "cluster.yaml".to_owned(), text: text.to_owned() };
        of_sources(&[source]).map_err(|problems| problems.to_string())
    }

    fn pod(meta: &Value, spec: &Value, phase: &str) -> Value {
        let mut spec = spec.clone();
        spec["containers"] = json!([{"name": "work", "image": "work"}]);
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}})
    }

    fn list(items: &[Value]) -> String {
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
    }

    #[test]
    fn completions_of_a_job_beyond_its_parallelism_come_in_waves() {
        let template = json!({"metadata": {"annotations": {RUNS_FOR: "30m"}},
            "spec": {"containers": [{"name": "work", "image": "work"}], "restartPolicy": "Never"}});
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "six", "namespace": "ml"},
            "spec": {"completions": 5, "parallelism": 2, "template": template}});
        let work = work(&list(&[job])).unwrap();
        let waves: Vec<_> = work.jobs.iter().map(|job| (job.pods, job.arrives.as_secs() / 60)).collect();
        assert_eq!(waves, [(2, 0), (2, 30), (1, 60)]);
        assert!(work.notes.iter().any(|note| note.contains("follow in 2 waves")), "{:?}", work.notes);
    }

    #[test]
    fn pods_that_run_or_wait_come_anew_and_what_shows_them_a_second_time_does_not() {
        let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "u-1", "controller": true}]);
        let template = pod(&json!({}), &json!({"restartPolicy": "Never"}), "");
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "owner", "uid": "u-1"},
            "spec": {"template": {"spec": template["spec"]}}});
        let work = work(&list(&[
            pod(
                &json!({"name": "runs", "namespace": "team", "ownerReferences": owner}),
                &json!({"nodeName": "n"}),
                "Running",
            ),
            pod(&json!({"name": "waits"}), &json!({"activeDeadlineSeconds": 60}), "Pending"),
            pod(&json!({"name": "done"}), &json!({}), "Succeeded"),
            job,
        ]))
        .unwrap();
        let jobs: Vec<_> = work
            .jobs
            .iter()
            .map(|job| (job.name.as_str(), job.namespace.as_str(), job.pods, job.length))
            .collect();
        assert_eq!(jobs, [("runs", "team", 1, None), ("waits", "default", 1, Some(Duration::from_mins(1)))]);
        assert!(work.jobs.iter().all(|job| job.spec["nodeName"].is_null()));
        assert_eq!(work.objects.len(), 1, "the namespace `team`: {:?}", work.objects);
    }

    #[test]
    fn a_replay_expands_controllers_to_their_pods() {
        let template = json!({"metadata": {"labels": {"app": "a"}, "annotations": {RUNS_FOR: "90m"}},
            "spec": {"containers": [{"name": "work", "image": "work"}]}});
        let work = work(&list(&[
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template}}),
        ]))
        .unwrap();
        let [job] = work.jobs.as_slice() else { panic!("{:?}", work.jobs) };
        assert_eq!((job.pods, job.length), (3, Some(Duration::from_mins(90))));
        assert_eq!(job.labels.get("app").map(String::as_str), Some("a"));
    }

    #[test]
    fn a_length_that_is_none_is_told_with_object_and_field() {
        let pod = pod(&json!({"name": "p", "annotations": {RUNS_FOR: "soon"}}), &json!({}), "Running");
        let said = work(&list(&[pod])).unwrap_err();
        assert!(
            said.contains("cluster.yaml: Pod default/p: metadata.annotations[poolwright.dev/runs-for]: `soon` is not a duration"),
            "{said}"
        );
    }
}
