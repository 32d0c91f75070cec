//! Fields that an object of a kind does not have: a misspelt field would leave its default in force in silence. They are looked for
//! in the objects that are not read into a type with all its fields.

mod known;

use poolwright_api::strict::UNKNOWN_FIELD;
use poolwright_api::{FieldProblem, key_segment, meant};
use poolwright_terms::GROUP;
use serde_json::Value;

use super::kinds::{KINDS, MAKERS};
use super::objects::{Object, group};
use super::refusals::Problems;
use known::Level;

/// The parts of an object. Some kinds of Kubernetes, such as ConfigMap, have others instead of a spec.
const PARTS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// The fields of metadata (`ObjectMeta` in Kubernetes), with one of old versions.
const METADATA: [&str; 16] = [
    "annotations",
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A field that is not listed at its level.
struct Unlisted {
    path: String,
    /// The remedy if it is a mistake. Otherwise, a newer version may have the field.
    mistake: Option<String>,
}

impl Unlisted {
    fn new(path: String, field: &str, known: &[&'static str]) -> Self {
        let meant = meant(field, known.iter().copied());
        Self { path, mistake: meant.map(|meant| format!("did you mean `{meant}`?")) }
    }
}

impl Object {
    /// Returns a problem for each field that is probably misspelt.
    pub(super) fn misspelt_fields(&self) -> Problems {
        let problem = |Unlisted { path, mistake }| Some(FieldProblem::new(path, UNKNOWN_FIELD, mistake?));
        self.unlisted_fields().into_iter().filter_map(problem).collect()
    }

    /// Returns a note for each other field that is not listed. A newer version of its operator may have it.
    pub(super) fn unread_fields(&self) -> Vec<String> {
        let unread = self.unlisted_fields().into_iter().filter(|unlisted| unlisted.mistake.is_none());
        unread.map(|unlisted| self.ignored(&unlisted.path)).collect()
    }

    /// Returns the note on a field that is not read.
    pub(super) fn ignored(&self, path: &str) -> String {
        format!("{}: {path}: this version does not know the field, and ignores it", self.name())
    }

    fn unlisted_fields(&self) -> Vec<Unlisted> {
        let (group, kind) = (group(&self.api_version), self.kind.as_str());
        let level = known::spec_of(group, kind);
        let is_typed = group == GROUP
            || KINDS
                .iter()
                .any(|(known, version, _)| *known == kind && super::objects::group(version) == group);
        if is_typed && level.is_none() {
            return Vec::new();
        }
        let mut found = self.unlisted_parts(level.is_some() || MAKERS.contains(&(group, kind)));
        if let Some(level) = level {
            add_unlisted("spec", &self.value["spec"], level, &mut found);
        }
        found
    }

    /// Returns the unlisted fields of the object itself and of its metadata. A kind that is not known may have others, such as the
    /// metadata of a file of `eksctl`. Of one that makes pods, only those count that are misspelt, and parts only if the right one is
    /// missing. Nothing is planned from the others.
    fn unlisted_parts(&self, has_usual_parts: bool) -> Vec<Unlisted> {
        let written = |value: &Value| {
            let fields = value.as_object().into_iter().flatten();
            // A null counts as absent.
            fields.filter(|(_, inner)| !inner.is_null()).map(|(field, _)| field.clone()).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        let counts = self.makes_pods() || self.value["metadata"].is_null();
        for field in written(&self.value).iter().filter(|field| !PARTS.contains(&field.as_str())) {
            let lacks = |part: &str| has_usual_parts || self.value[part].is_null();
            let parts: Vec<&'static str> = PARTS.into_iter().filter(|part| lacks(part)).collect();
            let unlisted =
                Unlisted::new(key_segment(field).trim_start_matches('.').to_owned(), field, &parts);
            if has_usual_parts || unlisted.mistake.is_some() && counts {
                found.push(unlisted);
            }
        }
        for field in written(&self.value["metadata"]) {
            if !METADATA.contains(&field.as_str()) {
                let path = format!("metadata{}", key_segment(&field));
                let Unlisted { path, mistake } = Unlisted::new(path, &field, &METADATA);
                if has_usual_parts || mistake.is_some() && self.makes_pods() {
                    // All versions have the same metadata.
                    let remedy = || "remove it, or check its spelling and place".to_owned();
                    found.push(Unlisted { path, mistake: Some(mistake.unwrap_or_else(remedy)) });
                }
            }
        }
        found
    }
}

/// Adds the fields of a map, or of each map of a list, that are not listed at their level.
fn add_unlisted(path: &str, value: &Value, level: &Level, found: &mut Vec<Unlisted>) {
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        add_unlisted(&format!("{path}[{at}]"), item, level, found);
    }
    for (field, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{path}{}", key_segment(field));
        // A null counts as absent.
        if !inner.is_null() && !level.has(field) {
            found.push(Unlisted::new(path, field, level.fields));
        } else if let Some(below) = level.below(field) {
            add_unlisted(&path, inner, below, found);
        }
    }
}
