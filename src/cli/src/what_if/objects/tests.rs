//! Tests of changes of objects.

use super::*;

const BASE: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ml, uid: d}
spec: {replicas: 3}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: ml, uid: r, ownerReferences: [{kind: Deployment, name: web, uid: d}]}
spec: {replicas: 3}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1-a, namespace: ml, uid: a, ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r}]}
spec: {nodeName: n}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1-b, namespace: ml, uid: b, ownerReferences: [{kind: ReplicaSet, name: web-1, uid: r}]}
spec: {}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
";

fn source(text: &str) -> Vec<Source> {
    vec![Source { name: "f.yaml".to_owned(), text: text.to_owned() }]
}

fn base(namespace: Option<&str>) -> Files {
    Files::of(source(BASE), namespace).unwrap_or_else(|failure| panic!("{failure:?}"))
}

fn named(kind: &str, name: &str) -> Named {
    Named { kind: kind.to_owned(), name: name.to_owned() }
}

fn names(files: &Files) -> Vec<&str> {
    files.objects().map(name).collect()
}

fn told<T>(result: Result<T, Failure>) -> String {
    match result {
        Err(Failure::BadInput(told)) => told,
        _ => panic!("it is refused"),
    }
}

#[test]
fn an_object_goes_with_all_that_it_has_made() {
    let mut files = base(None);
    let told = files.remove(&named("deploy", "web")).expect("it is there");
    assert_eq!(told, "--remove: removed Deployment ml/web");
    assert_eq!(names(&files), ["train"]);
    let sources = files.sources();
    let left = manifest::objects("f.yaml", &sources[0].text).expect("it can be read");
    assert_eq!(left.iter().map(name).collect::<Vec<_>>(), ["train"]);
}

#[test]
fn files_that_do_not_change_keep_their_text() {
    assert_eq!(base(None).sources(), source(BASE));
}

#[test]
fn what_is_not_there_is_refused_with_what_may_be_meant() {
    let mut files = base(None);
    let refused = told(files.remove(&named("job", "trian")));
    assert_eq!(refused, "--remove job/trian: matches nothing; did you mean job/train?");
    let refused = told(files.remove(&named("sts", "web")));
    assert_eq!(refused, "--remove sts/web: matches nothing; there is Deployment ml/web");
    let refused = told(base(Some("shop")).remove(&named("deployment", "web")));
    assert!(refused.contains("matches nothing"), "{refused}");
    let refused = told(files.scale(&Replicas { of: named("jobs", "train"), number: 2 }));
    assert_eq!(
        refused,
        "--replicas jobs/train: Job default/train has no spec.replicas; give its changed manifest to -f"
    );
}

#[test]
fn what_a_missing_object_has_made_is_named_and_goes_when_the_object_is_added() {
    let mut files = base(None);
    files.all[0].objects.remove(0);
    let refused = told(files.remove(&named("deploy", "web")));
    let expected = "--remove deploy/web: matches nothing; the base has only what it has made, such as ReplicaSet ml/web-1";
    assert_eq!(refused, expected);
    let new = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ml}\n";
    let told_of = files.add("-f", source(new), None).expect("it can be read");
    assert_eq!(told_of, ["-f: replaced Deployment ml/web"]);
    assert_eq!(names(&files), ["train", "web"]);
}

#[test]
fn replicas_are_those_of_a_deployment_and_of_its_set_and_surplus_pods_go() {
    let mut files = base(None);
    let told = files.scale(&Replicas { of: named("deploy", "web"), number: 1 }).expect("it is there");
    assert_eq!(told, "--replicas: Deployment ml/web has 1 replica instead of 3");
    let replicas: Vec<_> = files.objects().filter_map(|one| one["spec"]["replicas"].as_u64()).collect();
    assert_eq!(replicas, [1, 1]);
    assert_eq!(names(&files), ["web", "web-1", "web-1-a", "train"], "the pod with a node stays");
}

#[test]
fn replicas_that_an_autoscaler_does_not_allow_are_told_as_such() {
    let autoscaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: ml}\n\
        spec: {minReplicas: 2, maxReplicas: 5, scaleTargetRef: {kind: Deployment, name: web}}\n";
    for (number, said) in [
        (
            20,
            "--replicas: Deployment ml/web has 20 replicas instead of 3, but HorizontalPodAutoscaler ml/web allows at most 5",
        ),
        (
            1,
            "--replicas: Deployment ml/web has 1 replica instead of 3, but HorizontalPodAutoscaler ml/web asks for at least 2",
        ),
        (0, "--replicas: Deployment ml/web has 0 replicas instead of 3"),
        (5, "--replicas: Deployment ml/web has 5 replicas instead of 3"),
    ] {
        let mut files = base(None);
        files.add("-f", source(autoscaler), None).expect("it is new");
        let told = files.scale(&Replicas { of: named("deploy", "web"), number }).expect("it is there");
        assert_eq!(told, said);
    }
}

#[test]
fn an_added_object_replaces_the_one_of_its_name() {
    let mut files = base(None);
    let new = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ml}\n---\n\
               apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n";
    let told_of = files.add("-f", source(new), None).expect("it can be read");
    assert_eq!(told_of, ["-f: replaced Deployment ml/web", "-f: added Pod default/p"]);
    assert_eq!(names(&files), ["train", "web", "p"]);
    assert!(told(files.add("-f", source("# nothing\n"), None)).contains("matches nothing"));
    let refused = told(files.add("--pool", source(new), Some(|kind| kind == "NodePool")));
    assert_eq!(refused, "--pool: Deployment ml/web is not a NodePool or a node class; give it to -f");
}

/// Returns files with a pool and its NodeClaim.
fn pools() -> Files {
    let text = "\
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gpu, uid: p}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodeClaim
metadata: {name: gpu-a, ownerReferences: [{kind: NodePool, name: gpu, uid: p}]}
";
    Files::of(source(text), None).unwrap_or_else(|failure| panic!("{failure:?}"))
}

#[test]
fn a_pool_that_is_replaced_keeps_its_claims_and_one_with_claims_is_not_removed() {
    let new = "apiVersion: poolwright.dev/v1alpha1\nkind: NodePool\nmetadata: {name: gpu}\n";
    for flag in ["-f", "--pool"] {
        let mut files = pools();
        let told_of = files.add(flag, source(new), None).expect("it can be read");
        assert_eq!(told_of, [format!("{flag}: replaced NodePool gpu")]);
        assert_eq!(names(&files), ["gpu-a", "gpu"]);
    }
    let mut files = pools();
    let refused = told(files.remove(&named("nodepool", "gpu")));
    assert!(
        refused.starts_with("--remove nodepool/gpu: it has nodes, such as that of NodeClaim gpu-a, "),
        "{refused}"
    );
    files.all[0].objects.remove(1);
    assert_eq!(files.remove(&named("np", "gpu")).expect("it has no claim"), "--remove: removed NodePool gpu");
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    let text = format!(
        "{BASE}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: ml}}\n---\n\
         apiVersion: v1\nkind: Node\nmetadata: {{name: node-a}}\n"
    );
    let mut files = Files::of(source(&text), Some("ml")).unwrap_or_else(|failure| panic!("{failure:?}"));
    let told = files.remove(&named("ns", "ml")).expect("it is there");
    assert_eq!(told, "--remove: removed Namespace ml with 5 objects in it");
    assert_eq!(
        names(&files),
        ["node-a"],
        "a node is in no namespace, and the job is in the one that -n names"
    );
}

#[test]
fn pods_that_have_ended_or_are_about_to_are_no_replicas() {
    let mut files = base(None);
    let ended = |name: &str, meta: &str, phase: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: ml, {meta}ownerReferences: \
             [{{kind: ReplicaSet, name: web-1, uid: r}}]}}\nspec: {{nodeName: n}}\nstatus: {{phase: {phase}}}\n"
        )
    };
    let more = [
        ended("w-a", "", "Failed"),
        ended("w-b", "", "Succeeded"),
        ended("w-c", "deletionTimestamp: '2026-03-01T12:00:00Z', ", "Running"),
    ];
    files.add("-f", source(&more.concat()), None).expect("it can be read");
    files.scale(&Replicas { of: named("deploy", "web"), number: 1 }).expect("it is there");
    assert_eq!(names(&files), ["web", "web-1", "web-1-a", "train", "w-a", "w-b", "w-c"]);
}
