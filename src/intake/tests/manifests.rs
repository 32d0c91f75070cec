//! Tests manifests and the messages about their problems.

use poolwright_core::PodPhase;
use poolwright_intake::Manifest;
use poolwright_intake::manifest::parse;

fn read(text: &str) -> Manifest {
    parse("train.yaml", text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn errors(text: &str) -> Vec<String> {
    parse("train.yaml", text)
        .expect_err("the manifest has problems")
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn names(manifest: &Manifest) -> Vec<String> {
    manifest.pods.iter().map(|pod| pod.key.to_string()).collect()
}

const TEMPLATE: &str =
    "template: {spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}";

/// The template of a Job that an API server takes.
const JOB: &str = "template: {spec: {restartPolicy: Never, containers: [{name: a}]}}";

#[test]
fn workloads_become_the_pods_that_their_controllers_would_make() {
    let manifest = read(&format!(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve}}
spec: {{replicas: 2, selector: {{}}, {TEMPLATE}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: data}}
spec: {{selector: {{}}, serviceName: db, {TEMPLATE}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec: {{parallelism: 8, completions: 3, {JOB}}}
---
apiVersion: v1
kind: Pod
metadata: {{generateName: try-}}
spec: {{containers: [{{name: a}}]}}
"
    ));
    let expected = [
        "default/serve-0",
        "default/serve-1",
        "data/db-0",
        "default/train-0",
        "default/train-1",
        "default/train-2",
        "default/try-",
    ];
    assert_eq!(names(&manifest), expected);
    assert!(manifest.pods.iter().all(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. })));
    assert_eq!(manifest.pods[0].spec.requests.get("nvidia.com/gpu"), 1);
    let uids: std::collections::BTreeSet<_> = manifest.pods.iter().map(|pod| &pod.uid).collect();
    assert_eq!(uids.len(), manifest.pods.len(), "every pod is one of its own");
}

#[test]
fn a_jobset_runs_all_its_jobs_at_once() {
    let manifest = read(&format!(
        r"
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: llm}}
spec:
  failurePolicy: {{maxRestarts: 3}}
  replicatedJobs:
  - name: driver
    template: {{spec: {{{TEMPLATE}}}}}
  - name: worker
    replicas: 2
    template: {{spec: {{parallelism: 2, completions: 2, {TEMPLATE}}}}}
"
    ));
    let expected = [
        "default/llm-driver-0-0",
        "default/llm-worker-0-0",
        "default/llm-worker-0-1",
        "default/llm-worker-1-0",
        "default/llm-worker-1-1",
    ];
    assert_eq!(names(&manifest), expected);
}

#[test]
fn a_jobset_that_wants_a_topology_domain_per_job_says_so() {
    let manifest = read(&format!(
        r"
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: llm, annotations: {{alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}}}
spec: {{replicatedJobs: [{{name: w, template: {{spec: {{{TEMPLATE}}}}}}}]}}
"
    ));
    assert_eq!(manifest.pods[0].spec.unmodelled[0].rule, "one job per topology domain");
}

#[test]
fn lists_are_taken_apart_and_json_is_read_too() {
    let manifest = read(
        r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a"}]}}]},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"containers": [{"name": "a"}]}}
        ]}"#,
    );
    assert_eq!(names(&manifest), ["default/a", "default/b"]);
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
  spec: {{replicas: 1, selector: {{}}, {TEMPLATE}}}
- apiVersion: v1
  kind: Pod
  metadata:
    name: serve-x-1
    uid: pod1
    ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: serve-x, uid: rs1, controller: true}}]
  spec: {{nodeName: n1, containers: [{{name: a}}]}}
"
    ));
    assert_eq!(names(&manifest), ["default/serve-x-1"]);
    assert_eq!(manifest.pods[0].phase, PodPhase::Bound { node: "n1".into() });
    assert!(manifest.notes[0].contains("ReplicaSet default/serve-x"), "{:?}", manifest.notes);
}

#[test]
fn a_workload_without_pods_is_noted_and_other_kinds_are_ignored() {
    let manifest = read(&format!(
        r"
{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: nightly}}}}
---
{{apiVersion: v1, kind: ConfigMap, metadata: {{name: settings}}}}
---
{{apiVersion: poolwright.dev/v1alpha1, kind: EC2NodeClass, metadata: {{name: gpu}}}}
---
{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: thing}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{name: later}}, spec: {{suspend: true, {JOB}}}}}
"
    ));
    assert_eq!(manifest.pods, []);
    assert_eq!(
        manifest.notes,
        [
            "CronJob default/nightly: it makes jobs by the clock and has no pods now; to plan one run, give its Job \
             (`kubectl create job nightly --from=cronjob/nightly --dry-run=client -o yaml`)",
            "Widget default/thing: example.com/v1 Widget is not read; pods it may make are not planned",
            "Job default/later: it is suspended and has no pods now",
        ]
    );
}

#[test]
fn a_duration_that_cannot_be_read_is_noted_with_its_object_wherever_the_template_is() {
    let manifest = read(
        r#"
{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {poolwright.dev/ran-for: "yes"}},
  spec: {containers: [{name: a}]}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {
  metadata: {annotations: {poolwright.dev/expected-duration: "2 hours"}}, spec: {restartPolicy: Never, containers: [{name: a}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: c}, spec: {template: {
  metadata: {annotations: {poolwright.dev/expected-duration: "2h"}}, spec: {restartPolicy: Never, containers: [{name: a}]}}}}
"#,
    );
    assert_eq!(manifest.pods.len(), 3);
    assert_eq!(manifest.notes.len(), 2, "{:?}", manifest.notes);
    let begins =
        |at: usize, with: &str| assert!(manifest.notes[at].starts_with(with), "{:?}", manifest.notes);
    begins(0, "Pod default/a: ignored annotation poolwright.dev/ran-for: `yes` is not a duration; write");
    begins(
        1,
        "Job default/b: ignored annotation poolwright.dev/expected-duration: `2 hours` is not a duration",
    );
}

#[test]
fn a_kind_that_does_not_exist_is_noted_with_the_one_that_was_meant() {
    let note = |api_version: &str, kind: &str| {
        let manifest = read(&format!("{{apiVersion: {api_version}, kind: {kind}, metadata: {{name: a}}}}"));
        manifest.notes.join("\n")
    };
    assert_eq!(note("v1", "Podd"), "Podd default/a: v1 Podd is not read; did you mean Pod?");
    assert!(note("apps/v1", "Deploymnt").ends_with("did you mean Deployment?"));
    assert!(note("batch/v1", "Cronjob").ends_with("did you mean CronJob?"));
    assert!(note("policy/v1", "PodDisruptionBugdet").ends_with("did you mean PodDisruptionBudget?"));
    assert!(note("v1", "Deployment").ends_with("Deployment belongs to apps/v1; correct apiVersion"));
    assert!(note("v1", "Training").ends_with("there is no such kind; correct apiVersion or kind"));
    assert!(note("karpenter.sh/v1", "NodePool").ends_with("convert it with `poolwright convert`"));
    for (group, kind) in [("v1", "Secret"), ("storage.k8s.io/v1", "CSIDriver"), ("policy/v1", "Eviction")] {
        assert_eq!(note(group, kind), "", "{kind} exists and makes no pods");
    }
}

#[test]
fn nothing_is_an_empty_manifest() {
    for text in ["", "---\n", "# only a comment\n", "null"] {
        assert_eq!(read(text), Manifest::default());
    }
}

#[test]
fn all_problems_are_told_at_once_with_object_path_and_next_step() {
    let found = errors(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: train}
spec: {selector: {}, template: {spec: {contianers: [{name: a}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec: {containers: [{name: a, resources: {requests: {memory: 10GB}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec: {containers: [{name: a, image: [x]}]}
---
apiVersion: apps/v1beta1
kind: Deployment
metadata: {name: old}
---
metadata: {name: what}
",
    );
    let expected = [
        "train.yaml: document 5: apiVersion or kind is missing; write both",
        "train.yaml: Deployment default/train: spec.template.spec.contianers: unknown field; did you mean `containers`?",
        "train.yaml: Pod ml/a: spec.containers[0].resources.requests.memory: `10GB` has the unknown suffix `GB`; use one of",
        "train.yaml: Pod default/b: spec.containers[0].image: invalid type: sequence, expected a string; write a text",
        "train.yaml: Deployment default/old: apiVersion: version `apps/v1beta1` of this kind is not read; use `apps/v1`",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n is not\n{expected}");
    }
}

#[test]
fn an_unknown_field_of_our_own_kinds_is_a_problem_too() {
    let found = errors(
        "{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gpu}, spec: {wieght: 3, template: {spec: \
         {nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: default}}}}}",
    );
    assert_eq!(found, ["train.yaml: NodePool gpu: spec.wieght: unknown field; did you mean `weight`?"]);
}

#[test]
fn a_pool_that_the_api_server_would_refuse_is_refused_here_with_the_same_words() {
    let found = errors(
        "{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gpu}, spec: {template: {metadata: {labels: \
         {kubernetes.io/hostname: a}}, spec: {nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: default}}}}}",
    );
    assert_eq!(found.len(), 1);
    assert!(
        found[0]
            .starts_with("train.yaml: NodePool gpu: spec.template.metadata.labels: labels that an offering"),
        "{found:?}"
    );
}

#[test]
fn a_schedule_that_makes_no_sense_is_a_problem_of_a_manifest_although_no_api_server_refuses_it() {
    let found = errors(
        "{apiVersion: poolwright.dev/v1alpha1, kind: NodePool, metadata: {name: gpu}, spec: {disruption: {budgets: \
         [{nodes: 10%, schedule: often, duration: 8h}]}, template: {spec: \
         {nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: default}}}}}",
    );
    assert_eq!(found.len(), 1);
    let begins =
        "train.yaml: NodePool gpu: spec.disruption.budgets[0].schedule: `often` is no schedule: write minute";
    assert!(found[0].starts_with(begins), "{found:?}");
}

#[test]
fn broken_syntax_is_told_with_its_line() {
    let found = errors("apiVersion: v1\nkind: Pod\nmetadata: {name: a\n");
    assert!(found[0].starts_with("train.yaml: not readable as YAML or JSON:"), "{found:?}");
    assert!(found[0].contains("line"), "{found:?}");
}

#[test]
fn an_object_that_is_there_twice_is_a_problem() {
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a}]}}";
    let found = errors(&format!("{pod}\n---\n{pod}\n"));
    assert_eq!(found, ["train.yaml: Pod default/a: it is there more than once; remove one or rename it"]);
    let set = format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{replicas: 3, selector: {{}}, {TEMPLATE}}}}}"
    );
    let found = errors(&format!("{set}\n---\n{set}\n"));
    assert_eq!(
        found,
        ["train.yaml: Deployment default/a: it is there more than once; remove one or rename it"]
    );
}

#[test]
fn what_a_server_printed_twice_counts_once() {
    let set = stored("Deployment", "web", None, "spec: {replicas: 2, selector: {}, TEMPLATE}");
    let manifest = read(&format!("{set}{set}"));
    assert_eq!(
        (manifest.pods.len(), manifest.notes.as_slice()),
        (
            2,
            ["Deployment default/web: the same is there more than once, and counts once".to_owned()]
                .as_slice()
        )
    );
    let at = |version: u32, replicas: u32| {
        set.replace("uid: u-web", &format!("uid: u-web, resourceVersion: '{version}'"))
            .replace("replicas: 2", &format!("replicas: {replicas}"))
    };
    let manifest = read(&format!("{}{}", at(7, 3), at(9, 4)));
    assert_eq!(manifest.pods.len(), 4);
    assert!(manifest.notes[0].contains("with differences; the newer counts"), "{:?}", manifest.notes);
}

#[test]
fn a_target_of_an_autoscaler_has_its_least_replicas() {
    let scaled = |replicas: &str, least: u32| {
        let set = format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{{replicas}selector: {{}}, {TEMPLATE}}}}}"
        );
        let scaler = format!(
            "{{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {{name: s}}, spec: {{minReplicas: {least}, \
             maxReplicas: 9, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}}}}}"
        );
        let manifest = read(&format!("{set}\n---\n{scaler}\n"));
        (manifest.pods.len(), manifest.notes)
    };
    let (pods, notes) = scaled("", 5);
    assert_eq!(pods, 5);
    let note = "HorizontalPodAutoscaler default/s: Deployment `a` counts with 5 replicas; it may have up to 9, which are not planned";
    assert!(notes.contains(&note.to_owned()), "{notes:?}");
    assert_eq!((scaled("replicas: 7, ", 5).0, scaled("replicas: 0, ", 5).0), (7, 0));
}

#[test]
fn a_written_workload_counts_instead_of_its_stored_copy_and_its_pods_are_there() {
    let stored_set = stored("Deployment", "web", None, "spec: {replicas: 2, selector: {}, TEMPLATE}");
    let replica_set = stored(
        "ReplicaSet",
        "web-5f",
        Some(["Deployment", "web", "u-web"]),
        "spec: {replicas: 2, selector: {}, TEMPLATE}",
    );
    let pod = |name: &str| {
        stored(
            "Pod",
            name,
            Some(["ReplicaSet", "web-5f", "u-web-5f"]),
            "spec: {containers: [{name: a}], nodeName: n1}",
        )
    };
    let there = format!("{stored_set}{replica_set}{}{}", pod("web-5f-a"), pod("web-5f-b"));
    let written = format!(
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 5, selector: {{}}, {TEMPLATE}}}}}\n"
    );
    for both in [format!("{there}{written}"), format!("{written}{there}")] {
        let manifest = read(&both);
        let new = manifest.pods.iter().filter(|pod| !pod.key.name().starts_with("web-5f-")).count();
        assert_eq!((manifest.pods.len(), new), (5, 3), "{:?}", manifest.notes);
        assert_eq!(
            manifest.notes,
            [
                "Deployment default/web: it is there stored and written; the written one counts",
                "Deployment default/web: pods in the manifest: 2; pods that it lacks, planned too: 3",
            ]
        );
    }
    let again =
        "---\n{apiVersion: v1, kind: Pod, metadata: {name: web-5f-a}, spec: {containers: [{name: a}]}}\n";
    let manifest = read(&format!("{there}{again}"));
    assert_eq!(manifest.pods.len(), 2);
    assert!(
        manifest.notes.iter().any(|note| note.ends_with("the stored one counts")),
        "{:?}",
        manifest.notes
    );
}

#[test]
fn objects_of_the_same_name_and_pods_of_generated_names_do_not_collide() {
    let objects = format!(
        r"
{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 2, selector: {{}}, {TEMPLATE}}}}}
---
{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: web}}, spec: {{replicas: 2, selector: {{}}, serviceName: web, {TEMPLATE}}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{generateName: run-}}, spec: {{containers: [{{name: a}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{generateName: run-}}, spec: {{containers: [{{name: a}}]}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{generateName: train-}}, spec: {{{JOB}}}}}
---
{{apiVersion: batch/v1, kind: Job, metadata: {{generateName: train-}}, spec: {{{JOB}}}}}
"
    );
    let manifest = read(&objects);
    let names: std::collections::BTreeSet<String> = names(&manifest).into_iter().collect();
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(names.contains("default/web-0") && names.contains("default/web-deployment-0"), "{names:?}");
}

#[test]
fn a_key_that_is_there_twice_is_refused_in_yaml_and_json() {
    for text in [
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1", "cpu": "2"}}}]}}"#,
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, name: b}\nspec: {containers: [{name: a}]}\n",
    ] {
        let found = errors(text);
        assert!(found[0].to_lowercase().contains("duplicate"), "{found:?}");
    }
}

#[test]
fn an_empty_uid_is_no_uid() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "NAME", "uid": "", "resourceVersion": ""},
        "spec": {"containers": [{"name": "a"}], "typo": 1}}"#;
    let found = errors(&pod.replace("NAME", "a"));
    assert!(found[0].contains("typo: unknown field"), "{found:?}");
    let pod = pod.replace(r#", "typo": 1"#, "");
    let both = read(&format!("{}\n{}", pod.replace("NAME", "a"), pod.replace("NAME", "b")));
    assert_ne!(both.pods[0].uid, both.pods[1].uid);
}

#[test]
fn an_absurd_number_of_pods_is_refused_before_they_are_made() {
    let found = errors(&format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{replicas: 2000000000, selector: {{}}, {TEMPLATE}}}}}"
    ));
    assert!(found[0].contains("spec.replicas: this asks for 2000000000 pods"), "{found:?}");
}

#[test]
fn a_manifest_of_ten_thousand_documents_is_read() {
    let pods: Vec<String> = (0..10_000)
        .map(|at| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{at}}}\nspec: {{containers: [{{name: a}}]}}\n"
            )
        })
        .collect();
    assert_eq!(read(&pods.join("---\n")).pods.len(), 10_000);
}

/// An object as an API server prints it, with a controller if `owner` is its kind, name and UID.
fn stored(kind: &str, name: &str, owner: Option<[&str; 3]>, rest: &str) -> String {
    let version = match kind {
        "Pod" => "v1",
        "Job" => "batch/v1",
        "JobSet" => "jobset.x-k8s.io/v1alpha2",
        _ => "apps/v1",
    };
    let owner = owner.map_or_else(String::new, |[kind, name, uid]| {
        format!(", ownerReferences: [{{apiVersion: v1, kind: {kind}, name: {name}, uid: {uid}, controller: true}}]")
    });
    format!(
        "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, uid: u-{name}{owner}}}\n{}\n",
        rest.replace("TEMPLATE", TEMPLATE)
    )
}

/// A stored pod of a controller, in this phase.
fn child(name: &str, owner: [&str; 3], phase: &str) -> String {
    stored(
        "Pod",
        name,
        Some(owner),
        &format!("spec: {{containers: [{{name: a}}]}}\nstatus: {{phase: {phase}}}"),
    )
}

#[test]
fn the_pods_that_a_controller_lacks_are_planned_beside_those_that_it_has() {
    let set = stored(
        "StatefulSet",
        "db",
        None,
        "spec: {replicas: 3, ordinals: {start: 5}, selector: {}, serviceName: db, TEMPLATE}",
    );
    let owner = ["StatefulSet", "db", "u-db"];
    let manifest = read(&format!("{set}{}", child("db-5", owner, "Running")));
    assert_eq!(names(&manifest), ["default/db-6", "default/db-7", "default/db-5"]);
}

#[test]
fn a_replica_set_counts_its_living_pods_and_its_deployment_counts_nothing_twice() {
    let deployment = stored("Deployment", "web", None, "spec: {replicas: 4, selector: {}, TEMPLATE}");
    let set = stored(
        "ReplicaSet",
        "web-5d4",
        Some(["Deployment", "web", "u-web"]),
        "spec: {replicas: 4, selector: {}, TEMPLATE}",
    );
    let owner = ["ReplicaSet", "web-5d4", "u-web-5d4"];
    let pods = format!("{}{}", child("web-5d4-a", owner, "Running"), child("web-5d4-b", owner, "Failed"));
    for text in [format!("{deployment}{set}{pods}"), format!("{deployment}{pods}"), format!("{set}{pods}")] {
        let manifest = read(&text);
        let waiting =
            manifest.pods.iter().filter(|pod| matches!(pod.phase, PodPhase::Unschedulable { .. })).count();
        // The stored pod that runs has no node here, so it waits like the three that are missing.
        assert_eq!(waiting, 4, "{text}");
        assert!(
            manifest
                .notes
                .iter()
                .any(|note| note.ends_with("pods in the manifest: 1; pods that it lacks, planned too: 3")),
            "{:?}",
            manifest.notes
        );
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
        "---\n{{apiVersion: apps/v1, kind: StatefulSet, metadata: {{name: db}}, spec: {{replicas: 3, selector: {{}}, serviceName: db, {TEMPLATE}}}}}\n"
    );
    let pod = child("db-0", ["StatefulSet", "db", "u-db"], "Running");
    assert_eq!(names(&read(&format!("{set}{pod}"))), ["default/db-1", "default/db-2", "default/db-0"]);
    let web = format!(
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, spec: {{replicas: 3, selector: {{}}, {TEMPLATE}}}}}\n"
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
    let set = stored("ReplicaSet", "web", None, "spec: {replicas: 3, selector: {}, TEMPLATE}");
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
