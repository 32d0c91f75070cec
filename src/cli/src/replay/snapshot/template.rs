//! Groups of equal pods: what their controllers, gangs and claims make of a template.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_core::{Pod, PodPhase, PodRole, PodVolume};
use poolwright_intake::{is_group_mark, manifest};
use poolwright_sim::cluster::JobPlan;
use serde_json::{Value, json};

use super::RUNS_FOR;
use super::left_out::{LeftOut, why_left_out};
use crate::args::runs_for;
use crate::replay::work::Names;

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

/// The pods of a manifest as a plan reads them, by namespace and name.
pub(super) struct Models<'a> {
    pub pods: BTreeMap<(String, String), &'a Pod>,
    /// The names of the PodGroups that are played for gangs, by namespace and name of the gang.
    pub groups: BTreeMap<(String, String), String>,
}

/// Pods with the same template.
pub(super) struct Template {
    pub name: String,
    pub namespace: String,
    /// The names of its pods.
    pub pods: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub spec: Value,
    pub length: Option<Duration>,
    /// Whether its controller keeps its pods running.
    pub is_service: bool,
    /// The pod itself, if the template is one.
    own: Option<Pod>,
}

impl Template {
    /// Returns the pods that are played, in groups of equal ones, and counts the others.
    pub fn plans(&self, models: &Models<'_>, names: &mut Names, left_out: &mut LeftOut) -> Vec<JobPlan> {
        let mut plans: Vec<JobPlan> = Vec::new();
        let mut last = None;
        for name in &self.pods {
            let known = models.pods.get(&(self.namespace.clone(), name.clone())).copied();
            let model = known.or(self.own.as_ref());
            if let Some(why) = model.and_then(why_left_out) {
                left_out.add(why, format!("{}/{name}", self.namespace));
                continue;
            }
            let spec = model.map_or_else(|| self.spec.clone(), |model| self.spec_of(model, models));
            if let Some(plan) = plans.last_mut().filter(|_| last.as_ref() == Some(&spec)) {
                plan.pods += 1;
                plan.pod_names.push(name.clone());
                continue;
            }
            plans.push(JobPlan {
                namespace: self.namespace.clone(),
                labels: self.labels.clone(),
                pod_names: vec![name.clone()],
                length: self.length,
                kept: Some(Duration::ZERO),
                is_set: self.is_service,
                ..JobPlan::new(names.take(&self.namespace, &self.name), Duration::ZERO, 1, spec.clone())
            });
            last = Some(spec);
        }
        plans
    }

    /// Returns the spec of one pod: with the claims that its controller makes for it, and in the PodGroup of its gang.
    fn spec_of(&self, model: &Pod, models: &Models<'_>) -> Value {
        let mut spec = self.spec.clone();
        let gang = model.group.as_ref().map(|gang| (self.namespace.clone(), gang.clone()));
        if let Some(group) = gang.and_then(|gang| models.groups.get(&gang)) {
            spec["schedulingGroup"] = json!({"podGroupName": group});
        }
        let claim = |volume: &PodVolume| match volume {
            PodVolume::Claim { name, ephemeral: false } => Some(name.clone()),
            _ => None,
        };
        let mut claims: BTreeSet<String> = model.volumes.iter().filter_map(claim).collect();
        let mut volumes = spec["volumes"].as_array().cloned().unwrap_or_default();
        // A claim of a StatefulSet's template replaces a volume of the same name. The model has only the former.
        volumes.retain(|volume| {
            let named = volume["persistentVolumeClaim"]["claimName"].as_str();
            named.is_none_or(|named| claims.remove(named))
        });
        for (number, claim) in claims.into_iter().enumerate() {
            let source = json!({"claimName": claim});
            volumes.push(json!({"name": format!("claim-{number}"), "persistentVolumeClaim": source}));
        }
        if !volumes.is_empty() {
            spec["volumes"] = json!(volumes);
        }
        spec
    }
}

/// Returns the templates of an object. Only that of a pod has pods already. `all` are the objects of the files, with their files.
pub(super) fn templates(object: &Value, all: &[(String, Value)]) -> Result<Vec<Template>, String> {
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
            template(&named, &set.template, &Value::Null)
        };
        return sets.into_iter().map(of).collect();
    }
    let Ok(read) = manifest::parse("", &object.to_string()) else { return Ok(Vec::new()) };
    if object["kind"] != "Pod" {
        let deadline = &object["spec"]["activeDeadlineSeconds"];
        return Ok(vec![template(object, &object["spec"]["template"], deadline)?]);
    }
    let mut template = template(object, object, &Value::Null)?;
    let counts = |pod: &Pod| pod.role != PodRole::DaemonSet && !matches!(pod.phase, PodPhase::Finished);
    template.own = read.pods.into_iter().find(counts);
    template.pods = template.own.iter().map(|pod| pod.key.name().into_owned()).collect();
    Ok(vec![template])
}

fn template(object: &Value, pod: &Value, deadline: &Value) -> Result<Template, String> {
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
    // The simulated cluster has no PodGroups of other schedulers.
    let labels = labels.filter(|(key, _)| !is_group_mark(key));
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    Ok(Template { name, namespace, pods: Vec::new(), labels, spec, length, is_service, own: None })
}

/// Returns the templates of a JobSet: one for each of its Jobs.
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
