//! What an API server refuses of fields of new objects that take one of a few values, no negative number, or only labels.

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::labels;
use super::names::items;
use super::objects::{Object, group};
use super::pod_refusals::{one_of, selector};
use super::refusals::Problems;

/// A field, and what it may be.
type Choice = (&'static str, &'static [&'static str]);

const ROLLS: Choice = ("spec.updateStrategy.type", &["RollingUpdate", "OnDelete"]);
const KEEPS: &[&str] = &["Retain", "Delete"];

/// The fields of a Job's spec that take one of a few values.
const OF_JOB: [Choice; 2] = [
    ("completionMode", &["NonIndexed", "Indexed"]),
    ("podReplacementPolicy", &["TerminatingOrFailed", "Failed"]),
];

/// The fields of a Job's spec that take no negative number.
const NUMBERS_OF_JOB: [&str; 7] = [
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];

/// Returns the fields of a kind that take one of a few values.
fn choices(group: &str, kind: &str) -> &'static [Choice] {
    match (group, kind) {
        ("apps", "Deployment") => &[("spec.strategy.type", &["RollingUpdate", "Recreate"])],
        ("apps", "DaemonSet") => &[ROLLS],
        ("apps", "StatefulSet") => &[
            ROLLS,
            ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", KEEPS),
            ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", KEEPS),
        ],
        ("batch", "CronJob") => &[("spec.concurrencyPolicy", &["Allow", "Forbid", "Replace"])],
        ("storage.k8s.io", "StorageClass") => &[
            ("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]),
            ("reclaimPolicy", &["Delete", "Retain"]),
        ],
        ("policy", "PodDisruptionBudget") => {
            &[("spec.unhealthyPodEvictionPolicy", &["IfHealthyBudget", "AlwaysAllow"])]
        }
        ("jobset.x-k8s.io", "JobSet") => {
            &[("spec.startupPolicy.startupPolicyOrder", &["AnyOrder", "InOrder"])]
        }
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => {
            &[("spec.startupPolicy", &["LeaderCreated", "LeaderReady"])]
        }
        _ => &[],
    }
}

/// Returns the fields of a kind that take no negative number.
fn numbers(group: &str, kind: &str) -> &'static [&'static str] {
    match (group, kind) {
        ("apps", "Deployment") => &[
            "spec.replicas",
            "spec.minReadySeconds",
            "spec.progressDeadlineSeconds",
            "spec.revisionHistoryLimit",
        ],
        ("apps", "ReplicaSet") | ("", "ReplicationController") => &["spec.replicas", "spec.minReadySeconds"],
        ("batch", "CronJob") => &[
            "spec.startingDeadlineSeconds",
            "spec.successfulJobsHistoryLimit",
            "spec.failedJobsHistoryLimit",
        ],
        ("apps", "DaemonSet") => &["spec.minReadySeconds"],
        ("apps", "StatefulSet") => {
            &["spec.replicas", "spec.minReadySeconds", "spec.updateStrategy.rollingUpdate.partition"]
        }
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet") => {
            &["spec.replicas", "spec.rolloutStrategy.rollingUpdateConfiguration.partition"]
        }
        _ => &[],
    }
}

impl Object {
    /// Returns the fields with values that do not exist, with negative numbers, and with labels that nothing can have.
    pub(super) fn wrong_choices(&self) -> Problems {
        let (group, kind, mut problems) = (group(&self.api_version), self.kind.as_str(), Vec::new());
        let at = |path: &str| path.split('.').fold(&self.value, |value, field| &value[field]);
        for (path, known) in choices(group, kind) {
            one_of(path, at(path), known, &mut problems);
        }
        for path in numbers(group, kind) {
            not_negative(path, at(path), &mut problems);
        }
        let spec = &self.value["spec"];
        match (group, kind) {
            ("batch", "Job") => job("spec", spec, &mut problems),
            ("batch", "CronJob") => {
                job("spec.jobTemplate.spec", &spec["jobTemplate"]["spec"], &mut problems);
            }
            ("jobset.x-k8s.io", "JobSet") => job_set("spec", spec, &mut problems),
            ("trainer.kubeflow.org", "TrainingRuntime" | "ClusterTrainingRuntime") => {
                job_set("spec.template.spec", &spec["template"]["spec"], &mut problems);
            }
            ("", "Service") => labels::labels("spec.selector", &spec["selector"], &mut problems),
            ("", "Node") => {
                for (place, taint) in items(&spec["taints"]).iter().enumerate() {
                    let path = format!("spec.taints[{place}]");
                    labels::key(&format!("{path}.key"), &taint["key"], &mut problems);
                    labels::value(&format!("{path}.value"), &taint["value"], &mut problems);
                }
            }
            ("node.k8s.io", "RuntimeClass") => {
                let (path, wanted) = ("scheduling.nodeSelector", &self.value["scheduling"]["nodeSelector"]);
                labels::labels(path, wanted, &mut problems);
            }
            ("apps", _) | ("policy", "PodDisruptionBudget") => {
                selector("spec.selector", &spec["selector"], &mut problems);
            }
            _ => {}
        }
        problems
    }
}

fn not_negative(path: &str, value: &Value, into: &mut Problems) {
    if let Some(number) = value.as_i64().filter(|number| *number < 0) {
        into.push(FieldProblem::new(path, format!("`{number}` is negative"), "write zero or more"));
    }
}

/// Checks the spec of a Job at a path.
fn job(path: &str, spec: &Value, into: &mut Problems) {
    for (field, known) in OF_JOB {
        one_of(&format!("{path}.{field}"), &spec[field], known, into);
    }
    for field in NUMBERS_OF_JOB {
        not_negative(&format!("{path}.{field}"), &spec[field], into);
    }
}

/// Checks the jobs of a JobSet's spec at a path. One can only wait for those before it.
fn job_set(path: &str, spec: &Value, into: &mut Problems) {
    let jobs = items(&spec["replicatedJobs"]);
    for (at, replicated) in jobs.iter().enumerate() {
        let path = format!("{path}.replicatedJobs[{at}]");
        not_negative(&format!("{path}.replicas"), &replicated["replicas"], into);
        job(&format!("{path}.template.spec"), &replicated["template"]["spec"], into);
        for (place, on) in items(&replicated["dependsOn"]).iter().enumerate() {
            let path = format!("{path}.dependsOn[{place}]");
            one_of(&format!("{path}.status"), &on["status"], &["Ready", "Complete"], into);
            let name = on["name"].as_str().unwrap_or_default();
            if jobs[..at].iter().all(|before| before["name"] != name) {
                let cause = format!("no job before it is named `{name}`");
                let next = "name one of the jobs above it";
                into.push(FieldProblem::new(format!("{path}.name"), cause, next));
            }
        }
    }
}
