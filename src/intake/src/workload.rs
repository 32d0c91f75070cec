//! Expands workloads into the pods that their controllers would create.

use std::collections::BTreeMap;
use std::rc::Rc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{self as k8s, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use poolwright_api::FieldProblem;
use poolwright_api::strict::read;
use poolwright_core::{PodKey, Uid, UnmodelledRule, Workload};
use serde::Deserialize;
use serde_json::Value;

use crate::admission::Usage;
use crate::error::{Keep, add_untold, object_name};
use crate::others;
use crate::owned::{Maker, Origin, Service};
use crate::pod;
pub use crate::template::MAX_PODS;
pub(crate) use crate::template::{Expanded, Expansion, GangOf, Made, Making};
use crate::template::{Template, count, has_containers, is_polite, missing, one, submitted};
use crate::volumes;
use crate::workloads::{self, BEING_DELETED, ENDED, INDEXED, SUSPENDED, Stopped, open_indexes};

/// Annotation on JobSets: one job per topology domain. It works like a pod anti-affinity.
const EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";

/// Converts a pod that is written in a file by itself.
pub(crate) fn single(value: &Value, making: Making<'_>) -> Expanded {
    let mut object: k8s::Pod = read(value)?;
    let mut problems = Vec::new();
    has_containers("spec", object.spec.as_ref()).keep(&mut problems);
    let is_new = object.metadata.uid.is_none() && object.metadata.resource_version.is_none();
    let namespace = object.metadata.namespace.clone();
    let namespace = namespace.as_deref();
    let mut defaults = Vec::new();
    let notes = match &mut object.spec {
        Some(spec) if is_new => {
            defaults = making.admission.defaults_of(namespace, spec);
            making.admission.admit("spec", namespace, spec).keep(&mut problems)
        }
        _ => None,
    };
    let converted = pod::convert(&object, "spec").map_err(one);
    let named = converted.map(|mut converted| {
        if converted.key.name().is_empty() {
            converted.key = PodKey::new(converted.key.namespace(), making.name);
        }
        if converted.uid.0.is_empty() || object.metadata.uid.is_none() {
            converted.uid = Uid(converted.key.to_string());
        }
        converted.phase = submitted(converted.phase);
        converted.request_origins.extend(defaults);
        converted
    });
    let spec = object.spec.unwrap_or_default();
    let name = named.as_ref().map(|pod| pod.key.name().into_owned()).unwrap_or_default();
    let claims = volumes::ephemeral_claims("spec", namespace, &name, &spec, &[]);
    let usage = Usage::of_pod("spec", namespace, &spec, object.status.as_ref()).map_err(one);
    match (named, claims, usage) {
        (Ok(pod), Ok(claims), Ok(usage)) if problems.is_empty() => {
            let is_polite = is_polite(&spec);
            let (origin, usage) = (Origin::itself(), Rc::new(usage));
            let pods = vec![Made { pod, origin, is_polite, usage, refusal: None }];
            Ok(Expansion { pods, claims, notes: notes.unwrap_or_default(), ..Expansion::default() })
        }
        (pod, claims, usage) => {
            let found = [pod.err(), claims.err(), usage.err()];
            found.into_iter().flatten().for_each(|found| add_untold(found, &mut problems));
            Err(problems)
        }
    }
}

/// Expands a Deployment.
pub(crate) fn deployment(value: &Value, making: Making<'_>) -> Expanded {
    let object: Deployment = read(value)?;
    // The ReplicaSet of a Deployment has this selector, and a hash label that all these pods share.
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let meta = &object.metadata;
    let workload = selecting("Deployment", meta, object.spec.as_ref().map(|spec| &spec.selector));
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1).into(), 1);
    let template = Template::new(meta, "spec.template", &spec.template, making);
    let origin = of_deployment(meta);
    Ok(Template { origin, ..template }.counted(making.name, count, &[])?.made_by(meta, workload))
}

/// Returns the origin of the pods of an object that makes ReplicaSets.
pub(crate) fn of_deployment(meta: &ObjectMeta) -> Rc<Origin> {
    let prefix = format!("{}-", meta.name.as_deref().unwrap_or_default());
    Rc::new(Origin::by(Maker::Begins("ReplicaSet", prefix)))
}

/// Expands a ReplicationController.
pub(crate) fn replication_controller(value: &Value, making: Making<'_>) -> Expanded {
    let object: k8s::ReplicationController = read(value)?;
    if let Some(why) = workloads::replication_controller_stopped(&object) {
        let wanted = object.spec.as_ref().and_then(|spec| spec.replicas);
        return Ok(stopped(&why, wanted, object.status.as_ref().map(|status| status.replicas)));
    }
    let workload = workloads::replication_controller(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1).into(), 1);
    let pods = spec.template.unwrap_or_default();
    let template = Template::new(&object.metadata, "spec.template", &pods, making);
    Ok(template.counted(making.name, count, &[])?.made_by(&object.metadata, workload))
}

/// Returns no pods for a controller that makes none. The API server refuses those that it wants and does not have, if that is why.
fn stopped(why: &Stopped, wanted: Option<i32>, current: Option<i32>) -> Expansion {
    let lacks = wanted.unwrap_or(1).saturating_sub(current.unwrap_or(0));
    let refused = match why {
        Stopped::Refused(_) => usize::try_from(lacks).unwrap_or(0),
        Stopped::BeingDeleted => 0,
    };
    Expansion { refused, ..Expansion::none(why.to_string()) }
}

/// Expands a ReplicaSet.
pub(crate) fn replica_set(value: &Value, making: Making<'_>) -> Expanded {
    let object: ReplicaSet = read(value)?;
    if let Some(why) = workloads::replica_set_stopped(&object) {
        let wanted = object.spec.as_ref().and_then(|spec| spec.replicas);
        return Ok(stopped(&why, wanted, object.status.as_ref().map(|status| status.replicas)));
    }
    let workload = workloads::replica_set(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1).into(), 1);
    let template = spec.template.unwrap_or_default();
    let template = Template::new(&object.metadata, "spec.template", &template, making);
    Ok(template.counted(making.name, count, &[])?.made_by(&object.metadata, workload))
}

/// The template of the pods of a StatefulSet below its partition.
pub(crate) enum OldTemplate {
    /// That of its spec.
    Same,
    /// That of its current revision.
    Known(Value),
    /// The name of its current revision, whose template is not known.
    Unknown(String),
}

/// Expands a StatefulSet. Pods whose ordinal is below the partition of a rolling update keep the `old` template.
pub(crate) fn stateful_set(value: &Value, old: OldTemplate, making: Making<'_>) -> Expanded {
    let object: StatefulSet = read(value)?;
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let workload = workloads::stateful_set(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let mut problems = Vec::new();
    let count = count("spec.replicas", spec.replicas.unwrap_or(1).into(), 1);
    let count = count.keep(&mut problems).unwrap_or(0);
    let claims = spec.volume_claim_templates.unwrap_or_default();
    let first = i64::from(spec.ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default());
    let rolling = spec.update_strategy.and_then(|strategy| strategy.rolling_update);
    let partition = i64::from(rolling.and_then(|rolling| rolling.partition).unwrap_or_default());
    let below = partition.clamp(0, count);
    let (old, unknown) = match old {
        OldTemplate::Same => (None, None),
        OldTemplate::Known(template) => (PodTemplateSpec::deserialize(&template).ok(), None),
        OldTemplate::Unknown(revision) => (None, Some(revision)),
    };
    let note = unknown.map(|revision| {
        format!(
            "its pods below the partition ({partition}) have the template of ControllerRevision `{revision}`, which is not in the files, so they are planned with the new template; add it (`kubectl get controllerrevisions -o yaml`)"
        )
    });
    let mut made = Expansion::default();
    for (pods, first, count, note) in [
        (old.as_ref().unwrap_or(&spec.template), first, below, note),
        (&spec.template, first + below, count - below, None),
    ] {
        let origin = Rc::new(Origin { fixed: true, note, ..Origin::by(Maker::Itself) });
        let template = Template::new(&object.metadata, "spec.template", pods, making);
        let template = Template { claims: &claims, first, origin, ..template };
        match template.copies(making.name, count, &[]) {
            Ok(pods) => made.add(pods),
            // The old template may be the same.
            Err(found) => add_untold(found, &mut problems),
        }
    }
    if problems.is_empty() { Ok(made.made_by(&object.metadata, workload)) } else { Err(problems) }
}

/// Expands a Job: as many pods as it runs at the same time, and no more than it has left to complete.
pub(crate) fn job(value: &Value, making: Making<'_>) -> Expanded {
    let object: Job = read(value)?;
    let spec = object.spec.as_ref().ok_or_else(|| missing("spec"))?;
    let numbers = at_once("spec", spec, 1);
    let wanted = match workloads::wanted_of_job(&object) {
        Ok(wanted) => i64::try_from(wanted).unwrap_or(i64::MAX),
        Err(none) => return numbers.map(|_| Expansion::none(none)),
    };
    let wanted = numbers.map(|_| wanted);
    let template = Template::new(&object.metadata, "spec.template", &spec.template, making);
    let labels = job_labels(object.metadata.name.as_deref());
    let workload = workloads::job(&object);
    let indexed = spec.completion_mode.as_deref() == Some(INDEXED);
    let numbers = wanted.as_ref().ok().filter(|_| indexed).map(|wanted| open_indexes(&object, *wanted));
    let origin = Rc::new(Origin { indexed, ..Origin::by(Maker::Itself) });
    let made = Template { labels, numbers, origin, ..template }.counted(making.name, wanted, &[])?;
    Ok(made.made_by(&object.metadata, workload))
}

/// The labels of a Job's pods.
fn job_labels(name: Option<&str>) -> BTreeMap<String, String> {
    let keys = ["batch.kubernetes.io/job-name", "job-name"];
    name.map(|name| keys.map(|key| (key.to_owned(), name.to_owned())).into()).unwrap_or_default()
}

/// Expands a JobSet (<https://jobset.sigs.k8s.io>): its jobs run at the same time and start together, except those that wait until
/// others are complete.
pub(crate) fn job_set(value: &Value, making: Making<'_>) -> Expanded {
    let object: JobSet = read(value)?;
    if object.spec.suspend == Some(true) {
        return Ok(Expansion::none(SUSPENDED));
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    if object.status.as_ref().and_then(|status| status.get("terminalState")).is_some_and(|state| *state != "")
    {
        return Ok(Expansion::none(ENDED));
    }
    let meta = &object.metadata;
    let kind = value["kind"].as_str().unwrap_or_default();
    let gang = object_name(kind, meta.namespace.as_deref().or(Some("default")), Some(making.name));
    let mut whole = Expansion {
        gangs: vec![GangOf { name: gang, optional: 0, roles: Vec::new() }],
        ..Expansion::default()
    };
    let services: Vec<Service> = object.service(making.name).into_iter().collect();
    let mut problems = Vec::new();
    for (at, replicated) in object.spec.replicated_jobs.iter().enumerate() {
        let path = format!("spec.replicatedJobs[{at}]");
        let replicas = count(&format!("{path}.replicas"), replicated.replicas.unwrap_or(1).into(), 1);
        let replicas = replicas.keep(&mut problems).unwrap_or(1);
        let Some(spec) = &replicated.template.spec else {
            problems.extend(missing(&format!("{path}.template.spec")));
            continue;
        };
        let parallel = at_once(&format!("{path}.template.spec"), spec, replicas);
        let parallel = parallel.keep(&mut problems).unwrap_or(0);
        let of_job = replicated.template.metadata.as_ref();
        let exclusive_job = || exclusive(of_job?, &format!("{path}.template.metadata"));
        let extra = exclusive(meta, "metadata").or_else(exclusive_job);
        // It starts when others have ended, so it does not start together with them.
        let follows = replicated.depends_on.iter().flatten().any(|on| on["status"] == "Complete");
        let later = object.waits_for(replicated).map(|others| {
            format!(
                "its job `{}` starts when {others}, so its pods are no demand now; they are planned then",
                replicated.name
            )
        });
        let indexed = spec.completion_mode.as_deref().is_none_or(|mode| mode == INDEXED);
        let path = format!("{path}.template.spec.template");
        let replicas = if object.is_complete(replicated) { 0 } else { replicas };
        for replica in 0..replicas {
            let name = format!("{}-{}-{replica}", making.name, replicated.name);
            let maker = Maker::Other("Job", name.clone());
            let gang = (!follows).then_some(0);
            let (later, services) = (later.clone(), services.clone());
            let origin = Rc::new(Origin { gang, services, indexed, later, ..Origin::by(maker) });
            let mut labels = job_labels(Some(&name));
            labels.insert("jobset.sigs.k8s.io/jobset-name".to_owned(), making.name.to_owned());
            labels.insert("jobset.sigs.k8s.io/replicatedjob-name".to_owned(), replicated.name.clone());
            let template = Template::new(meta, &path, &spec.template, making);
            let template = Template { labels, origin, ..template };
            match template.copies(&name, parallel, extra.as_slice()) {
                Ok(pods) => whole.add(pods),
                Err(found) => {
                    problems.extend(found);
                    // All replicas have this template.
                    break;
                }
            }
        }
    }
    if problems.is_empty() { Ok(whole) } else { Err(problems) }
}

/// Returns what cannot be read of the spec of a JobSet, such as one in the runtime of a `TrainJob`.
pub(crate) fn unreadable_job_set(spec: &Value) -> Vec<FieldProblem> {
    read::<JobSetSpec>(spec).err().unwrap_or_default()
}

/// Returns a controller that matters only for the selector of its pods.
pub(crate) fn selecting(kind: &str, meta: &ObjectMeta, selector: Option<&LabelSelector>) -> Workload {
    let (key, uid) = (pod::key_of(meta), pod::uid_of(meta));
    let selector = selector.and_then(others::requirements);
    Workload {
        kind: kind.to_owned(),
        key,
        uid,
        owner: None,
        total: 0,
        wanted: 0,
        current: 0,
        scheduling_gated: false,
        selector,
    }
}

fn exclusive(meta: &ObjectMeta, path: &str) -> Option<UnmodelledRule> {
    meta.annotations.as_ref().filter(|annotations| annotations.contains_key(EXCLUSIVE_TOPOLOGY))?;
    Some(UnmodelledRule {
        field: format!("{path}.annotations[{EXCLUSIVE_TOPOLOGY:?}]"),
        rule: "one job per topology domain".to_owned(),
    })
}

/// Returns the number of pods that a Job runs at the same time.
fn at_once(path: &str, spec: &JobSpec, jobs: i64) -> Result<i64, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let parallel = count(&format!("{path}.parallelism"), spec.parallelism.unwrap_or(1).into(), jobs);
    let mut pods = parallel.keep(&mut problems);
    // A Job never runs more pods than remain to complete.
    if let Some(wanted) = spec.completions.map(i64::from)
        && wanted < pods.unwrap_or(0)
    {
        pods = count(&format!("{path}.completions"), wanted, jobs).keep(&mut problems);
    }
    pods.filter(|_| problems.is_empty()).ok_or(problems)
}

impl JobSet {
    /// Returns the Service for the host names of its pods. Its controller makes it before the jobs, and no job without it
    /// (`createHeadlessSvcIfNecessary` in kubernetes-sigs/jobset).
    fn service(&self, name: &str) -> Option<Service> {
        let network = self.spec.network.as_ref().unwrap_or(&Value::Null);
        let subdomain = network["subdomain"].as_str().filter(|name| !name.is_empty());
        (network["enableDNSHostnames"] != false).then(|| Service::named(subdomain.unwrap_or(name)))
    }

    /// Returns which jobs must be complete before a job starts, in words; `None` if it can start now. It waits also for what a job
    /// waits for that must only be ready.
    fn waits_for(&self, job: &ReplicatedJob) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        let (mut open, mut at) = (vec![job], 0);
        while let Some(job) = open.get(at).copied() {
            at += 1;
            for on in job.depends_on.iter().flatten() {
                let name = on["name"].as_str().unwrap_or_default();
                let Some(other) = self.spec.replicated_jobs.iter().find(|one| one.name == name) else {
                    continue;
                };
                if on["status"] != "Complete" {
                    if open.iter().all(|one| one.name != other.name) {
                        open.push(other);
                    }
                } else if !self.is_complete(other) && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let are = if names.len() == 1 { "is" } else { "are" };
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("{} {are} complete", quoted.join(" and ")))
    }

    /// Returns whether all replicas of a job have succeeded, by the status.
    fn is_complete(&self, job: &ReplicatedJob) -> bool {
        let jobs = self.status.as_ref().and_then(|status| status.get("replicatedJobsStatus"));
        let mut jobs = jobs.and_then(Value::as_array).into_iter().flatten();
        let of = jobs.find(|one| one["name"] == job.name.as_str());
        let succeeded = of.and_then(|one| one["succeeded"].as_i64()).unwrap_or_default();
        of.is_some() && succeeded >= i64::from(job.replicas.unwrap_or(1))
    }
}

/// A JobSet, with the fields that affect its pods. It also lists its other fields, so that a misspelt field is an error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobSet {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    metadata: ObjectMeta,
    spec: JobSetSpec,
    #[serde(default)]
    status: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobSetSpec {
    #[serde(default)]
    replicated_jobs: Vec<ReplicatedJob>,
    suspend: Option<bool>,
    network: Option<Value>,
    #[serde(rename = "successPolicy")]
    _success_policy: Option<Value>,
    #[serde(rename = "failurePolicy")]
    _failure_policy: Option<Value>,
    #[serde(rename = "startupPolicy")]
    _startup_policy: Option<Value>,
    #[serde(rename = "coordinator")]
    _coordinator: Option<Value>,
    #[serde(rename = "managedBy")]
    _managed_by: Option<Value>,
    #[serde(rename = "ttlSecondsAfterFinished")]
    _ttl_seconds_after_finished: Option<Value>,
    #[serde(rename = "volumeClaimPolicies")]
    _volume_claim_policies: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplicatedJob {
    name: String,
    template: k8s_openapi::api::batch::v1::JobTemplateSpec,
    replicas: Option<i32>,
    #[serde(rename = "groupName")]
    _group_name: Option<String>,
    depends_on: Option<Vec<Value>>,
}
