//! Which nodes are emptied although they are well: when that is looked at, and how a proposal is carried out.
//!
//! A part of the planning loop, so that one alone buys. First it is recorded on the claims that their nodes leave; from then on every
//! plan counts the successors of their pods, also one of the next leader. Then what they need is bought. A crash in between leaves
//! nodes that leave and for which nothing is bought: the next plan buys it, or calls them off.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_core::disruption::{Moves, Outlook, Proposal, propose};
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::{Claim, ConditionType, NoticeKind, Pool, Snapshot, Subject};
use poolwright_solver::StopSignal;
use tracing::{error, info, warn};

use crate::acts::executor::Created;
use crate::loops::planner::Planner;

/// How soon to look again when something has changed.
const CHANGED: Duration = Duration::from_secs(10);
/// How soon to look again when nothing has: time passes, schedules begin and end, prices move.
const UNCHANGED: Duration = Duration::from_mins(1);
/// However overdue a look is, because pods wait, no plan is made sooner for it.
const SOONEST: Duration = Duration::from_secs(5);
/// How long a look may take: pods that come meanwhile wait for it.
const LIMIT: Duration = Duration::from_secs(3);

/// What is remembered of the last look.
#[derive(Debug, Default)]
pub struct Disruptor {
    last: Mutex<Option<Last>>,
    moves: Mutex<Moves>,
}

#[derive(Debug)]
struct Last {
    at: Duration,
    seen: Snapshot,
    /// Whether there were more nodes than one look sees.
    more: bool,
}

impl Disruptor {
    /// When to look next at the latest.
    pub fn next_look(&self, planner: &Planner) -> Option<Timestamp> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let awaited = planner.world.view(|all| {
            let moves =
                |pool: &Arc<Pool>| pool.disruption.moves_work || pool.disruption.expire_after.is_some();
            let drifted = |claim: &Arc<Claim>| claim.since(ConditionType::Drifted).is_some();
            // A pool that has changed may have nodes that drifted by that.
            let changed = || last.as_ref().is_none_or(|last| !last.seen.pools.is_same(&all.pools));
            let for_ever = || all.pools.values().any(moves) || all.claims.values().any(drifted);
            !all.claims.is_empty() && (changed() || for_ever())
        });
        let changed = last
            .as_ref()
            .is_none_or(|last| planner.world.view(|all| !last.seen.has_same_nodes_and_work(all)));
        let more = last.as_ref().is_some_and(|last| last.more);
        let pause = if changed || more { CHANGED } else { UNCHANGED };
        let since =
            last.as_ref().map_or(Duration::ZERO, |last| planner.clock.monotonic().saturating_sub(last.at));
        let pause = SignedDuration::try_from(pause.saturating_sub(since).max(SOONEST)).unwrap_or_default();
        awaited.then(|| planner.clock.now().checked_add(pause).unwrap_or(Timestamp::MAX))
    }

    /// Looks, if it is time to, at a cluster for which nothing needs to be bought. Returns when to plan again.
    pub async fn look(
        &self,
        planner: &Planner,
        snapshot: &Snapshot,
        plan: &Plan,
        options: &PlanOptions,
    ) -> Option<Timestamp> {
        if !self.is_due(planner.clock.monotonic(), snapshot) {
            return None;
        }
        let (seen, current, options, now) =
            (snapshot.clone(), plan.clone(), options.clone(), planner.clock.now());
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let look = move |limit: &mut dyn StopSignal| propose(&seen, &current, &moves, now, &options, limit);
        let outlook = planner.off_thread(LIMIT, look).await;
        let Some(outlook) = outlook else {
            error!("looking for nodes to empty panicked; this is a bug");
            return None;
        };
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).looked(&outlook);
        if let Some(last) = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            last.more = outlook.more;
        }
        let Outlook { proposal, actions, .. } = outlook;
        planner.executor.submit(actions, snapshot);
        let proposal = proposal?;
        self.carry_out(planner, snapshot, &proposal).await;
        Some(now)
    }

    fn is_due(&self, now: Duration, snapshot: &Snapshot) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.as_ref().is_none_or(|last| {
            let changed = !last.seen.has_same_nodes_and_work(snapshot);
            now.saturating_sub(last.at) >= if changed || last.more { CHANGED } else { UNCHANGED }
        });
        if due {
            *last = Some(Last { at: now, seen: snapshot.clone(), more: false });
        }
        due
    }

    async fn carry_out(&self, planner: &Planner, snapshot: &Snapshot, proposal: &Proposal) {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).record(
            snapshot,
            proposal,
            planner.clock.now(),
        );
        for leave in &proposal.leave {
            if !planner.executor.record_leaving(&leave.claim, &leave.uid, &leave.condition).await {
                warn!(claim = %leave.claim, "that its node leaves could not be recorded; nothing is bought for it");
                return;
            }
            let condition = &leave.condition;
            let subject = Subject::Claim(leave.claim.clone());
            planner.executor.say(&subject, NoticeKind::Normal, &condition.reason, &condition.message);
            planner.metrics.disruptions.with_label_values(&[&condition.reason, "begun"]).inc();
            info!(claim = %leave.claim, cause = condition.reason, why = condition.message, "its node leaves");
        }
        let created = planner.create(&proposal.plan.claims).await;
        if created == Created::Yes
            && proposal.leave.iter().any(|leave| leave.condition.reason == "Underutilized")
        {
            planner.metrics.saving_promised.inc_by(proposal.saving.as_f64());
        }
    }
}
