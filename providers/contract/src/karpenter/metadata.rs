//! The conversion of the metadata of Karpenter's objects.

use std::collections::BTreeMap;

use poolwright_terms::keys::{DO_NOT_DISRUPT_ANNOTATION, KARPENTER_DO_NOT_DISRUPT_ANNOTATION};
use serde_json::Value;

use super::fields::{Fields, text};
use super::report::Report;
use poolwright_terms::domains::is_karpenters;

/// Fields that the API server sets.
const WRITTEN_BY_THE_CLUSTER: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The metadata of an object.
#[derive(Debug, Default)]
pub struct Metadata {
    /// The name; empty if it is missing.
    pub name: String,
    /// The labels, without Karpenter's own.
    pub labels: BTreeMap<String, String>,
    /// The annotations, without Karpenter's own.
    pub annotations: BTreeMap<String, String>,
}

/// Converts what all objects have beside their `spec`. Returns the metadata and the spec. `kind` says that the kind stays, and `remedy`
/// what to do if there is no spec, which is a problem.
pub fn convert_object<'a>(
    value: &'a Value,
    kind: &str,
    remedy: &str,
    report: &mut Report,
) -> Option<(Metadata, &'a Value)> {
    let mut root = Fields::of("", value, report)?;
    if root.take("apiVersion").is_some() {
        report.changed("apiVersion", "It is `poolwright.dev/v1alpha1`.");
    }
    if root.take("kind").is_some() {
        report.kept("kind", kind);
    }
    let metadata = convert_metadata(&mut root, report);
    if root.take_even_empty("status").is_some() {
        report.changed("status", "Left out: the cluster writes it.");
    }
    // Of an empty spec, the reader of the spec says what is missing in it.
    let spec = root.take_even_empty("spec");
    root.finish(report);
    if spec.is_none() {
        report.problem("spec", "missing", remedy);
    }
    Some((metadata, spec?))
}

/// Converts `metadata`. A missing name is a problem.
fn convert_metadata(root: &mut Fields<'_>, report: &mut Report) -> Metadata {
    let mut metadata = Metadata::default();
    let missing = |report: &mut Report| {
        report.problem("metadata.name", "missing", "give the object a name");
    };
    let Some(value) = root.take("metadata") else {
        missing(report);
        return metadata;
    };
    let Some(mut fields) = Fields::of("metadata", value, report) else { return metadata };
    match fields.take("name").map(|value| text("metadata.name".to_owned(), value, report)) {
        Some(Some(name)) if !name.is_empty() => {
            report.kept("metadata.name", "The name stays.");
            metadata.name = name;
        }
        // A name of another type has a problem.
        Some(None) => {}
        Some(Some(_)) | None => missing(report),
    }
    for (key, path, value) in fields.object("labels", report).map(Fields::rest).unwrap_or_default() {
        let Some(value) = text(path.clone(), value, report) else { continue };
        if is_karpenters(&key) {
            report.not_possible(
                path,
                "Left out: Poolwright does not read Karpenter's label. You need not do anything.",
            );
        } else {
            report.kept(path, "The label stays.");
            metadata.labels.insert(key, value);
        }
    }
    for (key, path, value) in fields.object("annotations", report).map(Fields::rest).unwrap_or_default() {
        let Some(value) = text(path.clone(), value, report) else { continue };
        annotation(key, path, value, &mut metadata, report);
    }
    for key in WRITTEN_BY_THE_CLUSTER {
        if fields.take_even_empty(key).is_some() {
            report.changed(fields.path(key), "Left out: the cluster writes it.");
        }
    }
    fields.finish(report);
    metadata
}

fn annotation(key: String, path: String, value: String, metadata: &mut Metadata, report: &mut Report) {
    if key == KARPENTER_DO_NOT_DISRUPT_ANNOTATION {
        let sentence = format!(
            "Left out: Karpenter ignores it on a NodePool, but `{DO_NOT_DISRUPT_ANNOTATION}` of Poolwright would keep every node of the \
             pool. Add that annotation if you want this."
        );
        report.not_possible(path, sentence);
    } else if key == "kubectl.kubernetes.io/last-applied-configuration"
        || key.starts_with("karpenter.sh/nodepool-hash")
    {
        report.changed(path, "Left out: a tool or the controller writes it.");
    } else if is_karpenters(&key) {
        report.not_possible(
            path,
            "Left out: Poolwright does not read Karpenter's annotation. Check whether you need its effect.",
        );
    } else {
        report.kept(path, "The annotation stays.");
        metadata.annotations.insert(key, value);
    }
}
