//! Stores objects with their history, and notifies watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use serde_json::{Value, json};

use super::answer::Refusal;
use super::kinds::Kind;
use super::route::Key;
use super::select::Filter;

/// A change of one object.
#[derive(Clone, Debug)]
struct Change {
    version: u64,
    key: Key,
    before: Option<Arc<Value>>,
    /// The new state, or the last state of a deleted object.
    after: Arc<Value>,
    deleted: bool,
}

/// The objects that a watch selects.
#[derive(Debug)]
pub(super) struct Subject {
    pub kind: usize,
    pub filter: Filter,
    /// Whether events contain metadata only.
    pub partial: bool,
}

#[derive(Debug)]
struct Watcher {
    subject: Subject,
    events: UnboundedSender<Value>,
}

/// All stored objects and their history.
#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    version: u64,
    history: VecDeque<Change>,
    /// The oldest version from which a watch can start.
    compacted: u64,
    /// The maximum length of the history.
    keep: usize,
    watchers: Vec<Watcher>,
}

impl Store {
    /// Makes an empty store that keeps this many changes.
    pub fn new(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Returns all objects of a kind, by namespace and name.
    pub fn of_kind(&self, kind: usize) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let from = Key { kind, namespace: String::new(), name: String::new() };
        self.objects.range(from..).take_while(move |(key, _)| key.kind == kind)
    }

    /// Returns all objects.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Stores an object with a new resource version.
    pub fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), object.clone());
        self.record(key, before, object.clone(), false);
        object
    }

    /// Removes an object. Watches and the caller get its last stored state.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        let mut last = before.as_ref().clone();
        last["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let last = Arc::new(last);
        self.record(key, Some(before), last.clone(), true);
        Some(last)
    }

    fn record(&mut self, key: &Key, before: Option<Arc<Value>>, after: Arc<Value>, deleted: bool) {
        let change = Change { version: self.version, key: key.clone(), before, after, deleted };
        self.watchers.retain(|watcher| {
            if let Some(event) = event(&change, &watcher.subject) {
                // A closed channel means that the client ended the watch.
                return watcher.events.unbounded_send(event).is_ok();
            }
            !watcher.events.is_closed()
        });
        self.history.push_back(change);
        while self.history.len() > self.keep {
            self.forget_one();
        }
    }

    fn forget_one(&mut self) {
        if let Some(change) = self.history.pop_front() {
            self.compacted = change.version;
        }
    }

    /// Forgets the history: a watch from an earlier version must list again.
    pub fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    /// Ends all watches, like a restart of the API server.
    pub fn drop_watches(&mut self) {
        self.watchers.clear();
    }

    /// Returns the objects of a kind at an earlier version, as far as the history goes back. This is what a stale watch cache
    /// serves.
    pub fn at(&self, kind: usize, version: u64) -> Vec<Arc<Value>> {
        let mut then: BTreeMap<&Key, &Arc<Value>> = self.of_kind(kind).collect();
        let later = self.history.iter().rev().take_while(|change| change.version > version);
        for change in later.filter(|change| change.key.kind == kind) {
            match &change.before {
                Some(before) => then.insert(&change.key, before),
                None => then.remove(&change.key),
            };
        }
        then.into_values().cloned().collect()
    }

    /// Returns the version this many changes ago, as far as the history goes back.
    pub fn version_before(&self, changes: u64) -> u64 {
        self.version.saturating_sub(changes).max(self.compacted)
    }

    /// Sends the objects at a version, then `end`, then all later changes.
    pub fn watch_from(&mut self, subject: Subject, version: u64, end: Value) -> UnboundedReceiver<Value> {
        let (sender, events) = unbounded();
        let then = self.at(subject.kind, version);
        let there = then.iter().filter(|object| subject.filter.takes(object));
        let later = self.history.iter().filter(|change| change.version > version);
        let first = there.map(|object| told("ADDED", object, subject.partial)).chain([end]);
        for event in first.chain(later.filter_map(|change| event(change, &subject))) {
            let _ = sender.unbounded_send(event);
        }
        self.watchers.push(Watcher { subject, events: sender });
        events
    }

    /// Sends all changes after a version. If `version` is `None`, sends all current objects first, then `end`.
    pub fn watch(
        &mut self,
        subject: Subject,
        since: Option<u64>,
        end: Option<Value>,
    ) -> Result<UnboundedReceiver<Value>, Refusal> {
        let (sender, events) = unbounded();
        let first: Vec<Value> = match since {
            None => self
                .of_kind(subject.kind)
                .filter(|(_, object)| subject.filter.takes(object))
                .map(|(_, object)| told("ADDED", object, subject.partial))
                .collect(),
            Some(since) if since < self.compacted => {
                let message = format!("too old resource version: {since} ({})", self.compacted);
                return Err(Refusal::expired(message));
            }
            Some(since) => {
                let later = self.history.iter().filter(|change| change.version > since);
                later.filter_map(|change| event(change, &subject)).collect()
            }
        };
        for event in first.into_iter().chain(end) {
            // This cannot fail: the receiver is open.
            let _ = sender.unbounded_send(event);
        }
        self.watchers.push(Watcher { subject, events: sender });
        Ok(events)
    }
}

/// Returns the watch event of a change. An object that starts to match the filter is added, one that no longer matches is
/// deleted.
fn event(change: &Change, subject: &Subject) -> Option<Value> {
    if change.key.kind != subject.kind {
        return None;
    }
    let before = change.before.as_ref().filter(|object| subject.filter.takes(object));
    let after = (!change.deleted && subject.filter.takes(&change.after)).then_some(&change.after);
    match (before, after) {
        (None, None) => None,
        (None, Some(object)) => Some(told("ADDED", object, subject.partial)),
        (Some(_), Some(object)) => Some(told("MODIFIED", object, subject.partial)),
        (Some(_), None) if change.deleted => Some(told("DELETED", &change.after, subject.partial)),
        (Some(before), None) => {
            let mut last = before.as_ref().clone();
            last["metadata"]["resourceVersion"] = json!(change.version.to_string());
            Some(told("DELETED", &last, subject.partial))
        }
    }
}

fn told(what: &str, object: &Value, partial: bool) -> Value {
    let mut event = json!({"type": what});
    // `json!` would serialise the object, which takes longer than a copy.
    event["object"] = if partial { metadata_of(object) } else { object.clone() };
    event
}

/// Returns an object as `PartialObjectMetadata`.
pub(super) fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

/// Returns a bookmark of a watch.
pub(super) fn bookmark(kind: &Kind, version: u64, partial: bool, initial_end: bool) -> Value {
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(),
        "metadata": {"resourceVersion": version.to_string()}});
    if partial {
        object = metadata_of(&object);
    }
    if initial_end {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    json!({"type": "BOOKMARK", "object": object})
}
