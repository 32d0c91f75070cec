//! The planning loop of the leader: demand -> batch window -> snapshot -> plan -> claims.
//!
//! Nothing is planned before all watches have listed once, what providers sell is known, we lead, and the API server
//! itself was asked which claims there are since we lead (the watches may lag behind what the last leader wrote). Claims
//! created here are in the index before the next plan begins.
//!
//! A plan that is late, because pods came or went while it was made, is still safe: what it buys becomes free room that
//! the next plan uses or the lifecycle gives back, and pods that came wait for the next batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use poolwright_api::NodeClaim;
use poolwright_core::disruption::follow;
use poolwright_core::explain::notices;
use poolwright_core::plan::{Plan, PlanOptions, PlannedClaim, plan};
use poolwright_core::{
    Action, ConditionStatus, ConditionType, ConditionUpdate, Notice, PodKey, Snapshot, Subject, story,
};
use poolwright_solver::StopSignal;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info, warn};

use crate::acts::batches;
use crate::acts::executor::{Created, Executor};
use crate::config::Config;
use crate::edge::clock::SharedClock;
use crate::edge::events::{Events, NOTE_BYTES, Saying};
use crate::edge::metrics::Metrics;
use crate::leader::LeaderClaim;
use crate::loops::consolidation::Disruptor;
use crate::sees::commitments::Committed;
use crate::sees::reader::answer;
use crate::sees::ready::Ready;
use crate::sees::world::World;

/// Runs a computation off the async threads. Injected, because a simulator in virtual time must run it in line: work on
/// another thread would let the virtual clock run ahead of it.
pub type Spawner = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// A [`Spawner`] on tokio's threads for blocking work.
pub fn blocking_threads() -> Spawner {
    Arc::new(|work| {
        tokio::task::spawn_blocking(work);
    })
}

/// After a plan that could not be carried out, how long until the next.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);
/// However long nothing is due: whether a calendar was set is looked at.
const LONGEST: Duration = Duration::from_mins(1);

/// The planning loop.
pub struct Planner {
    /// Settings.
    pub config: Arc<Config>,
    /// What is paid beforehand.
    pub committed: Committed,
    /// What is known.
    pub world: Arc<World>,
    /// Who acts.
    pub executor: Arc<Executor>,
    /// What users are told.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Time.
    pub clock: SharedClock,
    /// When the cluster is known.
    pub ready: Ready,
    /// Where plans are made.
    pub spawner: Spawner,
    /// When it was last looked at which nodes to empty.
    pub disruptor: Disruptor,
    /// Told to stop.
    pub shutdown: CancellationToken,
}

impl Planner {
    /// Plans while we lead, until told to stop.
    pub async fn run(self) {
        let claims = self.executor.writer.claims();
        claims.while_leading("planning", &self.shutdown, |claim| self.lead(claim)).await;
    }

    async fn lead(&self, claim: LeaderClaim) {
        self.ready.wait().await;
        self.world.claims_doubtful(true);
        // Pods may wait since before we led.
        self.world.plan_again();
        let options = PlanOptions {
            schedulers: self.config.schedulers.clone(),
            profiles: self.config.profiles.clone(),
            min_priority: self.config.min_priority,
            preferences: self.config.preferences,
            spot_risk: self.config.spot_risk,
            limits: self.config.limits.clone(),
            // Names of claims differ between leaders, also should two of them plan from one snapshot.
            salt: format!("{}/{}", self.config.lease.identity, claim.term),
            // Nobody looks at them here.
            baselines: false,
            ..PlanOptions::default()
        };
        loop {
            self.wait_until_due().await;
            self.executor.rush.is_over().await;
            if self.world.are_claims_doubtful()
                && let Err(error) = self.read_claims().await
            {
                warn!(%error, "the claims there are cannot be read; nothing is planned until they are");
                sleep(PAUSE_AFTER_FAILURE).await;
                continue;
            }
            if !self.plan_once(&options).await {
                sleep(PAUSE_AFTER_FAILURE).await;
                self.world.plan_again();
            }
        }
    }

    async fn wait_until_due(&self) {
        let mut changes = self.world.changes();
        loop {
            changes.mark_seen();
            self.world.release_held_back();
            self.world.plan_if_again();
            let now = self.clock.moment();
            let due = self.world.plan_at();
            if due.is_some_and(|due| due <= now.monotonic) {
                return;
            }
            let release = self.world.next_release().map(|at| at.duration_since(now.wall));
            let release = release.map(|pause| Duration::try_from(pause).unwrap_or_default());
            let due = due.map(|due| due.saturating_sub(now.monotonic));
            let pause = [due, release, self.world.again_in()].into_iter().flatten().min();
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = sleep(pause.unwrap_or(LONGEST).min(LONGEST)) => {}
            }
        }
    }

    /// Makes every claim there is known, by a read that is not answered from a cache.
    async fn read_claims(&self) -> Result<(), kube::Error> {
        let api: Api<DeserializeGuard<NodeClaim>> = Api::all(self.executor.client.clone());
        let list = answer(api.list(&ListParams::default())).await?;
        for object in list.items.iter().filter_map(|object| object.0.as_ref().ok()) {
            if let Err(why) = self.world.claim_created(object) {
                debug!(why, "a claim cannot be read");
            }
            // Of one that is known, what was recorded since: that its node leaves, for instance.
            self.world.claim_seen(object);
        }
        self.world.claims_doubtful(false);
        Ok(())
    }

    /// One plan. `false` when it could not be carried out and should be made again.
    async fn plan_once(&self, options: &PlanOptions) -> bool {
        let snapshot = self.world.begin_plan();
        let options = &PlanOptions { commitments: self.committed.terms(&snapshot), ..options.clone() };
        self.events.new_pass();
        let started = self.clock.monotonic();
        let Some((plan, snapshot)) = self.compute(snapshot, options.clone()).await else {
            error!("planning panicked; this is a bug");
            self.metrics.plans.with_label_values(&["failed"]).inc();
            return false;
        };
        let took = self.clock.monotonic().saturating_sub(started);
        self.measure(&plan, took);
        if !plan.refused.is_empty() {
            self.metrics.plans_refused.inc();
            self.metrics.plans.with_label_values(&["refused"]).inc();
            for violation in &plan.refused {
                error!(violation, "the independent check refused the plan: nothing is bought; this is a bug");
            }
            return false;
        }
        let mut plan = plan;
        let followed = follow(&snapshot, &plan, self.clock.now());
        if followed.obsolete {
            // What is bought for successors alone may be for those of nodes that stay.
            plan.claims.retain(|claim| {
                claim.planned_pods.is_empty() || claim.planned_pods.iter().any(|pod| pod.existing().is_some())
            });
        }
        let created = self.create(&plan.claims).await;
        self.world.nominate(&plan);
        self.count_followed(&followed.actions, &snapshot);
        self.metrics.saving_realised.inc_by(followed.saved.as_f64());
        self.executor.submit(followed.actions, &snapshot);
        let quiet = plan.claims.is_empty() && !followed.obsolete && self.world.plan_at().is_none();
        let look_again =
            if quiet { self.disruptor.look(self, &snapshot, &plan, options).await } else { None };
        let again = [plan.again_at, followed.again_at, look_again.or_else(|| self.disruptor.next_look(self))];
        self.world.plan_again_at(again.into_iter().flatten().min());
        let outcome = match &created {
            _ if plan.claims.is_empty() => "nothing-to-buy",
            Created::Yes => "bought",
            Created::NotLeading => "not-leading",
            Created::No | Created::Unknown => "failed",
        };
        self.metrics.plans.with_label_values(&[outcome]).inc();
        self.explain(plan, snapshot, options).await;
        matches!(created, Created::Yes | Created::NotLeading)
    }

    async fn compute(&self, snapshot: Snapshot, options: PlanOptions) -> Option<(Plan, Snapshot)> {
        let now = self.clock.now();
        let work = move |limit: &mut dyn StopSignal| (plan(&snapshot, now, &options, limit), snapshot);
        self.off_thread(self.config.solver_limit, work).await
    }

    /// Computes off the async threads; the solver is asked to stop after a time. `None` when it panicked.
    pub(crate) async fn off_thread<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&mut dyn StopSignal) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        // Whoever stops waiting (leadership lost, shutdown) drops this, and the solver stops.
        let _stop_on_drop = StopOnDrop(stop.clone());
        let deadline = self.clock.monotonic().saturating_add(limit);
        let mut limit = TimeLimit { deadline, clock: self.clock.clone(), stop };
        (self.spawner)(Box::new(move || {
            // Nobody waits any more: then nothing is done with it.
            let _ = sender.send(work(&mut limit));
        }));
        receiver.await.ok()
    }

    /// Counts what becomes of nodes that leave.
    fn count_followed(&self, actions: &[Action], snapshot: &Snapshot) {
        for action in actions {
            let (claim, result) = match action {
                Action::Retire { claim, .. } => (claim, "draining"),
                Action::SetConditions { subject: Subject::Claim(claim), .. } => (claim, "called-off"),
                _ => continue,
            };
            if let Some(cause) = snapshot.claims.get(claim).and_then(|claim| claim.leaving()) {
                self.metrics.disruptions.with_label_values(&[cause.as_str(), result]).inc();
            }
        }
    }

    /// Creates the claims. The worst outcome counts.
    pub(crate) async fn create(&self, claims: &[PlannedClaim]) -> Created {
        let batches = batches::of(claims);
        let creations = futures::stream::iter(claims.to_vec()).map(|claim| {
            let executor = self.executor.clone();
            let batch = batches.get(&claim.name).cloned();
            async move { executor.create_claim(&claim, batch.as_ref()).await }
        });
        let outcomes: Vec<Created> =
            creations.buffer_unordered(self.config.create_concurrency).collect().await;
        let has = |outcome| outcomes.contains(&outcome);
        if has(Created::Unknown) {
            self.world.claims_doubtful(true);
        }
        [Created::NotLeading, Created::Unknown, Created::No]
            .into_iter()
            .find(|one| has(*one))
            .unwrap_or(Created::Yes)
    }

    fn measure(&self, plan: &Plan, took: Duration) {
        let metrics = &self.metrics;
        let gap = plan.gap();
        metrics.plan_duration.observe(took.as_secs_f64());
        metrics.plan_cost.set(plan.cost.as_f64());
        metrics.plan_bound.set(plan.bound.as_f64());
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
            lower_bound_usd_per_hour = %plan.bound, gap = %format!("{:.2}%", gap * 100.0), seconds = took.as_secs_f64(),
            stopped_early = plan.stopped_early, "planned"
        );
    }

    /// Says what was decided: events on pods and claims, conditions on pools.
    async fn explain(&self, plan: Plan, snapshot: Snapshot, options: &PlanOptions) {
        let problems = self.world.launch_problems();
        let mut actions = notices(&plan);
        for action in &mut actions {
            // What a launch has shown about a node class, no plan can know.
            if let Action::SetConditions { subject: Subject::Pool(name), conditions } = action
                && let Some(problem) =
                    snapshot.pools.get(name).and_then(|pool| problems.get(&pool.node_class))
            {
                overlay_launch_problem(conditions, problem);
            }
        }
        let (on_pods, others): (Vec<Action>, Vec<Action>) = actions
            .into_iter()
            .partition(|action| matches!(action, Action::Tell(Notice { subject: Subject::Pod(_), .. })));
        self.executor.submit(others, &snapshot);
        self.tell_stories(on_pods, plan, snapshot, options).await;
    }

    /// Events on pods carry the whole story, which is made for those alone that are news.
    async fn tell_stories(
        &self,
        notices: Vec<Action>,
        plan: Plan,
        snapshot: Snapshot,
        options: &PlanOptions,
    ) {
        let on_pod = |action| match action {
            Action::Tell(notice) => match notice.subject.clone() {
                Subject::Pod(key) => Some((PodKey::Existing(key), self.executor.saying(notice)?)),
                _ => None,
            },
            _ => None,
        };
        let (keys, mut sayings): (Vec<PodKey>, Vec<Saying>) = notices.into_iter().filter_map(on_pod).unzip();
        let news = self.events.news(&sayings);
        let told = |at: &usize| (keys[*at].clone(), sayings[*at].message.clone());
        let (keys, sentences): (Vec<PodKey>, Vec<String>) = news.iter().map(told).unzip();
        if !keys.is_empty() {
            let (sender, receiver) = oneshot::channel();
            let (options, now) = (options.clone(), self.clock.now());
            (self.spawner)(Box::new(move || {
                let told = story::pods(&snapshot, now, &options, &plan, &keys.iter().collect::<Vec<_>>());
                let note = |((key, sentence), lines): ((&PodKey, &String), Option<Vec<String>>)| {
                    Some(story::note(key, sentence, &lines?, NOTE_BYTES))
                };
                let _ = sender.send(keys.iter().zip(&sentences).zip(told).map(note).collect::<Vec<_>>());
            }));
            if let Ok(stories) = receiver.await {
                for (at, story) in news.into_iter().zip(stories) {
                    sayings[at].story = story;
                }
            } else {
                // The sentences are as true without them.
                error!("telling the stories of pods panicked; this is a bug");
            }
        }
        for saying in sayings {
            self.events.say(saying);
        }
    }
}

/// The conditions of a pool whose node class cannot launch.
pub fn overlay_launch_problem(conditions: &mut Vec<ConditionUpdate>, problem: &str) {
    for kind in [ConditionType::NodeClassReady, ConditionType::Ready] {
        conditions.retain(|update| update.kind != kind || update.status != ConditionStatus::True);
        if !conditions.iter().any(|update| update.kind == kind) {
            conditions.push(ConditionUpdate {
                kind,
                status: ConditionStatus::False,
                reason: "LaunchInvalid".to_owned(),
                message: format!("its last launch can never work: {problem}"),
            });
        }
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct TimeLimit {
    clock: SharedClock,
    deadline: Duration,
    stop: Arc<AtomicBool>,
}

impl StopSignal for TimeLimit {
    fn should_stop(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.clock.monotonic() >= self.deadline
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::clock::Clock;
    use crate::edge::clock::testing::TestClock;

    #[test]
    fn the_solver_stops_at_its_limit_and_when_nobody_waits_for_it() {
        let clock = Arc::new(TestClock::new());
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = clock.monotonic() + Duration::from_secs(10);
        let mut limit = TimeLimit { clock: clock.clone(), deadline, stop: stop.clone() };
        assert!(!limit.should_stop());
        drop(StopOnDrop(stop));
        assert!(limit.should_stop());
        let mut limit = TimeLimit { clock: clock.clone(), deadline, stop: Arc::default() };
        clock.advance(Duration::from_secs(10));
        assert!(limit.should_stop());
    }

    #[test]
    fn a_launch_that_can_never_work_shows_on_the_pool() {
        let ready = |kind| ConditionUpdate {
            kind,
            status: ConditionStatus::True,
            reason: "Ready".into(),
            message: String::new(),
        };
        let mut conditions = vec![ready(ConditionType::Ready), ready(ConditionType::ValidationSucceeded)];
        overlay_launch_problem(&mut conditions, "no such image");
        let of = |kind| conditions.iter().find(|update| update.kind == kind).unwrap();
        assert_eq!(of(ConditionType::Ready).status, ConditionStatus::False);
        assert!(of(ConditionType::NodeClassReady).message.contains("no such image"));
        assert_eq!(of(ConditionType::ValidationSucceeded).status, ConditionStatus::True);
    }
}
