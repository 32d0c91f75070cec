//! Tests the admission of pods of manifests: they get the changes that an API server would make, and are refused as it would.

use poolwright_core::TolerationMatch;
use poolwright_intake::manifest::{Manifest, parse, parse_files};

const CLASS: &str = r"
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 250m, memory: 160Mi}}
scheduling: {nodeSelector: {runtime: kata}, tolerations: [{key: kata, operator: Exists}]}
";

fn deployment(more: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{selector: {{matchExpressions: [{{key: b, operator: DoesNotExist}}]}}, template: {{spec: \
         {{runtimeClassName: kata, {more} containers: [{{image: x, name: a, resources: {{requests: {{cpu: '1'}}}}}}]}}}}}}\n"
    )
}

fn read(text: &str) -> Manifest {
    parse("pods.yaml", text).expect("it is read")
}

#[test]
fn a_pod_gets_what_its_runtime_class_adds_wherever_the_class_stands() {
    for text in [format!("{CLASS}{}", deployment("")), format!("{}---{CLASS}", deployment(""))] {
        let manifest = read(&text);
        let spec = &manifest.pods[0].spec;
        assert_eq!((spec.requests.get("cpu"), spec.requests.get("memory")), (1250, 160 << 20));
        assert_eq!(spec.node_selector["runtime"], "kata");
        assert_eq!(spec.tolerations[0].matches, TolerationMatch::Exists);
        assert_eq!(manifest.notes, [""; 0]);
    }
}

#[test]
fn a_class_that_is_not_in_the_files_is_named() {
    let manifest = read(&deployment(""));
    assert_eq!(manifest.pods[0].spec.requests.get("cpu"), 1000);
    assert_eq!(
        manifest.notes,
        [
            "Deployment default/web: RuntimeClass `kata` is not among the manifests, so its overhead and its node selector are not counted; add it to the files"
        ]
    );
}

#[test]
fn a_pod_that_admission_would_reject_is_rejected_with_its_field() {
    let refused = |more: &str| {
        let errors = parse("pods.yaml", &format!("{CLASS}{}", deployment(more))).expect_err("it is refused");
        errors[0].to_string()
    };
    assert_eq!(
        refused("nodeSelector: {runtime: gvisor},"),
        "pods.yaml: Deployment default/web: spec.template.spec.nodeSelector.runtime: `gvisor` contradicts RuntimeClass `kata`, which needs nodes with `kata`; remove one of them"
    );
    assert!(
        refused("overhead: {cpu: 1},")
            .contains("spec.template.spec.overhead: it differs from that of RuntimeClass")
    );
}

/// A LimitRange of the namespace `default` with these entries.
fn limit_range(limits: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: limits}}\nspec: {{limits: [{limits}]}}\n"
    )
}

/// A pod whose only container has these resources.
fn pod(resources: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{image: x, name: a, resources: {{{resources}}}}}]}}\n"
    )
}

fn problems(text: &str) -> Vec<String> {
    parse("f", text).expect_err("it is refused").iter().map(ToString::to_string).collect()
}

fn cpu(text: &str) -> u64 {
    read(text).pods[0].spec.requests.get("cpu")
}

#[test]
fn containers_that_ask_for_nothing_get_the_defaults_of_their_namespace() {
    let defaults =
        limit_range("{type: Container, default: {cpu: '2'}, defaultRequest: {cpu: '1', memory: 1Gi}}");
    let manifest = read(&format!("{}{defaults}", pod("")));
    let requests = &manifest.pods[0].spec.requests;
    assert_eq!((requests.get("cpu"), requests.get("memory")), (1000, 1 << 30));
    assert_eq!(cpu(&format!("{defaults}{}", pod("requests: {cpu: 300m}"))), 300, "a request stays");
    assert_eq!(
        cpu(&format!("{defaults}{}", pod("limits: {cpu: 500m}"))),
        500,
        "a limit is the request before that"
    );
    let elsewhere = defaults.replace("name: limits", "name: limits, namespace: other");
    assert_eq!(cpu(&format!("{elsewhere}{}", pod(""))), 0, "another namespace");
}

#[test]
fn a_limit_range_without_defaults_takes_them_from_max_and_min() {
    assert_eq!(cpu(&format!("{}{}", limit_range("{type: Container, max: {cpu: '2'}}"), pod(""))), 2000);
    assert_eq!(cpu(&format!("{}{}", limit_range("{type: Container, min: {cpu: 100m}}"), pod(""))), 100);
    let both = limit_range("{type: Container, max: {cpu: '2'}, defaultRequest: {cpu: 50m}}");
    assert_eq!(cpu(&format!("{both}{}", pod(""))), 50);
}

#[test]
fn pods_of_daemonsets_and_workloads_get_the_defaults_too_whatever_file_has_them() {
    let defaults = limit_range("{type: Container, defaultRequest: {cpu: '1'}}");
    let daemonset = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\n\
        spec: {selector: {matchExpressions: [{key: b, operator: DoesNotExist}]}, template: {spec: {containers: [{image: x, name: a}], initContainers: [{image: x, name: b}]}}}\n";
    let manifest = parse_files([
        ("a.yaml", deployment("").replace(", resources: {requests: {cpu: '1'}}", "").as_str()),
        ("b.yaml", daemonset),
        ("c.yaml", &format!("{CLASS}{defaults}")),
    ])
    .expect("it is read");
    assert_eq!(manifest.daemonsets[0].spec.requests.get("cpu"), 1000);
    assert_eq!(manifest.pods[0].spec.requests.get("cpu"), 1250, "with the overhead of its runtime");
}

#[test]
fn a_limit_range_refuses_what_it_does_not_allow_and_says_how_to_go_on() {
    let all = |limits: &str, resources: &str| problems(&format!("{}{}", limit_range(limits), pod(resources)));
    assert_eq!(
        all("{type: Container, max: {cpu: '2'}}", "requests: {cpu: '3'}, limits: {cpu: '3'}"),
        [
            "f: Pod default/p: spec.containers[0].resources: LimitRange `limits` refuses a container with more than 2 of cpu; request less, or change the LimitRange"
        ]
    );
    let limit = all("{type: Pod, max: {cpu: '5'}}", "requests: {cpu: '4'}, limits: {cpu: '6'}");
    assert!(limit[0].contains("a pod with a limit of more than 5 of cpu; lower the limit"), "{limit:?}");
    assert!(
        all("{type: Pod, min: {memory: 1Gi}}", "requests: {memory: 1Mi}")[0]
            .contains("a pod with less than 1Gi of memory")
    );
    let ratio = all(
        "{type: Container, maxLimitRequestRatio: {cpu: '2'}}",
        "requests: {cpu: '1'}, limits: {cpu: 2500m}",
    );
    assert!(ratio[0].contains("a limit too large for its request of cpu"), "{ratio:?}");
    let defaulted = all("{type: Container, default: {cpu: '1'}}", "requests: {cpu: '3'}");
    assert!(
        defaulted[0].contains(
            "spec.containers[0].resources.requests.cpu: it is larger than the default limit of LimitRange `limits` (1); state a limit, or ask for less"
        ),
        "{defaulted:?}"
    );
}

#[test]
fn a_volume_claim_is_measured_by_the_limit_range_of_its_namespace() {
    let limits = limit_range("{type: PersistentVolumeClaim, max: {storage: 10Gi}}");
    let claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n\
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}\n";
    let problem = &problems(&format!("{limits}{claim}"))[0];
    assert!(problem.contains("a PersistentVolumeClaim with more than 10Gi of storage"), "{problem}");
    let limited = claim.replace("requests: {storage: 20Gi}", "limits: {storage: 5Gi}");
    let problem = &problems(&format!("{limits}{limited}"))[0];
    let told = "with no request of storage; write `resources.requests.storage`";
    assert!(problem.contains(told), "{problem}");
}

/// A PriorityClass.
fn class(name: &str, value: i32, default: bool) -> String {
    format!(
        "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}\nglobalDefault: {default}\n"
    )
}

/// A pod with these fields in its spec.
fn with(fields: &str) -> String {
    pod("").replace("spec: {", &format!("spec: {{{fields}, "))
}

#[test]
fn the_priority_of_a_pod_is_that_of_its_class_or_of_the_default_class() {
    let classes = format!("{}{}", class("high", 1000, false), class("usual", 10, true));
    let of = |pod: &str| read(&format!("{pod}{classes}")).pods[0].priority;
    assert_eq!(of(&with("priorityClassName: high")), 1000);
    assert_eq!(of(&with("priorityClassName: system-cluster-critical")), 2_000_000_000);
    assert_eq!(of(&pod("")), 10);
    assert_eq!(read(&pod("")).pods[0].priority, 0);
}

#[test]
fn a_priority_class_that_is_not_in_the_files_is_named_and_a_contradicting_priority_is_refused() {
    let manifest = read(&with("priorityClassName: high"));
    assert_eq!(
        manifest.notes,
        [
            "Pod default/p: PriorityClass `high` is not among the manifests, so the priority counts as 0; add it to the files"
        ]
    );
    let problem =
        &problems(&format!("{}{}", class("high", 1000, false), with("priorityClassName: high, priority: 5")))
            [0];
    assert!(
        problem.contains("spec.priority: an API server refuses `5`, because PriorityClass `high` has 1000"),
        "{problem}"
    );
}

#[test]
fn a_priority_without_a_class_is_refused_unless_a_server_stored_it() {
    let urgent = with("priority: 500");
    let told =
        "spec.priority: an API server refuses `500`, because the pod names no PriorityClass of this value";
    assert!(problems(&urgent)[0].contains(told), "{:?}", problems(&urgent));
    assert_eq!(read(&with("priority: 0")).pods[0].priority, 0);
    assert_eq!(read(&format!("{urgent}{}", class("usual", 500, true))).pods[0].priority, 500);
    assert_eq!(read(&urgent.replace("name: p}", "name: p, uid: u}")).pods[0].priority, 500);
}

#[test]
fn all_resources_that_an_api_server_refuses_are_named_at_once() {
    let found = problems(&format!(
        "{}{}",
        pod("limits: {nvidia.com/gpu: '0.5', cpu: '1', memory: -1Gi}, requests: {cpu: '2'}"),
        pod("requests: {nvidia.com/gpu: 1, amd.com/gpu: 2}, limits: {amd.com/gpu: 1}")
            .replace("name: p", "name: q")
    ));
    for (part, times) in [
        ("limits[\"nvidia.com/gpu\"]: `0.5` is not a whole number", 1),
        ("limits.memory: `-1Gi` is negative", 1),
        ("requests.cpu: it is larger than the limit", 1),
        ("nvidia.com/gpu has a request and no limit", 1),
        ("requests[\"amd.com/gpu\"]: it differs from the limit", 1),
    ] {
        assert_eq!(
            found.iter().filter(|problem| problem.contains(part)).count(),
            times,
            "{part}: {found:#?}"
        );
    }
}

#[test]
fn pods_that_an_api_server_has_stored_are_taken_as_they_are() {
    let stored = pod("").replace("name: p", "name: p, uid: u1, resourceVersion: '7'");
    let defaults = limit_range("{type: Container, defaultRequest: {cpu: '1'}}");
    assert_eq!(cpu(&format!("{defaults}{}{stored}", class("usual", 10, true))), 0);
}

#[test]
fn of_stored_objects_unknown_fields_are_noted_and_broken_ones_are_left_out() {
    let stored = |name: &str, spec: &str| {
        format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: u-{name}}}\nspec: {spec}\n")
    };
    let manifest = read(&format!(
        "{}{}",
        stored(
            "newer",
            "{future: {a: 1}, containers: [{image: x, name: a, resources: {requests: {cpu: '2'}}}]}"
        ),
        stored("broken", "{containers: []}"),
    ));
    assert_eq!((manifest.pods.len(), manifest.pods[0].spec.requests.get("cpu")), (1, 2000));
    assert_eq!(
        manifest.notes,
        [
            "Pod default/broken: spec.containers: a pod needs at least one container; the object is left out",
            "Pod default/newer: spec.future: this version does not know the field, and ignores it",
        ]
    );
    let written =
        stored("newer", "{future: {a: 1}, containers: [{image: x, name: a}]}").replace(", uid: u-newer", "");
    assert!(problems(&written)[0].contains("spec.future: unknown field"));
}

#[test]
fn pods_that_a_quota_does_not_allow_are_not_planned_and_their_workload_says_so() {
    let quota = |fields: &str| {
        format!("---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: team}}\n{fields}\n")
    };
    let ten =
        deployment("").replace("runtimeClassName: kata,", "").replace("selector", "replicas: 10, selector");
    let manifest = read(&format!(
        "{ten}{}",
        quota("spec: {hard: {requests.cpu: '4', limits.ephemeral-storage: 1Gi, pods: '8'}}")
    ));
    assert_eq!(manifest.pods.len(), 4);
    assert_eq!(
        manifest.notes,
        [
            "Deployment default/web: 6 of its 10 pods cannot be created and are not planned, because ResourceQuota `team` allows no more requests.cpu: it limits them to 4, 4 are in use, and this asks for 1; raise the quota to plan them",
        ]
    );
    let [refused] = &manifest.refused[..] else { panic!("{:?}", manifest.refused) };
    assert_eq!(
        (refused.object.as_str(), refused.namespace.as_str(), refused.pods),
        ("Deployment default/web", "default", 6)
    );
    let used = quota("spec: {hard: {pods: '8'}}\nstatus: {hard: {pods: '8'}, used: {pods: '7'}}");
    assert_eq!(read(&format!("{used}{ten}")).pods.len(), 1);
    let stored = pod("requests: {cpu: '9'}").replace("name: p", "name: p, uid: u");
    assert_eq!(read(&format!("{stored}{}", quota("spec: {hard: {requests.cpu: '4'}}"))).pods.len(), 1);
}

#[test]
fn a_quota_with_scopes_counts_only_pods_that_meet_all_of_them() {
    let pods_under = |quota: &str, fields: &str| {
        let quota =
            format!("---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: some}}\nspec: {quota}\n");
        let classes =
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 9\n";
        let spec = format!(
            "{{restartPolicy: Never, containers: [{{image: x, name: a, resources: {{requests: {{cpu: '1'}}}}}}]{fields}}}"
        );
        // Only the pods of a Job may have a deadline.
        let set = format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: w}}\nspec: {{parallelism: 3, completions: 3, template: {{spec: {spec}}}}}\n"
        );
        let manifest = read(&format!("{classes}{quota}{set}"));
        assert_eq!(manifest.notes.len(), usize::from(manifest.pods.len() < 3), "{:?}", manifest.notes);
        manifest.pods.len()
    };
    let scope = |scope: &str| format!("{{hard: {{pods: '1'}}, scopes: [{scope}]}}");
    assert_eq!(pods_under(&scope("BestEffort"), ""), 3);
    assert_eq!(pods_under(&scope("NotBestEffort"), ""), 1);
    assert_eq!(pods_under(&scope("Terminating"), ""), 3);
    assert_eq!(pods_under(&scope("Terminating"), ", activeDeadlineSeconds: 60"), 1);
    assert_eq!(pods_under(&scope("NotBestEffort, Terminating"), ""), 3);
    let class = |operator: &str| {
        let values = if operator.ends_with("In") { ", values: [high]" } else { "" };
        format!(
            "{{hard: {{pods: '1'}}, scopeSelector: {{matchExpressions: [{{scopeName: PriorityClass, operator: {operator}{values}}}]}}}}"
        )
    };
    let high = ", priorityClassName: high";
    assert_eq!((pods_under(&class("In"), high), pods_under(&class("In"), "")), (1, 3));
    assert_eq!((pods_under(&class("NotIn"), high), pods_under(&class("NotIn"), "")), (3, 1));
    assert_eq!((pods_under(&class("Exists"), high), pods_under(&class("DoesNotExist"), "")), (1, 1));
    let near = |namespaces: &str| {
        format!(
            ", affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: kubernetes.io/hostname{namespaces}}}]}}}}"
        )
    };
    let crossing = scope("CrossNamespacePodAffinity");
    assert_eq!(
        (pods_under(&crossing, &near(", namespaces: [other]")), pods_under(&crossing, &near(""))),
        (1, 3)
    );
    assert_eq!(pods_under(&crossing, &near(", namespaces: [default]")), 1, "its own, and named all the same");
}

#[test]
fn a_quota_of_limits_counts_limits_and_not_requests() {
    let quota = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {limits.cpu: '5', limits.memory: 9Gi}}\n";
    let set = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: 4, selector: {matchLabels: {a: b}}, \
               template: {metadata: {labels: {a: b}}, spec: {containers: [{image: x, name: a, resources: {requests: {cpu: '1'}, limits: {cpu: '2', memory: 1Gi}}}]}}}\n";
    let manifest = read(&format!("{quota}{set}"));
    assert_eq!(manifest.pods.len(), 2);
    assert!(
        manifest.notes[0].ends_with(
            "because ResourceQuota `team` allows no more limits.cpu: it limits them to 5, 4 are in use, and this asks for 2; raise the quota to plan them"
        ),
        "{:?}",
        manifest.notes
    );
}

#[test]
fn a_limit_range_of_pods_counts_init_containers_sidecars_and_zero_as_an_api_server_does() {
    let limits = limit_range("{type: Pod, max: {cpu: '4'}}");
    let with_init = |init: &str| {
        let spec =
            "spec: {containers: [{image: x, name: a, resources: {requests: {cpu: '1'}, limits: {cpu: '1'}}}]";
        format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\n{spec}, initContainers: [{init}]}}\n")
    };
    let container = |name: &str, cpu: u64, more: &str| {
        format!(
            "{{image: x, name: {name}, resources: {{requests: {{cpu: '{cpu}'}}, limits: {{cpu: '{cpu}'}}}}{more}}}"
        )
    };
    let sidecar = container("s", 1, ", restartPolicy: Always");
    let fits = format!("{}, {sidecar}", container("i", 4, ""));
    assert_eq!(read(&format!("{limits}{}", with_init(&fits))).pods.len(), 1);
    let too_much = format!("{sidecar}, {}", container("i", 4, ""));
    assert!(
        problems(&format!("{limits}{}", with_init(&too_much)))[0].contains("a pod with more than 4 of cpu")
    );
    let whole = pod("").replace("spec: {", "spec: {resources: {requests: {cpu: '2'}, limits: {cpu: '2'}}, ");
    assert_eq!(read(&format!("{limits}{whole}")).pods.len(), 1);

    let gpus = limit_range("{type: Container, max: {nvidia.com/gpu: 2}}");
    assert_eq!(read(&format!("{gpus}{}", pod("limits: {nvidia.com/gpu: 0}"))).pods.len(), 1);
    let none = limit_range("{type: Container, max: {nvidia.com/gpu: 0}}");
    assert!(
        problems(&format!("{none}{}", pod("limits: {nvidia.com/gpu: 1}")))[0]
            .contains("more than 0 of nvidia.com/gpu")
    );
    let large = limit_range("{type: Container, maxLimitRequestRatio: {memory: 9E}}");
    assert_eq!(read(&format!("{large}{}", pod("limits: {memory: 9E}"))).pods.len(), 1);
}

/// Returns the problems of a pod with this spec, beside other objects.
fn refused(others: &str, spec: &str) -> Vec<String> {
    let text = format!("{others}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {{{spec}}}\n");
    let errors = parse("pods.yaml", &text).expect_err("it is refused");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_preemption_policy_that_is_not_that_of_the_class_is_refused() {
    let class = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 1\n";
    let pod = |policy: &str| {
        format!("priorityClassName: low, preemptionPolicy: {policy}, containers: [{{image: x, name: a}}]")
    };
    let found = refused(class, &pod("Never"));
    assert!(found[0].contains("spec.preemptionPolicy: an API server refuses `Never`"), "{found:?}");
    let polite = format!("{class}preemptionPolicy: Never\n");
    assert!(refused(&polite, &pod("PreemptLowerPriority"))[0].contains("has Never"));
}

#[test]
fn the_resources_of_a_whole_pod_are_judged_as_an_api_server_does() {
    let found = refused(
        "",
        "resources: {requests: {cpu: '2', nvidia.com/gpu: '1'}, limits: {cpu: '1'}}, containers: [{image: x, name: a}]",
    );
    assert!(found.iter().any(|one| one.contains("spec.resources.requests.cpu: it is larger than the limit")));
    assert!(found.iter().any(|one| one.contains("a pod cannot state nvidia.com/gpu")), "{found:?}");
    let found = refused(
        "",
        "resources: {requests: {cpu: '2'}, limits: {cpu: '3'}}, containers: [{image: x, name: a, resources: {requests: {cpu: 2500m}, limits: {cpu: '4'}}}]",
    );
    assert!(
        found[0].contains(
            "spec.resources.requests.cpu: it must be at least the sum of the containers' requests, which is 2500m"
        ),
        "{found:?}"
    );
    assert!(found[1].contains("it is larger than the limit of the whole pod"), "{found:?}");
}

#[test]
fn an_overhead_that_is_written_otherwise_but_equal_is_not_refused() {
    let pod = deployment("overhead: {cpu: '0.25', memory: 163840Ki},");
    assert_eq!(read(&format!("{CLASS}{pod}")).pods[0].spec.requests.get("cpu"), 1250);
}

#[test]
fn a_bad_amount_of_a_limit_range_is_named_where_it_is_written() {
    let errors = parse("pods.yaml", &limit_range("{type: Container, max: {cpu: lots}}")).expect_err("bad");
    assert!(errors[0].to_string().contains("spec.limits[0].max.cpu"), "{errors:?}");
}

#[test]
fn the_claim_of_an_ephemeral_volume_is_judged_by_the_limit_range() {
    let range = limit_range("{type: PersistentVolumeClaim, max: {storage: 10Gi}}");
    let claim =
        "volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}}";
    let found = refused(
        &range,
        &format!("containers: [{{image: x, name: a}}], volumes: [{{name: v, ephemeral: {{{claim}}}}}]"),
    );
    assert!(found[0].contains("spec.volumes[0].ephemeral.volumeClaimTemplate.spec"), "{found:?}");
}

const QUOTA: &str = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {requests.cpu: '4', pods: '3'}}\n";

#[test]
fn a_quota_refuses_pods_that_do_not_state_what_it_limits() {
    let found = refused(QUOTA, "containers: [{image: x, name: a, resources: {requests: {memory: 1Gi}}}]");
    let expected = "spec.containers[0].resources.requests.cpu: missing, and ResourceQuota `team` refuses pods without it";
    assert!(found[0].contains(expected), "{found:?}");
    let range = limit_range("{type: Container, defaultRequest: {cpu: 500m}}");
    let pod =
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: x, name: a}]}\n";
    assert_eq!(read(&format!("{QUOTA}{range}{pod}")).pods.len(), 1, "the default counts as stated");
}

#[test]
fn a_quota_without_a_status_counts_the_stored_pods_of_its_namespace() {
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, uid: u}\nspec: {nodeName: n, containers: [{image: x, name: a, resources: {requests: {cpu: '3'}}}]}\nstatus: {phase: Running}\n";
    let job = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: new}\nspec: {parallelism: 2, completions: 2, template: {spec: {restartPolicy: Never, containers: [{image: x, name: a, resources: {requests: {cpu: '1'}}}]}}}\n";
    let manifest = read(&format!("{job}{pod}{QUOTA}"));
    assert_eq!(manifest.pods.len(), 2, "the stored one, and one of the Job: {:?}", manifest.notes);
}

#[test]
fn all_problems_of_a_pod_are_told_at_once() {
    let found = refused(
        QUOTA,
        "typo: 1, priorityClassName: system-node-critical, priority: 3, containers: [{image: x, name: a, resources: {limits: {nvidia.com/gpu: '0.5'}}}]",
    );
    for part in [
        "spec.typo: unknown field",
        "spec.priority: an API server refuses",
        "is not a whole number",
        "requests.cpu: missing",
    ] {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:?}");
    }
}

#[test]
fn a_namespace_adds_its_node_selector_and_default_tolerations() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, annotations: {scheduler.alpha.kubernetes.io/node-selector: 'pool=gpu', scheduler.alpha.kubernetes.io/defaultTolerations: '[{\"key\": \"gpu\", \"operator\": \"Exists\"}]'}}\n";
    let pod =
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{image: x, name: a}]}\n";
    let manifest = read(&format!("{pod}---\n{namespace}"));
    assert_eq!(manifest.pods[0].spec.node_selector["pool"], "gpu");
    assert_eq!(manifest.pods[0].spec.tolerations.len(), 1);
    assert!(
        manifest.notes[0].contains("its new pods get the node selector pool=gpu and default tolerations")
    );
    let set = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{image: x, name: a}]}}}\n";
    let of_files = read(&format!("{set}---\n{namespace}")).daemonsets;
    let mut admission = poolwright_intake::Admission::default();
    admission.add_namespace(&serde_saphyr::from_str(namespace).unwrap()).unwrap();
    let set = serde_saphyr::from_str(set.trim_start_matches("---\n")).unwrap();
    assert_eq!(
        admission.daemonset(&set).unwrap(),
        of_files[0],
        "one of a cluster counts as one of files does"
    );
    assert_eq!(of_files[0].spec.node_selector["pool"], "gpu");
    let found = refused(namespace, "nodeSelector: {pool: cpu}, containers: [{image: x, name: a}]");
    assert!(found[0].contains("contradicts the node selector of the namespace"), "{found:?}");
}

#[test]
fn pods_that_the_api_server_has_refused_are_counted_and_the_note_repeats_its_reason() {
    let set = |status: &str| {
        read(&format!(
            "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {{name: web, namespace: ml, uid: u}}\n\
             spec: {{replicas: 3, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{image: x, name: a}}]}}}}}}\n\
             status: {status}\n"
        ))
    };
    let manifest = set(
        "{replicas: 1, conditions: [{type: ReplicaFailure, status: 'True', message: 'exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1'}]}",
    );
    assert_eq!(manifest.pods, []);
    assert_eq!(
        manifest.notes,
        [
            "ReplicaSet ml/web: the API server refuses more of its pods (ReplicaFailure: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1)"
        ]
    );
    assert_eq!(manifest.refused.iter().map(|refused| refused.pods).sum::<usize>(), 2);
    assert_eq!(set("{replicas: 1}").refused, []);
}
