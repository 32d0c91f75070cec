//! Values of single fields that the schemas, webhooks and operators of other projects refuse, as tables.

use poolwright_api::{FieldProblem, key_segment};
use serde_json::Value;

use super::names::items;
use super::objects::group;
use super::pod_refusals::one_of;
use super::refusals::Problems;

/// What a field takes. One without a value has its default, unless it is required.
enum Rule {
    /// One of a few names.
    OneOf(&'static [&'static str]),
    /// This number or more.
    AtLeast(i64),
    /// A text, even if it looks like a number.
    Text,
    /// Any value.
    Required,
}

use Rule::{AtLeast, OneOf, Required, Text};

/// A path below the base of a table, and what the field takes. `[]` stands for each item of a list, and `*` for each field of a map.
type Field = (&'static str, Rule);

/// `manifests/base/kubeflow.org_mpijobs.yaml` and `pkg/apis/kubeflow/validation/validation.go` in kubeflow/mpi-operator.
const MPI_JOB: &[Field] = &[
    ("mpiImplementation", OneOf(&["OpenMPI", "Intel", "MPICH"])),
    ("slotsPerWorker", AtLeast(0)),
    ("mpiReplicaSpecs.Worker.replicas", AtLeast(1)),
    ("runPolicy.cleanPodPolicy", OneOf(&["None", "Running", "All"])),
    ("runPolicy.ttlSecondsAfterFinished", AtLeast(0)),
    ("runPolicy.activeDeadlineSeconds", AtLeast(0)),
    ("runPolicy.backoffLimit", AtLeast(0)),
];

/// `pkg/apis/kubeflow.org/v1/pytorch_types.go` in kubeflow/training-operator.
const PYTORCH_JOB: &[Field] = &[("nprocPerNode", Text)];

/// `api/jobset/v1alpha2/jobset_types.go` in kubernetes-sigs/jobset.
const JOB_SET: &[Field] =
    &[("successPolicy.operator", OneOf(&["All", "Any"])), ("ttlSecondsAfterFinished", AtLeast(0))];

/// `api/leaderworkerset/v1/leaderworkerset_types.go` in kubernetes-sigs/lws.
const LEADER_WORKER_SET: &[Field] = &[
    (
        "leaderWorkerTemplate.restartPolicy",
        OneOf(&["RecreateGroupOnPodRestart", "RecreateGroupAfterStart", "None", "Default"]),
    ),
    ("leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType", OneOf(&["LeaderWorker", "LeaderExcluded"])),
    ("leaderWorkerTemplate.subGroupPolicy.subGroupSize", AtLeast(1)),
    ("rolloutStrategy.type", OneOf(&["RollingUpdate"])),
    ("networkConfig.subdomainPolicy", OneOf(&["Shared", "UniquePerReplica"])),
];

/// `staging/src/volcano.sh/apis/pkg/apis/batch/v1alpha1/job.go` in volcano-sh/volcano.
const VOLCANO_JOB: &[Field] = &[
    ("maxRetry", AtLeast(0)),
    ("ttlSecondsAfterFinished", AtLeast(0)),
    ("minSuccess", AtLeast(1)),
    ("tasks[].maxRetry", AtLeast(0)),
    ("tasks[].topologyPolicy", OneOf(&["none", "best-effort", "restricted", "single-numa-node"])),
    ("tasks[].partitionPolicy.totalPartitions", AtLeast(1)),
    ("tasks[].partitionPolicy.partitionSize", AtLeast(1)),
    ("tasks[].partitionPolicy.minPartitions", AtLeast(0)),
];

/// `ray-operator/apis/ray/v1/raycluster_types.go` and `ray-operator/controllers/ray/utils/validation.go` in ray-project/kuberay.
const RAY_CLUSTER: &[Field] = &[
    ("autoscalerOptions.upscalingMode", OneOf(&["Default", "Aggressive", "Conservative"])),
    ("autoscalerOptions.idleTimeoutSeconds", AtLeast(0)),
    ("headGroupSpec.rayStartParams.*", Text),
    ("workerGroupSpecs[].groupName", Required),
    ("workerGroupSpecs[].idleTimeoutSeconds", AtLeast(0)),
    ("workerGroupSpecs[].rayStartParams.*", Text),
];

/// `ValidateRayJobSpec` in the same file.
const RAY_JOB: &[Field] = &[
    ("activeDeadlineSeconds", AtLeast(1)),
    ("preRunningDeadlineSeconds", AtLeast(1)),
    ("backoffLimit", AtLeast(0)),
    ("ttlSecondsAfterFinished", AtLeast(0)),
];

/// `ValidateRayServiceSpec` in the same file.
const RAY_SERVICE: &[Field] = &[("rayClusterDeletionDelaySeconds", AtLeast(0))];

/// `pkg/apis/trainer/v1alpha1/trainjob_types.go` in kubeflow/trainer. Older versions took some words as `numProcPerNode`.
const TRAIN_JOB: &[Field] = &[
    ("runtimeRef.name", Required),
    ("runtimeRef.kind", OneOf(&["ClusterTrainingRuntime", "TrainingRuntime"])),
    ("runtimeRef.apiGroup", OneOf(&["trainer.kubeflow.org"])),
    ("trainer.numNodes", AtLeast(0)),
    ("trainer.numProcPerNode", AtLeast(1)),
    ("trainer.numProcPerNode", OneOf(&["auto", "cpu", "gpu"])),
    ("activeDeadlineSeconds", AtLeast(1)),
];

/// `pkg/apis/trainer/v1alpha1/trainingruntime_types.go` in kubeflow/trainer. A JobSet takes no negative number of pods.
const RUNTIME: &[Field] = &[
    ("template", Required),
    ("mlPolicy.numNodes", AtLeast(0)),
    ("mlPolicy.mpi.numProcPerNode", AtLeast(1)),
    ("mlPolicy.flux.numProcPerNode", AtLeast(1)),
];

/// `validateCronJobSpec` in Kubernetes.
const CRON_JOB: &[Field] = &[("schedule", Required), ("jobTemplate", Required)];

/// Returns the tables of a kind, each with the path of its base.
fn tables(version: &str, kind: &str) -> &'static [(&'static str, &'static [Field])] {
    match (group(version), kind) {
        ("kubeflow.org", "MPIJob") if version.ends_with("/v2beta1") => &[("spec", MPI_JOB)],
        ("kubeflow.org", "PyTorchJob") => &[("spec", PYTORCH_JOB)],
        ("jobset.x-k8s.io", "JobSet") => &[("spec", JOB_SET)],
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => &[("spec", LEADER_WORKER_SET)],
        ("batch.volcano.sh", "Job") => &[("spec", VOLCANO_JOB)],
        ("ray.io", "RayCluster") => &[("spec", RAY_CLUSTER)],
        ("ray.io", "RayJob") => &[("spec", RAY_JOB), ("spec.rayClusterSpec", RAY_CLUSTER)],
        ("ray.io", "RayService") => &[("spec", RAY_SERVICE), ("spec.rayClusterConfig", RAY_CLUSTER)],
        ("trainer.kubeflow.org", "TrainJob") => &[("spec", TRAIN_JOB)],
        ("trainer.kubeflow.org", "TrainingRuntime" | "ClusterTrainingRuntime") => {
            &[("spec", RUNTIME), ("spec.template.spec", JOB_SET)]
        }
        ("batch", "CronJob") => &[("spec", CRON_JOB)],
        _ => &[],
    }
}

/// Adds the fields of a new object that have other values than they take.
pub(super) fn check(version: &str, kind: &str, object: &Value, into: &mut Problems) {
    for (base, fields) in tables(version, kind) {
        for (path, rule) in *fields {
            for (path, value) in all_at(&format!("{base}.{path}"), object) {
                rule.check(&path, value, into);
            }
        }
    }
}

impl Rule {
    fn check(&self, path: &str, value: &Value, into: &mut Problems) {
        match self {
            OneOf(known) => one_of(path, value, known, into),
            AtLeast(least) => {
                if let Some(number) = value.as_i64().filter(|number| number < least) {
                    let (cause, next) = match least {
                        0 => (format!("`{number}` is negative"), "write zero or more".to_owned()),
                        _ => (format!("`{number}` is less than {least}"), format!("write {least} or more")),
                    };
                    into.push(FieldProblem::new(path, cause, next));
                }
            }
            Text if value.is_number() || value.is_boolean() => {
                let cause = format!("`{value}` is no text, so an API server refuses it");
                into.push(FieldProblem::new(path, cause, "write it in quotes"));
            }
            Required if value.is_null() || *value == "" => {
                into.push(FieldProblem::new(path, "missing", "add it"));
            }
            Text | Required => {}
        }
    }
}

/// Returns the values at a path, with their own paths.
fn all_at<'v>(path: &str, object: &'v Value) -> Vec<(String, &'v Value)> {
    let mut found = vec![(String::new(), object)];
    for segment in path.split('.') {
        found = found.into_iter().flat_map(|(path, value)| below(&path, value, segment)).collect();
    }
    found
}

/// Returns the values at one segment of a path.
fn below<'v>(path: &str, value: &'v Value, segment: &str) -> Vec<(String, &'v Value)> {
    let at = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
    if segment == "*" {
        let fields = value.as_object().into_iter().flatten();
        return fields.map(|(key, inner)| (format!("{path}{}", key_segment(key)), inner)).collect();
    }
    let Some(field) = segment.strip_suffix("[]") else { return vec![(at(segment), &value[segment])] };
    let list = items(&value[field]).iter().enumerate();
    list.map(|(place, item)| (format!("{}[{place}]", at(field)), item)).collect()
}
