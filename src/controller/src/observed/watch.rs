//! Watches the API server, and brings its objects into the index.
//!
//! Each kind has one task. Objects are converted as they arrive, and only the result is kept, except for objects that are
//! written later (`last_seen.rs`). A malformed version of an object is counted and reported once (log and event), and the last
//! valid version stays in the index. It never stops a watch, and a malformed claim does not count as deleted.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use poolwright_core::index::Change;
use poolwright_core::{EventType, Snapshot};
use poolwright_terms::Reason;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::ObserverContext;
use super::kinds::{Gone, Key};
use super::reader::Reader;
use super::received::Received;
use super::world::State;
use crate::edge::events::QueuedEvent;

/// How often to check whether a missing kind was installed.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The use of a kind: how much depends on its watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Every decision: nothing is decided before it is synced.
    ToDecide,
    /// Every decision, if a scheduler has default spread constraints. Otherwise it is not watched.
    ToSpreadPods,
    /// What admission adds to pods of templates: without permission to read it, nothing waits for it, and templates count as they
    /// are written.
    ToAdmit,
    /// Events for users and moves of pods: without permission to read it, nothing waits for it. The API server enforces it in any case.
    ToMovePods,
    /// Every decision, in clusters that have the kind. It may be installed later.
    WhenInstalled,
}

/// A kind of object, and how it gets into the index.
pub trait Kind: Send + 'static {
    /// The API's type.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static;
    /// The model's type.
    type Model: Send + 'static;
    /// Its name in messages and metrics.
    const NAME: &'static str;
    /// How much depends on it.
    const NEED: Need;
    /// Which of its objects are watched, as a field selector; all of them by default.
    const FIELDS: Option<&'static str> = None;

    /// Converts an object, or says what is wrong with it.
    fn read(object: &Self::Object) -> Result<Self::Model, String>;
    /// Adds or changes an object.
    fn apply(state: &mut State, model: Self::Model) -> Change;
    /// Keeps the object itself, for kinds that are written later.
    fn keep(_: &mut State, _: Self::Object) {}
    /// Learns from a change of an object before it is applied.
    fn learn(_: &mut State, _: &Self::Model, _: jiff::Timestamp) {}
    /// Returns the parts of a valid object that are ignored because they cannot be read, if there are any.
    fn ignored(_: &Self::Object) -> Option<String> {
        None
    }
    /// Removes an object.
    fn delete(state: &mut State, key: Key<'_>) -> Change;
    /// Replaces all objects.
    fn reset(state: &mut State, models: Vec<Self::Model>, now: jiff::Timestamp) -> Change;
    /// Returns the last valid version of an object, to be kept while the newest is malformed.
    fn known(all: &Snapshot, key: Key<'_>) -> Option<Self::Model>;
}

/// Watches one kind, for ever.
pub async fn run<K: Kind>(observers: ObserverContext) {
    let reader = observers.reader.clone();
    let mut intake = Intake::<K>::new(observers);
    if K::NEED != Need::WhenInstalled {
        intake.watch(&reader).await;
        // kube's watcher does not end. If that changes, the process ends with this task: it must not continue without it.
        return;
    }
    loop {
        match reader.serves::<K::Object>().await {
            Ok(true) => intake.watch(&reader).await,
            Ok(false) => debug!(kind = K::NAME, "not installed"),
            Err(error) => {
                debug!(kind = K::NAME, %error, "it is unknown whether this kind is installed; checking again");
            }
        }
        intake.absent();
        sleep(LOOK_AGAIN).await;
    }
}
struct Intake<K: Kind> {
    observers: ObserverContext,
    listing: Vec<K::Model>,
    /// The last malformed version of each object, by namespace and name.
    malformed: BTreeMap<(String, String), String>,
    /// The ignored parts of each valid object that has some, by namespace and name.
    ignored: BTreeMap<(String, String), String>,
    failing: bool,
    /// Whether everything was listed once.
    listed: bool,
}

impl<K: Kind> Intake<K> {
    fn new(observers: ObserverContext) -> Self {
        observers.metrics.watch_synced.with_label_values(&[K::NAME]).set(0);
        Self {
            observers,
            listing: Vec::new(),
            malformed: BTreeMap::new(),
            ignored: BTreeMap::new(),
            failing: false,
            listed: false,
        }
    }

    /// Watches until the kind is uninstalled, if it is optional.
    async fn watch(&mut self, reader: &Reader) {
        let config =
            watcher::Config { field_selector: K::FIELDS.map(Into::into), ..watcher::Config::default() };
        let objects = reader.received::<K::Object>();
        let mut stream = objects.watch(config, &self.observers.identity);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => self.on(event),
                Ok(None) => return,
                Err(error) => {
                    if K::NEED == Need::WhenInstalled
                        && matches!(reader.serves::<K::Object>().await, Ok(false))
                    {
                        return;
                    }
                    self.failed(&error);
                }
            }
        }
    }

    /// Handles a kind that is not installed: it has no objects, and readiness does not wait for it.
    fn absent(&mut self) {
        self.malformed.clear();
        self.ignored.clear();
        if self.listed {
            self.listed = false;
            let now = self.observers.clock.now();
            self.observers.world.change(|state| K::reset(state, Vec::new(), now));
            self.observers.metrics.watch_synced.with_label_values(&[K::NAME]).set(0);
            info!(kind = K::NAME, "no longer installed");
        }
        if self.wait_no_longer() {
            self.observers.world.poke();
        }
    }

    fn on(&mut self, event: watcher::Event<Received>) {
        self.observers.metrics.watch_events.with_label_values(&[K::NAME]).inc();
        self.failing = false;
        let world = self.observers.world.clone();
        let arrived = self.observers.clock.monotonic();
        let is_change = matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_));
        match event {
            watcher::Event::Apply(mut object) => {
                let read = self.read(&mut object);
                let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version());
                let now = self.observers.clock.now();
                // A version counts as shown only together with what it says.
                world.change(|state| {
                    state.fence.shows(K::NAME, version.as_deref());
                    let Some((object, model)) = read else { return Change::None };
                    if state.fence.is_late(&uid, version.as_deref()) {
                        return Change::None;
                    }
                    K::keep(state, object);
                    K::learn(state, &model, now);
                    K::apply(state, model)
                });
            }
            watcher::Event::Delete(object) => {
                let (namespace, name) = (object.namespace(), object.name_any());
                let key = (namespace.clone().unwrap_or_default(), name.clone());
                self.malformed.remove(&key);
                self.ignored.remove(&key);
                let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version());
                let gone = Some(Gone {
                    at: self.observers.clock.now(),
                    deleted: object.meta().deletion_timestamp.is_some(),
                });
                world.change(|state| {
                    state.fence.shows(K::NAME, version.as_deref());
                    state.fence.gone(&uid);
                    K::delete(state, Key { namespace: namespace.as_deref(), name: &name, gone })
                });
            }
            watcher::Event::Init => {
                self.listing.clear();
                world.change(|state| {
                    state.fence.starts_again(K::NAME);
                    Change::None
                });
            }
            watcher::Event::InitApply(mut object) => {
                let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version());
                if world.is_buried(&uid) {
                    return;
                }
                let read = self.read(&mut object);
                let (namespace, name) = (object.namespace(), object.name_any());
                let mut model = None;
                world.change(|state| {
                    state.fence.lists(K::NAME, version.as_deref());
                    if let Some((object, new)) = read {
                        K::keep(state, object);
                        model = Some(new);
                    } else {
                        let key = Key { namespace: namespace.as_deref(), name: &name, gone: None };
                        model = K::known(state.index.view(), key);
                    }
                    Change::None
                });
                self.listing.extend(model);
            }
            watcher::Event::InitDone => {
                let models = std::mem::take(&mut self.listing);
                let count = models.len();
                self.listed = true;
                let now = self.observers.clock.now();
                world.change(|state| {
                    state.fence.listed(K::NAME);
                    K::reset(state, models, now)
                });
                self.observers.metrics.watch_synced.with_label_values(&[K::NAME]).set(1);
                self.wait_no_longer();
                // The first listing is a change even if it is empty, because loops may wait for it.
                world.poke();
                info!(kind = K::NAME, count, "listed");
            }
        }
        if is_change {
            let took = self.observers.clock.monotonic().saturating_sub(arrived);
            self.observers.metrics.index_duration.observe(took.as_secs_f64());
        }
    }

    /// Reads an object as its type and as its model. Reports a malformed version once.
    fn read(&mut self, received: &mut Received) -> Option<(K::Object, K::Model)> {
        let key = (received.namespace().unwrap_or_default(), received.name_any());
        let read = received.read().and_then(|object| {
            let model = K::read(&object)?;
            Ok((object, model))
        });
        match read {
            Ok((object, model)) => {
                self.malformed.remove(&key);
                self.note_ignored(received, K::ignored(&object), key);
                Some((object, model))
            }
            Err(why) => {
                let version = received.resource_version().unwrap_or_default();
                if self.malformed.get(&key) != Some(&version) {
                    self.malformed.insert(key, version);
                    self.tell_malformed(received, &why);
                }
                None
            }
        }
    }

    /// Reports the ignored parts of an object once.
    fn note_ignored(&mut self, object: &Received, ignored: Option<String>, key: (String, String)) {
        let Some(what) = ignored else {
            self.ignored.remove(&key);
            return;
        };
        if self.ignored.get(&key) != Some(&what) {
            info!(kind = K::NAME, namespace = key.0, name = key.1, what, "a part of this object is ignored");
            self.tell_unreadable(object, format!("Poolwright ignores a part of this object: {what}"));
            self.ignored.insert(key, what);
        }
    }

    fn tell_malformed(&self, object: &Received, why: &str) {
        self.observers.metrics.malformed_objects.with_label_values(&[K::NAME]).inc();
        let (namespace, name) = (object.namespace(), object.name_any());
        warn!(kind = K::NAME, namespace, name, why, "this object cannot be read and is left out");
        self.tell_unreadable(object, format!("Poolwright cannot read this object and leaves it out: {why}"));
    }

    fn tell_unreadable(&self, object: &Received, message: String) {
        let (namespace, name) = (object.namespace(), object.name_any());
        let about = ObjectReference {
            api_version: Some(K::Object::api_version(&()).into_owned()),
            kind: Some(K::Object::kind(&()).into_owned()),
            namespace,
            name: Some(name),
            uid: object.uid(),
            ..Default::default()
        };
        self.observers.events.record(QueuedEvent {
            about,
            kind: EventType::Warning,
            reason: Reason::Unreadable.into(),
            message,
            story: None,
        });
    }

    /// Marks the kind as synced. Returns whether it was not before.
    fn wait_no_longer(&self) -> bool {
        self.observers.unsynced.change_if(|unsynced| {
            let before = unsynced.len();
            unsynced.retain(|kind| *kind != K::NAME);
            unsynced.len() < before
        })
    }

    fn failed(&mut self, error: &watcher::Error) {
        if matches!(K::NEED, Need::ToAdmit | Need::ToMovePods | Need::WhenInstalled) && self.wait_no_longer()
        {
            self.observers.world.poke();
        }
        self.observers.metrics.watch_errors.with_label_values(&[K::NAME]).inc();
        // Only the first failure in a row is logged in full.
        if self.failing {
            debug!(kind = K::NAME, %error, "the watch failed again; retrying");
        } else {
            warn!(kind = K::NAME, %error, "the watch failed; retrying");
        }
        self.failing = true;
    }
}
