//! One search for nodes to empty. It keeps track of budgets and makes plans without a set of nodes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::StopSignal;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::action::{Action, Event, EventType, Subject};
use crate::disruption::kept::Kept;
use crate::disruption::move_history::MoveHistory;
use crate::disruption::worst_case;
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::plan::{MovedTo, Plan};
use crate::model::{Cause, Claim, ClaimName, Condition, PlanOptions, PodKey, PoolName, Snapshot};
use crate::plan::plan;
use crate::supply::commitments;
use crate::supply::spot_mix::{SpotMix, counted};

/// One search for nodes to empty.
pub(crate) struct Search<'a> {
    pub facts: Facts<'a>,
    pub(crate) current: &'a Plan,
    pub move_history: &'a MoveHistory,
    pub options: &'a PlanOptions,
    /// The claims whose nodes stay and use commitments.
    pub staying: Vec<&'a Claim>,
    /// The number of nodes that the disruption budgets of each pool still allow.
    pub(crate) left: BTreeMap<(PoolName, Cause), allowance::Allowance>,
    /// The number of nodes that the disruption budgets of all pools together still allow.
    pub(crate) over_all: BTreeMap<Cause, allowance::Allowance>,
    pub(crate) targets: BTreeSet<ClaimName>,
    pub(crate) actions: Vec<Action>,
    pub together: Vec<ClaimName>,
    pub(crate) alone: Vec<ClaimName>,
    pub(crate) more: bool,
    /// The claims for whose pods this search looked for room that other pods would make.
    pub(crate) with_room: RefCell<Vec<ClaimName>>,
    /// The first reason that kept each node.
    pub(crate) kept: BTreeMap<ClaimName, Kept>,
}

/// The result of trying to empty a set of nodes.
pub(crate) struct TrialPlan {
    pub(crate) plan: Plan,
    pub(crate) before: UsdPerHour,
    /// The claims of the set whose pods have no other place, with the reason.
    pub(crate) stuck: BTreeMap<ClaimName, String>,
}

impl<'a> Search<'a> {
    /// Returns the claims that may be considered: claims with open nodes that are neither disrupted nor being deleted.
    pub(crate) fn settled(&self) -> impl Iterator<Item = &'a Claim> + use<'a> {
        let claims = self.facts.snapshot.claims.values().map(AsRef::as_ref);
        claims.filter(|claim| {
            claim.deleting_since.is_none()
                && claim.since(ConditionType::Initialized).is_some()
                && claim.since(ConditionType::Disrupting).is_none()
        })
    }

    /// Returns the number of further nodes of the pool that may be disrupted for this cause.
    pub(crate) fn left(&mut self, pool: &PoolName, cause: Cause) -> u64 {
        let facts = &self.facts;
        let entry = self.left.entry((pool.clone(), cause)).or_insert_with(|| {
            let pool = facts.snapshot.pools.get(pool);
            let nothing = allowance::Allowance { left: 0, why: String::new() };
            pool.map_or(nothing, |pool| allowance::allowance(facts.snapshot, pool, cause, facts.now))
        });
        entry.left
    }

    /// Returns the number of further nodes of all pools that may be disrupted for this cause.
    pub(crate) fn left_over_all(&mut self, cause: Cause) -> u64 {
        let facts = &self.facts;
        let work_out = || allowance::allowance_over_all(facts.snapshot, cause, facts.now);
        self.over_all.entry(cause).or_insert_with(work_out).left
    }

    pub(crate) fn blocked(&mut self, claim: &Claim, cause: Cause, why: &str) {
        let what = match cause {
            Cause::Drifted => "it has drifted and is not replaced yet",
            Cause::Interrupted => "the cloud is about to maintain its machine, and it is not replaced yet",
            _ => "it is older than its pool allows and is not replaced yet",
        };
        let event = Event {
            subject: Subject::Claim(claim.name.clone()),
            kind: EventType::Normal,
            reason: Reason::DisruptionBlocked,
            message: format!("{what}: {why}"),
        };
        self.actions.push(Action::RecordEvent(event));
    }

    /// Returns a snapshot in which these claims are disrupted.
    pub fn without(&self, set: &[(&Claim, Cause)]) -> Snapshot {
        let mut snapshot = self.facts.snapshot.clone();
        for (claim, cause) in set {
            let mut claim = (*claim).clone();
            let condition = Condition {
                status: ConditionStatus::True,
                since: self.facts.now,
                reason: Some(cause.reason()),
                message: String::new(),
            };
            claim.conditions.insert(ConditionType::Disrupting, condition);
            snapshot.claims.insert(claim.name.clone(), Arc::new(claim));
        }
        snapshot
    }

    /// Returns the saving if these nodes are removed. A node that a commitment pays for saves nothing, unless other nodes can use
    /// the commitment.
    fn worth(&self, gone: &[&Claim]) -> UsdPerHour {
        commitments::worth(&self.options.commitments, &self.staying, gone)
    }

    /// Makes a plan without these nodes.
    ///
    /// # Errors
    ///
    /// The reason why they stay, for example that other pods would be worse off.
    pub(crate) fn attempt(
        &self,
        set: &[(&Claim, Cause)],
        stop: &mut dyn StopSignal,
    ) -> Result<TrialPlan, Kept> {
        let without = self.without(set);
        let plan = plan(&without, self.facts.now, self.options, stop);
        let names: BTreeSet<&ClaimName> = set.iter().map(|(claim, _)| &claim.name).collect();
        let unmet =
            |plan: &Plan| -> BTreeSet<PodKey> { plan.unplaced.iter().map(|left| left.pod.clone()).collect() };
        let mut stuck: BTreeMap<ClaimName, String> = BTreeMap::new();
        for moved in &plan.moved {
            match &moved.to {
                MovedTo::Unplaced(why) if names.contains(&moved.from) => {
                    let why = format!("pod {} has no other place: {why}", moved.pod);
                    stuck.entry(moved.from.clone()).or_insert(why);
                }
                MovedTo::Unplaced(_) | MovedTo::New(_) if !names.contains(&moved.from) => {
                    return Err(Kept::WorseForOthers(moved.pod.clone()));
                }
                _ => {}
            }
        }
        if let Some(violation) = plan.refused.first() {
            return Err(Kept::Refused(violation.clone()));
        }
        if plan.unknown_price_claims > 0 {
            return Err(Kept::NewPriceUnknown);
        }
        let others = plan.claims.iter().flat_map(|claim| &claim.planned_pods);
        if let Some(other) = others.into_iter().find(|key| key.existing().is_some()) {
            return Err(Kept::WorseForOthers(other.clone()));
        }
        let unmet_now = unmet(self.current);
        if let Some(stranded) = unmet(&plan).into_iter().find(|key| !unmet_now.contains(key)) {
            return Err(Kept::WorseForOthers(stranded));
        }
        if let Some(pool) = self.below_floor(set, &without, &plan) {
            return Err(Kept::OnDemandFloor(pool));
        }
        if let Some(pool) = self.shrinks_buffer(set, &plan) {
            return Err(Kept::BufferRoom(pool));
        }
        let gone: Vec<&Claim> = set.iter().map(|(claim, _)| *claim).collect();
        let before = self.worth(&gone);
        Ok(TrialPlan { plan, before, stuck })
    }

    /// Returns the pool of which more on-demand nodes would be missing than now, if the nodes of a set are removed to save money. A node
    /// that must go for another reason goes all the same, and the next nodes of its pool are bought on demand.
    fn below_floor(&self, set: &[(&Claim, Cause)], without: &Snapshot, plan: &Plan) -> Option<PoolName> {
        let to_save = set.iter().filter(|(_, cause)| *cause == Cause::Underutilized);
        let pools: BTreeSet<&PoolName> = to_save.map(|(claim, _)| &claim.pool).collect();
        let is_below = |name: &&PoolName| {
            let Some(floor) = self.facts.snapshot.pools.get(*name).and_then(|pool| pool.spot.on_demand_floor)
            else {
                return false;
            };
            let mut after = SpotMix::of(without, name);
            for claim in plan.claims.iter().filter(|claim| claim.pool == **name) {
                after.add(counted(None, &claim.offerings), 1);
            }
            after.shortfall(floor) > SpotMix::of(self.facts.snapshot, name).shortfall(floor)
        };
        pools.into_iter().find(is_below).cloned()
    }

    /// Returns the pool whose buffer would have less room than now if the nodes of a set were removed to save money, because no node can
    /// be bought for it: GPUs of these nodes are cut or shared, a limit is reached, or nothing is in stock.
    fn shrinks_buffer(&self, set: &[(&Claim, Cause)], plan: &Plan) -> Option<PoolName> {
        if !set.iter().any(|(_, cause)| *cause == Cause::Underutilized) {
            return None;
        }
        let left = |plan: &Plan, name: &PoolName| plan.pools.get(name).map_or(0, |found| found.units_left);
        let mut pools = plan.pools.keys();
        pools.find(|name| left(plan, name) > left(self.current, name)).cloned()
    }
}

/// Describes where the pods of a claim would go.
pub(crate) fn places(plan: &Plan, from: &ClaimName) -> String {
    let (mut rooms, mut new): (BTreeSet<&str>, BTreeSet<&ClaimName>) = (BTreeSet::new(), BTreeSet::new());
    for moved in plan.moved.iter().filter(|moved| moved.from == *from) {
        match &moved.to {
            MovedTo::Existing(target) => {
                rooms.insert(target.name());
            }
            MovedTo::New(name) => {
                new.insert(name);
            }
            MovedTo::Unplaced(_) | MovedTo::NoSuccessor => {}
        }
    }
    let mut words: Vec<String> = Vec::new();
    for name in new {
        if let Some(claim) = plan.claims.iter().find(|claim| claim.name == *name) {
            let price = claim.price().map_or("an unknown price".to_owned(), |price| format!("{price:#}"));
            let dearest = worst_case::price(claim).filter(|dearest| Some(*dearest) > claim.price());
            let choice =
                dearest.map(|dearest| format!(", or another up to {dearest:#} that the cloud chooses"));
            words.push(format!("new {name} ({} at {price}{})", claim.offering(), choice.unwrap_or_default()));
        }
    }
    let more = rooms.len().saturating_sub(3);
    words.extend(rooms.into_iter().take(3).map(ToOwned::to_owned));
    if more > 0 {
        words.push(format!("{more} more"));
    }
    if words.is_empty() {
        "no other node, because none would be recreated".to_owned()
    } else {
        words.join(", ")
    }
}
