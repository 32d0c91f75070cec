//! A world driven by a test through a Kubernetes client, with one controller and no faults.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use poolwright_catalog::Catalogue;
use poolwright_controller::{Config, Environment, Stoppable};
use poolwright_core::plan::plan;
use poolwright_provider_contract::{Connected, NodeClass, crds};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::accidents::{Accidents, Rates};
use crate::api::ApiServer;
use crate::cloud::{Cloud, CloudOf, Quotas, kinds};
use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::patience::Patience;
use crate::record::Record;
use crate::time::{MachineClock, Time};
use crate::wire::{Process, Wire, unwatched};

/// The identity of the controller.
const IDENTITY: &str = "controller";

/// What the controller's clock advances by with each look of the solver: about the time of the work in between.
const LOOK: Duration = Duration::from_micros(500);

/// A cluster in memory with its own time. It ends when it is dropped with its runtime.
pub struct Sandbox {
    server: ApiServer,
    cloud: Arc<Cloud>,
    time: Time,
    cluster: JoinHandle<()>,
    controller: JoinHandle<anyhow::Result<()>>,
}

/// Runs a test of a sandbox on a clock that jumps to the next event. Errors: the runtime cannot be created.
pub fn play<T>(act: impl AsyncFnOnce() -> T) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let done = runtime.block_on(act());
    runtime.shutdown_background();
    Ok(done)
}

impl Sandbox {
    /// Starts a cluster with these node classes, each of which sells the whole catalogue. The seed determines all durations. Call
    /// this inside [`play`].
    pub fn start(catalogue: Arc<Catalogue>, classes: &[NodeClass], seed: u64) -> Self {
        let time = Time::beginning();
        let record = Record::new(time, false);
        let accidents = Accidents::new(seed, Rates::NONE, None);
        let server = ApiServer::new(&crds(classes.iter().copied()), Arc::new(move || time.now()));
        let cloud = Cloud::new((catalogue, Quotas::new()), time, accidents.clone(), record.clone(), seed);
        let dice = Dice::new(seed, "cluster");
        let mut cluster = Cluster::new(server.clone(), cloud.clone(), time, record.clone(), dice, Vec::new());
        let cluster = tokio::spawn(async move {
            loop {
                cluster.step().await;
            }
        });
        let process = Process::new(IDENTITY, 1);
        let wire = Wire::new(server.clone(), process.clone(), accidents, seed, record);
        let provider = Arc::new(CloudOf {
            cloud: cloud.clone(),
            kinds: kinds(classes),
            process,
            witness: unwatched(),
            sabotage: None,
        });
        let mut config = Config::new(IDENTITY, "default");
        config.http = None;
        // The solver runs on this thread, and virtual time stands still meanwhile.
        let clock = Patience::new(MachineClock::new(time), LOOK);
        let environment = Environment {
            clock: clock.clone(),
            spawner: clock.spawner(),
            plan: Arc::new(plan),
            stoppable: Stoppable::default(),
        };
        let shutdown = std::future::pending();
        let clouds = vec![Connected { provider, background: None }];
        let run = poolwright_controller::run_in(environment, config, wire.client(), clouds, shutdown);
        Self { server, cloud, time, cluster, controller: tokio::spawn(run) }
    }

    /// Makes a client of the API server.
    pub fn client(&self) -> Client {
        self.server.client()
    }

    /// Creates an object. Errors: the server's message if it refuses the object.
    pub fn create(&self, object: &Value) -> Result<Value, String> {
        self.server.create(object)
    }

    /// Returns the API server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the cloud.
    pub fn cloud(&self) -> &Arc<Cloud> {
        &self.cloud
    }

    /// Returns the clock of the world.
    pub fn time(&self) -> Time {
        self.time
    }

    /// Returns the number of running instances.
    pub fn instances(&self) -> usize {
        self.cloud.machines().len()
    }

    /// Returns the time since the start, in world time.
    pub fn elapsed(&self) -> Duration {
        self.time.elapsed()
    }

    /// Returns whether all components still run. They never end by themselves.
    pub fn is_alive(&self) -> bool {
        !self.cluster.is_finished() && !self.controller.is_finished()
    }
}
