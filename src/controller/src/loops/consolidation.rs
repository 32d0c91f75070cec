//! Consolidation and other disruption of healthy nodes: when to search for nodes to empty, and how to carry out a proposal.
//! Core's `disruption` decides.
//!
//! It is part of the planning loop, so that only one loop buys. First, the disruption is recorded on the claims. From then on,
//! every plan counts the successors of their pods, also a plan of the next leader. Then replacements are bought. After a crash
//! in between, the next plan buys the replacements or calls the disruption off.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::disruption::{MoveHistory, Proposal, SearchResult, propose};
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::{Claim, EventType, Pool, Snapshot, Subject};
use poolwright_solver::StopSignal;
use poolwright_terms::{ConditionType, Reason};
use tracing::{error, info, warn};

use super::compute::Compute;
use crate::executor::context::Context;
use crate::executor::{CreateResult, Executor};

/// How soon to search again after a change.
const CHANGED: Duration = Duration::from_secs(10);
/// How soon to search again without a change: time passes, schedules begin and end, prices move.
const UNCHANGED: Duration = Duration::from_mins(1);
/// The least delay of a plan that is made only for an overdue search.
const SOONEST: Duration = Duration::from_secs(5);
/// How long a search may take: new pods wait meanwhile.
const LIMIT: Duration = Duration::from_secs(3);

/// Searches for nodes to empty, and remembers the last search.
pub struct Consolidation {
    context: Context,
    executor: Arc<Executor>,
    compute: Compute,
    create_concurrency: usize,
    last: Option<Last>,
    move_history: MoveHistory,
}

#[derive(Debug)]
struct Last {
    at: Duration,
    seen: Snapshot,
    /// Whether there were more nodes than one search covers.
    more: bool,
}

impl Consolidation {
    /// Without a search so far.
    pub fn new(
        context: Context,
        executor: Arc<Executor>,
        compute: Compute,
        create_concurrency: usize,
    ) -> Self {
        Self {
            context,
            executor,
            compute,
            create_concurrency,
            last: None,
            move_history: MoveHistory::default(),
        }
    }

    /// When to search next at the latest.
    pub fn next_look(&self) -> Option<Timestamp> {
        let last = &self.last;
        let awaited = self.context.world.view(|all| {
            let moves =
                |pool: &Arc<Pool>| pool.disruption.consolidates || pool.disruption.expire_after.is_some();
            let drifted = |claim: &Arc<Claim>| claim.since(ConditionType::Drifted).is_some();
            // If a pool has changed, its nodes may have drifted.
            let changed = || last.as_ref().is_none_or(|last| !last.seen.pools.is_same(&all.pools));
            let for_ever = || all.pools.values().any(moves) || all.claims.values().any(drifted);
            !all.claims.is_empty() && (changed() || for_ever())
        });
        let changed = last
            .as_ref()
            .is_none_or(|last| self.context.world.view(|all| !last.seen.has_same_nodes_and_work(all)));
        let more = last.as_ref().is_some_and(|last| last.more);
        let pause = if changed || more { CHANGED } else { UNCHANGED };
        let since = last
            .as_ref()
            .map_or(Duration::ZERO, |last| self.context.clock.monotonic().saturating_sub(last.at));
        let pause = SignedDuration::try_from(pause.saturating_sub(since).max(SOONEST)).unwrap_or_default();
        awaited.then(|| self.context.clock.now().checked_add(pause).unwrap_or(Timestamp::MAX))
    }

    /// Searches if it is due, after a plan that buys nothing. Returns when to plan again.
    pub async fn look(
        &mut self,
        snapshot: &Snapshot,
        plan: &Plan,
        options: &PlanOptions,
    ) -> Option<Timestamp> {
        if !self.is_due(self.context.clock.monotonic(), snapshot) {
            return None;
        }
        let (seen, current, options, now) =
            (snapshot.clone(), plan.clone(), options.clone(), self.context.clock.now());
        let move_history = self.move_history.clone();
        let look =
            move |limit: &mut dyn StopSignal| propose(&seen, &current, &move_history, now, &options, limit);
        let outlook = self.compute.run(LIMIT, look).await;
        let Some(outlook) = outlook else {
            error!("looking for nodes to empty panicked; this is a bug");
            return None;
        };
        self.move_history.record_search(&outlook);
        if let Some(last) = &mut self.last {
            last.more = outlook.has_untried;
        }
        let SearchResult { proposal, actions, .. } = outlook;
        self.executor.submit(actions, snapshot);
        let proposal = proposal?;
        self.carry_out(snapshot, &proposal).await;
        Some(now)
    }

    fn is_due(&mut self, now: Duration, snapshot: &Snapshot) -> bool {
        let due = self.last.as_ref().is_none_or(|last| {
            let changed = !last.seen.has_same_nodes_and_work(snapshot);
            now.saturating_sub(last.at) >= if changed || last.more { CHANGED } else { UNCHANGED }
        });
        if due {
            self.last = Some(Last { at: now, seen: snapshot.clone(), more: false });
        }
        due
    }

    async fn carry_out(&mut self, snapshot: &Snapshot, proposal: &Proposal) {
        self.move_history.record(snapshot, proposal, self.context.clock.now());
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
