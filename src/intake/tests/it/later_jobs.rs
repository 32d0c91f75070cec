//! Tests jobs of JobSets and TrainJobs that start when others are complete: their pods are no demand now.

use serde_json::{Value, json};

use crate::json_kit::{ending, names, object, read};

const JOB_SET: &str = "jobset.x-k8s.io/v1alpha2";

/// A JobSet of one pod `init`, two pods `work` and one pod `check`, with what the latter two wait for.
fn job_set(work: Value, check: Value) -> Value {
    let job = |name: &str, pods: u32, depends_on: Value| {
        let spec = json!({"parallelism": pods, "completions": pods, "template": ending()});
        json!({"name": name, "dependsOn": depends_on, "template": {"spec": spec}})
    };
    let jobs = [job("init", 1, json!([])), job("work", 2, work), job("check", 1, check)];
    object(JOB_SET, "JobSet", "js", json!({"replicatedJobs": jobs}))
}

fn on(name: &str, status: &str) -> Value {
    json!([{"name": name, "status": status}])
}

fn note(job: &str, others: &str) -> String {
    format!(
        "JobSet default/js: its job `{job}` starts when {others} complete, so its pods are no demand now; they are planned then"
    )
}

#[test]
fn a_job_that_waits_until_another_is_complete_is_no_demand_now_and_a_note_says_when_it_is() {
    let manifest = read(&[job_set(on("init", "Complete"), on("work", "Complete"))]);
    assert_eq!(names(&manifest), ["js-init-0-0"]);
    assert_eq!(manifest.notes, [note("work", "`init` is"), note("check", "`work` is")]);
}

#[test]
fn a_job_that_waits_until_another_is_ready_is_demand_now_unless_the_other_comes_later() {
    let manifest = read(&[job_set(on("init", "Ready"), json!([]))]);
    assert_eq!((manifest.pods.len(), manifest.notes.len()), (4, 0), "{:?}", manifest.notes);
    let manifest = read(&[job_set(on("init", "Complete"), on("work", "Ready"))]);
    assert_eq!(names(&manifest), ["js-init-0-0"]);
    assert_eq!(manifest.notes, [note("work", "`init` is"), note("check", "`init` is")]);
}

#[test]
fn a_job_is_demand_when_the_status_says_that_the_others_are_complete() {
    let with = |succeeded: u32| {
        let mut set = job_set(on("init", "Complete"), json!([]));
        set["status"] = json!({"replicatedJobsStatus": [{"name": "init", "succeeded": succeeded}]});
        read(&[set]).pods.len()
    };
    assert_eq!((with(0), with(1)), (2, 3), "and those that are complete make no more pods");
}

#[test]
fn the_trainer_of_a_train_job_comes_after_its_initializer() {
    let replicated = |name: &str, depends_on: Value| {
        let pods = json!({"spec": {"containers": [{"name": name, "image": "x"}]}});
        json!({"name": name, "dependsOn": depends_on, "template": {"spec": {"template": pods}}})
    };
    let first = "dataset-initializer";
    let jobs = [replicated(first, json!([])), replicated("node", on(first, "Complete"))];
    let version = "trainer.kubeflow.org/v1alpha1";
    let runtime = json!({"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": jobs}}});
    let runtime = object(version, "ClusterTrainingRuntime", "torch", runtime);
    let mut job = object(version, "TrainJob", "llm", json!({"runtimeRef": {"name": "torch"}}));
    let manifest = read(&[runtime.clone(), job.clone()]);
    assert_eq!(names(&manifest), ["llm-dataset-initializer-0-0"]);
    let told = "TrainJob default/llm: its job `node` starts when `dataset-initializer` is complete, so its pods are no demand now; \
                they are planned then";
    assert_eq!(manifest.notes, [told], "and the runtime, which is read, has no note");
    job["status"] = json!({"jobsStatus": [{"name": first, "succeeded": 1}]});
    assert_eq!(names(&read(&[runtime, job])), ["llm-node-0-0", "llm-node-0-1"]);
}

#[test]
fn a_job_can_only_wait_for_one_before_it() {
    let found = crate::json_kit::refused(&job_set(on("check", "Complete"), on("init", "Completed")));
    let parts = [
        "spec.replicatedJobs[1].dependsOn[0].name: no job before it is named `check`; name one of the jobs above it",
        "spec.replicatedJobs[2].dependsOn[0].status: `Completed` does not exist; write `Complete`",
    ];
    for part in parts {
        assert!(found.iter().any(|one| one.contains(part)), "{part} is not in {found:#?}");
    }
}
