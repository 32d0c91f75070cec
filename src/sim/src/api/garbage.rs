//! What happens to objects without owners, to those that wait for their dependents, and to namespaces that end.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::pods;
use super::route::Key;
use super::store::Store;

/// One round; whether it changed anything.
pub(super) fn collect(kinds: &[Kind], store: &mut Store, now: Timestamp) -> bool {
    let there: BTreeSet<String> = store.all().filter_map(|(_, object)| uid(object)).collect();
    let mut orphans: Vec<Key> = Vec::new();
    for (key, object) in store.all() {
        let owners = object["metadata"]["ownerReferences"].as_array();
        let owners: Vec<&str> = owners.into_iter().flatten().filter_map(|one| one["uid"].as_str()).collect();
        if !owners.is_empty()
            && object["metadata"]["deletionTimestamp"].is_null()
            && owners.iter().all(|owner| !there.contains(*owner))
        {
            orphans.push(key.clone());
        }
    }
    let ending = |kind: &Kind| kind.group.is_empty() && kind.kind == "Namespace";
    let namespaces = kinds.iter().position(ending).unwrap_or(usize::MAX);
    let ended: Vec<Key> = store
        .of_kind(namespaces)
        .filter(|(_, object)| !object["metadata"]["deletionTimestamp"].is_null())
        .map(|(key, _)| key.clone())
        .collect();
    let mut changed = false;
    for namespace in ended {
        let inside: Vec<(Key, bool)> = store
            .all()
            .filter(|(key, _)| key.namespace == namespace.name)
            .map(|(key, object)| (key.clone(), object["metadata"]["deletionTimestamp"].is_null()))
            .collect();
        if inside.is_empty()
            && let Some(last) = store.get(&namespace).cloned()
        {
            store.remove(&namespace, last.as_ref().clone());
            changed = true;
        }
        orphans.extend(inside.into_iter().filter(|(_, alive)| *alive).map(|(key, _)| key));
    }
    for key in orphans {
        changed |= delete(kinds, store, &key, now);
    }
    changed
}

fn uid(object: &Value) -> Option<String> {
    object["metadata"]["uid"].as_str().map(str::to_owned)
}

fn delete(kinds: &[Kind], store: &mut Store, key: &Key, now: Timestamp) -> bool {
    let Some(object) = store.get(key).cloned() else { return false };
    let grace = if kinds[key.kind].is_pod() { pods::grace(&object, None) } else { 0 };
    let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if grace == 0 && !finalizers {
        store.remove(key, object.as_ref().clone());
        return true;
    }
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return false;
    }
    let mut deleting = pods::deleting(&object, grace, now);
    if let Some(generation) = object["metadata"]["generation"].as_u64() {
        deleting["metadata"]["generation"] = json!(generation + 1);
    }
    store.put(key, deleting);
    true
}
