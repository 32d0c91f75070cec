//! Consolidation: chooses nodes to empty because their pods cost less on other nodes.
//!
//! The solver proposes sets of nodes ([`repack`]), and single nodes are tried after them. A plan then shows whether the pods of a
//! set fit elsewhere under every scheduling rule, and what that costs. A set is accepted if the saving soon pays for the loss of
//! moving its pods ([`payback`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_solver::StopSignal;
use poolwright_terms::ConditionType;

use crate::disruption::kept::Kept;
use crate::disruption::proposal::{Proposal, leave};
use crate::disruption::search::{Search, places};
use crate::disruption::{payback, repack, worst_case};
use crate::lifecycle::protection::UNKNOWN_MAKER;
use crate::model::plan::{MovedTo, Plan};
use crate::model::{Cause, Claim, ClaimName, PodKey, PoolName, Snapshot};
use crate::rules::format::count;

/// The least saving for each dollar that the restarts of pods cost. How long pods will live is a guess, and pods that moved may move
/// again. In replays of the GPU trace, twice the loss saves as much as once, with a fifth fewer evictions.
const LEAST_TIMES: u64 = 2;
/// The most sets of nodes that one search tries.
const TRIES: usize = 12;

impl<'a> Search<'a> {
    /// Returns a proposal to empty the next set of nodes, if any set saves enough.
    pub(crate) fn consolidation(&mut self, stop: &mut dyn StopSignal) -> Option<Proposal> {
        let mut candidates: Vec<&'a Claim> = Vec::new();
        for claim in self.settled() {
            match self.why_kept(claim) {
                Some(why) => {
                    self.kept.insert(claim.name.clone(), why);
                }
                None => candidates.push(claim),
            }
        }
        if candidates.is_empty() {
            return None;
        }
        let groups = repack::candidate_sets(self, &candidates, stop);
        let seen: BTreeSet<&ClaimName> = self.together.iter().collect();
        self.more = candidates
            .iter()
            .any(|claim| !seen.contains(&claim.name) && !self.move_history.tried_together(&claim.name));
        let mut sets: Vec<Vec<&Claim>> = Vec::new();
        let mut all: Vec<&Claim> = Vec::new();
        for group in &groups {
            let mut more = all.clone();
            more.extend(group);
            if self.within(&more) {
                all = more;
            }
        }
        if groups.len() > 1 && !all.is_empty() {
            sets.push(all);
        }
        sets.extend(groups.into_iter().filter(|group| self.within(group)));
        // Single nodes follow, because the solver's simplified model may have missed them. Nodes with the lowest loss for their
        // price come first.
        let mut single = candidates.clone();
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        single.sort_by_key(|claim| {
            (
                self.move_history.tried_alone(&claim.name),
                self.loss_permille(claim),
                Reverse(price(claim)),
                &claim.name,
            )
        });
        sets.extend(single.into_iter().map(|claim| vec![claim]));
        for set in sets.into_iter().take(TRIES) {
            if stop.should_stop() {
                break;
            }
            if let [only] = set.as_slice()
                && !self.move_history.tried_alone(&only.name)
            {
                self.alone.push(only.name.clone());
            }
            match (self.saves(&set, stop), set.as_slice()) {
                (Ok(proposal), _) => return Some(proposal),
                (Err(why), [only]) => {
                    self.kept.insert(only.name.clone(), why);
                }
                (Err(_), _) => {}
            }
        }
        None
    }

    /// Returns why a node may not be consolidated, whatever its pods would cost elsewhere; `None` if it may.
    pub(crate) fn why_kept(&mut self, claim: &Claim) -> Option<Kept> {
        if let Some(why) = self.why_unfit(claim) {
            return Some(why);
        }
        let cause = Cause::Underutilized;
        if self.left(&claim.pool, cause) == 0 {
            return Some(Kept::NodeBudget(self.left[&(claim.pool.clone(), cause)].why.clone()));
        }
        (self.left_over_all(cause) == 0).then(|| Kept::NodeBudget(self.over_all[&cause].why.clone()))
    }

    /// Returns why a node may not be consolidated, apart from disruption budgets.
    fn why_unfit(&self, claim: &Claim) -> Option<Kept> {
        let cause = Cause::Underutilized;
        if let Some(why) = self.facts.node_obstacle(claim, cause) {
            return Some(Kept::Obstacle(why));
        }
        let pool = self.facts.pool(claim)?;
        let name = || pool.name.clone();
        if pool.replicas.is_some() {
            return Some(Kept::FixedNumber(name()));
        }
        if pool.deleting {
            return Some(Kept::PoolBeingDeleted(name()));
        }
        let Some(after) = pool.disruption.consolidate_after else { return Some(Kept::Never(name())) };
        let Some(newest) = self.facts.work(claim).max_by_key(|pod| pod.created) else {
            return Some(Kept::NoWork);
        };
        let opened = claim.since(ConditionType::Initialized).filter(|opened| *opened > newest.created);
        let until = opened.unwrap_or(newest.created).checked_add(after).unwrap_or(Timestamp::MAX);
        if until > self.facts.now {
            let newest = opened.is_none().then(|| newest.key.clone());
            return Some(Kept::NotQuiet { pool: name(), after, until, newest });
        }
        if self.targets.contains(&claim.name) {
            return Some(Kept::Planned(self.planned_for(claim)));
        }
        let offering = claim.current_offering();
        let Some(price) = offering.price else {
            return Some(Kept::PriceUnknown(offering.offering.clone()));
        };
        if let Some(why) = self.obstacle_of_pods(claim) {
            return Some(why);
        }
        if let Some(why) = self.facts.shut_budget(claim) {
            return Some(Kept::PodBudget(why));
        }
        if let Some(why) = self.move_history.refusal(&self.facts, &[claim]) {
            return Some(Kept::Moved(why));
        }
        // A node is not worth a trial if moving its pods loses more than the node costs until they end.
        (self.loss_permille(claim) >= 1000).then(|| Kept::LossAboveCost {
            lost: payback::lost(&self.facts, claim, price),
            costs: payback::during(price, self.lasts(claim)),
        })
    }

    /// Returns what keeps the first pod that may not move, and how many more may not.
    fn obstacle_of_pods(&self, claim: &Claim) -> Option<Kept> {
        let obstacle = |pod| self.facts.pod_obstacle(pod, Cause::Underutilized);
        let mut all = self.facts.work(claim).filter_map(obstacle);
        let why = all.next()?;
        if why.ends_with(UNKNOWN_MAKER) {
            return Some(Kept::UnknownMaker(why));
        }
        let others = all.count();
        let keep = if others == 1 { "keeps" } else { "keep" };
        let more =
            if others > 0 { format!("; {} {keep} it too", count(others, "more pod")) } else { String::new() };
        Some(Kept::Obstacle(format!("{why}{more}")))
    }

    /// Returns the pods that are planned for a claim's node.
    fn planned_for(&self, claim: &Claim) -> Vec<PodKey> {
        let rooms = self.current.placements.iter().filter(|one| one.target.name() == claim.name.0);
        let moves = self.current.moved.iter().filter(|moved| moved.goes_to(&claim.name.0));
        rooms.map(|one| &one.pod).chain(moves.map(|moved| &moved.pod)).cloned().collect()
    }

    /// Returns the loss of emptying a node, in thousandths of what the node will cost.
    pub(crate) fn loss_permille(&self, claim: &Claim) -> u128 {
        let price = claim.current_offering().price.unwrap_or_default();
        let lost = u128::from(payback::lost(&self.facts, claim, price));
        lost * 1000 / u128::from(payback::during(price, self.lasts(claim)).max(1))
    }

    /// Returns whether disruption budgets allow emptying these nodes together.
    fn within(&mut self, set: &[&Claim]) -> bool {
        let mut counts: BTreeMap<&PoolName, u64> = BTreeMap::new();
        for claim in set {
            *counts.entry(&claim.pool).or_default() += 1;
        }
        set.len() as u64 <= self.left_over_all(Cause::Underutilized)
            && counts.into_iter().all(|(pool, count)| count <= self.left(pool, Cause::Underutilized))
    }

    /// Returns a proposal to empty these nodes.
    ///
    /// # Errors
    ///
    /// The reason why they stay.
    pub(crate) fn saves(&self, set: &[&Claim], stop: &mut dyn StopSignal) -> Result<Proposal, Kept> {
        let caused: Vec<(&Claim, Cause)> = set.iter().map(|claim| (*claim, Cause::Underutilized)).collect();
        if let Some(why) = self.move_history.refusal(&self.facts, set) {
            return Err(Kept::Moved(why));
        }
        let tried = self.attempt(&caused, stop)?;
        if let Some(why) = tried.stuck.values().next() {
            return Err(Kept::NoPlace(why.clone()));
        }
        if let Some(pool) = goes_down(self.facts.snapshot, &tried.plan) {
            return Err(Kept::LowerWeight(pool));
        }
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        let lost = set
            .iter()
            .map(|claim| payback::lost(&self.facts, claim, price(claim)))
            .fold(0, u64::saturating_add);
        let paybacks = set.iter().filter_map(|claim| Some(self.facts.pool(claim)?.disruption.payback));
        let payback = paybacks.min().unwrap_or_default();
        let after = worst_case::cost(&tried.plan);
        let counted = after + tried.plan.risk;
        let over_time = self.over_time(set, &tried, payback);
        let lost = lost.saturating_mul(LEAST_TIMES);
        if let Some(shortfall) = payback::shortfall(tried.before, counted, over_time, lost) {
            let with_room = match set {
                [only] => self.saves_with_room(only, &tried, stop),
                _ => None,
            };
            let places = set.first().map(|claim| places(&tried.plan, &claim.name)).unwrap_or_default();
            return with_room.ok_or(Kept::NotWorth { shortfall, places, payback });
        }
        let saving = tried.before.saturating_sub(after);
        let leave = set.iter().map(|claim| {
            let others = if set.len() > 1 {
                format!(" with {}", count(set.len() - 1, "other"))
            } else {
                String::new()
            };
            let what = format!(
                "the work of its node{others} costs {:#} now and {} elsewhere; its pods go to {}",
                tried.before,
                worst_case::in_words(&tried.plan),
                places(&tried.plan, &claim.name)
            );
            leave(claim, Cause::Underutilized, what)
        });
        Ok(Proposal { nodes_to_empty: leave.collect(), plan: tried.plan, saving, makes_room: false })
    }
}

/// Returns the pool with a lower weight to whose new node a pod would move, if there is one. As soon as such a pod is recreated, it
/// would be planned for the higher weight again.
pub(crate) fn goes_down(snapshot: &Snapshot, plan: &Plan) -> Option<PoolName> {
    let weight = |pool: &PoolName| snapshot.pools.get(pool).map_or(0, |pool| pool.weight);
    let bought: BTreeMap<&ClaimName, &PoolName> =
        plan.claims.iter().map(|claim| (&claim.name, &claim.pool)).collect();
    plan.moved.iter().find_map(|moved| {
        let MovedTo::New(name) = &moved.to else { return None };
        let from = snapshot.claims.get(&moved.from).map_or(0, |claim| weight(&claim.pool));
        bought.get(name).copied().filter(|to| weight(to) < from).cloned()
    })
}
