//! The observed state: watches of the API server, catalogues and instances of providers, and the world that they update.
//!
//! Nothing here changes anything in the cluster or in a cloud.

mod backoff;
pub mod commitments;
mod fence;
mod inventory;
mod kinds;
mod last_seen;
pub mod lease_notes;
mod lists;
pub mod providers;
pub mod reader;
pub mod ready;
mod received;
mod templates;
mod watch;
pub mod world;

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_core::Profile;
use poolwright_core::batch::BatchWindow;
use poolwright_core::index::Change;
use poolwright_core::setbacks::Setbacks;

use crate::config::Config;
use crate::edge::clock::SharedClock;
use crate::edge::events::Events;
use crate::edge::metrics::Metrics;
use crate::edge::signal::{self, Sender};
use crate::edge::stoppable::Tasks;

use commitments::Committed;
use inventory::Inventory;
use providers::Providers;
use reader::Reader;
use ready::Ready;
use world::World;

/// Creates an empty world with these settings.
fn world(config: &Config, clock: SharedClock) -> Arc<World> {
    let signed = |duration| SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    let window = BatchWindow::new(config.batch_idle, config.batch_max);
    let setbacks = Setbacks::new(signed(config.setback_first), signed(config.setback_most));
    let world = World::new(window, setbacks, clock);
    world.change(|state| {
        state.index.set_disruption_budgets(config.disruption_budgets.as_slice().into());
        if spreads_pods(config) {
            state.index.keep_selectors();
        }
        Change::None
    });
    world
}

/// Returns whether a scheduler has default spread constraints.
fn spreads_pods(config: &Config) -> bool {
    config.profiles.values().any(Profile::spreads_pods)
}

/// The shared context of observers.
#[derive(Clone)]
pub struct ObserverContext {
    /// The API server.
    pub reader: Reader,
    /// The observed world.
    pub world: Arc<World>,
    /// The clouds.
    pub providers: Providers,
    /// Events about unreadable objects.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Time.
    pub clock: SharedClock,
    /// Our identity: replicas use different jitter.
    pub identity: Arc<str>,
    /// What is not synced yet: names of kinds, and [`inventory::CATALOGUES`].
    pub unsynced: Arc<Sender<Vec<&'static str>>>,
}

impl ObserverContext {
    /// Creates a context with an empty world.
    pub fn new(
        config: &Config,
        reader: Reader,
        providers: Providers,
        events: Events,
        metrics: Metrics,
        clock: SharedClock,
    ) -> Self {
        let names = kinds::watched(spreads_pods(config)).map(|kind| kind.name);
        let unsynced = Arc::new(signal::sender(names.chain([inventory::CATALOGUES]).collect()));
        let (world, identity) = (world(config, clock.clone()), config.lease.identity.as_str().into());
        Self { reader, world, providers, events, metrics, clock, identity, unsynced }
    }

    /// Returns the readiness of the observed state.
    pub fn ready(&self) -> Ready {
        Ready::new(self.unsynced.subscribe())
    }

    /// Starts the watches of the cluster and the clouds.
    pub fn start(self, config: &Config, committed: Committed, tasks: &mut Tasks) {
        if let Some(file) = &config.commitments {
            tasks.spawn("commitments", committed.keep(file.clone(), self.metrics.clone()));
        }
        for kind in kinds::watched(spreads_pods(config)) {
            tasks.spawn(kind.name, (kind.start)(self.clone()));
        }
        let inventory = Inventory {
            observers: self,
            catalogue_interval: config.catalogue_interval,
            list_interval: config.list_interval,
        };
        tasks.spawn("catalogues", inventory.clone().catalogues());
        tasks.spawn("instances", inventory.clone().instances());
        tasks.spawn("node classes", inventory.node_classes());
    }
}
