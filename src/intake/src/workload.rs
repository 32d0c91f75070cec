//! Expands workloads into the pods that their controllers would create.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{self as k8s, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use poolwright_api::FieldProblem;
use poolwright_api::strict::read;
use poolwright_core::{Pod, PodKey, PodPhase, PodVolume, Uid, UnmodelledRule, VolumeClaim, Workload};
use serde::Deserialize;
use serde_json::Value;

use crate::admission::Admission;
use crate::duration;
use crate::others;
use crate::pod;
use crate::volumes;
use crate::workloads;

/// The most pods of a workload. A larger number is an error, because it is usually a typing mistake, and
/// each pod takes memory.
pub const MAX_PODS: i64 = 200_000;

/// The note of a controller that is being deleted.
const BEING_DELETED: &str = "it is being deleted and makes no more pods";

/// The name of Kubernetes' own controller of Jobs in `spec.managedBy`.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// Annotation on JobSets: one job per topology domain. It works like a pod anti-affinity.
const EXCLUSIVE_TOPOLOGY: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";

/// The pods of a workload, or why it has none.
#[derive(Default)]
pub(crate) struct Expansion {
    pub pods: Vec<Pod>,
    /// The PersistentVolumeClaims that controllers will create for them.
    pub claims: Vec<VolumeClaim>,
    pub notes: Vec<String>,
    /// Their controller, if a scheduler's default spread uses its selector.
    pub workload: Option<Workload>,
}

impl Expansion {
    fn none(note: &str) -> Self {
        Self { notes: vec![note.to_owned()], ..Self::default() }
    }

    /// Makes the workload the controller of the pods. All of its pods exist.
    fn made_by(mut self, meta: &ObjectMeta, mut workload: Workload) -> Self {
        if meta.uid.is_none() {
            workload.uid = Uid(format!("{} {}", workload.kind, workload.key));
        }
        workload.total = self.pods.len() as u64;
        for pod in &mut self.pods {
            pod.owner = Some(workload.uid.clone());
            if duration::keeps_running(&workload.kind) {
                pod.duration.make_service();
            }
        }
        self.workload = Some(workload.without_demand());
        self
    }
}

type Expanded = Result<Expansion, Vec<FieldProblem>>;

/// Converts a pod that is written in a file by itself.
pub(crate) fn single(value: &Value, admission: &Admission) -> Expanded {
    let mut object: k8s::Pod = read(value)?;
    has_containers("spec", object.spec.as_ref())?;
    let is_new = object.metadata.uid.is_none() && object.metadata.resource_version.is_none();
    let notes = match &mut object.spec {
        Some(spec) if is_new => admission.admit("spec", object.metadata.namespace.as_deref(), spec)?,
        _ => Vec::new(),
    };
    let mut converted = pod::convert(&object, "spec").map_err(one)?;
    if converted.key.name().is_empty() {
        let name = object.metadata.generate_name.clone().unwrap_or_default();
        converted.key = PodKey::new(converted.key.namespace(), name);
    }
    if converted.uid.0.is_empty() || object.metadata.uid.is_none() {
        converted.uid = Uid(converted.key.to_string());
    }
    converted.phase = submitted(converted.phase);
    let namespace = object.metadata.namespace.as_deref();
    let claims = match &object.spec {
        Some(spec) => volumes::ephemeral_claims(namespace, &converted.key.name(), spec, &[]).map_err(one)?,
        None => Vec::new(),
    };
    Ok(Expansion { pods: vec![converted], claims, notes, workload: None })
}

/// Expands a Deployment.
pub(crate) fn deployment(value: &Value, admission: &Admission) -> Expanded {
    let object: Deployment = read(value)?;
    // The ReplicaSet of a Deployment has this selector, and a hash label that all these pods share.
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let workload = selecting("Deployment", &object.metadata, object.spec.as_ref().map(|spec| &spec.selector));
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1), 1)?;
    let name = name_of(&object.metadata);
    let template = Template::new(&object.metadata, "spec.template", &spec.template, admission);
    Ok(template.copies(&name, count, &[])?.made_by(&object.metadata, workload))
}

/// Expands a ReplicationController.
pub(crate) fn replication_controller(value: &Value, admission: &Admission) -> Expanded {
    let object: k8s::ReplicationController = read(value)?;
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let workload = workloads::replication_controller(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1), 1)?;
    let pods = spec.template.unwrap_or_default();
    let name = name_of(&object.metadata);
    let template = Template::new(&object.metadata, "spec.template", &pods, admission);
    Ok(template.copies(&name, count, &[])?.made_by(&object.metadata, workload))
}

/// Expands a ReplicaSet.
pub(crate) fn replica_set(value: &Value, admission: &Admission) -> Expanded {
    let object: ReplicaSet = read(value)?;
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let conditions = object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    if conditions.into_iter().any(|one| one.type_ == "ReplicaFailure" && one.status == "True") {
        return Ok(Expansion::none("the API server refuses more of its pods (ReplicaFailure)"));
    }
    let workload = workloads::replica_set(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1), 1)?;
    let template = spec.template.unwrap_or_default();
    let name = name_of(&object.metadata);
    let template = Template::new(&object.metadata, "spec.template", &template, admission);
    Ok(template.copies(&name, count, &[])?.made_by(&object.metadata, workload))
}

/// Expands a StatefulSet.
pub(crate) fn stateful_set(value: &Value, admission: &Admission) -> Expanded {
    let object: StatefulSet = read(value)?;
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    let workload = workloads::stateful_set(&object);
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    let count = count("spec.replicas", spec.replicas.unwrap_or(1), 1)?;
    let name = name_of(&object.metadata);
    let claims = spec.volume_claim_templates.unwrap_or_default();
    let first = spec.ordinals.and_then(|ordinals| ordinals.start).unwrap_or_default();
    let template = Template::new(&object.metadata, "spec.template", &spec.template, admission);
    Ok(Template { claims: &claims, first: i64::from(first), ..template }
        .copies(&name, count, &[])?
        .made_by(&object.metadata, workload))
}

/// Expands a Job: as many pods as it runs at the same time, and no more than it has left to complete.
pub(crate) fn job(value: &Value, admission: &Admission) -> Expanded {
    let object: Job = read(value)?;
    let spec = object.spec.ok_or_else(|| missing("spec"))?;
    if spec.suspend == Some(true) {
        return Ok(Expansion::none("it is suspended and has no pods now"));
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    if let Some(other) = spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER) {
        return Ok(Expansion::none(&format!("`{other}` manages it, and may make its pods elsewhere")));
    }
    let status = object.status.unwrap_or_default();
    let ended = status.conditions.unwrap_or_default();
    let ends = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
    if ended.iter().any(|one| ends.contains(&one.type_.as_str()) && one.status == "True") {
        return Ok(Expansion::none("it has ended and has no pods now"));
    }
    let succeeded = i64::from(status.succeeded.unwrap_or_default().max(0));
    let count = match spec.completions {
        Some(wanted) => at_once("spec", &spec, 1)?.min((i64::from(wanted) - succeeded).max(0)),
        // A Job without completions makes no more pods once one has succeeded.
        None if succeeded > 0 => 0,
        None => at_once("spec", &spec, 1)?,
    };
    let name = name_of(&object.metadata);
    Template::new(&object.metadata, "spec.template", &spec.template, admission).copies(&name, count, &[])
}

/// Expands a JobSet (<https://jobset.sigs.k8s.io>): all its jobs run at the same time.
pub(crate) fn job_set(value: &Value, admission: &Admission) -> Expanded {
    let object: JobSet = read(value)?;
    if object.spec.suspend == Some(true) {
        return Ok(Expansion::none("it is suspended and has no pods now"));
    }
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(Expansion::none(BEING_DELETED));
    }
    if object.status.as_ref().and_then(|status| status.get("terminalState")).is_some_and(|state| *state != "")
    {
        return Ok(Expansion::none("it has ended and has no pods now"));
    }
    let mut whole = Expansion::default();
    for (at, replicated) in object.spec.replicated_jobs.iter().enumerate() {
        let path = format!("spec.replicatedJobs[{at}]");
        let replicas = count(&format!("{path}.replicas"), replicated.replicas.unwrap_or(1), 1)?;
        let spec =
            replicated.template.spec.as_ref().ok_or_else(|| missing(&format!("{path}.template.spec")))?;
        let parallel = at_once(&format!("{path}.template.spec"), spec, replicas)?;
        let meta = replicated.template.metadata.as_ref();
        let extra = exclusive(&object.metadata, "metadata")
            .or_else(|| exclusive(meta?, &format!("{path}.template.metadata")));
        let path = format!("{path}.template.spec.template");
        let template = Template::new(&object.metadata, &path, &spec.template, admission);
        for replica in 0..replicas {
            let name = format!("{}-{}-{replica}", name_of(&object.metadata), replicated.name);
            let made = template.copies(&name, parallel, extra.as_slice())?;
            let notes = whole.notes.clone();
            whole.pods.extend(made.pods);
            whole.claims.extend(made.claims);
            whole.notes.extend(made.notes.into_iter().filter(|note| !notes.contains(note)));
        }
    }
    Ok(whole)
}

/// Returns a controller that matters only for the selector of its pods.
fn selecting(kind: &str, meta: &ObjectMeta, selector: Option<&LabelSelector>) -> Workload {
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

fn one(problem: FieldProblem) -> Vec<FieldProblem> {
    vec![problem]
}

fn missing(path: &str) -> Vec<FieldProblem> {
    one(FieldProblem::new(path, "missing", "add it"))
}

fn name_of(meta: &ObjectMeta) -> String {
    meta.name.clone().or_else(|| meta.generate_name.clone()).unwrap_or_default()
}

/// Checks a number of pods: `each` pods, `times` times.
fn count(path: &str, each: i32, times: i64) -> Result<i64, Vec<FieldProblem>> {
    let total = i64::from(each).saturating_mul(times);
    if each < 0 {
        Err(one(FieldProblem::new(path, format!("`{each}` is negative"), "write zero or more")))
    } else if total > MAX_PODS {
        let cause = format!("this asks for {total} pods, more than the {MAX_PODS} a workload may have here");
        Err(one(FieldProblem::new(path, cause, "check the number")))
    } else {
        Ok(i64::from(each))
    }
}

/// Returns the number of pods that a Job runs at the same time.
fn at_once(path: &str, spec: &JobSpec, jobs: i64) -> Result<i64, Vec<FieldProblem>> {
    let parallel = count(&format!("{path}.parallelism"), spec.parallelism.unwrap_or(1), jobs)?;
    match spec.completions {
        // A Job never runs more pods than remain to complete.
        Some(wanted) if i64::from(wanted) < parallel => count(&format!("{path}.completions"), wanted, jobs),
        _ => Ok(parallel),
    }
}

fn has_containers(path: &str, spec: Option<&k8s::PodSpec>) -> Result<(), Vec<FieldProblem>> {
    if spec.is_some_and(|spec| !spec.containers.is_empty()) {
        Ok(())
    } else {
        Err(one(FieldProblem::new(
            format!("{path}.containers"),
            "a pod needs at least one container",
            "add one",
        )))
    }
}

/// Returns the phase of pods from a file: they count as pods for which the scheduler found no node.
fn submitted(phase: PodPhase) -> PodPhase {
    match phase {
        PodPhase::Waiting => PodPhase::Unschedulable {
            since: Timestamp::UNIX_EPOCH,
            message: "read from a file; not submitted to a scheduler yet".to_owned(),
        },
        other => other,
    }
}

/// The source of a workload's pods.
struct Template<'a> {
    /// The workload.
    owner: &'a ObjectMeta,
    /// The path of the template in it.
    path: &'a str,
    pods: &'a PodTemplateSpec,
    /// The additions by admission.
    admission: &'a Admission,
    /// For a StatefulSet: the PersistentVolumeClaims that each pod gets.
    claims: &'a [k8s::PersistentVolumeClaim],
    /// The number of the first pod.
    first: i64,
}

impl<'a> Template<'a> {
    fn new(
        owner: &'a ObjectMeta,
        path: &'a str,
        pods: &'a PodTemplateSpec,
        admission: &'a Admission,
    ) -> Self {
        Self { owner, path, pods, admission, claims: &[], first: 0 }
    }

    /// Returns `count` pods, named `name-0`, `name-1`, ..., from the number of the first on.
    fn copies(&self, name: &str, count: i64, extra: &[UnmodelledRule]) -> Expanded {
        let path = format!("{}.spec", self.path);
        let mut spec = self.pods.spec.clone();
        has_containers(&path, spec.as_ref())?;
        let namespace = self.owner.namespace.as_deref();
        let notes = match &mut spec {
            Some(spec) => self.admission.admit(&path, namespace, spec)?,
            None => Vec::new(),
        };
        for (at, claim) in self.claims.iter().enumerate() {
            self.admission.check_claim(&format!("spec.volumeClaimTemplates[{at}].spec"), namespace, claim)?;
        }
        let template = self.pods.metadata.as_ref();
        let meta = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: self.owner.namespace.clone(),
            labels: template.and_then(|meta| meta.labels.clone()),
            annotations: template.and_then(|meta| meta.annotations.clone()),
            ..Default::default()
        };
        let object = k8s::Pod { metadata: meta, spec, status: None };
        let mut first = pod::convert(&object, &path).map_err(one)?;
        first.phase = submitted(first.phase);
        first.spec.unmodelled.extend_from_slice(extra);
        let mut spec = object.spec.unwrap_or_default();
        let own: Vec<_> = self.claims.iter().filter_map(|claim| claim.metadata.name.clone()).collect();
        // A StatefulSet's claim replaces a volume of the same name.
        spec.volumes.get_or_insert_default().retain(|volume| !own.contains(&volume.name));
        let mut made = Expansion { notes, ..Expansion::default() };
        for at in self.first..self.first + count {
            let mut pod = first.clone();
            pod.key = PodKey::new(first.key.namespace(), format!("{name}-{at}"));
            pod.uid = Uid(pod.key.to_string());
            pod.volumes = volumes::of_pod(&pod.key.name(), &spec);
            let claim = |own: &String| PodVolume::Claim {
                name: format!("{own}-{}", pod.key.name()),
                ephemeral: false,
            };
            let claimed: Vec<_> = own.iter().map(claim).collect();
            pod.volumes.extend(claimed);
            let claims = volumes::ephemeral_claims(namespace, &pod.key.name(), &spec, self.claims);
            made.claims.extend(claims.map_err(one)?);
            made.pods.push(pod);
        }
        Ok(made)
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
    #[serde(rename = "network")]
    _network: Option<Value>,
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
    #[serde(rename = "dependsOn")]
    _depends_on: Option<Value>,
}
