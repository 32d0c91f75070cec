//! The objects of manifests, before they are read.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_api::FieldProblem;
use poolwright_terms::{GROUP, one_line};
use serde_json::Value;

use super::WrittenObject;
use super::kinds::{KINDS, is_cluster_scoped};
use super::rollouts::{NOT_PLANNED, is_of};
use crate::error::{IntakeError, OfObject, object_name};

/// The annotation of a Deployment and its ReplicaSets with their number in its history.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// One object of a manifest.
#[derive(Clone)]
pub(super) struct Object {
    pub file: String,
    /// Its place in the file, for messages about objects without a name.
    pub place: String,
    pub kind: String,
    pub api_version: String,
    pub value: Value,
    /// The stored object of the same name, if this one is written and counts instead.
    pub replaced: Option<Value>,
    /// Whether it has no name, beside objects that a server printed. It then counts as one that a server has printed, too.
    pub is_rest: bool,
}

pub(super) fn meta<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

/// Returns whether an API server has stored an object.
pub(super) fn is_stored(object: &Value) -> bool {
    meta(object, "uid").or(meta(object, "resourceVersion")).is_some()
}

/// Returns whether an object has a name, or at least the beginning of one.
pub(super) fn has_name(object: &Value) -> bool {
    meta(object, "name").or_else(|| meta(object, "generateName")).is_some()
}

pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Object {
    /// Whether it is a node class of some cloud. The cloud's crate reads it. Any other unknown kind of our group counts as one, so
    /// that the caller, who knows the clouds, reports it.
    pub(super) fn is_node_class(&self) -> bool {
        group(&self.api_version) == GROUP && KINDS.iter().all(|(kind, ..)| *kind != self.kind)
    }

    /// Returns it as written, if it is of our own group and no API server has stored it.
    pub(super) fn written(&self) -> Option<WrittenObject> {
        let is_written = group(&self.api_version) == GROUP && !self.is_stored();
        let object =
            || WrittenObject { file: self.file.clone(), name: self.name(), object: self.value.clone() };
        is_written.then(object)
    }

    pub(super) fn name(&self) -> String {
        let namespace = meta(&self.value, "namespace").or(self.is_namespaced().then_some("default"));
        match meta(&self.value, "name").or_else(|| meta(&self.value, "generateName")) {
            Some(name) => object_name(&self.kind, namespace, Some(name)),
            None => one_line(&format!("{} ({})", self.kind, self.place)).into_owned(),
        }
    }

    /// Returns whether it has a namespace. Unknown kinds count as such.
    pub(super) fn is_namespaced(&self) -> bool {
        !is_cluster_scoped(&self.api_version, &self.kind) && !self.is_node_class()
    }

    /// Returns whether an API server has stored the object: it then has a UID and a version, or it is broken and has lost them.
    pub(super) fn is_stored(&self) -> bool {
        self.is_rest || is_stored(&self.value)
    }

    /// Returns whether no API server has an object of this name, as far as the files show.
    pub(super) fn is_new(&self) -> bool {
        !self.is_stored() && self.replaced.is_none()
    }

    /// Returns whether it is a pod that waits for no node: it has one, or it has ended.
    pub(super) fn is_placed_pod(&self) -> bool {
        let has_node = self.value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let has_ended = matches!(self.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        self.kind == "Pod" && (has_node || has_ended)
    }

    /// Returns whether it is a pod that is being deleted before it has had a node.
    pub(super) fn is_deleted_without_node(&self) -> bool {
        self.kind == "Pod" && meta(&self.value, "deletionTimestamp").is_some() && !self.is_placed_pod()
    }

    /// Its namespace, or `default`.
    pub(super) fn namespace(&self) -> &str {
        meta(&self.value, "namespace").unwrap_or("default")
    }

    /// Returns whether a server printed it with the same content as another.
    fn equals(&self, other: &Self) -> bool {
        let bare = |object: &Self| {
            let mut value = object.value.clone();
            if let Some(meta) = value["metadata"].as_object_mut() {
                meta.remove("managedFields");
            }
            value
        };
        bare(self) == bare(other)
    }

    fn version(&self) -> Option<u64> {
        meta(&self.value, "resourceVersion")?.parse().ok()
    }
}

/// Names the objects that only have the beginning of a name as an API server would: no two alike.
pub(super) fn number_generated(objects: &mut [Object]) {
    let of =
        |object: &Object, name: &str| (object.kind.clone(), object.namespace().to_owned(), name.to_owned());
    let names = objects.iter().filter_map(|object| Some(of(object, meta(&object.value, "name")?)));
    let mut names: BTreeSet<_> = names.collect();
    // The numbers up to these are taken.
    let mut last: BTreeMap<_, u64> = BTreeMap::new();
    for object in objects {
        if meta(&object.value, "name").is_some() {
            continue;
        }
        let Some(begin) = meta(&object.value, "generateName").map(str::to_owned) else { continue };
        let number = last.entry(of(object, &begin)).or_default();
        let name = loop {
            *number += 1;
            // The first keeps the beginning as its name.
            let name = if *number == 1 { begin.clone() } else { format!("{begin}{number}") };
            if names.insert(of(object, &name)) {
                break name;
            }
        };
        if name != begin {
            object.value["metadata"]["name"] = name.into();
        }
    }
}

/// Removes objects that are there a second time. Returns notes, and a problem for each object that its author wrote twice. Of two
/// versions that a server printed, the newer counts. A written object counts instead of the stored one, as if it were applied.
pub(super) fn once(objects: &mut Vec<Object>) -> (Vec<String>, Vec<IntakeError>) {
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut kept: Vec<Object> = Vec::new();
    let (mut equal, mut notes, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    let mut twice: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for object in std::mem::take(objects) {
        let has_name = has_name(&object.value);
        let key = (group(&object.api_version).to_owned(), object.name());
        let Some(first) = seen.get(&key).copied().filter(|_| has_name && object.is_read()) else {
            seen.insert(key, kept.len());
            kept.push(object);
            continue;
        };
        let known = &mut kept[first];
        if known.is_stored() != object.is_stored() {
            // The API server refuses most changes of a pod.
            let takes_stored = object.kind == "Pod";
            let which = if takes_stored { "stored" } else { "written" };
            // The stored template has the defaults of a server besides. Templates of others, such as NodePools, make no pods.
            let (stored, written) = if known.is_stored() { (&*known, &object) } else { (&object, &*known) };
            let is_changed = object.is_controller()
                && !is_of(&stored.value["spec"]["template"], &written.value["spec"]["template"]);
            let stays =
                if is_changed && !takes_stored { format!(", and {NOT_PLANNED}") } else { String::new() };
            notes.push(format!("{}: it is there stored and written; the {which} one counts{stays}", key.1));
            let other =
                if object.is_stored() == takes_stored { std::mem::replace(known, object) } else { object };
            if !takes_stored {
                known.replaced = Some(other.value.clone());
                replaced.push(other);
            }
        } else if !object.is_stored() {
            twice.entry(key.1).or_insert_with(|| [known.file.clone()].into()).insert(object.file);
        } else if known.equals(&object) {
            equal.push(key.1);
        } else {
            let is_newer = object.version() > known.version();
            let which = if is_newer { "the newer" } else { "the first" };
            notes.push(format!("{}: it is there more than once, with differences; {which} counts", key.1));
            if is_newer {
                *known = object;
            }
        }
    }
    without_controllers_of(&replaced, &mut kept);
    *objects = kept;
    if let Some((first, more)) = equal.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        notes.push(format!("{first}{more}: the same is there more than once, and counts once"));
    }
    let problem = || FieldProblem::new("", "it is there more than once", "remove one or rename it");
    let of = |(name, files): (String, BTreeSet<String>)| {
        let file = files.into_iter().collect::<Vec<_>>().join(" and ");
        IntakeError { file: Some(file), ..problem().of(name) }
    };
    (notes, twice.into_iter().map(of).collect())
}

/// Removes the controllers between replaced objects and their pods, such as ReplicaSets. Their numbers are those of before.
fn without_controllers_of(replaced: &[Object], objects: &mut Vec<Object>) {
    if replaced.is_empty() {
        return;
    }
    let mut by_owner: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| object.kind != "Pod") {
        let references = object.value["metadata"]["ownerReferences"].as_array();
        let controllers = references.into_iter().flatten().filter(|one| one["controller"] == true);
        for uid in controllers.filter_map(|one| one["uid"].as_str()) {
            by_owner.entry(uid).or_default().push(at);
        }
    }
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut open: Vec<&str> = replaced.iter().filter_map(|owner| meta(&owner.value, "uid")).collect();
    while let Some(uid) = open.pop() {
        for at in by_owner.get(uid).into_iter().flatten() {
            if gone.insert(*at) {
                open.extend(meta(&objects[*at].value, "uid"));
            }
        }
    }
    let mut at = 0;
    objects.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}
