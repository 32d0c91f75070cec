//! Objects as they are written and as an API server prints them, for tests of manifests.

use poolwright_intake::Manifest;
use poolwright_intake::manifest::parse;

/// The template of a pod with a GPU.
pub const TEMPLATE: &str =
    "template: {spec: {containers: [{image: x, name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}";

/// The template of a Job that an API server takes.
pub const JOB: &str = "template: {spec: {restartPolicy: Never, containers: [{image: x, name: a}]}}";

/// Reads a manifest without problems.
pub fn read(text: &str) -> Manifest {
    parse("train.yaml", text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Returns the problems of a manifest.
pub fn errors(text: &str) -> Vec<String> {
    let errors = parse("train.yaml", text).expect_err("the manifest has problems");
    errors.iter().map(ToString::to_string).collect()
}

/// Returns the names of all pods, in the order of the file.
pub fn names(manifest: &Manifest) -> Vec<String> {
    manifest.pods.iter().map(|pod| pod.key.to_string()).collect()
}

/// An object as an API server prints it, with a controller if `owner` is its kind, name and UID.
pub fn stored(kind: &str, name: &str, owner: Option<[&str; 3]>, rest: &str) -> String {
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
