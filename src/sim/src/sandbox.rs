//! A world driven by a test through a Kubernetes client, with one controller at a time and no faults.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use poolwright_catalog::Catalogue;
use poolwright_controller::{Config, Environment, Stoppable};
use poolwright_core::plan::plan;
use poolwright_provider_contract::{Connected, NodeClass, crds};
use serde_json::Value;
use tokio::sync::Notify;
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

/// What the controller's clock advances by with each look of the solver: about the time of the work in between.
const LOOK: Duration = Duration::from_micros(500);

/// A cluster in memory with its own time. It ends when it is dropped with its runtime.
pub struct Sandbox {
    around: Surroundings,
    cluster: JoinHandle<()>,
    controller: Controller,
}

/// What controllers talk to.
struct Surroundings {
    server: ApiServer,
    cloud: Arc<Cloud>,
    time: Time,
    accidents: Accidents,
    record: Record,
    classes: Vec<NodeClass>,
    seed: u64,
}

/// A controller that was started.
struct Controller {
    process: Arc<Process>,
    stop: Arc<Notify>,
    run: JoinHandle<anyhow::Result<()>>,
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
        let classes = classes.to_vec();
        let around = Surroundings { server, cloud, time, accidents, record, classes, seed };
        let controller = around.start("controller", 1);
        Self { around, cluster, controller }
    }

    /// Stops the controller like a signal to its process, and waits until it has ended. Call this once.
    ///
    /// # Errors
    /// It ended with this error.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.controller.stop.notify_one();
        (&mut self.controller.run).await?
    }

    /// Kills the controller.
    pub fn kill(&self) {
        self.controller.process.kill();
        self.controller.run.abort();
    }

    /// Starts another controller, after the first one was stopped or killed.
    pub fn succeed(&mut self) {
        self.controller = self.around.start("successor", 2);
    }

    /// Makes a client of the API server.
    pub fn client(&self) -> Client {
        self.around.server.client()
    }

    /// Creates an object. Errors: the server's message if it refuses the object.
    pub fn create(&self, object: &Value) -> Result<Value, String> {
        self.around.server.create(object)
    }

    /// Returns the API server.
    pub fn server(&self) -> &ApiServer {
        &self.around.server
    }

    /// Returns the cloud.
    pub fn cloud(&self) -> &Arc<Cloud> {
        &self.around.cloud
    }

    /// Returns the clock of the world.
    pub fn time(&self) -> Time {
        self.around.time
    }

    /// Returns the number of running instances.
    pub fn instances(&self) -> usize {
        self.around.cloud.machines().len()
    }

    /// Returns the time since the start, in world time.
    pub fn elapsed(&self) -> Duration {
        self.around.time.elapsed()
    }

    /// Returns whether all components still run. They never end by themselves.
    pub fn is_alive(&self) -> bool {
        !self.cluster.is_finished() && !self.controller.run.is_finished()
    }
}

impl Surroundings {
    /// Starts a controller with this identity.
    fn start(&self, identity: &str, incarnation: u64) -> Controller {
        let process = Process::new(identity, incarnation);
        let (server, accidents, record) = (self.server.clone(), self.accidents.clone(), self.record.clone());
        let wire = Wire::new(server, process.clone(), accidents, self.seed, record);
        let provider = Arc::new(CloudOf {
            cloud: self.cloud.clone(),
            kinds: kinds(&self.classes),
            process: process.clone(),
            witness: unwatched(),
            sabotage: None,
        });
        let mut config = Config::new(identity, "default");
        config.http = None;
        // The solver runs on this thread, and virtual time stands still meanwhile.
        let clock = Patience::new(MachineClock::new(self.time), LOOK);
        let environment = Environment {
            clock: clock.clone(),
            spawner: clock.spawner(),
            plan: Arc::new(plan),
            stoppable: Stoppable::default(),
        };
        let stop = Arc::new(Notify::new());
        let told = stop.clone();
        let shutdown = async move { told.notified().await };
        let clouds = vec![Connected { provider, background: None }];
        let run = poolwright_controller::run_in(environment, config, wire.client(), clouds, shutdown);
        Controller { process, stop, run: tokio::spawn(run) }
    }
}
