//! The inventory: reads the providers' catalogues and lists their instances.

mod doubts;
mod missed;

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use poolwright_catalog::Catalogue;
use poolwright_core::{ListedInstance, Uid};
use poolwright_provider_contract::{Instance, NodeClassKind, ProviderError};
use poolwright_terms::NodeClassRef;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use self::doubts::{Absent, absent, doubt};
use self::missed::Missed;
use super::ObserverContext;
use super::providers::{Cloud, error_label};

/// The name under which readiness waits for the first catalogues.
pub const CATALOGUES: &str = "catalogues";

/// The timeout of a provider call.
const LIMIT: Duration = Duration::from_mins(1);
/// The pause after a failed call.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How many instances are looked up by id at a time.
const LOOK_UPS: usize = 8;

/// Reads catalogues and instances from the providers.
#[derive(Clone)]
pub struct Inventory {
    /// The shared context of observers.
    pub observers: ObserverContext,
    /// How often to read the catalogues.
    pub catalogue_interval: Duration,
    /// How often to list instances.
    pub list_interval: Duration,
}

/// What the earlier listings of one cloud showed.
#[derive(Debug, Default)]
struct Earlier {
    missed: Missed,
    /// How many instances the last listing lacked that exist.
    unlisted: i64,
}

fn listed(instance: Instance) -> ListedInstance {
    ListedInstance {
        provider_id: instance.provider_id,
        claim_uid: Uid(instance.key),
        node_class: instance.node_class,
        launched: instance.launched,
    }
}

impl Inventory {
    /// Keeps catalogues up to date, for ever: after changes of pools and node classes, and periodically.
    pub async fn catalogues(self) {
        let (mut changes, mut class_changes) =
            (self.observers.world.changes(), self.observers.world.class_changes());
        let mut asked = None;
        loop {
            changes.mark_seen();
            class_changes.mark_seen();
            // Until pools and claims are synced, the node classes are unknown.
            let is_missing = |kind: &&str| matches!(*kind, "NodePool" | "NodeClaim");
            let listed = self.observers.unsynced.view(|unsynced| !unsynced.iter().any(is_missing));
            let classes = self.observers.world.node_classes();
            let mut pause = self.catalogue_interval;
            if listed && asked.as_ref() != Some(&classes) {
                let mut answers = BTreeMap::new();
                let mut failed = false;
                for class in &classes {
                    match self.catalogue(class).await {
                        Ok(answer) => {
                            answers.insert(class.clone(), answer);
                        }
                        Err(known) => {
                            failed = true;
                            answers.insert(class.clone(), known);
                        }
                    }
                }
                self.observers.world.set_catalogues(answers);
                self.observers.unsynced.change_if(|unsynced| {
                    let before = unsynced.len();
                    unsynced.retain(|kind| *kind != CATALOGUES);
                    unsynced.len() < before
                });
                asked = Some(classes);
                if failed {
                    asked = None;
                    pause = AFTER_FAILURE;
                }
            }
            let until = self.observers.clock.monotonic().saturating_add(pause);
            loop {
                tokio::select! {
                    biased;
                    _ = class_changes.changed() => {
                        asked = None;
                        break;
                    }
                    // The timer comes before the changes, because changes may never stop.
                    () = sleep(until.saturating_sub(self.observers.clock.monotonic())) => {
                        asked = None;
                        break;
                    }
                    // After a failure, changes of the cluster do not trigger a retry.
                    _ = changes.changed(), if pause != AFTER_FAILURE => {
                        let other = asked.as_ref() != Some(&self.observers.world.node_classes());
                        if other || !listed {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Returns the catalogue of a node class, or why it has none. The outer error means that it could not be read now, and has
    /// the last catalogue if there is one.
    async fn catalogue(
        &self,
        class: &NodeClassRef,
    ) -> Result<Result<Arc<Catalogue>, String>, Result<Arc<Catalogue>, String>> {
        let provider = match self.observers.providers.for_class(class) {
            Ok(provider) => provider,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(why) = provider.doubt() {
            return Ok(Err(why));
        }
        let answer = timeout(LIMIT, provider.catalogue(class)).await;
        let error = match answer {
            Ok(Ok(catalogue)) => return Ok(Ok(catalogue)),
            Ok(Err(ProviderError::Invalid(why))) => return Ok(Err(why)),
            Ok(Err(error)) => error,
            Err(_) => ProviderError::Transient(format!("no answer within {LIMIT:?}")),
        };
        let labels = [provider.name(), "catalogue", error_label(&error)];
        self.observers.metrics.provider_errors.with_label_values(&labels).inc();
        warn!(%class, %error, "the offerings of this node class could not be read; trying again");
        // Old prices are better than none.
        Err(self.observers.world.catalogue(class).ok_or_else(|| error.to_string()))
    }

    /// Lists instances periodically, for ever.
    pub async fn instances(self) {
        // A listing is judged by the claims and nodes, so these must be known before the first one.
        self.observers.ready().wait().await;
        self.list_clouds().await;
    }

    /// Lists the instances of each cloud by itself, for ever. A cloud that fails, or that does not answer, holds up no other.
    async fn list_clouds(&self) {
        join_all(self.observers.providers.all().iter().map(|provider| self.list_cloud(provider))).await;
        // There is no cloud.
        pending::<()>().await;
    }

    /// Lists the instances of one cloud periodically, for ever.
    async fn list_cloud(&self, provider: &Cloud) {
        let kinds: Vec<&str> = provider.node_class_kinds().iter().map(|kind| kind.kind).collect();
        let (mut earlier, mut failing) = (Earlier::default(), false);
        loop {
            let at = self.observers.clock.now();
            match self.list(provider, &mut earlier, at).await {
                Ok(instances) => {
                    failing = false;
                    self.observers.world.set_instances(&kinds, at, instances);
                }
                // An incomplete listing is not used, because missing instances would count as terminated.
                Err(error) if failing => {
                    debug!(provider = provider.name(), %error, "instances could not be listed again; trying again");
                }
                Err(error) => {
                    failing = true;
                    warn!(provider = provider.name(), %error, "instances could not be listed; trying again");
                }
            }
            sleep(self.list_interval).await;
        }
    }

    /// Lists the instances of one provider. What the listing lacks is looked up by its id before it counts as gone.
    async fn list(
        &self,
        provider: &Cloud,
        earlier: &mut Earlier,
        at: Timestamp,
    ) -> Result<Vec<ListedInstance>, ProviderError> {
        let answer = timeout(LIMIT, provider.list()).await;
        let answer =
            answer.unwrap_or_else(|_| Err(ProviderError::Transient(format!("no answer within {LIMIT:?}"))));
        let instances = match answer {
            Ok(instances) => instances,
            Err(error) => {
                let labels = [provider.name(), "list", error_label(&error)];
                self.observers.metrics.provider_errors.with_label_values(&labels).inc();
                // A person must change something, and no listing before that can be right.
                if let ProviderError::Invalid(why) = &error {
                    self.set_doubt(provider, Some(why.clone()))?;
                }
                return Err(error);
            }
        };
        let mut listed: Vec<_> = instances.into_iter().map(listed).collect();
        let snapshot = self.observers.world.snapshot();
        let kinds = provider.node_class_kinds();
        let is_ours = |class: &NodeClassRef| kinds.iter().any(|kind| kind.kind == class.kind);
        let (absent, known) = absent(&snapshot, is_ours, &listed, provider.doubt().is_some(), at);
        earlier.missed.retain(&absent);
        let mut look_ups = futures::stream::iter(absent.into_iter().map(async |absent| {
            let found = timeout(LIMIT, provider.get(&absent.provider_id)).await;
            let late = || Err(ProviderError::Transient(format!("no answer within {LIMIT:?}")));
            (absent, found.unwrap_or_else(|_| late()))
        }))
        .buffer_unordered(LOOK_UPS);
        let (mut gone, mut unseen, mut failed, mut failure) = (Vec::new(), 0, Vec::new(), None);
        let mut missed_once = Vec::new();
        while let Some((absent, found)) = look_ups.next().await {
            match found {
                Ok(None) => {
                    if !earlier.missed.proves(&absent, at) {
                        info!(
                            instance = absent.provider_id,
                            "the cloud does not know this new instance yet; it counts as there until a later search fails too"
                        );
                        missed_once.push(absent.clone());
                    }
                    gone.push(absent);
                    // At once: among many look-ups, a later one may fail in each round.
                    if let why @ Some(_) = doubt(&gone, known) {
                        self.set_doubt(provider, why)?;
                    }
                }
                Ok(Some(instance)) => {
                    earlier.missed.found(&absent.provider_id);
                    warn!(
                        instance = instance.provider_id,
                        "the cloud has this instance, but its listing by tags lacks it: check its tags"
                    );
                    unseen += 1;
                    listed.push(absent.there(instance.launched));
                }
                Err(error) => {
                    let labels = [provider.name(), "get", error_label(&error)];
                    self.observers.metrics.provider_errors.with_label_values(&labels).inc();
                    warn!(
                        instance = absent.provider_id,
                        %error,
                        "the listing lacks this instance, and it could not be looked up; it counts as there, and the next round looks again"
                    );
                    failed.push(absent);
                    failure = Some(error);
                }
            }
        }
        // What is unknown counts as there, unless the listing would be doubted without it: then no doubt ends, and nothing is gone. If it
        // shows no other instance, what is unknown must not prove that it is of the right account either.
        let is_early = || {
            let why = "the cloud shows no instance, and was asked only once for some that are new";
            ProviderError::Transient(why.to_owned())
        };
        if let Some(error) = failure.or_else(|| (!missed_once.is_empty()).then(is_early)) {
            let unknown: Vec<Absent> = gone.iter().chain(&failed).cloned().collect();
            let proves_nothing = unknown.len() == known && unknown.iter().any(|one| one.is_ready);
            if proves_nothing || doubt(&unknown, known).is_some() {
                return Err(error);
            }
        }
        listed.extend(failed.into_iter().chain(missed_once).map(|absent| absent.there(at)));
        self.set_doubt(provider, None)?;
        self.observers.metrics.instances_unlisted.add(unseen - earlier.unlisted);
        earlier.unlisted = unseen;
        Ok(listed)
    }

    /// Notes whether the listings of a provider can be right.
    ///
    /// Errors: they cannot.
    fn set_doubt(&self, provider: &Cloud, doubt: Option<String>) -> Result<(), ProviderError> {
        if provider.set_doubt(doubt.clone()) {
            // Its node classes stop or start to sell.
            self.observers.world.classes_changed();
        }
        doubt.map_or(Ok(()), |why| Err(ProviderError::Invalid(why)))
    }

    /// Watches node classes, because a change may change the catalogue. Only metadata is read; providers read the rest. It ends only
    /// if a watch ends.
    pub async fn node_classes(self) {
        let kinds = self.observers.providers.node_class_kinds();
        let mut watches: FuturesUnordered<_> = kinds.map(|kind| self.watch_classes(kind)).collect();
        if watches.next().await.is_none() {
            // No cloud has node classes.
            pending::<()>().await;
        }
    }

    /// Watches the node classes of one kind.
    async fn watch_classes(&self, class: NodeClassKind) {
        let kind = class.kind;
        let objects = self.observers.reader.dynamic_metadata(&class.resource());
        let mut stream = objects.watch(watcher::Config::default(), &self.observers.identity);
        let mut failing = false;
        // Generations by name: our own status writes do not change them.
        let (mut known, mut listed) = (BTreeMap::new(), None);
        loop {
            match stream.try_next().await {
                Ok(Some(event)) => {
                    failing = false;
                    self.observers.metrics.watch_events.with_label_values(&[kind]).inc();
                    let version = |object: &PartialObjectMeta<DynamicObject>| {
                        let meta = &object.metadata;
                        (meta.uid.clone(), meta.generation)
                    };
                    let name = |object: &PartialObjectMeta<DynamicObject>| object.metadata.name.clone();
                    let changed = match event {
                        watcher::Event::Init => {
                            listed = Some(BTreeMap::new());
                            false
                        }
                        watcher::Event::InitApply(object) => {
                            listed.get_or_insert_default().insert(name(&object), version(&object));
                            false
                        }
                        watcher::Event::InitDone => {
                            known = listed.take().unwrap_or_default();
                            true
                        }
                        watcher::Event::Apply(object) => {
                            let new = version(&object);
                            let old = known.insert(name(&object), new.clone());
                            new.1.is_none() || old != Some(new)
                        }
                        watcher::Event::Delete(object) => {
                            known.remove(&name(&object));
                            true
                        }
                    };
                    if changed {
                        self.observers.world.classes_changed();
                    }
                }
                Ok(None) => {
                    info!(kind, "the watch on node classes ended");
                    return;
                }
                Err(error) => {
                    self.observers.metrics.watch_errors.with_label_values(&[kind]).inc();
                    if failing {
                        debug!(kind, %error, "the watch on node classes failed again; retrying");
                    } else {
                        warn!(kind, %error, "the watch on node classes failed; retrying");
                    }
                    failing = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
