//! Consolidation and other disruption of healthy nodes: runs the searches for nodes to empty and carries out their proposals.
//! Core's `disruption` decides when to search and which nodes to empty.
//!
//! It is part of the planning loop, so that only one loop buys. First, it records the disruption on the claims. From then on,
//! every plan, including those of the next leader, counts the pods that will replace theirs. Then it buys the replacements. After
//! a crash in between, the next plan buys the replacements or calls the disruption off.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_core::disruption::{
    Proposal, RoomMade, SearchResult, SearchSchedule, make_room, propose, wants_room,
};
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::{EventType, Snapshot, Subject};
use poolwright_solver::StopSignal;
use poolwright_terms::Reason;
use tracing::{error, info, warn};

use super::compute::Compute;
use super::moves::Moves;
use crate::config::Config;
use crate::executor::context::Context;
use crate::executor::{CreateResult, Executor};

/// How long a search may take: new pods wait meanwhile.
const LIMIT: Duration = Duration::from_secs(3);

/// Searches for nodes to empty, and remembers the last search.
pub struct Consolidation {
    context: Context,
    executor: Arc<Executor>,
    compute: Compute,
    create_concurrency: usize,
    schedule: SearchSchedule,
    moves: Moves,
}

impl Consolidation {
    /// Creates a consolidation that has not searched yet.
    pub fn new(config: &Config, context: Context, executor: Arc<Executor>, compute: Compute) -> Self {
        let moves = Moves::new(&config.lease.namespace, context.clone());
        let (create_concurrency, schedule) = (config.create_concurrency, SearchSchedule::default());
        Self { context, executor, compute, create_concurrency, schedule, moves }
    }

    /// Prepares for a new term.
    pub fn begin(&mut self) {
        self.moves.begin();
    }

    /// Returns when the next search is due, at the latest.
    pub fn next_look(&self) -> Option<Timestamp> {
        let now = self.context.clock.moment();
        let wait = self.context.world.view(|all| self.schedule.next_in(all, now.monotonic))?;
        Some(now.wall.checked_add(wait).unwrap_or(Timestamp::MAX))
    }

    /// Searches if it is due, after a plan that buys nothing. Returns when to plan again.
    pub async fn look(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        options: &PlanOptions,
    ) -> Option<Timestamp> {
        let started = self.context.clock.monotonic();
        if !self.schedule.is_due(snapshot, started) || !self.moves.are_known().await {
            return None;
        }
        self.schedule.begin(snapshot, started);
        let (seen, current, options, now) =
            (snapshot.clone(), plan.clone(), options.clone(), self.context.clock.now());
        let move_history = self.moves.history.clone();
        let look =
            move |limit: &mut dyn StopSignal| propose(&seen, &current, &move_history, now, &options, limit);
        let outlook = self.compute.run(LIMIT, look).await;
        let Some(outlook) = outlook else {
            error!("looking for nodes to empty panicked; this is a bug");
            return None;
        };
        self.moves.history.record_search(&outlook);
        self.schedule.end(outlook.has_untried);
        let SearchResult { proposal, actions, .. } = outlook;
        self.executor.submit(actions, snapshot);
        let proposal = proposal?;
        self.carry_out(snapshot, &proposal).await;
        Some(now)
    }

    /// Searches for pods that give way, so that this plan need not buy a node.
    pub async fn find_room(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        options: &PlanOptions,
    ) -> Option<RoomMade> {
        if !wants_room(plan) || !self.moves.are_known().await {
            return None;
        }
        let (seen, current, options, now) =
            (snapshot.clone(), plan.clone(), options.clone(), self.context.clock.now());
        let move_history = self.moves.history.clone();
        let look =
            move |limit: &mut dyn StopSignal| make_room(&seen, &current, &move_history, now, &options, limit);
        let made = self.compute.run(LIMIT, look).await;
        if made.is_none() {
            error!("looking for room to make panicked; this is a bug");
        }
        made?
    }

    /// Nominates the pods that take the room, and evicts the pods that give way, if the time for that has come. Returns the plan to
    /// carry out.
    pub async fn make_room(&mut self, snapshot: &Snapshot, room: RoomMade) -> Plan {
        let RoomMade { plan, actions, evicted, nominated, takers, .. } = room;
        let now = self.context.clock.now();
        self.moves.history.record_evictions(snapshot, &evicted, now);
        self.moves.history.record_nominations(nominated, now);
        self.moves.history.record_takers(takers, now);
        self.moves.store().await;
        info!(evicted = evicted.len(), "pods give way, so that no node is bought for waiting pods");
        self.executor.submit_after_nominations(actions, snapshot).await;
        plan
    }

    /// Counts what moves saved whose nodes are drained now.
    pub async fn count_saved(&mut self, saved: UsdPerHour) {
        self.moves.count(saved).await;
    }

    async fn carry_out(&mut self, snapshot: &Snapshot, proposal: &Proposal) {
        self.moves.history.record(snapshot, proposal, self.context.clock.now());
        self.moves.store().await;
        for leave in &proposal.nodes_to_empty {
            if !self.executor.record_leaving(&leave.claim, &leave.uid, &leave.condition).await {
                warn!(claim = %leave.claim, "could not record that its node leaves, so nothing is bought for its pods");
                return;
            }
            let condition = &leave.condition;
            let subject = Subject::Claim(leave.claim.clone());
            self.executor.record_event(&subject, EventType::Normal, condition.reason, &condition.message);
            self.context.metrics.disruptions.with_label_values(&[condition.reason.as_str(), "begun"]).inc();
            info!(claim = %leave.claim, cause = %condition.reason, why = condition.message, "its node leaves");
        }
        let created = self.executor.create_claims(&proposal.plan.claims, self.create_concurrency).await;
        if created == CreateResult::Created
            && proposal.nodes_to_empty.iter().any(|leave| leave.condition.reason == Reason::Underutilized)
        {
            self.context.metrics.saving_promised.inc_by(proposal.saving.as_f64());
        }
    }
}
