//! Replays a workload through the real controller, to find its cost and the waiting times of its pods.
//!
//! The world is that of [`crate::run`], with one controller and, by default, without faults. The cloud takes spot machines back at
//! the rates of their offerings. The result is the history of every machine and pod, not a check of rules.

mod arrivals;
mod ledger;
mod seller;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_controller::{Config, Environment, Stoppable};
use poolwright_core::plan::{MinValuesPolicy, plan};
use poolwright_core::{Arrivals, Gaps, Lives};
use poolwright_provider_contract::{Connected, NodeClass, crds};
use poolwright_report::replay::History;
use poolwright_terms::NodeClassRef;
use serde_json::{Value, json};

use crate::accidents::{Accidents, Rates};
use crate::api::ApiServer;
use crate::cloud::{Cloud, CloudOf, Quotas, kinds};
use crate::cluster::{Cluster, JobPlan};
use crate::dice::Dice;
use crate::patience::Patience;
use crate::record::Record;
use crate::time::{MachineClock, Time, first_day};
use crate::wire::{Process, Wire, unwatched};
pub use arrivals::SeededDelays;
use ledger::Ledger;
use seller::Seller;

/// The namespace of the controller.
const NAMESPACE: &str = "default";
/// The duration of the controller's Lease.
const LEASE: Duration = Duration::from_hours(1);

/// What the controller's clock advances by with each look of the solver: a solve takes a few hundredths of the usual three seconds.
const LOOK: Duration = Duration::from_millis(50);

/// A replay to run.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The seed for all durations.
    pub seed: u64,
    /// The rates of faults.
    pub rates: Rates,
    /// All offerings.
    pub catalogue: Arc<Catalogue>,
    /// The kinds of node class in the cluster.
    pub classes: Vec<NodeClass>,
    /// The part of the catalogue that each node class sells.
    pub sold: BTreeMap<NodeClassRef, Arc<Catalogue>>,
    /// The initial objects, with node classes and pools first.
    pub objects: Vec<Value>,
    /// The future work.
    pub jobs: Vec<JobPlan>,
    /// Whether nodes are bought for which `minValues` of their pool is not met.
    pub min_values: MinValuesPolicy,
    /// The most that the nodes of a pool without a money limit of its own may cost.
    pub default_usd_per_hour: Option<UsdPerHour>,
    /// The length of the replay, in world time.
    pub length: Duration,
}

/// A replay that failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The runtime cannot be created.
    #[error("the world cannot be made: {0}")]
    Runtime(#[from] io::Error),
    /// The API server refuses an object.
    #[error("{0}")]
    Refused(String),
    /// The controller ended by itself, which is a bug.
    #[error("the controller ended by itself after {after:?}: {why}")]
    ControllerEnded {
        /// The world time.
        after: Duration,
        /// The reason.
        why: String,
    },
}

/// Returns the API server's refusals of these objects. Empty if it accepts them all.
pub fn refusals(objects: &[Value], classes: &[NodeClass]) -> Vec<String> {
    let server = empty_server(classes);
    objects.iter().filter_map(|object| server.create(object).err()).collect()
}

/// Returns the fields of each object that the API server refuses, each with the reason. The field is empty if it refuses the object
/// as a whole. The server looks at the name first, and only at the rest of an object with a good name, so the rest is shown to it
/// under another name.
pub fn refused_fields(objects: &[&Value], classes: &[NodeClass]) -> Vec<Vec<(String, String)>> {
    let server = empty_server(classes);
    let of = |(at, object): (usize, &&Value)| {
        let mut refused = server.refused_fields(object);
        if refused.iter().any(|(field, _)| field == "metadata.name") {
            let mut renamed = (*object).clone();
            renamed["metadata"]["name"] = format!("renamed-{at}").into();
            refused.extend(server.refused_fields(&renamed));
        }
        refused
    };
    objects.iter().enumerate().map(of).collect()
}

fn empty_server(classes: &[NodeClass]) -> ApiServer {
    let now = first_day();
    let server = ApiServer::new(&crds(classes.iter().copied()), Arc::new(move || now));
    server.serve_pod_groups();
    server
}

/// Returns the object in which the controller keeps what it knows about the durations of pods.
pub fn kept_lives(lives: &Lives) -> Value {
    let (gaps, arrivals, until) = (Gaps::default(), Arrivals::default(), jiff::Timestamp::UNIX_EPOCH);
    let data = poolwright_controller::stored_lives(lives, &gaps, &arrivals, until, Vec::new());
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": poolwright_controller::LIVES, "namespace": NAMESPACE},
        "data": {"lives.json": data}})
}

impl Replay {
    /// Runs the replay. Calls `tell` with its progress; a return value of `false` stops it. Equal replays return equal results.
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
        if self.objects.iter().any(|object| object["kind"] == "PodGroup") {
            server.serve_pod_groups();
        }
        let cloud = Cloud::new(
            (self.catalogue.clone(), Quotas::new()),
            time,
            accidents.clone(),
            record.clone(),
            self.seed,
        );
        cloud.reclaim_spot();
        let dice = Dice::new(self.seed, "cluster");
        let mut cluster =
            Cluster::new(server.clone(), cloud.clone(), time, record.clone(), dice, self.jobs.clone());
        cluster.daemons_first = true;
        for object in &self.objects {
            let stored = server.create(object).map_err(ReplayError::Refused)?;
            if object["kind"] == "DaemonSet" {
                cluster.add_daemon_set(stored);
            } else {
                cluster.know(&stored);
            }
        }
        // The objects above are the user's.
        server.trust_writers();
        cluster.bind_at_once();
        let mut ledger = Ledger::new(&server);
        let process = Process::new("controller", 1);
        let wire = Wire::new(server, process.clone(), accidents, self.seed, record);
        let stoppable = Stoppable::by(process.clone());
        let cloud_of = CloudOf {
            cloud: cloud.clone(),
            kinds: kinds(&self.classes),
            process,
            witness: unwatched(),
            sabotage: None,
        };
        let seller = Arc::new(Seller { cloud: cloud_of, sold: self.sold.clone() });
        let mut config = Config::new("controller", NAMESPACE);
        config.http = None;
        config.min_values = self.min_values;
        config.default_usd_per_hour = self.default_usd_per_hour;
        // No other controller wants to lead, and frequent renewals would be most of the events in a quiet week.
        config.lease = config.lease.lasting(LEASE);
        let clock = Patience::new(MachineClock::new(time), LOOK);
        let environment = Environment {
            clock: clock.clone(),
            spawner: clock.spawner(),
            plan: Arc::new(plan),
            stoppable: stoppable.clone(),
        };
        let controller = poolwright_controller::run_in(
            environment,
            config,
            wire.client(),
            vec![Connected { provider: seller, background: None }],
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
                return Ok(ledger.close(now, cluster.view()));
            }
        }
    }
}
