//! The inventory: reads the providers' catalogues and lists their instances.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt;
use futures::future::join_all;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::watcher;
use poolwright_catalog::Catalogue;
use poolwright_core::{ListedInstance, Uid};
use poolwright_provider_contract::{NodeClassKind, ProviderError};
use poolwright_terms::NodeClassRef;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use super::ObserverContext;
use super::providers::error_label;

/// The name under which readiness waits for the first catalogues.
pub const CATALOGUES: &str = "catalogues";

/// The timeout of a provider call.
const LIMIT: Duration = Duration::from_mins(1);
/// The pause after a failed call.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

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
        let mut failing = false;
        loop {
            let at = self.observers.clock.now();
            match self.list().await {
                Ok(instances) => {
                    failing = false;
                    self.observers.world.set_instances(at, instances);
                }
                // An incomplete listing is not used, because missing instances would count as terminated.
                Err(error) if failing => debug!(%error, "instances could not be listed again; trying again"),
                Err(error) => {
                    failing = true;
                    warn!(%error, "instances could not be listed; trying again");
                }
            }
            sleep(self.list_interval).await;
        }
    }

    async fn list(&self) -> Result<Vec<ListedInstance>, ProviderError> {
        let mut all = Vec::new();
        for provider in self.observers.providers.all() {
            let answer = timeout(LIMIT, provider.list()).await;
            let answer = answer
                .unwrap_or_else(|_| Err(ProviderError::Transient(format!("no answer within {LIMIT:?}"))));
            let instances = answer.inspect_err(|error| {
                let labels = [provider.name(), "list", error_label(error)];
                self.observers.metrics.provider_errors.with_label_values(&labels).inc();
            })?;
            all.extend(instances.into_iter().map(|instance| ListedInstance {
                provider_id: instance.provider_id,
                claim_uid: Uid(instance.key),
                node_class: instance.node_class,
                launched: instance.launched,
            }));
        }
        Ok(all)
    }

    /// Watches node classes, because a change may change the catalogue. Only metadata is read; providers read the rest.
    pub async fn node_classes(self) {
        join_all(self.observers.providers.node_class_kinds().map(|kind| self.watch_classes(kind))).await;
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
