//! The garbage collector: objects without owners, foreground deletion, and terminating namespaces.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::deletion;
use super::kinds::Kind;
use super::route::Key;
use super::store::Store;

/// Runs one round. Returns whether anything changed.
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
        changed |= inside.is_empty() && store.remove(&namespace).is_some();
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
    let fate = deletion::fate(&kinds[key.kind], &object, None, now);
    deletion::carry_out(store, key, fate).is_some()
}
