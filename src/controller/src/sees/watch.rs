//! Watches: from the API server into the index, without a copy of the objects in between, but of those that are written (`drafts.rs`).
//!
//! Each kind has one task. Objects are converted as they arrive and only the converted ones are kept; managed fields are
//! gone with the rest. A version of an object that cannot be read is counted, told once (log and event), and leaves what
//! was known before in place: it never stops a watch, and a claim that cannot be read for a while is not a claim that is
//! gone.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::DeserializeGuard;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use poolwright_core::NoticeKind;
use poolwright_core::index::Change;
use poolwright_terms::Reason;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::edge::events::{Events, Saying};
use crate::edge::metrics::Metrics;
use crate::edge::signal::Sender;
use crate::sees::lists;
use crate::sees::reader::answer;
use crate::sees::world::{State, World};

/// How often it is looked whether a kind that is not installed is by now.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How a kind of object gets into the index.
pub trait Kind: Send + 'static {
    /// The API's type.
    type Object: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static;
    /// The model's type.
    type Model: Send + 'static;
    /// Its name in messages and metrics.
    const NAME: &'static str;
    /// Whether nothing may be decided before all objects of the kind were listed. What only adds to what is told does without
    /// where it may not be read.
    const REQUIRED: bool = true;

    /// Converts, or says what is wrong.
    fn convert(object: &Self::Object) -> Result<Self::Model, String>;
    /// Puts one in.
    fn apply(state: &mut State, model: Self::Model) -> Change;
    /// Keeps the object itself, where it is written later.
    fn keep(_: &mut State, _: Self::Object) {}
    /// Takes one out.
    fn delete(state: &mut State, namespace: Option<&str>, name: &str) -> Change;
    /// Replaces all. Objects in `unreadable` (namespace, name) exist and could not be converted.
    fn reset(state: &mut State, models: Vec<Self::Model>, now: jiff::Timestamp) -> Change;
    /// The version of this name that is known, to be kept while the newest cannot be read.
    fn known(state: &State, namespace: Option<&str>, name: &str) -> Option<Self::Model>;
}

/// What every watch needs.
#[derive(Clone)]
pub struct Watches {
    /// Where to put things.
    pub world: Arc<World>,
    /// Where to tell of malformed objects.
    pub events: Events,
    /// Where to count.
    pub metrics: Metrics,
    /// Names of the watches that have not listed everything yet.
    pub unsynced: Arc<Sender<Vec<&'static str>>>,
    /// Who we are: replicas wait different times after failures.
    pub identity: Arc<str>,
    /// The clock.
    pub clock: crate::edge::clock::SharedClock,
}

impl Watches {
    /// Feeds one kind into the index, for ever.
    pub async fn run<K: Kind>(self, client: Client, fields: Option<&'static str>) {
        let config = watcher::Config { field_selector: fields.map(Into::into), ..watcher::Config::default() };
        // Guarded: one object that cannot be read does not spoil the rest.
        let api: Api<DeserializeGuard<K::Object>> = Api::all(client);
        let mut stream = lists::watch(api, config, &self.identity);
        let mut intake = Intake::<K>::new(self);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => intake.on(event),
                Ok(None) => {
                    // kube's watcher does not end; should that change, a controller that is blind must not go on.
                    warn!(kind = K::NAME, "the watch ended");
                    std::future::pending::<()>().await;
                }
                Err(error) => intake.failed(&error),
            }
        }
    }
}

impl Watches {
    /// Feeds one kind into the index while the cluster has it, also when it gets it later. Where it is not installed nothing
    /// is watched, and nobody waits for it.
    pub async fn run_when_installed<K: Kind>(self, client: Client) {
        let mut intake = Intake::<K>::new(self);
        loop {
            match is_served::<K>(&client).await {
                Ok(true) => intake.watch_while_served(&client).await,
                Ok(false) => debug!(kind = K::NAME, "not installed"),
                Err(error) => {
                    debug!(kind = K::NAME, %error, "whether it is installed cannot be told; asked again");
                }
            }
            intake.absent();
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// Whether the API server has this kind.
async fn is_served<K: Kind>(client: &Client) -> Result<bool, kube::Error> {
    match answer(client.list_api_group_resources(&K::Object::api_version(&()))).await {
        Ok(all) => Ok(all.resources.iter().any(|one| one.name == K::Object::plural(&()))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

struct Intake<K: Kind> {
    watches: Watches,
    listing: Vec<K::Model>,
    /// The last version of each object that could not be read, by namespace and name.
    malformed: BTreeMap<(String, String), String>,
    failing: bool,
    /// Whether everything was listed once.
    listed: bool,
}

impl<K: Kind> Intake<K> {
    fn new(watches: Watches) -> Self {
        watches.metrics.watch_synced.with_label_values(&[K::NAME]).set(0);
        Self { watches, listing: Vec::new(), malformed: BTreeMap::new(), failing: false, listed: false }
    }

    /// Watches until the kind is gone.
    async fn watch_while_served(&mut self, client: &Client) {
        let api: Api<DeserializeGuard<K::Object>> = Api::all(client.clone());
        let mut stream = lists::watch(api, watcher::Config::default(), &self.watches.identity);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => self.on(event),
                Ok(None) => return,
                Err(error) => {
                    if matches!(is_served::<K>(client).await, Ok(false)) {
                        return;
                    }
                    self.failed(&error);
                }
            }
        }
    }

    /// There are none of this kind, for there is no such kind.
    fn absent(&mut self) {
        self.malformed.clear();
        if self.listed {
            self.listed = false;
            let now = self.watches.clock.now();
            self.watches.world.change(|state| K::reset(state, Vec::new(), now));
            self.watches.metrics.watch_synced.with_label_values(&[K::NAME]).set(0);
            info!(kind = K::NAME, "not installed any more");
        }
        if self.wait_no_longer() {
            self.watches.world.poke();
        }
    }

    fn on(&mut self, event: watcher::Event<DeserializeGuard<K::Object>>) {
        self.watches.metrics.watch_events.with_label_values(&[K::NAME]).inc();
        self.failing = false;
        let world = self.watches.world.clone();
        let arrived = self.watches.clock.monotonic();
        let is_change = matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_));
        match event {
            watcher::Event::Apply(object) => {
                if let Some(model) = self.read(&object) {
                    let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version());
                    world.change(|state| {
                        if state.fence.is_late(&uid, version.as_deref()) {
                            return Change::None;
                        }
                        if let Ok(object) = object.0 {
                            K::keep(state, object);
                        }
                        K::apply(state, model)
                    });
                }
            }
            watcher::Event::Delete(object) => {
                let (namespace, name) = (object.namespace(), object.name_any());
                self.malformed.remove(&(namespace.clone().unwrap_or_default(), name.clone()));
                let uid = object.uid().unwrap_or_default();
                world.change(|state| {
                    state.fence.gone(&uid);
                    K::delete(state, namespace.as_deref(), &name)
                });
            }
            watcher::Event::Init => self.listing.clear(),
            watcher::Event::InitApply(object) => {
                let uid = object.uid().unwrap_or_default();
                if world.is_buried(&uid) {
                    return;
                }
                let model = self.read(&object);
                let (namespace, name) = (object.namespace(), object.name_any());
                let mut known = None;
                world.change(|state| {
                    if model.is_none() {
                        known = K::known(state, namespace.as_deref(), &name);
                    } else if let Ok(object) = object.0 {
                        K::keep(state, object);
                    }
                    Change::None
                });
                self.listing.extend(model.or(known));
            }
            watcher::Event::InitDone => {
                let models = std::mem::take(&mut self.listing);
                let count = models.len();
                self.listed = true;
                let now = self.watches.clock.now();
                world.change(|state| K::reset(state, models, now));
                self.watches.metrics.watch_synced.with_label_values(&[K::NAME]).set(1);
                self.wait_no_longer();
                // A first listing is a change even when it is empty: those who waited for it may go on.
                world.poke();
                info!(kind = K::NAME, count, "listed");
            }
        }
        if is_change {
            let took = self.watches.clock.monotonic().saturating_sub(arrived);
            self.watches.metrics.index_duration.observe(took.as_secs_f64());
        }
    }

    fn read(&mut self, object: &DeserializeGuard<K::Object>) -> Option<K::Model> {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        let read = match &object.0 {
            Ok(object) => K::convert(object),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(model) => {
                self.malformed.remove(&key);
                Some(model)
            }
            Err(why) => {
                let version = object.resource_version().unwrap_or_default();
                if self.malformed.get(&key) != Some(&version) {
                    self.malformed.insert(key, version);
                    self.tell_malformed(object, &why);
                }
                None
            }
        }
    }

    fn tell_malformed(&self, object: &DeserializeGuard<K::Object>, why: &str) {
        self.watches.metrics.malformed_objects.with_label_values(&[K::NAME]).inc();
        let (namespace, name) = (object.namespace(), object.name_any());
        warn!(kind = K::NAME, namespace, name, why, "this object cannot be read and is left out");
        let about = ObjectReference {
            api_version: Some(K::Object::api_version(&()).into_owned()),
            kind: Some(K::Object::kind(&()).into_owned()),
            namespace,
            name: Some(name),
            uid: object.uid(),
            ..Default::default()
        };
        self.watches.events.say(Saying {
            about,
            kind: NoticeKind::Warning,
            reason: Reason::Unreadable.to_string(),
            message: format!("Poolwright cannot read this object and leaves it out: {why}"),
            story: None,
        });
    }

    /// Those who wait for all kinds need not wait for this one. Whether they did.
    fn wait_no_longer(&self) -> bool {
        self.watches.unsynced.change_if(|unsynced| {
            let before = unsynced.len();
            unsynced.retain(|kind| *kind != K::NAME);
            unsynced.len() < before
        })
    }

    fn failed(&mut self, error: &watcher::Error) {
        if !K::REQUIRED && self.wait_no_longer() {
            self.watches.world.poke();
        }
        self.watches.metrics.watch_errors.with_label_values(&[K::NAME]).inc();
        // The first of a row in full, the rest only counted.
        if self.failing {
            debug!(kind = K::NAME, %error, "the watch failed again; retrying");
        } else {
            warn!(kind = K::NAME, %error, "the watch failed; retrying");
        }
        self.failing = true;
    }
}
