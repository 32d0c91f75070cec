//! Objects with pod templates as last seen, and what admission adds to the pods of their templates.
//!
//! Pods of the cluster went through admission, but a DaemonSet has no pod on a node that does not exist yet, and a gang has none
//! before its controllers exist. A LimitRange may arrive after them, so they are converted again when it does.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_core::index::Change;
use poolwright_core::{DaemonSet, Gang, ObjectKey};
use poolwright_intake::{Admission, JobSet, LeaderWorkerSet, job_set, leader_worker_set};

use super::world::State;

/// Templates, and the objects that admission follows.
#[derive(Default)]
pub struct Templates {
    limit_ranges: BTreeMap<ObjectKey, k8s::LimitRange>,
    runtime_classes: BTreeMap<String, RuntimeClass>,
    priority_classes: BTreeMap<String, PriorityClass>,
    admission: Admission,
    daemonsets: BTreeMap<ObjectKey, apps::DaemonSet>,
    job_sets: BTreeMap<ObjectKey, JobSet>,
    leader_worker_sets: BTreeMap<ObjectKey, LeaderWorkerSet>,
}

fn key_of(meta: &ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

impl Templates {
    /// Keeps a DaemonSet.
    pub fn keep_daemonset(&mut self, mut set: apps::DaemonSet) {
        set.status = None;
        set.metadata.managed_fields = None;
        self.daemonsets.insert(key_of(&set.metadata), set);
    }

    /// Keeps a JobSet.
    pub fn keep_job_set(&mut self, set: JobSet) {
        self.job_sets.insert(key_of(set.meta()), set);
    }

    /// Keeps a LeaderWorkerSet.
    pub fn keep_leader_worker_set(&mut self, set: LeaderWorkerSet) {
        self.leader_worker_sets.insert(key_of(set.meta()), set);
    }

    /// Forgets an object of this kind.
    pub fn forget(&mut self, kind: &str, key: &ObjectKey) {
        match kind {
            "DaemonSet" => drop(self.daemonsets.remove(key)),
            "JobSet" => drop(self.job_sets.remove(key)),
            _ => drop(self.leader_worker_sets.remove(key)),
        }
    }

    /// Forgets all objects of this kind but these.
    pub fn retain<'a>(&mut self, kind: &str, keys: impl Iterator<Item = &'a ObjectKey>) {
        let keys: BTreeSet<&ObjectKey> = keys.collect();
        match kind {
            "DaemonSet" => self.daemonsets.retain(|key, _| keys.contains(key)),
            "JobSet" => self.job_sets.retain(|key, _| keys.contains(key)),
            _ => self.leader_worker_sets.retain(|key, _| keys.contains(key)),
        }
    }

    /// Returns a DaemonSet with what admission adds.
    pub fn daemonset(&self, read: DaemonSet) -> DaemonSet {
        let admitted = self.daemonsets.get(&read.key).map(|set| self.admission.daemonset(set));
        admitted.and_then(Result::ok).unwrap_or(read)
    }

    /// Returns a gang with what admission adds.
    pub fn gang(&self, read: Gang) -> Gang {
        let admitted = match read.kind.as_str() {
            "JobSet" => {
                self.job_sets.get(&read.key).map(|set| job_set(&set.clone().admitted(&self.admission)))
            }
            _ => self
                .leader_worker_sets
                .get(&read.key)
                .map(|set| leader_worker_set(&set.clone().admitted(&self.admission))),
        };
        admitted.and_then(Result::ok).unwrap_or(read)
    }
}

impl State {
    /// Adds or replaces a LimitRange.
    pub fn apply_limit_range(&mut self, range: k8s::LimitRange) -> Change {
        self.templates.limit_ranges.insert(key_of(&range.metadata), range);
        self.admit_again()
    }

    /// Removes a LimitRange.
    pub fn delete_limit_range(&mut self, key: &ObjectKey) -> Change {
        self.templates.limit_ranges.remove(key);
        self.admit_again()
    }

    /// Replaces all LimitRanges.
    pub fn reset_limit_ranges(&mut self, all: Vec<k8s::LimitRange>) -> Change {
        self.templates.limit_ranges = all.into_iter().map(|range| (key_of(&range.metadata), range)).collect();
        self.admit_again()
    }

    /// Adds or replaces a RuntimeClass.
    pub fn apply_runtime_class(&mut self, class: RuntimeClass) -> Change {
        self.templates.runtime_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
        self.admit_again()
    }

    /// Removes a RuntimeClass.
    pub fn delete_runtime_class(&mut self, name: &str) -> Change {
        self.templates.runtime_classes.remove(name);
        self.admit_again()
    }

    /// Replaces all RuntimeClasses.
    pub fn reset_runtime_classes(&mut self, all: Vec<RuntimeClass>) -> Change {
        let named = |class: RuntimeClass| (class.metadata.name.clone().unwrap_or_default(), class);
        self.templates.runtime_classes = all.into_iter().map(named).collect();
        self.admit_again()
    }

    /// Adds or replaces a PriorityClass.
    pub fn apply_priority_class(&mut self, class: PriorityClass) -> Change {
        self.templates.priority_classes.insert(class.metadata.name.clone().unwrap_or_default(), class);
        self.admit_again()
    }

    /// Removes a PriorityClass.
    pub fn delete_priority_class(&mut self, name: &str) -> Change {
        self.templates.priority_classes.remove(name);
        self.admit_again()
    }

    /// Replaces all PriorityClasses.
    pub fn reset_priority_classes(&mut self, all: Vec<PriorityClass>) -> Change {
        let named = |class: PriorityClass| (class.metadata.name.clone().unwrap_or_default(), class);
        self.templates.priority_classes = all.into_iter().map(named).collect();
        self.admit_again()
    }

    /// Converts all templates again, with what admission adds now.
    fn admit_again(&mut self) -> Change {
        let Templates { limit_ranges, runtime_classes, priority_classes, admission, .. } =
            &mut self.templates;
        *admission = Admission::default();
        for range in limit_ranges.values() {
            // The watch leaves out what cannot be read.
            drop(admission.add_limit_range(range));
        }
        for class in runtime_classes.values() {
            admission.add_runtime_class(class.clone());
        }
        for class in priority_classes.values() {
            admission.add_priority_class(class.clone());
        }
        let known = self.index.view();
        let sets: Vec<DaemonSet> = self
            .templates
            .daemonsets
            .values()
            .filter(|set| known.daemonsets.contains_key(&key_of(&set.metadata)))
            .filter_map(|set| self.templates.admission.daemonset(set).ok())
            .collect();
        let gangs: Vec<Gang> =
            known.gangs.values().map(|gang| self.templates.gang((**gang).clone())).collect();
        let sets = sets.into_iter().map(|set| self.index.apply_daemonset(set)).max();
        let gangs = gangs.into_iter().map(|gang| self.index.apply_gang(gang)).max();
        sets.max(gangs).unwrap_or(Change::None)
    }
}
