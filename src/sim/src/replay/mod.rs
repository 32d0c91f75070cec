//! A workload played through the controller: what it would have cost, how long pods would have waited.
//!
//! The same world as that of [`crate::run`], with one controller and, unless asked for, without accidents; what comes of it is
//! not whether rules hold but what happened to every machine and every pod.

mod ledger;
mod patience;
mod seller;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::Catalogue;
use poolwright_controller::{Config, Environment, Stoppable};
use poolwright_provider_contract::{NodeClass, crds};
use poolwright_report::replay::History;
use poolwright_terms::NodeClassRef;
use serde_json::Value;

use crate::accidents::{Accidents, Rates};
use crate::api::ApiServer;
use crate::cloud::{Cloud, CloudOf, Quotas, kinds};
use crate::cluster::{Cluster, JobPlan};
use crate::dice::Dice;
use crate::record::Record;
use crate::time::{MachineClock, Time, first_day};
use crate::wire::{Process, Wire};
use ledger::Ledger;
use patience::Patience;
use seller::Seller;

/// For how long the controller holds its Lease.
const LEASE: Duration = Duration::from_hours(1);

/// What to play.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What decides how long things take.
    pub seed: u64,
    /// How often things go wrong.
    pub rates: Rates,
    /// Everything that is sold.
    pub catalogue: Arc<Catalogue>,
    /// The kinds of node class of the cluster.
    pub classes: Vec<NodeClass>,
    /// Which part of the catalogue each node class sells.
    pub sold: BTreeMap<NodeClassRef, Arc<Catalogue>>,
    /// Objects that are there from the beginning: node classes and pools first.
    pub objects: Vec<Value>,
    /// Work to come.
    pub jobs: Vec<JobPlan>,
    /// For how long.
    pub length: Duration,
}

/// Why a replay came to no end.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// There is no runtime to play it in.
    #[error("the world cannot be made: {0}")]
    Runtime(#[from] io::Error),
    /// The API server takes an object for wrong.
    #[error("{0}")]
    Refused(String),
    /// The controller has ended, which would be a bug.
    #[error("the controller ended by itself after {after:?}: {why}")]
    ControllerEnded {
        /// When.
        after: Duration,
        /// Why.
        why: String,
    },
}

/// What the API server says against these objects, as it would to their author; empty when it takes them all.
pub fn refusals(objects: &[Value], classes: &[NodeClass]) -> Vec<String> {
    let now = first_day();
    let server = ApiServer::new(&crds(classes.iter().copied()), Arc::new(move || now));
    objects.iter().filter_map(|object| server.create(object).err()).collect()
}

impl Replay {
    /// Plays it. `tell` hears how far it is, and says whether to go on. Two replays that are equal come to the same.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn run(&self, tell: &mut dyn FnMut(Duration) -> bool) -> Result<History, ReplayError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
        let outcome = runtime.block_on(self.play(tell));
        runtime.shutdown_background();
        outcome
    }

    async fn play(&self, tell: &mut dyn FnMut(Duration) -> bool) -> Result<History, ReplayError> {
        let time = Time::beginning();
        let record = Record::new(time, false);
        let accidents = Accidents::new(self.seed, self.rates, None);
        let server = ApiServer::new(&crds(self.classes.iter().copied()), Arc::new(move || time.now()));
        for object in &self.objects {
            server.create(object).map_err(ReplayError::Refused)?;
        }
        let cloud = Cloud::new(
            (self.catalogue.clone(), Quotas::new()),
            time,
            accidents.clone(),
            record.clone(),
            self.seed,
        );
        let dice = Dice::new(self.seed, "cluster");
        let mut cluster =
            Cluster::new(server.clone(), cloud.clone(), time, record.clone(), dice, self.jobs.clone());
        let mut ledger = Ledger::new(&server);
        let process = Process::new("controller", 1);
        let wire = Wire::new(server, process.clone(), accidents, self.seed, record);
        let stoppable = Stoppable::by(process.clone());
        let cloud_of = CloudOf { cloud: cloud.clone(), kinds: kinds(&self.classes), process, sabotage: None };
        let seller = Arc::new(Seller { cloud: cloud_of, sold: self.sold.clone() });
        let mut config = Config::new("controller", "default");
        config.http = None;
        // Nobody else wants to lead, and renewals every few seconds would be most of what happens in a quiet week.
        config.lease = config.lease.lasting(LEASE);
        let clock = Patience::new(MachineClock::new(time));
        let environment =
            Environment { clock: clock.clone(), spawner: clock.spawner(), stoppable: stoppable.clone() };
        let controller = poolwright_controller::run_in(
            environment,
            config,
            wire.client(),
            vec![seller],
            std::future::pending(),
        );
        let mut controller = tokio::spawn(stoppable.run(controller));
        loop {
            let left = self.length.saturating_sub(time.elapsed());
            tokio::select! {
                biased;
                ended = &mut controller => {
                    let why = match ended {
                        Ok(Ok(())) => "it returned".to_owned(),
                        Ok(Err(error)) => format!("{error:#}"),
                        Err(panic) => panic.to_string(),
                    };
                    return Err(ReplayError::ControllerEnded { after: time.elapsed(), why });
                }
                () = cluster.step() => {}
                () = tokio::time::sleep(left) => {}
            }
            let now = time.elapsed().min(self.length);
            ledger.look(&cloud, now);
            if now >= self.length || !tell(now) {
                return Ok(ledger.close(now));
            }
        }
    }
}
