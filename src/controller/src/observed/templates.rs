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
use poolwright_core::{DaemonSet, Gang, Namespace, ObjectKey};
use poolwright_intake::{Admission, JobSet, LeaderWorkerSet, job_set, leader_worker_set};

use super::world::State;

/// Templates, and the objects that admission follows.
#[derive(Default)]
pub struct Templates {
    limit_ranges: BTreeMap<ObjectKey, k8s::LimitRange>,
    runtime_classes: BTreeMap<String, RuntimeClass>,
    priority_classes: BTreeMap<String, PriorityClass>,
    /// The namespaces that add something to their pods.
    namespaces: BTreeMap<String, k8s::Namespace>,
    /// Whether `namespaces` has changed since `admission` was made.
    is_outdated: bool,
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

    /// Keeps what a namespace adds to its pods.
    pub fn keep_namespace(&mut self, namespace: k8s::Namespace) {
        let adds = matches!(Admission::default().add_namespace(&namespace), Ok(Some(_)));
        let ObjectMeta { name, annotations, .. } = namespace.metadata;
        let name = name.unwrap_or_default();
        let metadata = ObjectMeta { name: Some(name.clone()), annotations, ..ObjectMeta::default() };
        let kept = adds.then(|| k8s::Namespace { metadata, ..k8s::Namespace::default() });
        self.is_outdated |= self.namespaces.get(&name) != kept.as_ref();
        match kept {
            Some(kept) => drop(self.namespaces.insert(name, kept)),
            None => drop(self.namespaces.remove(&name)),
        }
    }

    /// Keeps only the namespaces for which `stays` is true.
    fn retain_namespaces(&mut self, stays: impl Fn(&str) -> bool) {
        let before = self.namespaces.len();
        self.namespaces.retain(|name, _| stays(name));
        self.is_outdated |= self.namespaces.len() < before;
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

    /// Adds or replaces a namespace.
    pub fn apply_namespace(&mut self, namespace: Namespace) -> Change {
        self.index.apply_namespace(namespace).max(self.admit_if_outdated())
    }

    /// Removes a namespace.
    pub fn delete_namespace(&mut self, name: &str) -> Change {
        self.templates.retain_namespaces(|kept| kept != name);
        self.index.delete_namespace(name).max(self.admit_if_outdated())
    }

    /// Replaces all namespaces.
    pub fn reset_namespaces(&mut self, all: Vec<Namespace>) -> Change {
        let names: BTreeSet<&str> = all.iter().map(|namespace| namespace.name.as_str()).collect();
        self.templates.retain_namespaces(|kept| names.contains(kept));
        self.index.reset_namespaces(all).max(self.admit_if_outdated())
    }

    fn admit_if_outdated(&mut self) -> Change {
        if self.templates.is_outdated { self.admit_again() } else { Change::None }
    }

    /// Converts all templates again, with what admission adds now.
    fn admit_again(&mut self) -> Change {
        let Templates {
            limit_ranges,
            runtime_classes,
            priority_classes,
            namespaces,
            admission,
            is_outdated,
            ..
        } = &mut self.templates;
        *is_outdated = false;
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
        for namespace in namespaces.values() {
            // The watch tells what cannot be read.
            drop(admission.add_namespace(namespace));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use poolwright_core::batch::BatchWindow;
    use poolwright_core::setbacks::Setbacks;
    use serde_json::json;

    use super::*;
    use crate::edge::clock::testing::TestClock;
    use crate::observed::kinds::{DaemonSets, Key, Namespaces};
    use crate::observed::watch::Kind;
    use crate::observed::world::World;

    #[test]
    fn a_daemonset_counts_with_what_its_namespace_adds_whichever_arrives_first() {
        let set = json!({"metadata": {"name": "agent", "namespace": "ops"}, "spec": {"selector": {},
            "template": {"spec": {"containers": [{"name": "agent", "image": "agent"}]}}}});
        let set: apps::DaemonSet = serde_json::from_value(set).unwrap();
        let namespace = |selector: &str| -> k8s::Namespace {
            let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": selector});
            serde_json::from_value(json!({"metadata": {"name": "ops", "annotations": annotations}})).unwrap()
        };
        let selector = |world: &World| {
            world.view(|all| {
                let set = &all.daemonsets[&ObjectKey::new("ops", "agent")];
                set.spec.node_selector.get("pool").cloned().unwrap_or_default()
            })
        };
        let add_set = |world: &World| {
            world.change(|state| {
                DaemonSets::keep(state, set.clone());
                DaemonSets::apply(state, DaemonSets::read(&set).unwrap())
            });
        };
        let add_namespace = |world: &World, adds: &str| {
            let namespace = namespace(adds);
            let model = Namespaces::read(&namespace).unwrap();
            world.change(|state| {
                Namespaces::keep(state, namespace);
                Namespaces::apply(state, model)
            });
        };
        let world = || World::new(BatchWindow::default(), Setbacks::default(), Arc::new(TestClock::new()));
        let (first, second) = (world(), world());
        add_set(&first);
        assert_eq!(selector(&first), "");
        add_namespace(&first, "pool=gpu");
        add_namespace(&second, "pool=gpu");
        add_set(&second);
        assert_eq!((selector(&first), selector(&second)), ("gpu".to_owned(), "gpu".to_owned()));
        add_namespace(&first, "pool=cpu");
        assert_eq!(selector(&first), "cpu", "the annotation has changed");
        add_namespace(&first, "");
        assert_eq!(selector(&first), "", "the annotation is empty");
        let key = Key { namespace: None, name: "ops", gone: None };
        second.change(|state| Namespaces::delete(state, key));
        assert_eq!(selector(&second), "", "the namespace is gone");
        add_namespace(&second, "pool=gpu");
        second.change(|state| Namespaces::reset(state, Vec::new(), Timestamp::UNIX_EPOCH));
        assert_eq!(selector(&second), "", "a new list lacks the namespace");
    }

    #[test]
    fn an_annotation_of_a_namespace_that_cannot_be_read_is_named() {
        let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": "gpu"});
        let namespace = json!({"metadata": {"name": "ops", "annotations": annotations}});
        let told = Namespaces::ignored(&serde_json::from_value(namespace).unwrap()).unwrap();
        assert!(told.contains("`gpu` has no `=`; write labels as"), "{told}");
    }
}
