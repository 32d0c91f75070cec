//! Objects as JSON, written and as an API server prints them, for tests of manifests.

use poolwright_core::{GroupRole, PodGroup};
use poolwright_intake::Manifest;
use poolwright_intake::manifest::parse;
use serde_json::{Value, json};

fn text(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

/// Reads objects without problems.
pub fn read(objects: &[Value]) -> Manifest {
    parse("all.json", &text(objects)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Returns the problems of an object.
pub fn refused(object: &Value) -> Vec<String> {
    let errors = parse("all.json", &text(std::slice::from_ref(object))).expect_err("it has problems");
    errors.iter().map(ToString::to_string).collect()
}

/// Returns the names of all pods, sorted.
pub fn names(manifest: &Manifest) -> Vec<String> {
    let mut names: Vec<String> = manifest.pods.iter().map(|pod| pod.key.name().into_owned()).collect();
    names.sort();
    names
}

/// Returns each gang: what it stands for, how many start together, and how many pods it has.
pub fn gangs(manifest: &Manifest) -> Vec<(String, u32, usize)> {
    let of = |group: &PodGroup| {
        let pods = manifest.pods.iter().filter(|pod| pod.group_key().as_ref() == Some(&group.key));
        (group.name(), group.min_count.expect("a gang"), pods.count())
    };
    manifest.pod_groups.iter().map(of).collect()
}

/// Returns what each gang needs of its roles.
pub fn needs(manifest: &Manifest) -> Vec<Vec<String>> {
    let needed = |group: &PodGroup| group.roles.iter().map(GroupRole::needed).collect::<Vec<String>>();
    manifest.pod_groups.iter().map(needed).collect()
}

/// Returns whether a manifest has a note.
pub fn has(manifest: &Manifest, note: &str) -> bool {
    manifest.notes.iter().any(|one| one == note)
}

/// The template of a Deployment.
pub fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "x", "name": "a"}]}})
}

/// The template of a Job.
pub fn ending() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"image": "x", "name": "a"}]}})
}

/// An object as its author writes it.
pub fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// A Deployment, or another kind of `apps` with replicas.
pub fn apps(kind: &str, name: &str, replicas: u32) -> Value {
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": replicas, "selector": selector, "template": template()});
    object("apps/v1", kind, name, spec)
}

/// The object as an API server prints it, with a controller if `owner` is its version, kind and name.
pub fn stored(mut object: Value, owner: Option<[&str; 3]>) -> Value {
    let uid = |kind: &str, name: &str| format!("u-{kind}-{name}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    object["metadata"]["uid"] = json!(uid(&text(&object["kind"]), &text(&object["metadata"]["name"])));
    if let Some([version, kind, name]) = owner {
        object["metadata"]["ownerReferences"] = json!([
            {"apiVersion": version, "kind": kind, "name": name, "uid": uid(kind, name), "controller": true}]);
    }
    object
}

/// A stored pod of a controller.
pub fn pod(name: &str, owner: [&str; 3]) -> Value {
    stored(object("v1", "Pod", name, json!({"containers": [{"image": "x", "name": "a"}]})), Some(owner))
}

/// The Deployment `web`, as the controller of a ReplicaSet.
pub const OF_WEB: Option<[&str; 3]> = Some(["apps/v1", "Deployment", "web"]);
/// A ReplicaSet of this Deployment, as the controller of a pod.
pub const OF_SET: [&str; 3] = ["apps/v1", "ReplicaSet", "web-5d4"];
