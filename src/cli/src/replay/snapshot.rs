//! Reads manifests of a cluster as a workload: every running or waiting pod arrives at the beginning, and so does every pod that
//! a controller lacks.

mod claims;
mod daemons;
mod gangs;
mod left_out;
mod missing;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;

use poolwright_intake::{Admission, manifest};
use poolwright_sim::cluster::JobPlan;
use poolwright_terms::GROUP;
use serde_json::{Value, json};

use super::work::{Names, Work};
use crate::clouds::{is_node_class, not_built};
use crate::exit::Failure;
use crate::node_classes;
use crate::problems::Problems;
use crate::source::{self, Source};
use gangs::Gangs;
use left_out::{LeftOut, Why};
use missing::Missing;
use template::{Models, templates};

/// The annotation with the run time of a pod, on pods and pod templates.
const RUNS_FOR: &str = "poolwright.dev/runs-for";

/// The kinds of objects that are created unchanged, before any pod, with their groups. Other projects have kinds of the same names,
/// such as the Service of Knative, which has pods of its own.
const SURROUNDINGS: [(&str, &str); 7] = [
    ("", "Namespace"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("policy", "PodDisruptionBudget"),
    ("", "Service"),
    ("storage.k8s.io", "StorageClass"),
    ("apps", "DaemonSet"),
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
    let unreadable = manifest.notes_on_left_out().filter(|note| note.starts_with("Pod "));
    let unreadable: Vec<String> = unreadable.cloned().collect();
    let mut work = Work { notes: std::mem::take(&mut manifest.notes), ..Work::default() };
    let gangs = Gangs::of(&manifest.pod_groups, &manifest.pods, &mut work.notes);
    work.objects.extend(gangs.objects);
    work.objects.extend(claims::needed(&manifest, &mut work.notes));
    let by_name = manifest.pods.iter();
    let by_name =
        by_name.map(|pod| ((pod.key.namespace().to_owned(), pod.key.name().into_owned()), pod)).collect();
    let models = Models { pods: by_name, groups: gangs.groups };
    let mut names = Names::default();
    let mut left_out = LeftOut::default();
    // Nothing follows from what has a problem or cannot be created.
    let is_left_out =
        |name: &String| told.contains(name.as_str()) || manifest.not_created.contains(name.as_str());
    objects.retain(|(_, object)| !names_in_messages(object).iter().any(is_left_out));
    // The simulated API server admits pods as they are.
    let admission = Admission::of(objects.iter().map(|(_, object)| object));
    for (file, object) in &objects {
        let of = (group_of(object), object["kind"].as_str().unwrap_or_default());
        let owns_some = object["metadata"]["uid"].as_str().is_some_and(|uid| owners.contains(uid));
        match of {
            ("", "Node") => left_out.add(Why::Node, String::new()),
            (GROUP, "NodeClaim" | "NodePool") => left_out.add(Why::Ours, String::new()),
            (GROUP, kind) if is_node_class(kind) => left_out.add(Why::Ours, String::new()),
            (_, kind) if SURROUNDINGS.contains(&of) && kind != "Namespace" && left_out::is_ending(object) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let namespace = namespace_of(object).map(|namespace| format!("{namespace}/"));
                left_out
                    .add(Why::Deleted(kind.to_owned()), format!("{}{name}", namespace.unwrap_or_default()));
            }
            ("", "PersistentVolumeClaim") if claims::is_ephemeral(object) => {}
            (_, kind) if SURROUNDINGS.contains(&of) || gangs::is_pod_group(object) => {
                let mut object = bare(object);
                if kind == "DaemonSet" {
                    admission.fill_in_json(
                        namespace_of(&object).as_deref(),
                        &mut object["spec"]["template"]["spec"],
                    );
                    daemons::size(&mut object, &manifest, &mut work.notes);
                }
                claims::untie(&mut object);
                work.objects.push(object);
            }
            // A quota or an autoscaler may leave it out, and the same pod may be there twice.
            ("", "Pod") if name_of(object).is_some_and(|name| !planned.remove(&name)) => {}
            _ => match templates(object, &objects) {
                Ok(mut templates) => {
                    let is_pod = of == ("", "Pod");
                    let is_stored_pod = is_pod && object["metadata"]["uid"].is_string();
                    if !is_pod {
                        missing.give(object, &mut templates);
                    }
                    for mut template in templates {
                        if !is_stored_pod {
                            admission.fill_in_json(Some(&template.namespace), &mut template.spec);
                        }
                        let jobs = template.plans(&models, &mut names, &mut left_out);
                        let waves = match jobs.as_slice() {
                            // The pods that a Job has already end at times that nobody knows.
                            [job] if !owns_some => waves(object, job, &mut names),
                            _ => Vec::new(),
                        };
                        if !waves.is_empty() {
                            work.notes.push(format!(
                                "Job {}/{}: its completions beyond its parallelism follow in {} waves, each when the pods before it \
                                 would have ended",
                                jobs[0].namespace,
                                jobs[0].name,
                                waves.len()
                            ));
                        }
                        work.jobs.extend(jobs);
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
        let mut why = Vec::new();
        left_out.tell(&mut why);
        if left_out.has_pods() {
            problems.push(format!("no pod of --snapshot can be played: {}", why.join("; ")));
        } else if !unreadable.is_empty() {
            problems.extend(Problems::all(&unreadable));
        } else if !manifest.mistaken.is_empty() {
            problems.extend(Problems::all(&manifest.mistaken));
        } else {
            problems.push(
                "the files of --snapshot have no running or waiting pod; write them with `kubectl get pods,jobs,deployments -A -o yaml`",
            );
        }
    }
    let pods: u32 = work.jobs.iter().map(|job| job.pods).sum();
    let endless: u32 = work.jobs.iter().filter(|job| job.length.is_none()).map(|job| job.pods).sum();
    work.notes.insert(
        0,
        format!("pods that start at the beginning: {pods}; of these, {endless} run for ever (set how long with the annotation {RUNS_FOR})"),
    );
    left_out.tell(&mut work.notes);
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
        waves.push(JobPlan { name, arrives, pods, pod_names: Vec::new(), ..first.clone() });
    }
    waves
}

/// Returns the API group of an object.
fn group_of(object: &Value) -> &str {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').map_or("", |(group, _)| group)
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
