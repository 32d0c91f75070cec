//! The objects of a manifest by their controller, before they are read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::objects::{Object, group, meta};
use super::scale_down::{SETS, controller, is_labelled_by, is_named_after, kind_of_sets};

/// The label of a pod of a JobSet with the name of the JobSet.
const JOB_SET: &str = "jobset.sigs.k8s.io/jobset-name";

/// Namespace, kind and name.
type Key<'a> = (&'a str, &'a str, &'a str);

/// Objects by their controller.
pub(super) struct Family<'a> {
    /// The objects of the manifest, then those of a cluster besides.
    pub all: Vec<&'a Object>,
    /// How many are of the manifest.
    pub here: usize,
    by_uid: BTreeMap<&'a str, Vec<usize>>,
    by_name: BTreeMap<Key<'a>, Vec<usize>>,
    /// The controllers between others and their pods.
    sets: BTreeSet<Key<'a>>,
    /// The pods of Jobs, by namespace and the name of their JobSet.
    by_job_set: BTreeMap<(&'a str, &'a str), Vec<usize>>,
}

impl<'a> Family<'a> {
    /// Reads the controllers of all objects. `beside` are the pods of a cluster that are not in the manifest.
    pub fn of(objects: &'a [Object], beside: &'a [Object]) -> Self {
        let mut family = Self {
            all: objects.iter().chain(beside).collect(),
            here: objects.len(),
            by_uid: BTreeMap::new(),
            by_name: BTreeMap::new(),
            sets: BTreeSet::new(),
            by_job_set: BTreeMap::new(),
        };
        for (at, object) in objects.iter().chain(beside).enumerate() {
            if SETS.contains(&object.kind.as_str()) {
                family.sets.insert(key_of(object));
            }
            let Some(owner) = controller(object) else { continue };
            let text = |field: &str| owner[field].as_str().unwrap_or_default();
            let (uid, kind) = (text("uid"), text("kind"));
            if !uid.is_empty() {
                family.by_uid.entry(uid).or_default().push(at);
            }
            family.by_name.entry((object.namespace(), kind, text("name"))).or_default().push(at);
            let job_set = object.value["metadata"]["labels"][JOB_SET].as_str();
            if let Some(job_set) = job_set.filter(|_| kind == "Job") {
                family.by_job_set.entry((object.namespace(), job_set)).or_default().push(at);
            }
        }
        family
    }

    /// Returns what an object controls: by its UID, and where either side has none, by its name.
    pub fn children(&self, at: usize) -> Vec<usize> {
        let object = self.all[at];
        let uid = meta(&object.value, "uid");
        let by_uid = uid.and_then(|uid| self.by_uid.get(uid)).into_iter().flatten();
        let by_name = self.by_name.get(&key_of(object)).into_iter().flatten();
        let own_group = group(&object.api_version);
        let by_name = by_name.filter(|child| {
            let owner = controller(self.all[**child]).unwrap_or(&Value::Null);
            let of = group(owner["apiVersion"].as_str().unwrap_or_default());
            let has_none = uid.is_none() || owner["uid"].as_str().is_none_or(str::is_empty);
            has_none && (of.is_empty() || of == own_group)
        });
        by_uid.chain(by_name).copied().collect()
    }

    /// Returns the pods that an object makes through sets that are not among the objects, by the name of the set.
    pub fn of_absent_sets(&self, at: usize) -> BTreeMap<&'a str, Vec<usize>> {
        let object = self.all[at];
        let (namespace, _, own) = key_of(object);
        let of = group(&object.api_version);
        let Some(set) = kind_of_sets(of, &object.kind) else { return BTreeMap::new() };
        let alike = self.by_name.range((namespace, set, own)..);
        let alike = alike
            .take_while(|((of, kind, name), _)| (*of, *kind) == (namespace, set) && name.starts_with(own));
        let absent = alike.filter(|(key, _)| is_named_after(own, set, key.2) && !self.sets.contains(*key));
        let own = absent.filter_map(|(key, pods)| {
            let is_own = |at: &usize| is_labelled_by(&object.kind, self.all[*at]);
            let pods: Vec<usize> = pods.iter().copied().filter(is_own).collect();
            (!pods.is_empty()).then_some((key.2, pods))
        });
        own.collect()
    }

    /// Returns everything that an object controls, at any depth. A Job of a JobSet may be missing; its pods show the JobSet.
    pub fn below(&self, at: usize) -> Vec<usize> {
        let mut open = self.children(at);
        let (namespace, kind, name) = key_of(self.all[at]);
        if ["JobSet", "TrainJob"].contains(&kind) {
            open.extend(self.by_job_set.get(&(namespace, name)).into_iter().flatten());
        }
        let mut found = Vec::new();
        let mut known = BTreeSet::from([at]);
        while let Some(child) = open.pop() {
            if known.insert(child) {
                found.push(child);
                open.extend(self.children(child));
            }
        }
        found
    }
}

fn key_of(object: &Object) -> Key<'_> {
    (object.namespace(), object.kind.as_str(), meta(&object.value, "name").unwrap_or_default())
}
