//! The planning loop of the leader: demand -> batch window -> snapshot -> plan -> claims.
//!
//! Nothing is planned before all watches are synced, the catalogues are known, we lead, and the claims were read from the API
//! server in this term, because watches may lag behind the last leader's writes. Claims created here are in the index before
//! the next plan begins.
//!
//! A plan that is stale, because pods changed while it was made, is still safe: its nodes become free room that the next plan
//! uses or the lifecycle terminates, and new pods wait for the next plan.
//!
//! Consolidation runs after a plan that buys nothing, so that only one loop buys.

mod failures;

use std::sync::Arc;
use std::time::Duration;

use kube::api::ListParams;
use poolwright_api::NodeClaim;
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_core::disruption::follow;
use poolwright_core::plan::{OverTime, Plan, PlanOptions};
use poolwright_core::{Action, Event, EventType, ObjectKey, Snapshot, Subject};
use poolwright_solver::StopSignal;
use poolwright_terms::Reason;
use tokio::time::sleep;
use tracing::{debug, error, info, warn};

use super::compute::Compute;
use super::consolidation::Consolidation;
use super::leader_loop::LeaderLoop;
use super::plan_events::PlanEvents;
use super::quarantine::Quarantine;
pub use failures::PlanFailure;

use crate::config::Config;
use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;
use crate::executor::{CreateResult, Executor};
use crate::leader::LeaderTerm;
use crate::observed::commitments::Committed;

/// The pause after a plan that could not be carried out.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// The time until the next plan while room is made for waiting pods.
const ROOM_AGAIN: Duration = Duration::from_secs(5);
/// The time until the next plan after pods were nominated to room that others will make. If the scheduler was trying one of them, it
/// clears the nomination meanwhile.
const NOMINATED_AGAIN: Duration = Duration::from_secs(2);
/// The longest wait, so that changes of the wall clock are noticed.
const LONGEST: Duration = Duration::from_mins(1);

/// The planning loop.
pub struct Planner {
    config: Arc<Config>,
    committed: Committed,
    context: Context,
    executor: Arc<Executor>,
    compute: Compute,
    plan_events: PlanEvents,
    consolidation: Consolidation,
    /// The options of plans in this term.
    options: PlanOptions,
    quarantine: Quarantine,
}

impl Planner {
    /// Creates a planner that uses these commitments.
    pub fn new(
        config: Arc<Config>,
        committed: Committed,
        context: Context,
        executor: Arc<Executor>,
        compute: Compute,
    ) -> Self {
        let plan_events =
            PlanEvents { context: context.clone(), executor: executor.clone(), compute: compute.clone() };
        let consolidation = Consolidation::new(&config, context.clone(), executor.clone(), compute.clone());
        let options = PlanOptions::default();
        let quarantine = Quarantine::default();
        Self {
            config,
            committed,
            context,
            executor,
            compute,
            plan_events,
            consolidation,
            options,
            quarantine,
        }
    }
}

impl LeaderLoop for Planner {
    const NAME: &'static str = "planning";

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, term: LeaderTerm) {
        self.context.world.claims_doubtful(true);
        self.context.world.inherit_retirements();
        self.consolidation.begin();
        // Pods may have waited since before we led.
        self.context.world.plan_again();
        self.options = PlanOptions {
            schedulers: self.config.schedulers.clone(),
            profiles: self.config.profiles.clone(),
            min_priority: self.config.min_priority,
            preferences: self.config.preferences,
            min_values: self.config.min_values,
            default_usd_per_hour: self.config.default_usd_per_hour,
            namespace_limits: self.config.namespace_limits.clone(),
            spot_risk: self.config.spot_risk,
            limits: self.config.limits.clone(),
            // Names of claims must differ between leaders, even for the same snapshot.
            salt: format!("{}/{}", self.config.lease.identity, term.number),
            // The controller does not use baselines.
            baselines: false,
            ..PlanOptions::default()
        };
    }

    async fn look(&mut self) -> Option<Duration> {
        if let Some(wait) = self.until_due() {
            return Some(wait);
        }
        self.executor.unrecorded().all_recorded().await;
        if self.context.world.are_claims_doubtful()
            && let Err(error) = self.read_claims().await
        {
            warn!(%error, "the existing NodeClaims cannot be read; nothing is planned until they can");
            sleep(PAUSE_AFTER_FAILURE).await;
        } else if !self.plan_once().await {
            sleep(PAUSE_AFTER_FAILURE).await;
            self.context.world.plan_again();
        }
        Some(Duration::ZERO)
    }
}

impl Planner {
    /// Returns how long until a plan is due if nothing changes; `None` if it is due now.
    fn until_due(&self) -> Option<Duration> {
        let world = &self.context.world;
        world.expire_setbacks();
        world.plan_if_again();
        let now = self.context.clock.moment();
        let due = world.plan_at();
        if due.is_some_and(|due| due <= now.monotonic) {
            return None;
        }
        let release = world.next_release().map(|at| at.duration_since(now.wall));
        let release = release.map(|pause| Duration::try_from(pause).unwrap_or_default());
        let due = due.map(|due| due.saturating_sub(now.monotonic));
        let wait = [due, release, world.again_in()].into_iter().flatten().min();
        Some(wait.unwrap_or(LONGEST).min(LONGEST))
    }

    /// Reads all claims from the API server, bypassing its watch cache.
    async fn read_claims(&self) -> Result<(), kube::Error> {
        let api = self.context.reader.received::<NodeClaim>();
        let list = api.list(&ListParams::default()).await?;
        for object in list.items.into_iter().filter_map(|mut object| object.read::<NodeClaim>().ok()) {
            if let Err(why) = self.context.world.claim_created(&object) {
                debug!(why, "a claim cannot be read");
            }
            // For known claims, updates what was recorded since, such as a disruption.
            self.context.world.claim_seen(&object);
        }
        self.context.world.claims_doubtful(false);
        Ok(())
    }

    /// Makes and carries out one plan. Returns false if it must be repeated.
    async fn plan_once(&mut self) -> bool {
        let mut snapshot = self.context.world.begin_plan();
        self.quarantine.apply(&mut snapshot, self.context.clock.now());
        self.context.metrics.pods_set_aside.set(i64::try_from(self.quarantine.len()).unwrap_or(i64::MAX));
        let options = &PlanOptions { commitments: self.committed.resolve(&snapshot), ..self.options.clone() };
        self.context.events.new_pass();
        self.tell_of_set_aside(&snapshot);
        let started = self.context.clock.monotonic();
        let Some((plan, snapshot)) = self.compute_plan(snapshot.clone(), options.clone()).await else {
            error!("planning panicked; this is a bug");
            self.context.metrics.plans.with_label_values(&["failed"]).inc();
            Box::pin(self.set_aside(&snapshot, options)).await;
            return false;
        };
        let took = self.context.clock.monotonic().saturating_sub(started);
        measure(&plan, took, &self.context.metrics);
        if !plan.refused.is_empty() {
            self.context.metrics.plans_refused.inc();
            self.context.metrics.plans.with_label_values(&["refused"]).inc();
            for violation in &plan.refused {
                error!(violation, "the independent check refused the plan: nothing is bought; this is a bug");
            }
            Box::pin(self.set_aside(&snapshot, options)).await;
            return false;
        }
        let room = self.consolidation.find_room(&snapshot, &plan, options).await;
        let with_room = room.as_ref().map_or(&plan, |room| &room.plan);
        let followed = follow(&snapshot, with_room, self.context.clock.now());
        // Pods give way to the pods of a node only while it is emptied.
        let room = room.filter(|room| room.emptied.is_disjoint(&followed.obsolete));
        let room_again =
            room.as_ref().map(|room| if room.only_nominates() { NOMINATED_AGAIN } else { ROOM_AGAIN });
        let mut plan = match room {
            Some(room) => self.consolidation.make_room(&snapshot, room).await,
            None => plan,
        };
        followed.drop_obsolete_claims(&mut plan);
        let created = self.executor.create_claims(&plan.claims, self.config.create_concurrency).await;
        self.context.world.nominate(&plan);
        self.count_followed(&followed.actions, &snapshot);
        // Drains do not wait for the ConfigMap.
        self.executor.submit(followed.actions, &snapshot);
        self.consolidation.count_saved(followed.saved).await;
        let quiet = plan.claims.is_empty()
            && followed.obsolete.is_empty()
            && room_again.is_none()
            && self.context.world.plan_at().is_none();
        let look_again =
            if quiet { Box::pin(self.consolidation.look(&snapshot, &plan, options)).await } else { None };
        let look_again = look_again.or_else(|| self.consolidation.next_look());
        // Pods give way when the places of their successors are open, and the nominations last.
        let to_evict = room_again.and_then(|pause| self.context.clock.now().checked_add(pause).ok());
        let again = [plan.again_at, followed.again_at, look_again, to_evict];
        self.context.world.plan_again_at(again.into_iter().flatten().min());
        let outcome = match &created {
            _ if plan.claims.is_empty() => "nothing-to-buy",
            CreateResult::Created => "bought",
            CreateResult::NotLeading => "not-leading",
            CreateResult::Refused | CreateResult::Unknown => "failed",
        };
        self.context.metrics.plans.with_label_values(&[outcome]).inc();
        self.plan_events.record(plan, snapshot, options).await;
        matches!(created, CreateResult::Created | CreateResult::NotLeading)
    }

    async fn compute_plan(&self, snapshot: Snapshot, options: PlanOptions) -> Option<(Plan, Snapshot)> {
        let (now, plan) = (self.context.clock.now(), self.compute.plan.clone());
        let work = move |limit: &mut dyn StopSignal| (plan(&snapshot, now, &options, limit), snapshot);
        self.compute.run(self.config.solver_limit, work).await
    }

    /// Records events on the pods that are set aside. Each plan does so, because an event may get lost with the leadership. The queue
    /// drops repetitions.
    fn tell_of_set_aside(&self, snapshot: &Snapshot) {
        let event = |(pod, message): (&ObjectKey, &str)| {
            Action::RecordEvent(Event {
                subject: Subject::Pod(pod.clone()),
                kind: EventType::Warning,
                reason: Reason::PlanFailed,
                message: message.to_owned(),
            })
        };
        self.executor.submit(self.quarantine.told().map(event).collect(), snapshot);
    }

    /// Counts the results of disruptions.
    fn count_followed(&self, actions: &[Action], snapshot: &Snapshot) {
        for action in actions {
            let (claim, result) = match action {
                Action::Drain { claim, .. } => (claim, "draining"),
                Action::SetConditions { subject: Subject::Claim(claim), .. } => (claim, "called-off"),
                _ => continue,
            };
            if let Some(cause) = snapshot.claims.get(claim).and_then(|claim| claim.leaving()) {
                self.context.metrics.disruptions.with_label_values(&[cause.as_str(), result]).inc();
            }
        }
    }
}

/// Records the figures of a plan.
fn measure(plan: &Plan, took: Duration, metrics: &Metrics) {
    let gap = plan.gap();
    metrics.plan_duration.observe(took.as_secs_f64());
    metrics.plan_cost.set(plan.cost.as_f64());
    // No lower bound is known for a figure by which the plan was not chosen.
    metrics.plan_bound.set(plan.bound_of_moment().map_or(f64::NAN, UsdPerHour::as_f64));
    let amount = |of: fn(&OverTime) -> Usd| plan.over_time.as_ref().map_or(f64::NAN, |all| of(all).as_f64());
    metrics.plan_cost_over_time.set(amount(|all| all.cost));
    metrics.plan_bound_over_time.set(amount(|all| all.bound));
    metrics.plan_gap.set(gap);
    metrics.pods_unplaced.reset();
    for pod in &plan.unplaced {
        metrics.pods_unplaced.with_label_values(&[&format!("{:?}", pod.reason)]).inc();
    }
    if plan.claims.is_empty() {
        debug!(placed = plan.placements.len(), unplaced = plan.unplaced.len(), ?took, "nothing to buy");
        return;
    }
    let pods: usize = plan.claims.iter().map(|claim| claim.planned_pods.len()).sum();
    info!(
        nodes = plan.claims.len(), pods, placed_in_free_room = plan.placements.len(),
        unplaced = plan.unplaced.len(), usd_per_hour = %plan.cost, counted_besides = %plan.risk,
        lower_bound_usd_per_hour = plan.bound_of_moment().map(display), gap = %format!("{:.2}%", gap * 100.0), seconds = took.as_secs_f64(),
        usd_until_empty = plan.over_time.map(|all| display(all.cost)),
        lower_bound_usd_until_empty = plan.over_time.map(|all| display(all.bound)),
        stopped_early = plan.stopped_early, "planned"
    );
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use poolwright_core::PodKey;
    use tokio::time::timeout;

    use super::*;
    use crate::edge::clock::SharedClock;
    use crate::edge::clock::testing::TestClock;
    use crate::edge::events::{Events, Queue, QueuedEvent};
    use crate::edge::stoppable::Stoppable;
    use crate::executor::context::testing::leading;
    use crate::fake_api::FakeApi;
    use crate::loops::compute::blocking_threads;

    fn value(metrics: &Metrics, name: &str) -> String {
        let text = metrics.text().unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("poolwright_{name} ")));
        line.unwrap_or_default().to_owned()
    }

    /// Plans nothing, and panics if it sees the pod `poison`.
    fn poisoned(snapshot: &Snapshot, _: Timestamp, _: &PlanOptions, _: &mut dyn StopSignal) -> Plan {
        assert!(snapshot.pods.iter().all(|(key, _)| key.name() != "poison"), "a bug");
        Plan::default()
    }

    /// Returns the next event, if there is one now.
    async fn said(queue: &mut Queue) -> Option<QueuedEvent> {
        timeout(Duration::from_millis(100), queue.recv()).await.ok()?
    }

    #[tokio::test]
    async fn a_pod_with_which_planning_panics_is_set_aside_and_told_and_the_others_are_planned() {
        let shared: SharedClock = Arc::new(TestClock::new());
        let (context, _leader) = leading(&FakeApi::default(), &shared, vec![]);
        let (events, mut queue) = Events::new(shared.clone(), context.metrics.clone());
        let context = Context { events, ..context };
        let executor = Executor::new(context.clone(), 4, Stoppable::default());
        let compute = Compute { spawner: blocking_threads(), clock: shared, plan: Arc::new(poisoned) };
        let directory = std::env::temp_dir().join(format!("poolwright-set-aside-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let config = Arc::new(Config { save_failures: Some(directory.clone()), ..Config::new("a", "b") });
        let world = context.world.clone();
        let mut planner = Planner::new(config, Committed::new(None), context, executor, compute);
        for name in ["a", "b", "poison", "z"] {
            let pod = serde_json::json!({"metadata": {"name": name, "namespace": "ml", "uid": name},
                "spec": {"containers": [{"name": "main"}]}});
            let pod = poolwright_intake::pod(&serde_json::from_value(pod).unwrap()).unwrap();
            world.change(|state| state.index.apply_pod(pod));
        }
        assert!(!planner.plan_once().await, "the plan failed");
        assert_eq!(planner.quarantine.len(), 1);
        let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        let saved = PlanFailure::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!((saved.repeats, &saved.pods[..]), (true, &[PodKey::new("ml", "poison")][..]));
        assert_eq!(Snapshot::from(saved.snapshot).pods.len(), 1, "the others are not needed");
        assert!(planner.plan_once().await, "the next one does not see the pod");
        assert_eq!(value(&planner.context.metrics, "pods_set_aside"), "1");
        let event = said(&mut queue).await.expect("the pod is told");
        assert_eq!((event.about.name.as_deref(), event.reason.name), (Some("poison"), "PlanFailed"));
        assert!(event.message.ends_with(&file.display().to_string()), "{}", event.message);
        assert!(planner.plan_once().await);
        assert!(said(&mut queue).await.is_none(), "it is told once");
        // The event was not written, because the process did not lead then.
        queue.forget(&event.key());
        assert!(planner.plan_once().await);
        assert!(said(&mut queue).await.is_some(), "it is told again");
    }

    #[test]
    fn a_lower_bound_is_shown_only_for_the_cost_by_which_the_plan_was_chosen() {
        let metrics = Metrics::new().unwrap();
        let shown = |plan: &Plan| {
            measure(plan, Duration::ZERO, &metrics);
            [
                "plan_cost_usd_per_hour",
                "plan_lower_bound_usd_per_hour",
                "plan_cost_over_time_usd",
                "plan_lower_bound_over_time_usd",
                "plan_gap_ratio",
            ]
            .map(|name| value(&metrics, name))
        };
        let usd = |dollars: u64| UsdPerHour::from_micros(dollars * 1_000_000);
        let mut plan = Plan { cost: usd(10), bound: usd(8), ..Plan::default() };
        assert_eq!(shown(&plan), ["10", "8", "NaN", "NaN", "0.25"]);
        plan.bound = UsdPerHour::ZERO;
        plan.over_time = Some(OverTime { cost: Usd(30_000_000), bound: Usd(20_000_000) });
        assert_eq!(shown(&plan), ["10", "NaN", "30", "20", "0.5"]);
    }
}
