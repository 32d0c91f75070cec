//! Deletion of objects: finalizers, grace periods and propagation.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Kind;
use super::route::Key;
use super::store::Store;
use super::{objects, pods};

/// The effect of a deletion request, whichever user sends it.
pub(super) enum Fate {
    /// The object is removed at once.
    Gone,
    /// The object gets a deletion timestamp and is then removed. Watches of pods see both changes.
    GoneAfter(Value),
    /// The object stays with a deletion timestamp, or with a shorter grace period than before.
    Stays(Value),
    /// The object is being deleted already.
    Unchanged,
}

/// Decides the effect of a deletion request. `asked` is the requested grace period in seconds.
pub(super) fn fate(kind: &Kind, before: &Value, asked: Option<i64>, now: Timestamp) -> Fate {
    let metadata = &before["metadata"];
    let grace = if kind.is_pod() { pods::grace(before, asked) } else { 0 };
    let is_listed = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    // `spec.finalizers` are those of a namespace: its content is deleted first.
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
    // A second deletion can only shorten the grace period of a pod.
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

/// Carries out a deletion. Returns the remaining object, or the last state of a removed one; `None` if nothing changed.
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
