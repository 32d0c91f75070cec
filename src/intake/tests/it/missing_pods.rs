//! Tests controllers that have some of their pods already: only those that they lack are planned.

use poolwright_core::PodPhase;

use crate::stored_kit::{TEMPLATE, names, read, stored};

/// A stored pod of a controller, in this phase.
fn child(name: &str, owner: [&str; 3], phase: &str) -> String {
    stored(
        "Pod",
        name,
        Some(owner),
        &format!("spec: {{containers: [{{image: x, name: a}}]}}\nstatus: {{phase: {phase}}}"),
    )
}

#[test]
fn pods_and_their_workloads_in_one_manifest_count_once() {
    let manifest = read(&format!(
        r"
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {{name: serve-x, uid: rs1}}
  spec: {{replicas: 1, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: serve-x-1
    uid: pod1
    ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: serve-x, uid: rs1, controller: true}}]
  spec: {{nodeName: n1, containers: [{{image: x, name: a}}]}}
"
    ));
    assert_eq!(names(&manifest), ["default/serve-x-1"]);
    assert_eq!(manifest.pods[0].phase, PodPhase::Bound { node: "n1".into() });
    assert!(manifest.notes[0].contains("ReplicaSet default/serve-x"), "{:?}", manifest.notes);
}

#[test]
fn the_pods_that_a_controller_lacks_are_planned_beside_those_that_it_has() {
    let set = stored(
        "StatefulSet",
        "db",
        None,
        "spec: {replicas: 3, ordinals: {start: 5}, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, serviceName: db, TEMPLATE}",
    );
    let owner = ["StatefulSet", "db", "u-db"];
    let manifest = read(&format!("{set}{}", child("db-5", owner, "Running")));
    assert_eq!(names(&manifest), ["default/db-6", "default/db-7", "default/db-5"]);
}

#[test]
fn a_replica_set_counts_its_living_pods_and_its_deployment_counts_nothing_twice() {
    let deployment = stored(
        "Deployment",
        "web",
        None,
        "spec: {replicas: 4, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let set = stored(
        "ReplicaSet",
        "web-5d4",
        Some(["Deployment", "web", "u-web"]),
        "spec: {replicas: 4, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let owner = ["ReplicaSet", "web-5d4", "u-web-5d4"];
    let pods = format!("{}{}", child("web-5d4-a", owner, "Running"), child("web-5d4-b", owner, "Failed"));
    for text in [format!("{deployment}{set}{pods}"), format!("{deployment}{pods}"), format!("{set}{pods}")] {
        let manifest = read(&text);
        let waiting =
            manifest.pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. })).count();
        // The stored pod that runs has no node here, so it waits like the three that are missing.
        assert_eq!(waiting, 4, "{text}");
        let told = "pods in the manifest: 1, without 1 that has ended or is being deleted; pods that it lacks, planned too: 3";
        assert!(manifest.notes.iter().any(|note| note.ends_with(told)), "{:?}", manifest.notes);
    }
    assert_eq!(read(&deployment).pods.len(), 4);
}

#[test]
fn a_job_makes_no_more_pods_than_it_has_left_to_complete() {
    let job = |spec: &str, status: &str| {
        stored("Job", "sweep", None, &format!("spec: {{{spec} TEMPLATE}}\nstatus: {{{status}}}"))
    };
    let count = |text: &str| read(text).pods.len();
    assert_eq!(count(&job("parallelism: 5, completions: 4,", "succeeded: 2")), 2);
    assert_eq!(count(&job("parallelism: 3, completions: 10,", "")), 3);
    assert_eq!(count(&job("parallelism: 3,", "succeeded: 1")), 0);
    let owner = ["Job", "sweep", "u-sweep"];
    let with_one = format!(
        "{}{}",
        job("parallelism: 3, completions: 10,", "active: 1"),
        child("sweep-x", owner, "Running")
    );
    assert_eq!(count(&with_one), 3, "one that is there and two that are missing");
}

#[test]
fn a_job_counts_what_its_status_says_of_its_indexes_and_of_pods_that_end() {
    let job = |spec: &str, status: &str| {
        stored("Job", "sweep", None, &format!("spec: {{{spec} TEMPLATE}}\nstatus: {{{status}}}"))
    };
    let count = |text: &str| read(text).pods.len();
    let indexed = "parallelism: 10, completions: 10, completionMode: Indexed, backoffLimitPerIndex: 1,";
    assert_eq!(count(&job(indexed, "succeeded: 4, completedIndexes: '0,2-4', failedIndexes: '1,5-6'")), 3);
    let uncounted = "succeeded: 1, uncountedTerminatedPods: {succeeded: [u-1, u-2]}";
    assert_eq!(count(&job("parallelism: 5, completions: 5,", uncounted)), 2);
    let owner = ["Job", "sweep", "u-sweep"];
    let ending = child("sweep-x", owner, "Running")
        .replace(", uid: u-sweep-x", ", deletionTimestamp: '2026-01-01T00:00:00Z', uid: u-sweep-x");
    let waiting = |policy: &str| {
        let manifest =
            read(&format!("{}{ending}", job(&format!("parallelism: 2, completions: 2,{policy}"), "")));
        manifest.pods.iter().filter(|pod| pod.deleting_since.is_none()).count()
    };
    assert_eq!(waiting(""), 2, "a pod that is being deleted is replaced at once");
    assert_eq!(waiting(" podReplacementPolicy: Failed,"), 1, "only when it is gone");
}

#[test]
fn a_controller_without_a_uid_has_the_stored_pods_that_name_it() {
    let set = format!(
        "---\n{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{replicas: 3, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, serviceName: db, {TEMPLATE}}}}}\n"
    );
    let pod = child("db-0", ["StatefulSet", "db", "u-db"], "Running");
    assert_eq!(names(&read(&format!("{set}{pod}"))), ["default/db-1", "default/db-2", "default/db-0"]);
    let web = format!(
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 3, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}}}\n"
    );
    let pod = child("web-5d4-a", ["ReplicaSet", "web-5d4", "u-gone"], "Running");
    assert_eq!(read(&format!("{web}{pod}")).pods.len(), 3);
}

#[test]
fn a_job_set_plans_the_jobs_that_are_not_there_yet() {
    let set = stored(
        "JobSet",
        "train",
        None,
        "spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, TEMPLATE}}}]}",
    );
    let job = stored(
        "Job",
        "train-w-0",
        Some(["JobSet", "train", "u-train"]),
        "spec: {parallelism: 2, completions: 2, TEMPLATE}",
    );
    let manifest = read(&format!("{set}{job}"));
    assert_eq!(
        names(&manifest),
        ["default/train-w-1-0", "default/train-w-1-1", "default/train-w-0-0", "default/train-w-0-1"]
    );
    let pod = child("train-w-0-0-x", ["Job", "train-w-0", "u-gone"], "Running");
    assert_eq!(
        read(&format!("{set}{pod}")).pods.len(),
        4,
        "the pod shows its Job, which is not in the manifest"
    );
}

#[test]
fn controllers_that_make_no_more_pods_lack_none() {
    let deleted =
        |object: String| object.replace(", uid:", ", deletionTimestamp: '2026-01-01T00:00:00Z', uid:");
    let set = stored(
        "ReplicaSet",
        "web",
        None,
        "spec: {replicas: 3, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let job = |status: &str| {
        stored(
            "Job",
            "sweep",
            None,
            &format!("spec: {{parallelism: 3, completions: 3, TEMPLATE}}\nstatus: {{{status}}}"),
        )
    };
    let condition = |kind: &str| format!("conditions: [{{type: {kind}, status: 'True'}}]");
    let sets =
        "spec: {replicatedJobs: [{name: w, template: {spec: {TEMPLATE}}}]}\nstatus: {terminalState: Failed}";
    for object in [
        deleted(set.clone()),
        format!("{set}status: {{replicas: 1, {}}}\n", condition("ReplicaFailure")),
        deleted(job("")),
        job(&condition("SuccessCriteriaMet")),
        job(&condition("FailureTarget")),
        job("").replace("parallelism", "managedBy: kueue.x-k8s.io/multikueue, parallelism"),
        stored("JobSet", "train", None, sets),
    ] {
        let manifest = read(&object);
        assert_eq!((manifest.pods.len(), manifest.notes.len()), (0, 1), "{object}");
    }
}

#[test]
fn the_missing_pods_of_an_indexed_job_are_named_after_their_indexes() {
    let job = |parallelism: u32, status: &str| {
        let spec = format!("parallelism: {parallelism}, completions: 6, completionMode: Indexed, TEMPLATE");
        stored("Job", "idx", None, &format!("spec: {{{spec}}}\nstatus: {{{status}}}"))
    };
    let owner = ["Job", "idx", "u-idx"];
    let runs = |index: u32| child(&format!("idx-{index}-x"), owner, "Running");
    let missing = |text: &str, index: u32| {
        let own = format!("default/idx-{index}-x");
        names(&read(text)).into_iter().filter(|name| *name != own).collect::<Vec<_>>()
    };
    let done = "succeeded: 3, completedIndexes: '0,2-3'";
    assert_eq!(
        missing(&format!("{}{}", job(6, done), runs(1)), 1),
        ["default/idx-4", "default/idx-5"],
        "neither those that are complete nor the one that runs"
    );
    assert_eq!(
        missing(&format!("{}{}", job(2, done), runs(5)), 5),
        ["default/idx-1"],
        "the lowest comes next"
    );
    let failed = "succeeded: 3, completedIndexes: '0-2', failedIndexes: '3,4'";
    assert_eq!(names(&read(&job(6, failed))), ["default/idx-5"]);
}

#[test]
fn the_missing_pods_of_a_job_of_a_job_set_are_named_after_their_indexes() {
    let set = stored(
        "JobSet",
        "train",
        None,
        "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 3, completions: 3, TEMPLATE}}}]}",
    );
    let pod = child("train-w-0-1-x", ["Job", "train-w-0", "u-gone"], "Running");
    assert_eq!(
        names(&read(&format!("{set}{pod}"))),
        ["default/train-w-0-0", "default/train-w-0-2", "default/train-w-0-1-x"]
    );
}

#[test]
fn the_jobs_of_a_job_set_are_not_called_pods() {
    let set = stored(
        "JobSet",
        "train",
        None,
        "spec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, TEMPLATE}}}]}",
    );
    let owner = Some(["JobSet", "train", "u-train"]);
    let job = |name: &str| stored("Job", name, owner, "spec: {parallelism: 2, completions: 2, TEMPLATE}");
    let manifest = read(&format!("{set}{}", job("train-w-0")));
    let told = "JobSet default/train: its Jobs in the manifest count by themselves; pods that it lacks besides, planned too: 2";
    assert_eq!(manifest.notes, [told]);
    let manifest = read(&format!("{set}{}{}", job("train-w-0"), job("train-w-1")));
    assert_eq!(manifest.notes, ["JobSet default/train: its Jobs in the manifest count instead"]);
}

#[test]
fn pods_that_have_ended_or_are_being_deleted_are_told_beside_those_that_count() {
    let owner = ["ReplicaSet", "web-5d", "u-web-5d"];
    let set = stored(
        "ReplicaSet",
        "web-5d",
        None,
        "spec: {replicas: 1, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let (failed, done) = (child("web-5d-a", owner, "Failed"), child("web-5d-b", owner, "Succeeded"));
    let manifest = read(&format!("{set}{failed}{done}"));
    let told = "pods in the manifest: 0, without 2 that have ended or are being deleted; pods that it lacks, planned too: 1";
    assert!(manifest.notes.iter().any(|note| note.ends_with(told)), "{:?}", manifest.notes);
}

#[test]
fn a_controller_that_makes_no_pods_says_only_why_even_if_some_are_in_the_manifest() {
    let pod =
        |name: &str, kind: &str, owner: &str| child(name, [kind, owner, &format!("u-{owner}")], "Succeeded");
    let job = |rest: &str| stored("Job", "train", None, &format!("spec: {{SUSPENDED TEMPLATE}}\n{rest}"));
    let ended = "status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}";
    for (job, told) in [
        (job(ended).replace("SUSPENDED ", ""), "it has ended and makes no more pods"),
        (job("").replace("SUSPENDED", "suspend: true,"), "it is suspended and makes no pods now"),
    ] {
        let manifest = read(&format!("{job}{}", pod("train-a", "Job", "train")));
        assert_eq!(manifest.notes, [format!("Job default/train: {told}")]);
    }
    let set = stored(
        "ReplicaSet",
        "web-5d",
        None,
        "spec: {replicas: 0, selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, TEMPLATE}",
    );
    let manifest = read(&format!("{set}{}", pod("web-5d-a", "ReplicaSet", "web-5d")));
    assert_eq!(manifest.notes, [""; 0], "it asks for none");
}
