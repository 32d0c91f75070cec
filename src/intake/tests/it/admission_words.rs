//! Tests what admission adds to pods with resources of their own, and what it says of LimitRanges and
//! ResourceQuotas that it cannot follow.

use poolwright_catalog::ResourceName;
use poolwright_core::{RequestOrigin, RequestPart};
use poolwright_intake::manifest::{Manifest, parse};

fn read(text: &str) -> Manifest {
    parse("f", text).expect("it is read")
}

fn problems(text: &str) -> Vec<String> {
    parse("f", text).expect_err("it is refused").iter().map(ToString::to_string).collect()
}

/// An object of the core group with this metadata beside its name, and this spec.
fn object(kind: &str, name: &str, meta: &str, spec: &str) -> String {
    format!("---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}{meta}}}\nspec: {{{spec}}}\n")
}

fn limit_range(entry: &str) -> String {
    object("LimitRange", "a", "", &format!("limits: [{{type: Container, {entry}}}]"))
}

fn pod(spec: &str) -> String {
    object("Pod", "p", "", spec)
}

#[test]
fn defaults_of_containers_do_not_lower_what_a_pod_gets_as_a_whole() {
    let range = limit_range("defaultRequest: {cpu: 500m, memory: 256Mi}");
    let whole = "resources: {limits: {cpu: '7', memory: 9Gi}}";
    let manifest = read(&format!("{range}{}", pod(&format!("{whole}, containers: [{{image: x, name: c}}]"))));
    let requests = &manifest.pods[0].spec.requests;
    assert_eq!((requests.get("cpu"), requests.get("memory")), (7000, 9 << 30));
    let asking = "containers: [{image: x, name: c, resources: {requests: {cpu: '2'}}}]";
    let manifest = read(&format!("{range}{}", pod(&format!("{whole}, {asking}"))));
    let requests = &manifest.pods[0].spec.requests;
    assert_eq!((requests.get("cpu"), requests.get("memory")), (2000, 9 << 30), "what the container asks for");
    // As in an API server, the default of a second container then makes the sum too large.
    let two = asking.replace("}]", "}, {image: x, name: d}]");
    let found = problems(&format!("{range}{}", pod(&format!("{whole}, {two}"))));
    assert!(found[0].contains("spec.resources.requests.cpu: it must be at least the sum"), "{found:?}");
}

#[test]
fn a_pod_that_asks_for_less_than_its_containers_and_sidecars_is_refused() {
    let sidecar =
        "initContainers: [{image: x, name: s, restartPolicy: Always, resources: {requests: {cpu: '1'}}}]";
    let container = "containers: [{image: x, name: c, resources: {requests: {cpu: 1500m}}}]";
    let of = |cpu: &str| pod(&format!("resources: {{requests: {{cpu: {cpu}}}}}, {sidecar}, {container}"));
    assert_eq!(read(&of("2500m")).pods[0].spec.requests.get("cpu"), 2500);
    assert_eq!(
        problems(&of("2400m")),
        [
            "f: Pod default/p: spec.resources.requests.cpu: it must be at least the sum of the containers' requests, which is 2500m; raise it, or lower the requests of the containers"
        ]
    );
}

#[test]
fn a_limit_that_nobody_wrote_into_the_pod_is_named_with_its_limit_range() {
    let asking = pod("containers: [{image: x, name: c, resources: {requests: {cpu: '6'}}}]");
    assert_eq!(
        problems(&format!("{}{asking}", limit_range("default: {cpu: '2'}"))),
        [
            "f: Pod default/p: spec.containers[0].resources.requests.cpu: it is larger than the default limit of LimitRange `a` (2); state a limit, or ask for less"
        ]
    );
    let stating =
        pod("containers: [{image: x, name: c, resources: {requests: {cpu: '6'}, limits: {cpu: '1'}}}]");
    let found = problems(&format!("{}{stating}", limit_range("default: {cpu: '2'}")));
    assert!(found[0].contains("it is larger than the limit; raise the limit"), "{found:?}");
}

#[test]
fn a_limit_range_that_contradicts_itself_is_refused_with_the_field() {
    for (entry, field) in [
        ("min: {cpu: '3'}, max: {cpu: '2'}", "min.cpu: `3` is above `max` (2)"),
        ("default: {cpu: '3'}, max: {cpu: '2'}", "default.cpu: `3` is above `max` (2)"),
        ("default: {cpu: '1'}, min: {cpu: '2'}", "default.cpu: `1` is below `min` (2)"),
        ("defaultRequest: {cpu: '3'}, max: {cpu: '2'}", "defaultRequest.cpu: `3` is above `max` (2)"),
        ("defaultRequest: {cpu: '3'}, default: {cpu: '2'}", "defaultRequest.cpu: `3` is above `default` (2)"),
        ("defaultRequest: {cpu: 500m}, min: {cpu: '1'}", "defaultRequest.cpu: `500m` is below `min` (1)"),
    ] {
        let found = problems(&limit_range(entry));
        let expected =
            format!("f: LimitRange default/a: spec.limits[0].{field}, which an API server refuses; ");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{entry}: {found:?}");
    }
    let stored = limit_range("min: {cpu: '3'}, max: {cpu: '2'}").replace("name: a", "name: a, uid: u");
    assert_eq!(read(&stored).notes, [""; 0], "the API server knows best");
    let fine = "min: {cpu: 100m}, defaultRequest: {cpu: '1'}, default: {cpu: '2'}, max: {cpu: '2'}";
    assert_eq!(read(&limit_range(fine)).notes, [""; 0]);
}

#[test]
fn an_amount_of_a_quota_is_named_where_it_is_written() {
    let quota = object("ResourceQuota", "team", "", "hard: {requests.cpu: lots}");
    let found = problems(&quota);
    assert!(found[0].contains("ResourceQuota default/team: spec.hard[\"requests.cpu\"]: "), "{found:?}");
    let counted = format!("{quota}status: {{hard: {{requests.cpu: many}}}}\n");
    assert!(problems(&counted)[0].contains("status.hard[\"requests.cpu\"]: "));
}

#[test]
fn a_scope_that_does_not_exist_is_refused_with_the_one_that_is_meant() {
    let quota = |meta: &str, scopes: &str| object("ResourceQuota", "team", meta, scopes);
    assert_eq!(
        problems(&quota("", "hard: {pods: '1'}, scopes: [Terminatin]")),
        [
            "f: ResourceQuota default/team: spec.scopes[0]: `Terminatin` is not a scope of a quota; did you mean `Terminating`?"
        ]
    );
    let selector = "scopeSelector: {matchExpressions: [{scopeName: Prio, operator: Exists}]}";
    let found = problems(&quota("", selector));
    assert!(found[0].contains("matchExpressions[0].scopeName: `Prio` is not a scope"), "{found:?}");
    assert!(found[0].contains("use one of Terminating, NotTerminating, "), "{found:?}");
    assert_eq!(read(&quota("", "scopes: [VolumeAttributesClass]")).pods.len(), 0, "it exists");
    assert_eq!(read(&quota(", uid: u", "scopes: [Newer]")).pods.len(), 0, "the API server knows best");
}

#[test]
fn an_amount_that_a_limit_range_has_written_is_named_with_it_wherever_it_is_judged() {
    let range = limit_range("default: {cpu: '1', memory: 1Gi}, defaultRequest: {cpu: 500m, memory: 512Mi}");
    let asking = pod("resources: {requests: {cpu: 200m, memory: 256Mi}}, containers: [{image: x, name: c}]");
    let found = problems(&format!("{range}{asking}"));
    assert!(
        found[0].contains("which is 500m with the default of LimitRange `a` (500m); raise it"),
        "{found:?}"
    );
    assert!(found[1].contains("which is 512Mi with the default of LimitRange `a` (512Mi)"), "{found:?}");
    let limited = pod("resources: {limits: {cpu: 800m, memory: 2Gi}}, containers: [{image: x, name: c}]");
    let found = problems(&format!("{range}{limited}"));
    let expected = "spec.containers[0].resources.limits.cpu: the default limit of LimitRange `a` (1) is larger than the limit of the whole pod";
    assert!(found.iter().any(|one| one.contains(expected)), "{found:?}");
    let gpus = limit_range("defaultRequest: {nvidia.com/gpu: 1}");
    let found = problems(&format!("{gpus}{}", pod("containers: [{image: x, name: c}]")));
    let expected = "nvidia.com/gpu has the default request of LimitRange `a` (1) and no limit";
    assert!(found[0].contains(expected), "{found:?}");
}

#[test]
fn an_overhead_is_the_problem_of_the_object_that_states_it() {
    let class = |overhead: &str| {
        format!(
            "---\napiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {{name: kata}}\nhandler: kata\n{overhead}\n"
        )
    };
    let using = pod("runtimeClassName: kata, containers: [{image: x, name: c}]");
    let found = problems(&format!("{}{using}", class("overhead: {podFixed: {cpu: '-1'}}")));
    assert!(
        found.len() == 1 && found[0].starts_with("f: RuntimeClass kata: overhead.podFixed.cpu: "),
        "{found:?}"
    );
    let stating =
        |class: &str| pod(&format!("{class}overhead: {{cpu: 100m}}, containers: [{{image: x, name: c}}]"));
    let found = problems(&stating(""));
    assert!(
        found[0].contains("spec.overhead: an API server refuses it without a RuntimeClass; "),
        "{found:?}"
    );
    let found = problems(&format!("{}{}", class(""), stating("runtimeClassName: kata, ")));
    assert!(found[0].contains("spec.overhead: RuntimeClass `kata` has no overhead"), "{found:?}");
}

#[test]
fn entries_that_an_api_server_refuses_in_a_limit_range_are_told() {
    for (entries, expected) in [
        (
            "{type: Containers, max: {cpu: 1}}",
            "type: `Containers` is not a type of a LimitRange; did you mean `Container`?",
        ),
        ("{max: {cpu: 1}}", "type: missing; use one of Container, Pod, PersistentVolumeClaim"),
        ("{type: Pod, default: {cpu: 1}}", "default: an API server refuses it for the type Pod"),
        (
            "{type: Container, maxLimitRequestRatio: {cpu: 500m}}",
            "maxLimitRequestRatio.cpu: `500m` is less than 1",
        ),
        (
            "{type: Container, min: {cpu: 1}, max: {cpu: 2}, maxLimitRequestRatio: {cpu: 3}}",
            "maxLimitRequestRatio.cpu: `3` is more than `max` divided by `min`",
        ),
        (
            "{type: Container, default: {nvidia.com/gpu: 2}, defaultRequest: {nvidia.com/gpu: 1}}",
            "defaultRequest[\"nvidia.com/gpu\"]: it differs from `default` (2)",
        ),
    ] {
        let found = problems(&object("LimitRange", "a", "", &format!("limits: [{entries}]")));
        let expected = format!("f: LimitRange default/a: spec.limits[0].{expected}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{expected}: {found:?}");
    }
    let claims = object("LimitRange", "a", "", "limits: [{type: PersistentVolumeClaim, max: {cpu: 1}}]");
    assert!(problems(&claims)[0].contains("spec.limits[0]: neither min nor max has storage"));
    let twice =
        object("LimitRange", "a", "", "limits: [{type: Pod, max: {cpu: 1}}, {type: Pod, min: {cpu: 1}}]");
    assert!(problems(&twice)[0].contains("spec.limits[1].type: another entry has the type Pod"));
    let stored = object("LimitRange", "a", ", uid: u", "limits: [{type: Containers, max: {cpu: 1}}]");
    assert_eq!(read(&stored).notes, [""; 0], "the API server knows best");
}

#[test]
fn a_cluster_has_only_one_default_priority_class() {
    let class = |name: &str, meta: &str| {
        format!(
            "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: {name}{meta}}}\nvalue: 1\nglobalDefault: true\n"
        )
    };
    let expected = |second: &str, first: &str| {
        format!(
            "f: PriorityClass {second}: globalDefault: PriorityClass `{first}` is the default already, and a cluster has only one; remove it from one of them"
        )
    };
    assert_eq!(problems(&format!("{}{}", class("a", ""), class("b", ""))), [expected("b", "a")]);
    let stored = class("b", ", uid: u");
    assert_eq!(
        problems(&format!("{}{stored}", class("a", ""))),
        [expected("a", "b")],
        "what is there is first"
    );
    assert_eq!(read(&format!("{stored}{}", class("c", ", uid: v"))).notes, [""; 0]);
}

#[test]
fn a_request_that_a_limit_range_adds_is_known_with_its_name() {
    let range = limit_range("max: {cpu: '2'}, min: {cpu: 100m}");
    let origins = |spec: &str| read(&format!("{range}{}", pod(spec))).pods[0].request_origins.clone();
    let added = RequestPart::Default { limit_range: "a".to_owned(), amount: 4000 };
    let cpu = RequestOrigin { resource: ResourceName::new(ResourceName::CPU), parts: vec![added] };
    assert_eq!(origins("containers: [{image: x, name: c}, {image: x, name: d}]"), [cpu]);
    let stated = "containers: [{image: x, name: c, resources: {requests: {cpu: '1'}}}]";
    assert!(origins(stated).is_empty(), "the pod says it itself");
    let deployment = format!(
        "{range}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: w}}\nspec: {{selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{image: x, name: c}}]}}}}}}\n"
    );
    let manifest = read(&deployment);
    let part = RequestPart::Default { limit_range: "a".to_owned(), amount: 2000 };
    assert_eq!(manifest.pods[0].request_origins[0].parts, [part]);
}

#[test]
fn memory_without_a_unit_is_told_with_what_was_probably_meant() {
    let notes = |memory: &str| {
        read(&pod(&format!(
            "containers: [{{image: x, name: c, resources: {{requests: {{memory: {memory}}}}}}}]"
        )))
        .notes
    };
    let at = "Pod default/p: spec.containers[0].resources.requests.memory: ";
    assert_eq!(notes("16"), [format!("{at}`16` is 16 bytes; did you mean 16Gi or 16Mi?")]);
    let milli = format!("{at}`400m` is 1 byte, because `m` stands for thousandths; did you mean 400Mi?");
    assert_eq!(notes("400m"), [milli]);
    assert_eq!(notes("512M"), [""; 0]);
}
