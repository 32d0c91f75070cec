//! How much longer TrainJobs of Kubeflow's trainer run, as their status says. The trainer writes it there from version 2.2 on, with the
//! feature gate `TrainJobStatus`.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::{Pod, Reported};
use serde_json::Value;

use super::Manifest;
use super::objects::{Object, group, meta};

/// The jobs of a TrainJob that end before the training begins.
const INITIALIZERS: [&str; 2] = ["dataset-initializer", "model-initializer"];

/// Tells the pods of each TrainJob what its trainer reports.
pub(super) fn put_in(objects: &[Object], manifest: &mut Manifest) {
    let is_train_job =
        |object: &&Object| object.kind == "TrainJob" && group(&object.api_version) == "trainer.kubeflow.org";
    let mut reports = BTreeMap::new();
    for object in objects.iter().filter(is_train_job) {
        let status = &object.value["status"]["trainerStatus"];
        if status["estimatedRemainingSeconds"].is_null() {
            continue;
        }
        let Some(reported) = read(status) else {
            manifest.notes.push(format!(
                "{}: ignored status.trainerStatus: estimatedRemainingSeconds is not a number of seconds, or lastUpdatedTime is no time",
                object.name()
            ));
            continue;
        };
        let name = meta(&object.value, "name").unwrap_or_default();
        reports.insert((object.namespace().to_owned(), name.to_owned()), reported);
    }
    if reports.is_empty() {
        return;
    }
    for pod in &mut manifest.pods {
        let job = train_job_of(pod).map(|name| (pod.key.namespace().to_owned(), name.to_owned()));
        pod.duration.reported = job.and_then(|job| reports.get(&job).copied());
    }
}

/// Returns the name of the TrainJob that a pod trains for, if it is one. Its JobSet has the same name.
fn train_job_of(pod: &Pod) -> Option<&str> {
    let label = |key: &str| pod.labels.get(key).map(String::as_str);
    let job = label("jobset.sigs.k8s.io/replicatedjob-name")?;
    label("jobset.sigs.k8s.io/jobset-name").filter(|_| !INITIALIZERS.contains(&job))
}

fn read(status: &Value) -> Option<Reported> {
    let left =
        status["estimatedRemainingSeconds"].as_u64().and_then(|seconds| u32::try_from(seconds).ok())?;
    let at: Timestamp = status["lastUpdatedTime"].as_str()?.parse().ok()?;
    Some(Reported { at, left: SignedDuration::from_secs(left.into()) })
}
