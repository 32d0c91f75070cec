//! Tests manifests and the messages about their problems.

use poolwright_core::PodPhase;
use poolwright_intake::Manifest;

use crate::stored_kit::{JOB, TEMPLATE, errors, names, read};

#[test]
fn workloads_become_the_pods_that_their_controllers_would_make() {
    let manifest = read(&format!(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve}}
spec: {{replicas: 2, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: data}}
spec: {{selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, serviceName: db, {TEMPLATE}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec: {{parallelism: 8, completions: 3, {JOB}}}
---
apiVersion: v1
kind: Pod
metadata: {{generateName: try-}}
spec: {{containers: [{{image: x, name: a}}]}}
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
fn pods_with_the_beginning_of_a_name_get_the_numbers_that_no_other_pod_has() {
    let pod = |meta: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{{meta}}}, spec: {{containers: [{{image: x, name: a}}]}}}}\n---\n"
        )
    };
    let manifest = read(
        &["name: try-3", "generateName: try-", "generateName: try-", "generateName: try-"].map(pod).concat(),
    );
    assert_eq!(names(&manifest), ["default/try-3", "default/try-", "default/try-2", "default/try-4"]);
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
            {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}, "spec": {"containers": [{"image": "x", "name": "a"}]}}]},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"containers": [{"image": "x", "name": "a"}]}}
        ]}"#,
    );
    assert_eq!(names(&manifest), ["default/a", "default/b"]);
}

#[test]
fn a_list_without_items_is_told_as_such() {
    let told = |rest: &str| errors(&format!("{{apiVersion: v1, kind: List{rest}}}")).remove(0);
    assert_eq!(told(""), "train.yaml: document 1: items: missing; add the objects of the list, or remove it");
    assert!(told(", items: {}").contains("items: it is no list"));
}

#[test]
fn a_workload_without_pods_is_noted_and_other_kinds_are_ignored() {
    let manifest = read(&format!(
        r"
{{apiVersion: batch/v1, kind: CronJob, metadata: {{name: nightly}}, spec: {{schedule: '@daily', jobTemplate: {{spec: {{{JOB}}}}}}}}}
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
            "Job default/later: it is suspended and makes no pods now",
        ]
    );
}

#[test]
fn a_duration_that_cannot_be_read_is_noted_with_its_object_wherever_the_template_is() {
    let manifest = read(
        r#"
{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {poolwright.dev/ran-for: "yes"}},
  spec: {containers: [{image: x, name: a}]}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: b}, spec: {template: {
  metadata: {annotations: {poolwright.dev/expected-duration: "2 hours"}}, spec: {restartPolicy: Never, containers: [{image: x, name: a}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: c}, spec: {template: {
  metadata: {annotations: {poolwright.dev/expected-duration: "2h"}}, spec: {restartPolicy: Never, containers: [{image: x, name: a}]}}}}
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
    assert!(note("karpenter.sh/v1", "NodePol").ends_with("did you mean NodePool?"));
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
spec: {selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, template: {spec: {contianers: [{name: a}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec: {containers: [{image: x, name: a, resources: {requests: {memory: 10GB}}}]}
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
fn a_template_of_helm_is_to_be_rendered_first() {
    let begin = "apiVersion: v1\nkind: Pod\n";
    let remedy = "render it with `helm template`, and give the result to -f";
    for rest in [
        "metadata:\n  name: {{ .Values.name }}\n",
        "metadata: {name: \"{{ .Release.Name }}\"}\n{{- if .Values.x }}\nspec: {}\n{{- end }}\n",
        "metadata: {name: \"{{ .Release.Name }}\"}\nspec: {containers: [{image: x, name: a}]}\n",
    ] {
        let found = errors(&format!("{begin}{rest}"));
        assert!(found.len() == 1 && found[0].ends_with(remedy), "{found:?}");
    }
    // Argo has double braces as well.
    let found = errors(&format!("{begin}metadata: {{name: a\nspec: {{image: \"{{{{workflow.name}}}}\"}}\n"));
    assert!(!found[0].contains("helm"), "{found:?}");
}

#[test]
fn an_absurd_number_of_pods_is_refused_before_they_are_made() {
    let found = errors(&format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{replicas: 2000000000, selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, {TEMPLATE}}}}}"
    ));
    assert!(found[0].contains("spec.replicas: this asks for 2000000000 pods"), "{found:?}");
}

#[test]
fn a_manifest_of_ten_thousand_documents_is_read() {
    let pods: Vec<String> = (0..10_000)
        .map(|at| {
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p{at}}}\nspec: {{containers: [{{image: x, name: a}}]}}\n"
            )
        })
        .collect();
    assert_eq!(read(&pods.join("---\n")).pods.len(), 10_000);
}

#[test]
fn a_number_with_a_leading_zero_is_octal_as_kubectl_reads_it() {
    let manifest = read(
        "apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  terminationGracePeriodSeconds: 010
  containers: [{name: a, image: x, resources: {requests: {cpu: 010m}}}]
  volumes: [{name: s, secret: {secretName: s, defaultMode: 0400}}, {name: t, secret: {secretName: t, defaultMode: 0o644}}]
",
    );
    assert_eq!(manifest.pods.len(), 1, "{:?}", manifest.notes);
    assert_eq!(manifest.pods[0].ending.grace.as_secs(), 8);
}

#[test]
fn an_object_that_changes_no_plan_is_not_refused_for_its_name_or_its_fields() {
    let manifest = read(
        "apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: My_User}
---
apiVersion: image.openshift.io/v1
kind: ImageStreamTag
metadata: {name: 'app:latest'}
---
apiVersion: backstage.io/v1alpha1
kind: Component
metadata: {name: a, id: '3', label: b}
state: {}
",
    );
    assert_eq!(manifest.pods, []);
}
