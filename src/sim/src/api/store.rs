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
    /// As it is from then on; its last state where it was deleted.
    after: Arc<Value>,
    deleted: bool,
}

/// What one watch is about.
#[derive(Debug)]
pub(super) struct Subject {
    pub kind: usize,
    pub filter: Filter,
    /// Whether only metadata is wanted.
    pub partial: bool,
}

#[derive(Debug)]
struct Watcher {
    subject: Subject,
    events: UnboundedSender<Value>,
}

/// Everything that is stored.
#[derive(Debug, Default)]
pub(super) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    version: u64,
    history: VecDeque<Change>,
    /// Watches from earlier versions than this are refused.
    compacted: u64,
    /// How many changes are kept at most.
    keep: usize,
    watchers: Vec<Watcher>,
}

impl Store {
    /// An empty one whose watches can go back so many changes.
    pub fn new(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// All objects of a kind, by namespace and name.
    pub fn of_kind(&self, kind: usize) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let from = Key { kind, namespace: String::new(), name: String::new() };
        self.objects.range(from..).take_while(move |(key, _)| key.kind == kind)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Stores an object in its new version.
    pub fn put(&mut self, key: &Key, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), object.clone());
        self.record(key, before, object.clone(), false);
        object
    }

    /// Takes an object away. What watches are told, and what is returned, is what was stored last.
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
                // A watch that nobody reads any more has ended.
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

    /// Forgets the whole history: watches from any earlier version must begin anew.
    pub fn compact(&mut self) {
        self.history.clear();
        self.compacted = self.version;
    }

    /// Ends all watches, as an API server that restarts.
    pub fn drop_watches(&mut self) {
        self.watchers.clear();
    }

    /// Everything that there is of a kind, as it was at an earlier version that is not forgotten yet: what a server shows whose
    /// cache has not heard of later changes.
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

    /// The version that was the present one so many changes ago, as far as they are not forgotten.
    pub fn version_before(&self, changes: u64) -> u64 {
        self.version.saturating_sub(changes).max(self.compacted)
    }

    /// All that there was of a subject at a version, then `end`, then what happened since.
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

    /// Everything that happens to a subject after a version. Where it is `None`, all that there is comes first, then `end`.
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
            // The receiver is in our hands.
            let _ = sender.unbounded_send(event);
        }
        self.watchers.push(Watcher { subject, events: sender });
        Ok(events)
    }
}

/// What a watch hears of a change: an object that comes to match is added to it, one that does no longer is deleted.
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
        (Some(before), None) => {
            let mut last =
                if change.deleted { change.after.as_ref().clone() } else { before.as_ref().clone() };
            last["metadata"]["resourceVersion"] = json!(change.version.to_string());
            Some(told("DELETED", &last, subject.partial))
        }
    }
}

fn told(what: &str, object: &Value, partial: bool) -> Value {
    if partial {
        json!({"type": what, "object": metadata_of(object)})
    } else {
        json!({"type": what, "object": object})
    }
}

/// An object as `PartialObjectMetadata`.
pub(super) fn metadata_of(object: &Value) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
}

/// A bookmark of a watch.
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
