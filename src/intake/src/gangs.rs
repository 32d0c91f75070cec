//! JobSets and LeaderWorkerSets of a cluster: the controllers that they create, and the pods of these controllers. Poolwright
//! reads only the fields that decisions use. The types follow the projects' own APIs (<https://jobset.sigs.k8s.io>,
//! <https://lws.sigs.k8s.io>).

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobTemplateSpec;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use poolwright_api::FieldProblem;
use poolwright_core::{Gang, GangPart, Pod as Model, PodPhase, PodVolume};
use serde::Deserialize;

use crate::admission::Admission;
use crate::duration;
use crate::error::{IntakeError, OfObject, object_name};
use crate::pod::{convert, key_of, uid_of};

/// Annotation on JobSets and their replicated jobs: the pods of a job go where its first pod is.
const JOBSET_EXCLUSIVE: &str = "alpha.jobset.sigs.k8s.io/exclusive-topology";
/// Annotation on LeaderWorkerSets: workers go where their leader is.
const LWS_EXCLUSIVE: &str = "leaderworkerset.sigs.k8s.io/exclusive-topology";
/// The maximum number of controllers of one part. No real workload has more.
const MOST_CONTROLLERS: u64 = 10_000;

/// A JobSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct JobSet {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: JobSetSpec,
    #[serde(default)]
    status: JobSetStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetSpec {
    replicated_jobs: Vec<ReplicatedJob>,
    suspend: Option<bool>,
    startup_policy: Option<StartupPolicy>,
    managed_by: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicatedJob {
    name: String,
    replicas: Option<i32>,
    template: JobTemplateSpec,
    depends_on: Vec<DependsOn>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DependsOn {
    name: String,
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StartupPolicy {
    startup_policy_order: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobSetStatus {
    conditions: Vec<Condition>,
    replicated_jobs_status: Vec<ReplicatedJobStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReplicatedJobStatus {
    name: String,
    ready: i32,
    succeeded: i32,
    failed: i32,
}

/// A LeaderWorkerSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LeaderWorkerSet {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: LeaderWorkerSetSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaderWorkerSetSpec {
    replicas: Option<i32>,
    startup_policy: String,
    leader_worker_template: LeaderWorkerTemplate,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaderWorkerTemplate {
    leader_template: Option<PodTemplateSpec>,
    worker_template: PodTemplateSpec,
    size: Option<i32>,
    /// The PersistentVolumeClaims that each pod gets.
    volume_claim_templates: Vec<serde_json::Value>,
}

/// Makes a type one that an API server can be asked for.
macro_rules! resource {
    ($object:ty, $group:literal, $version:literal, $kind:literal, $plural:literal) => {
        impl k8s_openapi::Resource for $object {
            const API_VERSION: &'static str = concat!($group, "/", $version);
            const GROUP: &'static str = $group;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::NamespaceResourceScope;
        }

        impl k8s_openapi::Metadata for $object {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

pub(crate) use resource;

resource!(JobSet, "jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets");
resource!(LeaderWorkerSet, "leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets");

/// Converts a JobSet. If it is suspended, finished, being deleted or managed by another controller, it has no parts. A replicated
/// job comes when the jobs before it have started (`startupPolicy: InOrder`) and the jobs it depends on are ready or complete, by
/// the JobSet's status. If the pods of a job follow its first pod (exclusive topology), only the first pod is expected.
pub fn job_set(from: &JobSet) -> Result<Gang, IntakeError> {
    let (meta, spec) = (&from.metadata, &from.spec);
    let ended = from
        .status
        .conditions
        .iter()
        .any(|one| matches!(one.type_.as_str(), "Completed" | "Failed") && one.status == "True");
    let others = spec.managed_by.as_deref().is_some_and(|by| by != "jobset.sigs.k8s.io/jobset-controller");
    if spec.suspend == Some(true) || ended || others || meta.deletion_timestamp.is_some() {
        return Ok(gang("JobSet", meta, Vec::new()));
    }
    let in_order =
        spec.startup_policy.as_ref().is_some_and(|policy| policy.startup_policy_order == "InOrder");
    let mut parts = Vec::new();
    let mut all_before_started = true;
    for (at, replicated) in spec.replicated_jobs.iter().enumerate() {
        let path = format!("spec.replicatedJobs[{at}].template.spec.template");
        let replicas = count(replicated.replicas.unwrap_or(1));
        let nothing = k8s_openapi::api::batch::v1::JobSpec::default();
        let job = replicated.template.spec.as_ref().unwrap_or(&nothing);
        let parallel = count(job.parallelism.unwrap_or(1));
        let wanted = job.completions.map_or(parallel, |wanted| count(wanted).min(parallel));
        let has = |meta: Option<&ObjectMeta>| {
            meta.and_then(|meta| meta.annotations.as_ref())
                .is_some_and(|all| all.contains_key(JOBSET_EXCLUSIVE))
        };
        let follows = has(Some(meta)) || has(replicated.template.metadata.as_ref());
        let marks = [
            ("jobset.sigs.k8s.io/jobset-name", meta.name.as_deref().unwrap_or_default()),
            ("jobset.sigs.k8s.io/replicatedjob-name", replicated.name.as_str()),
        ];
        let name =
            |index| format!("{}-{}-{index}", meta.name.as_deref().unwrap_or_default(), replicated.name);
        parts.push(GangPart {
            name: replicated.name.clone(),
            controller: "Job".to_owned(),
            controllers: (0..replicas.min(MOST_CONTROLLERS)).map(name).collect(),
            pods_per_controller: if follows { wanted.min(1) } else { wanted },
            creates_missing: (!in_order || all_before_started) && from.is_free(replicated),
            example: example("JobSet", meta, &path, &job.template, &marks, ("Job", &name(0)))?,
        });
        all_before_started &=
            from.status.of(&replicated.name).is_some_and(|status| status.started() >= replicas);
    }
    Ok(gang("JobSet", meta, parts))
}

impl JobSet {
    /// Its metadata.
    pub fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Writes into its pod templates what admission adds to pods.
    #[must_use]
    pub fn admitted(mut self, admission: &Admission) -> Self {
        let namespace = self.metadata.namespace.clone();
        for replicated in &mut self.spec.replicated_jobs {
            let spec = replicated.template.spec.as_mut().and_then(|spec| spec.template.spec.as_mut());
            if let Some(spec) = spec {
                admission.fill_in(namespace.as_deref(), spec);
            }
        }
        self
    }

    /// Returns whether all jobs on which a replicated job depends have the required status.
    fn is_free(&self, replicated: &ReplicatedJob) -> bool {
        replicated.depends_on.iter().all(|on| {
            let other = self.spec.replicated_jobs.iter().find(|other| other.name == on.name);
            let replicas = other.map_or(0, |other| count(other.replicas.unwrap_or(1)));
            self.status.of(&on.name).is_some_and(|status| match on.status.as_str() {
                "Complete" => count(status.succeeded) >= replicas,
                _ => status.started() >= replicas,
            })
        })
    }
}

impl JobSetStatus {
    fn of(&self, name: &str) -> Option<&ReplicatedJobStatus> {
        self.replicated_jobs_status.iter().find(|status| status.name == name)
    }
}

impl ReplicatedJobStatus {
    fn started(&self) -> u64 {
        count(self.ready) + count(self.succeeded) + count(self.failed)
    }
}

impl LeaderWorkerSet {
    /// Its metadata.
    pub fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Writes into its pod templates what admission adds to pods.
    #[must_use]
    pub fn admitted(mut self, admission: &Admission) -> Self {
        let namespace = self.metadata.namespace.clone();
        let template = &mut self.spec.leader_worker_template;
        for template in template.leader_template.iter_mut().chain([&mut template.worker_template]) {
            if let Some(spec) = &mut template.spec {
                admission.fill_in(namespace.as_deref(), spec);
            }
        }
        self
    }
}

/// Converts a LeaderWorkerSet: one StatefulSet of leaders, and one of workers for each leader. The workers come with their
/// leader, unless they wait for it (`startupPolicy: LeaderReady`, or an exclusive topology).
pub fn leader_worker_set(from: &LeaderWorkerSet) -> Result<Gang, IntakeError> {
    let (meta, spec) = (&from.metadata, &from.spec);
    let template = &spec.leader_worker_template;
    if meta.deletion_timestamp.is_some() {
        return Ok(gang("LeaderWorkerSet", meta, Vec::new()));
    }
    let name = meta.name.clone().unwrap_or_default();
    let (replicas, size) = (count(spec.replicas.unwrap_or(1)), count(template.size.unwrap_or(1)));
    let follows = meta.annotations.as_ref().is_some_and(|all| all.contains_key(LWS_EXCLUSIVE));
    let marks = [("leaderworkerset.sigs.k8s.io/name", name.as_str())];
    let of = |path: &str, pods: &PodTemplateSpec| {
        let path = format!("spec.leaderWorkerTemplate.{path}");
        let controller = ("StatefulSet", name.as_str());
        let mut example = example("LeaderWorkerSet", meta, &path, pods, &marks, controller)?;
        let own = template.volume_claim_templates.iter();
        example.volumes.extend(own.map(|_| PodVolume::Claim { name: name.clone(), ephemeral: true }));
        Ok::<_, IntakeError>(example)
    };
    let workers = of("workerTemplate", &template.worker_template)?;
    let leader = match &template.leader_template {
        Some(own) => of("leaderTemplate", own)?,
        None => workers.clone(),
    };
    let mut parts = vec![GangPart {
        name: "leader".to_owned(),
        controller: "StatefulSet".to_owned(),
        controllers: vec![name.clone()],
        pods_per_controller: replicas,
        creates_missing: true,
        example: leader,
    }];
    if size > 1 {
        parts.push(GangPart {
            name: "workers".to_owned(),
            controller: "StatefulSet".to_owned(),
            controllers: (0..replicas.min(MOST_CONTROLLERS)).map(|index| format!("{name}-{index}")).collect(),
            pods_per_controller: size - 1,
            creates_missing: !follows && spec.startup_policy != "LeaderReady",
            example: workers,
        });
    }
    Ok(gang("LeaderWorkerSet", meta, parts))
}

fn gang(kind: &str, meta: &ObjectMeta, parts: Vec<GangPart>) -> Gang {
    Gang { kind: kind.to_owned(), key: key_of(meta), uid: uid_of(meta), parts }
}

fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a pod of a template, as if the scheduler had found no node for it, with the labels that its controllers add. It runs as
/// long as the pods of its `controller`, a kind and a name.
fn example(
    kind: &str,
    meta: &ObjectMeta,
    path: &str,
    template: &PodTemplateSpec,
    marks: &[(&str, &str)],
    controller: (&str, &str),
) -> Result<Model, IntakeError> {
    let of = template.metadata.as_ref();
    let mut labels: BTreeMap<String, String> = of.and_then(|of| of.labels.clone()).unwrap_or_default();
    labels.extend(marks.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let metadata = ObjectMeta {
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        labels: Some(labels),
        annotations: of.and_then(|of| of.annotations.clone()),
        creation_timestamp: meta.creation_timestamp.clone(),
        ..Default::default()
    };
    let mut pod = Pod { metadata, spec: template.spec.clone(), status: None };
    let named = |problem: FieldProblem| {
        problem.of(object_name(kind, meta.namespace.as_deref(), meta.name.as_deref()))
    };
    let mut example = convert(&pod, &format!("{path}.spec")).map_err(named)?;
    let owner = OwnerReference {
        kind: controller.0.to_owned(),
        name: controller.1.to_owned(),
        controller: Some(true),
        ..Default::default()
    };
    pod.metadata.owner_references = Some(vec![owner]);
    example.duration = duration::of(&pod, &example.spec.requests, example.priority);
    if example.phase == PodPhase::Waiting {
        let since = meta.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        example.phase = PodPhase::Unschedulable { since, message: String::new() };
    }
    Ok(example)
}
