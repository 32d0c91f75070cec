//! Gangs: the pods of one object that start together are played as the pods of a PodGroup.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::{GangScheduler, GroupRole, ObjectKey, Pod, PodGroup};
use serde_json::{Value, json};

use crate::replay::work::Names;

/// The `apiVersion` of the PodGroups that the simulated scheduler knows.
const API_VERSION: &str = "scheduling.k8s.io/v1alpha2";

/// Returns whether an object is a PodGroup of the kube-scheduler. Other schedulers have kinds of the same name.
pub(super) fn is_pod_group(object: &Value) -> bool {
    object["kind"] == "PodGroup" && object["apiVersion"] == API_VERSION
}

/// The PodGroups of gangs.
#[derive(Default)]
pub(super) struct Gangs {
    /// The name of each PodGroup, by namespace and name of its gang. A PodGroup of the files keeps its name.
    pub groups: BTreeMap<(String, String), String>,
    /// The objects that the files do not have.
    pub objects: Vec<Value>,
}

impl Gangs {
    /// Makes the PodGroups of gangs, with a note for each, and for those of other schedulers that the pods name and the files lack.
    pub fn of(groups: &[PodGroup], pods: &[Pod], notes: &mut Vec<String>) -> Self {
        let (mut gangs, mut names) = (Self::default(), Names::default());
        let of_other = |key: &ObjectKey| GangScheduler::of(&key.name).is_some();
        let mut lacking: BTreeSet<ObjectKey> =
            pods.iter().filter_map(Pod::group_key).filter(of_other).collect();
        for group in groups {
            lacking.remove(&group.key);
        }
        let told =
            |key: &ObjectKey| format!("PodGroup {key}: the files lack it, so its pods start here one by one");
        notes.extend(lacking.iter().map(told));
        for group in groups {
            let key = (group.key.namespace.clone(), group.key.name.clone());
            let Some(gang) = &group.stands_for else {
                gangs.groups.insert(key, group.key.name.clone());
                continue;
            };
            let (namespace, name) = (&group.key.namespace, names.take(&group.key.namespace, gang));
            let least = group.min_count.unwrap_or(1);
            if group.held.is_some() {
                notes.push(format!("{gang}: a queue holds its pods, but they start here all the same"));
            }
            let unmodelled = group.unmodelled.iter().map(|rule| &rule.field);
            notes.extend(unmodelled.map(|field| format!("{gang}: `{field}` does not count here")));
            if !group.roles.is_empty() {
                let needed: Vec<String> = group.roles.iter().map(GroupRole::needed).collect();
                let needed = needed.join(" and ");
                notes.push(format!(
                    "{gang}: it needs {needed}, but others of its pods may start here without"
                ));
            }
            // Without its roles, nothing of it starts together.
            if least < 2 {
                continue;
            }
            notes.push(format!(
                "{gang}: its pods start together, at least {least} of them or none, like those of a PodGroup (`{name}` in messages)"
            ));
            let policy = json!({"gang": {"minCount": least}});
            gangs.objects.push(json!({"apiVersion": API_VERSION, "kind": "PodGroup",
                "metadata": {"name": name, "namespace": namespace}, "spec": {"schedulingPolicy": policy}}));
            gangs.groups.insert(key, name);
        }
        gangs
    }
}
