//! Deletion of objects: finalizers, grace periods and propagation.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::route::Key;
use super::store::Store;
use super::{objects, pods};

/// The same for whoever deletes it.
pub(super) enum Fate {
    /// Nothing keeps it.
    Gone,
    /// Nothing keeps it, but that it is being deleted is written down first: so it is with pods.
    GoneAfter(Value),
    /// It is being deleted from now on, or has less time than before.
    Stays(Value),
    /// It is being deleted already.
    Unchanged,
}

/// What is to happen. `asked` is the time in seconds that a pod is given to end, if one is named.
pub(super) fn fate(kind: &Kind, before: &Value, asked: Option<i64>, now: Timestamp) -> Fate {
    let metadata = &before["metadata"];
    let grace = if kind.is_pod() { pods::grace(before, asked) } else { 0 };
    let is_listed = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    // Namespaces have finalizers of their own: what is in them goes first.
    let held = is_listed(&metadata["finalizers"]) || is_listed(&before["spec"]["finalizers"]);
    let already = !metadata["deletionTimestamp"].is_null();
    let mut object = pods::deleting(before, grace, now);
    if let Some(generation) = metadata["generation"].as_u64()
        && !already
    {
        object["metadata"]["generation"] = json!(generation + 1);
    }
    if grace == 0 && !held && (!already || kind.is_pod()) {
        return if kind.is_pod() { Fate::GoneAfter(object) } else { Fate::Gone };
    }
    // Who is being deleted stays so; only the time that a pod has left can become shorter.
    let shorter = metadata["deletionGracePeriodSeconds"].as_i64().is_none_or(|left| grace < left);
    if already && !(kind.is_pod() && shorter) {
        return Fate::Unchanged;
    }
    if kind.group.is_empty() && kind.kind == "Namespace" {
        object["status"]["phase"] = json!("Terminating");
        objects::remove(&mut object["metadata"], "deletionGracePeriodSeconds");
    }
    Fate::Stays(object)
}

/// Does what is to happen; what is left of the object, or what it was last. `None` where nothing happened.
pub(super) fn carry_out(store: &mut Store, key: &Key, fate: Fate) -> Option<Arc<Value>> {
    match fate {
        Fate::Unchanged => None,
        Fate::Stays(object) => Some(store.put(key, object)),
        Fate::Gone => store.remove(key),
        Fate::GoneAfter(object) => {
            store.put(key, object);
            store.remove(key)
        }
    }
}
