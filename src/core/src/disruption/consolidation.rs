//! Consolidation: chooses nodes to empty because their pods cost less on other nodes.
//!
//! The solver proposes sets of nodes ([`repack`]), and single nodes are tried after them. A plan then shows whether the pods of a
//! set fit elsewhere under every scheduling rule, and what that costs. A set is accepted if the saving soon pays for the loss of
//! moving its pods ([`payback`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_solver::StopSignal;
use poolwright_terms::ConditionType;

use crate::disruption::proposal::{Proposal, leave};
use crate::disruption::search::{Search, places};
use crate::disruption::{payback, repack};
use crate::model::plan::{MovedTo, Plan};
use crate::model::{Cause, Claim, ClaimName, PoolName, Snapshot};

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
            if self.may_save(claim)
                && self.left(&claim.pool, Cause::Underutilized) > 0
                && self.left_over_all(Cause::Underutilized) > 0
            {
                candidates.push(claim);
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
            if let Some(proposal) = self.saves(&set, stop) {
                return Some(proposal);
            }
        }
        None
    }

    /// Returns whether a node may be consolidated.
    fn may_save(&self, claim: &Claim) -> bool {
        let Some(pool) = self.facts.pool(claim) else { return false };
        let moves = pool.disruption.consolidates && pool.replicas.is_none() && !pool.deleting;
        let Some(quiet) = pool.disruption.consolidate_after.filter(|_| moves) else {
            return false;
        };
        let opened = claim.since(ConditionType::Initialized);
        let newest = self.facts.work(claim).map(|pod| pod.created).max();
        let Some(newest) = newest else { return false };
        let since = opened.map_or(newest, |opened| opened.max(newest));
        let is_quiet = since.checked_add(quiet).is_ok_and(|until| until <= self.facts.now);
        is_quiet
            && !self.targets.contains(&claim.name)
            && claim.current_offering().price.is_some()
            && self.facts.obstacle(claim, Cause::Underutilized).is_none()
            && self.facts.shut_budget(claim).is_none()
            && self.move_history.allow(&self.facts, &[claim])
            // A node is not worth a trial if moving its pods loses more than the node costs until they end.
            && self.loss_permille(claim) < 1000
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

    /// Returns a proposal to empty these nodes, if that saves enough.
    fn saves(&self, set: &[&Claim], stop: &mut dyn StopSignal) -> Option<Proposal> {
        let caused: Vec<(&Claim, Cause)> = set.iter().map(|claim| (*claim, Cause::Underutilized)).collect();
        if !self.move_history.allow(&self.facts, set) {
            return None;
        }
        let tried = self.attempt(&caused, stop)?;
        if !tried.stuck.is_empty() || goes_down(self.facts.snapshot, &tried.plan) {
            return None;
        }
        let price = |claim: &Claim| claim.current_offering().price.unwrap_or_default();
        let lost = set
            .iter()
            .map(|claim| payback::lost(&self.facts, claim, price(claim)))
            .fold(0, u64::saturating_add);
        let payback =
            set.iter().filter_map(|claim| Some(self.facts.pool(claim)?.disruption.payback)).min()?;
        let counted = tried.plan.cost + tried.plan.risk;
        let over_time = self.over_time(set, &tried, payback);
        if !payback::pays(tried.before, counted, over_time, lost.saturating_mul(LEAST_TIMES)) {
            return match set {
                [only] => self.saves_with_room(only, &tried, stop),
                _ => None,
            };
        }
        let saving = tried.before.saturating_sub(tried.plan.cost);
        let leave = set.iter().map(|claim| {
            let others =
                if set.len() > 1 { format!(" with {} others", set.len() - 1) } else { String::new() };
            let what = format!(
                "the work of its node{others} costs {} $/h now and {} $/h elsewhere; its pods go to {}",
                tried.before,
                tried.plan.cost,
                places(&tried.plan, &claim.name)
            );
            leave(claim, Cause::Underutilized, what)
        });
        Some(Proposal { nodes_to_empty: leave.collect(), plan: tried.plan, saving, makes_room: false })
    }
}

/// Returns whether a pod would move to a new node of a pool with a lower weight. As soon as such a pod is recreated, it would be planned
/// for the higher weight again.
pub(crate) fn goes_down(snapshot: &Snapshot, plan: &Plan) -> bool {
    let weight = |pool: &PoolName| snapshot.pools.get(pool).map_or(0, |pool| pool.weight);
    let bought: BTreeMap<&ClaimName, u32> =
        plan.claims.iter().map(|claim| (&claim.name, weight(&claim.pool))).collect();
    plan.moved.iter().any(|moved| {
        let MovedTo::New(name) = &moved.to else { return false };
        let from = snapshot.claims.get(&moved.from).map_or(0, |claim| weight(&claim.pool));
        bought.get(name).is_some_and(|to| *to < from)
    })
}
