//! Plays one world from its seed to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::SignedDuration;
use poolwright_controller::{Config, Environment, Stoppable};
use poolwright_provider_contract::{Connected, crds};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::accidents::{Accident, Accidents, Rates, Site};
use crate::api::ApiServer;
use crate::cloud::{Cloud, CloudOf, SIM_NODE_CLASS};
use crate::cluster::{Cluster, Tally};
use crate::dice::Dice;
use crate::invariants::{Departures, Leadership, Memory, Scene, TOLD_WITHIN, Violation};
use crate::malformed;
use crate::poison::{self, Planning};
use crate::record::{Closed, Record};
use crate::scenario::{Blow, STATIC_POOL, Scenario};
use crate::time::{MachineClock, Time};
use crate::wire::{Process, Wire, Witness};

/// Seconds between two checks of the rules if nothing changes. They are also checked after every change.
const LOOK_EVERY: u64 = 30;

/// Returns the API path of the controllers' Lease.
pub(crate) fn lease_path() -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/default/leases/{}", poolwright_terms::keys::LEASE)
}

/// A world to play.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed of the world.
    pub seed: u64,
    /// The rates of faults.
    pub rates: Rates,
    /// If set, only these faults happen.
    pub only: Option<BTreeSet<Accident>>,
    /// Whether to keep all lines of the log.
    pub keep_record: bool,
    /// A bug of the controller, to check that the rules find it.
    pub sabotage: Option<Sabotage>,
}

/// A bug of the controller, simulated by changing its requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// It uses a new idempotency key for each launch.
    KeysChange,
    /// Its claims have no finalizer.
    FinalizersVanish,
    /// It treats a conflict on the Lease as success.
    LeaseConflictsSwallowed,
    /// Its terminations have no effect.
    NothingTerminates,
    /// It treats every launch as a stock-out.
    NothingIsOrdered,
    /// It deletes claims as soon as their nodes have joined, even with planned pods.
    GivesBackAtOnce,
    /// Its claims have no reason.
    ReasonsMissing,
    /// Its events get lost.
    NothingIsSaid,
    /// It ignores node selectors and scheduling gates of pods.
    SelectorsUnseen,
    /// It drains healthy nodes without waiting for their replacements.
    RoomNotAwaited,
    /// Its deletions of claims fail.
    NothingIsGivenBack,
    /// It acknowledges interruption messages without recording them.
    NoticesForgotten,
    /// Its evictions and deletions of pods have no effect.
    NobodyIsAsked,
    /// It lets no pod onto closed nodes.
    NobodyIsLetIn,
    /// It takes a terminating instance for gone.
    EndsNotAwaited,
    /// It does not see which volumes are attached.
    AttachmentsUnseen,
    /// It believes that dear offerings are cheap.
    PricesMisread,
    /// It does not see budgets for empty nodes.
    EmptyBudgetsUnseen,
    /// It believes that pools with replicas want none.
    ReplicasUnseen,
    /// It does not see that pods belong to gangs.
    GangsUnseen,
    /// It believes that pools leave the cloud no choice (`minValues`).
    ChoiceUnseen,
    /// It does not see the reservation.
    ReservationUnseen,
    /// Its calls of the cloud go on after it has lost the Lease. Its writes to the API server do not.
    CloudCallsGoOn,
    /// Its plans see the pods that it has set aside.
    NothingIsSetAside,
    /// It takes each listing at its word: what a listing lacks is gone, whatever the cloud says about the id.
    ListingsBelieved,
    /// It trusts its cloud, even if that knows none of its instances.
    DoubtsIgnored,
    /// Its task that lists instances dies when it panics, and the process goes on without it.
    PanicsUnnoticed,
    /// It replaces unhealthy nodes even if most nodes of their pool are unhealthy.
    BreakerIgnored,
    /// It does not see buffers of pools.
    BuffersUnseen,
    /// It believes the latest deadline of an interruption.
    LatestDeadlineKept,
    /// It believes that the limits of pools are higher.
    LimitsUnseen,
}

/// The result of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The broken rule, if any.
    pub violation: Option<Violation>,
    /// The faults that happened.
    pub accidents: Vec<Accident>,
    /// The log.
    pub record: Closed,
    /// The world time that passed.
    pub simulated: Duration,
    /// Counts of pods and nodes.
    pub tally: Tally,
}

/// Plays a world. Equal setups have equal outcomes. Errors: the runtime cannot be created.
pub fn run(setup: &Setup) -> std::io::Result<Outcome> {
    run_until(setup, Duration::MAX)
}

/// Plays a world up to this time, and ignores rules broken later. Errors: the runtime cannot be created.
pub fn run_until(setup: &Setup, until: Duration) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    // Created inside the runtime: outside, time is the machine's.
    let outcome = runtime.block_on(async { World::new(setup).play(until).await });
    // Requests on their way end with the world.
    runtime.shutdown_background();
    Ok(outcome)
}

/// How long after a panic of one of its tasks a controller may end: it drains first, and may be paused or cut off meanwhile.
const ENDS_WITHIN: Duration = Duration::from_mins(5);
/// The time until the kubelet restarts a container that has ended.
const RESTARTS: Duration = Duration::from_secs(10);

struct Replica {
    process: Arc<Process>,
    clock: Arc<MachineClock>,
    task: JoinHandle<anyhow::Result<()>>,
}

struct World {
    seed: u64,
    time: Time,
    record: Record,
    accidents: Accidents,
    server: ApiServer,
    cloud: Arc<Cloud>,
    cluster: Cluster,
    scenario: Scenario,
    leadership: Leadership,
    departures: Departures,
    planning: Planning,
    witness: Witness,
    sent: Arc<AtomicU64>,
    replicas: Vec<Option<Replica>>,
    incarnations: u64,
    plans: Vec<(Duration, Plan)>,
    calendars_set: Vec<Duration>,
    started: Vec<Duration>,
    withdrawn: Vec<Duration>,
    sabotage: Option<Sabotage>,
}

/// A planned event of the world.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Blow(Blow),
    Start { replica: usize, renamed: bool },
    Heal(usize),
    SetRight(usize),
    Peace,
}

impl World {
    fn new(setup: &Setup) -> Self {
        let time = Time::beginning();
        let record = Record::new(time, setup.keep_record);
        let seed = setup.seed;
        let scenario = Scenario::draw(seed, setup.rates.events_per_hour);
        let accidents = Accidents::new(seed, setup.rates, setup.only.clone());
        let server = ApiServer::new(&crds([SIM_NODE_CLASS]), Arc::new(move || time.now()));
        let cloud = Cloud::new(
            (scenario.catalogue.clone(), scenario.quotas.clone()),
            time,
            accidents.clone(),
            record.clone(),
            seed,
        );
        cloud.choose_freely();
        if let Some(reservation) = scenario.reservation.clone() {
            cloud.reserve(reservation);
        }
        if scenario.jobs.iter().any(|job| job.gang.is_some()) {
            server.serve_pod_groups();
        }
        let dice = Dice::new(seed, "cluster");
        let jobs = scenario.jobs.clone();
        let mut cluster = Cluster::new(server.clone(), cloud.clone(), time, record.clone(), dice, jobs);
        cluster.sabotage = setup.sabotage;
        let leadership = Leadership::default();
        let departures = Departures::default();
        let leads = leadership.witness(server.clone(), lease_path(), time);
        let departs = departures.witness(server.clone(), time);
        let witness: Witness = Arc::new(move |process, method, path| {
            leads(process, method, path);
            departs(process, method, path);
        });
        let mut plans: Vec<(Duration, Plan)> =
            scenario.blows.iter().map(|(at, blow)| (*at, Plan::Blow(*blow))).collect();
        plans.push((scenario.chaos, Plan::Peace));
        let planning = Planning::new(server.clone(), time, setup.sabotage);
        let replicas = (0..scenario.replicas).map(|_| None).collect();
        let sent = Arc::default();
        Self {
            seed,
            time,
            record,
            accidents,
            server,
            cloud,
            cluster,
            scenario,
            leadership,
            departures,
            planning,
            witness,
            sent,
            replicas,
            incarnations: 0,
            plans,
            calendars_set: Vec::new(),
            started: Vec::new(),
            withdrawn: Vec::new(),
            sabotage: setup.sabotage,
        }
    }

    async fn play(mut self, until: Duration) -> Outcome {
        for object in self.scenario.objects.clone() {
            self.create(&object);
        }
        for replica in 0..self.replicas.len() {
            self.start(replica, false);
        }
        let mut memory = Memory::default();
        let mut peace: Option<Duration> = None;
        let (mut troubles, mut troubled) = (0, Duration::ZERO);
        let (mut disturbances, mut disturbed) = (0, Duration::ZERO);
        let (mut blows, mut blown) = (0, Duration::ZERO);
        let mut looked = (0, 0, 0);
        let violation = loop {
            let pause = self.next_plan();
            tokio::select! {
                biased;
                () = self.cluster.step() => {}
                () = tokio::time::sleep(pause) => {}
            }
            while let Some(plan) = self.due_plan() {
                if matches!(plan, Plan::Peace) {
                    peace = Some(self.time.elapsed());
                }
                self.carry_out(plan);
            }
            if let Some(violation) = self.ended_controller().await {
                break Some(violation);
            }
            let seen =
                (self.server.version(), self.cloud.version(), self.time.elapsed().as_secs() / LOOK_EVERY);
            if seen == looked && peace.is_none() {
                continue;
            }
            looked = seen;
            let machines = self.cloud.machines();
            let struck = self.accidents.struck(&[Site::Stock, Site::Instance, Site::Cluster, Site::Panic]);
            if struck > troubles {
                (troubles, troubled) = (struck, self.time.elapsed());
            }
            let struck = self.accidents.struck(&[Site::Cluster, Site::Panic]);
            if struck > blows {
                (blows, blown) = (struck, self.time.elapsed());
            }
            let sites = [Site::Request, Site::Watch, Site::Cloud, Site::Cluster, Site::Cache, Site::Panic];
            let struck = self.accidents.struck(&sites);
            if struck > disturbances {
                (disturbances, disturbed) = (struck, self.time.elapsed());
            }
            let failed_plans = self.planning.failed();
            let processes: Vec<&Process> = self.replicas.iter().flatten().map(|one| &*one.process).collect();
            let scene = Scene {
                cluster: &self.cluster,
                machines: &machines,
                now: self.time.elapsed(),
                // While the cloud hides its instances, a controller that doubts it does nothing.
                troubled: troubled.max(self.cloud.blind_until().min(self.time.elapsed())),
                blown,
                disturbed,
                calendars_set: &self.calendars_set,
                started: &self.started,
                processes: &processes,
                failed_plans: &failed_plans,
                withdrawn: &self.withdrawn,
                quiet_since: peace,
            };
            if let Some(violation) = self
                .leadership
                .violation()
                .or_else(|| self.departures.violation())
                .or_else(|| memory.check(&scene))
            {
                break Some(violation);
            }
            let at_rest = machines.is_empty()
                && self.cluster.claims.is_empty()
                && self.cluster.view().nodes.is_empty()
                && self.cluster.is_all_done();
            // Pods that fit no offering still need an event with the reason.
            let pods_wait = self.cluster.view().pods.unbound().next().is_some();
            let heard = |since: Duration| {
                !pods_wait || self.time.elapsed().saturating_sub(since) > TOLD_WITHIN + Duration::from_mins(1)
            };
            if at_rest && peace.is_some_and(heard) || self.time.elapsed() >= until {
                break None;
            }
        };
        if let Some(violation) = &violation {
            self.record.say(format_args!("VIOLATION {violation}"));
        }
        Outcome {
            seed: self.seed,
            violation,
            accidents: self.accidents.happened(),
            record: self.record.close(),
            simulated: self.time.elapsed(),
            tally: self.cluster.tally,
        }
    }

    fn create(&mut self, object: &Value) {
        let answer = self
            .server
            .create(object)
            .unwrap_or_else(|refusal| panic!("an object of the scenario is refused: {refusal}"));
        if object["kind"] == "DaemonSet" {
            self.cluster.add_daemon_set(answer);
        } else {
            self.know_pool(answer);
        }
    }

    // === Controllers ===

    fn start(&mut self, replica: usize, renamed: bool) {
        self.incarnations += 1;
        self.started.push(self.time.elapsed());
        let identity = if renamed {
            format!("controller-{replica}-{}", self.incarnations)
        } else {
            format!("controller-{replica}")
        };
        let process = Process::new(&identity, self.incarnations);
        let clock = Arc::new(MachineClock::new(self.time));
        let (server, accidents, record) = (self.server.clone(), self.accidents.clone(), self.record.clone());
        let wire = Wire {
            sent: self.sent.clone(),
            witness: self.witness.clone(),
            sabotage: self.sabotage,
            ..Wire::new(server, process.clone(), accidents, self.seed, record)
        };
        let (cloud, sabotage) = (self.cloud.clone(), self.sabotage);
        let provider = Arc::new(CloudOf {
            cloud,
            kinds: vec![SIM_NODE_CLASS.kind],
            process: process.clone(),
            witness: self.witness.clone(),
            sabotage,
        });
        let mut config = Config::new(identity, "default");
        config.http = None;
        // Worlds last hours, so offerings that were out of stock are retried within ten minutes.
        config.setback_most = Duration::from_mins(10);
        let stoppable = Stoppable::by(process.clone());
        let environment = Environment {
            clock: clock.clone(),
            spawner: poison::in_line(),
            plan: self.planning.function(),
            stoppable: stoppable.clone(),
        };
        self.record.say(format_args!("{}.{} starts", process.identity, process.incarnation));
        let client = wire.client();
        let run = poolwright_controller::run_in(
            environment,
            config,
            client,
            vec![Connected { provider, background: None }],
            std::future::pending(),
        );
        self.replicas[replica] = Some(Replica { process, clock, task: tokio::spawn(stoppable.run(run)) });
    }

    /// Restarts a controller that ended because one of its tasks panicked lately. Any other that ends by itself is a violation.
    async fn ended_controller(&mut self) -> Option<Violation> {
        let is_ended = |one: &Option<Replica>| one.as_ref().is_some_and(|one| one.task.is_finished());
        let replica = self.replicas.iter().position(is_ended)?;
        let ended = self.replicas[replica].take()?;
        let seen = match ended.task.await {
            Ok(Ok(())) => "it returned".to_owned(),
            Ok(Err(error)) => format!("{error:#}"),
            Err(panic) => panic.to_string(),
        };
        let at = self.time.elapsed();
        if ended.process.panicked().is_some_and(|panicked| at.saturating_sub(panicked) <= ENDS_WITHIN) {
            self.record.say(format_args!("controller {replica} ends: {seen}"));
            ended.process.kill();
            self.later(RESTARTS, Plan::Start { replica, renamed: false });
            return None;
        }
        Some(Violation { rule: "a controller never ends by itself", seen, at })
    }

    // === Faults and actions of users ===

    fn next_plan(&self) -> Duration {
        let next = self.plans.iter().map(|(at, _)| *at).min().unwrap_or(Duration::MAX);
        // Rules are also checked now and then if nothing happens.
        next.saturating_sub(self.time.elapsed()).min(Duration::from_secs(30))
    }

    fn due_plan(&mut self) -> Option<Plan> {
        let now = self.time.elapsed();
        let due = self.plans.iter().position(|(at, _)| *at <= now)?;
        Some(self.plans.remove(due).1)
    }

    fn later(&mut self, after: Duration, plan: Plan) {
        self.plans.push((self.time.elapsed() + after, plan));
    }

    fn carry_out(&mut self, plan: Plan) {
        match plan {
            Plan::Blow(blow) => {
                if self.accidents.at(Site::Cluster, |_, _| Some(())).is_some() {
                    self.record.say(format_args!("BLOW {blow:?}"));
                    self.strike(blow);
                }
            }
            Plan::Start { replica, renamed } => self.start(replica, renamed),
            Plan::Heal(replica) => {
                if let Some(replica) = &self.replicas[replica] {
                    replica.process.cut_off(false);
                }
            }
            Plan::SetRight(replica) => {
                if let Some(replica) = &self.replicas[replica] {
                    replica.clock.set_right();
                    self.calendars_set.push(self.time.elapsed());
                }
            }
            Plan::Peace => {
                self.accidents.end();
                self.record.say("PEACE");
                self.end_static_pool();
            }
        }
    }

    /// Deletes a claim, like a user.
    fn withdraw(&mut self, number: usize) {
        let there: Vec<&String> = self.cluster.claims.keys().collect();
        let Some(name) = number.checked_rem(there.len()).map(|at| there[at].clone()) else { return };
        let path = format!("/apis/poolwright.dev/v1alpha1/nodeclaims/{name}");
        self.record.say(format_args!("somebody deletes claim {name}"));
        self.server.ask(&axum::http::Method::DELETE, &path, "application/json", &Value::Null);
        self.withdrawn.push(self.time.elapsed());
    }

    /// Scales the pool with a fixed number of nodes to none, like a user, if there is one.
    fn end_static_pool(&mut self) {
        let path = format!("/apis/poolwright.dev/v1alpha1/nodepools/{STATIC_POOL}");
        let none = json!({"spec": {"replicas": 0}});
        let (code, pool) =
            self.server.ask(&axum::http::Method::PATCH, &path, "application/merge-patch+json", &none);
        if code == 200 {
            self.know_pool(pool);
        }
    }

    fn know_pool(&mut self, pool: Value) {
        if let Ok(pool) = serde_json::from_value::<poolwright_api::NodePool>(pool) {
            self.cluster.index.apply_pool(poolwright_intake::node_pool(&pool));
        }
    }

    /// Changes a label in the template of a pool, like a user.
    fn change_pool(&mut self, number: usize) {
        let path = "/apis/poolwright.dev/v1alpha1/nodepools/first";
        let patch = json!({"spec": {"template": {"metadata": {"labels": {"change": number.to_string()}}}}});
        self.record.say(format_args!("somebody changes pool first"));
        self.server.ask(&axum::http::Method::PATCH, path, "application/merge-patch+json", &patch);
        // All nodes of the pool drift and are replaced, as if their claims were deleted.
        let nodes = self.cluster.claims.len();
        self.withdrawn.extend(std::iter::repeat_n(self.time.elapsed(), nodes));
    }

    fn strike(&mut self, blow: Blow) {
        match blow {
            Blow::Crash { replica, away, renamed } => {
                // A controller that is down already cannot crash.
                if let Some(crashed) = self.replicas[replica].take() {
                    crashed.process.kill();
                    crashed.task.abort();
                    self.later(away, Plan::Start { replica, renamed });
                }
            }
            Blow::Cut { replica, length } => {
                if let Some(cut) = &self.replicas[replica] {
                    cut.process.cut_off(true);
                    self.later(length, Plan::Heal(replica));
                }
            }
            Blow::Jump { replica, seconds, length } => {
                if let Some(jumped) = &self.replicas[replica] {
                    jumped.clock.jump(SignedDuration::from_secs(seconds));
                    self.calendars_set.push(self.time.elapsed());
                    self.later(length, Plan::SetRight(replica));
                }
            }
            Blow::Compact => self.server.compact(),
            Blow::Withdraw { number } => self.withdraw(number),
            Blow::Change { number } => self.change_pool(number),
            Blow::Malformed { sort, number } => {
                let (collection, object) = malformed::object(sort, number);
                self.server.plant(collection, object);
            }
        }
    }
}
