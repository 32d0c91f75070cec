//! The rules of pools on spot nodes ([`SpotRules`](crate::model::SpotRules)), in the solver's form.
//!
//! The solver keeps the shares, running nodes included. It does not know that spot nodes may have to wait: for a number of on-demand
//! nodes, or because too few of the running nodes are on demand. So a solution that has spot nodes too early is not carried out. The
//! first on-demand nodes of a plan without these spot nodes come first, and the rest is solved after them. Such a plan may prefer one
//! large node for all pods, so the cheapest on-demand nodes are tried, too. The bound of such a plan follows from two cases: it has no
//! spot node, or it has at least the on-demand nodes that the pool lacks. If pods are left out, the bound is that of a problem without
//! these floors, for the pods that have a place.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{OfferingId, UsdPerHour};
use poolwright_solver::problem::NodeShare;
use poolwright_solver::solution::NewNodes;
use poolwright_solver::{Problem, Proof, Solution, StopSignal, UnplacedReason, check, solve};

use crate::model::CountOrPercent;
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::{Floored, Run};
use crate::plan::spot_rule::SpotRule;
use crate::supply::spot_mix::{SpotMix, is_spot};

/// The shares of nodes in a solver call, and the rule behind each.
#[derive(Debug, Default)]
pub(crate) struct SpotShares {
    pub shares: Vec<NodeShare>,
    pub rules: Vec<SpotRule>,
}

/// The on-demand nodes that come first.
pub(crate) struct OnDemandFirst {
    /// The solution for the pods on them.
    pub solution: Solution,
    /// A bound for all plans without spot nodes of these pools, and its proof, if such a plan places all pods.
    without_spot: Option<(UsdPerHour, Proof)>,
}

/// The pool of each column that buys nodes, and whether these are spot nodes.
type Bought = [Option<(usize, bool)>];

/// Closes the spot nodes of pools that lack on-demand nodes.
fn close_spot(problem: &mut Problem, bought: &Bought, lacking: &BTreeMap<usize, u64>) {
    for (bought, candidate) in bought.iter().zip(&mut problem.candidates) {
        if bought.is_some_and(|(pool, is_spot)| is_spot && lacking.contains_key(&pool)) {
            candidate.max_nodes = Some(0);
        }
    }
}

/// Returns the pools that lack on-demand nodes even with those of a solution, with the number that each lacks then.
fn lacking_after(
    bought: &Bought,
    lacking: &BTreeMap<usize, u64>,
    solution: &Solution,
) -> BTreeMap<usize, u64> {
    let mut lacking = lacking.clone();
    for group in &solution.new_nodes {
        if let Some((pool, false)) = bought[group.candidate as usize]
            && let Some(left) = lacking.get_mut(&pool)
        {
            *left = left.saturating_sub(group.count.into());
        }
    }
    lacking.retain(|_, left| *left > 0);
    lacking
}

/// Returns the problem for the pods that a solution for a part of them leaves.
fn rest(problem: &Problem, part: &Solution) -> Problem {
    let mut rest = problem.clone();
    for used in &part.on_existing {
        for (class, count) in &used.pods {
            let class = &mut rest.classes[*class as usize];
            class.count = class.count.saturating_sub(*count);
            let free = &mut rest.existing[used.node as usize].free;
            for (free, request) in free.iter_mut().zip(&class.requests) {
                *free = free.saturating_sub(request.saturating_mul(u64::from(*count)));
            }
        }
    }
    for group in &part.new_nodes {
        let nodes = u64::from(group.count);
        let candidate = &mut rest.candidates[group.candidate as usize];
        candidate.max_nodes = candidate.max_nodes.map(|most| most.saturating_sub(group.count));
        for (limit, each) in &candidate.limit_use {
            let bound = &mut rest.limits[*limit as usize].bound;
            *bound = bound.saturating_sub(each.saturating_mul(nodes));
        }
        for share in &mut rest.node_shares {
            if share.part.contains(&group.candidate) {
                share.running_part = share.running_part.saturating_add(group.count);
            }
            if share.of.contains(&group.candidate) {
                share.running_of = share.running_of.saturating_add(group.count);
            }
        }
        for (class, each) in &group.pods {
            let class = &mut rest.classes[*class as usize];
            class.count = class.count.saturating_sub(each.saturating_mul(group.count));
        }
    }
    for (commitment, used) in rest.commitments.iter_mut().zip(&part.commitment_use) {
        commitment.left = commitment.left.saturating_sub(*used);
    }
    rest
}

impl Run<'_, '_, '_, '_> {
    /// Returns the number of pods that a solution leaves out.
    pub(crate) fn left_out(solution: &Solution) -> u64 {
        solution.unplaced.iter().map(|left| u64::from(left.count)).sum()
    }

    /// Returns the pool and the offering of a column that buys nodes.
    fn bought(&self, candidates: &[NodeCandidate], column: Column) -> Option<(usize, &OfferingId)> {
        let Source::New(at) = column.source else { return None };
        let NodeCandidate { pool, offer, .. } = candidates[at];
        Some((pool, &self.inputs.supply.offering(pool, offer.offering).id))
    }

    /// Returns the nodes of a pool that stay, with those bought so far.
    fn with_bought(&self, pool: usize, staying: &SpotMix) -> SpotMix {
        let mut mix = staying.clone();
        for node in self.outcome.new.iter().filter(|node| node.pool == pool) {
            mix.add(&self.inputs.supply.offering(pool, node.offer.offering).id, 1);
        }
        mix
    }

    /// Returns whether some columns are spot nodes of a pool with rules on them.
    pub(crate) fn has_spot_rules(&self, candidates: &[NodeCandidate], columns: &Columns) -> bool {
        let mut bought = columns.all.iter().filter_map(|column| self.bought(candidates, *column));
        let mixes = self.inputs.spot_mixes;
        !mixes.is_empty() && bought.any(|(pool, id)| is_spot(id) && mixes.contains_key(&pool))
    }

    /// Returns the shares of nodes for a solver call.
    pub(crate) fn spot_shares(&self, candidates: &[NodeCandidate], columns: &Columns) -> SpotShares {
        let mut all = SpotShares::default();
        for (&pool, staying) in self.inputs.spot_mixes {
            let mut nodes: Vec<u32> = Vec::new();
            let mut by_offering: BTreeMap<&OfferingId, Vec<u32>> = BTreeMap::new();
            for (at, column) in (0_u32..).zip(&columns.all) {
                let bought = self.bought(candidates, *column).filter(|(of, _)| *of == pool);
                let Some((_, offering)) = bought else { continue };
                nodes.push(at);
                if is_spot(offering) {
                    by_offering.entry(offering).or_default().push(at);
                }
            }
            if by_offering.is_empty() {
                continue;
            }
            let mut spot: Vec<u32> = by_offering.values().flatten().copied().collect();
            spot.sort_unstable();
            let of = self.inputs.supply.pools[pool].pool;
            let mix = self.with_bought(pool, staying);
            let number = |nodes: u64| u32::try_from(nodes).unwrap_or(u32::MAX);
            if let Some(floor @ CountOrPercent::Percent(percent @ 1..)) = of.spot.on_demand_floor {
                all.rules.push(SpotRule::OnDemandFloor(pool, floor));
                all.shares.push(NodeShare {
                    name: format!("onDemandFloor {percent}% of pool {}", of.name),
                    part: spot.clone(),
                    of: nodes,
                    at_most_permille: 1000 - 10 * number(percent.min(100)),
                    round_up: false,
                    running_part: number(mix.all_spot()),
                    running_of: number(mix.all_spot() + mix.on_demand),
                });
            }
            if let Some(most @ 0..100) = of.spot.max_share {
                for (offering, part) in by_offering {
                    let running = mix.spot.get(offering).copied().unwrap_or(0);
                    all.rules.push(SpotRule::MaxShare(pool, most));
                    all.shares.push(NodeShare {
                        name: format!("maxShare {most}% of {offering} of pool {}", of.name),
                        part,
                        of: spot.clone(),
                        at_most_permille: 10 * most,
                        round_up: true,
                        running_part: number(running),
                        running_of: number(mix.all_spot()),
                    });
                }
            }
        }
        all
    }

    /// Returns the pools that would have spot nodes although they lack on-demand nodes, with the number that each lacks now.
    pub(crate) fn lacking_on_demand(
        &self,
        candidates: &[NodeCandidate],
        columns: &Columns,
        solution: &Solution,
    ) -> BTreeMap<usize, u64> {
        let mut lacking = BTreeMap::new();
        for (&pool, staying) in self.inputs.spot_mixes {
            let Some(floor) = self.inputs.supply.pools[pool].pool.spot.on_demand_floor else { continue };
            let before = self.with_bought(pool, staying);
            let mut after = before.clone();
            for group in &solution.new_nodes {
                let bought = self.bought(candidates, columns.all[group.candidate as usize]);
                if let Some((_, offering)) = bought.filter(|(of, _)| *of == pool) {
                    after.add(offering, group.count.into());
                }
            }
            if after.all_spot() > before.all_spot() && after.shortfall(floor) > 0 {
                lacking.insert(pool, before.lacks(floor));
            }
        }
        lacking
    }

    /// Returns a solution for a part of the pods: those on the cheapest of the on-demand nodes that the pools lack, in a plan without
    /// spot nodes of these pools. It is the whole plan if that has no such node. If the cheapest on-demand nodes of all and spot nodes
    /// for the rest cost less, it is the solution for the pods on those nodes. `None` if a solution failed verification.
    pub(crate) fn on_demand_first(
        &mut self,
        candidates: &[NodeCandidate],
        columns: &Columns,
        problem: &Problem,
        lacking: &BTreeMap<usize, u64>,
        stop: &mut dyn StopSignal,
    ) -> Option<OnDemandFirst> {
        let of_pool =
            |column: &Column| self.bought(candidates, *column).map(|(pool, id)| (pool, is_spot(id)));
        let bought: Vec<Option<(usize, bool)>> = columns.all.iter().map(of_pool).collect();
        let mut without = problem.clone();
        close_spot(&mut without, &bought, lacking);
        let solved = solve(&without, &self.inputs.options.solver, stop);
        let whole = self.checked(&without, solved)?;
        let without_spot = (Self::left_out(&whole) == 0).then_some((whole.bound, whole.proof));
        let mut groups: Vec<&NewNodes> = whole.new_nodes.iter().collect();
        groups.sort_by_key(|group| (problem.candidates[group.candidate as usize].price, group.candidate));
        let (mut still, mut pods) = (lacking.clone(), vec![0; problem.classes.len()]);
        for group in groups {
            let pool = bought[group.candidate as usize].map(|(pool, _)| pool);
            let Some(left) = pool.and_then(|pool| still.get_mut(&pool)) else { continue };
            let nodes = u32::try_from(*left).unwrap_or(u32::MAX).min(group.count);
            *left -= u64::from(nodes);
            for (class, each) in &group.pods {
                pods[*class as usize] += each * nodes;
            }
        }
        let first = if pods.iter().all(|count| *count == 0) {
            whole
        } else {
            for (class, count) in without.classes.iter_mut().zip(pods) {
                class.count = count;
                // In the plan, other pods may be in that room.
                class.existing.clear();
            }
            let solved = solve(&without, &self.inputs.options.solver, stop);
            self.checked(&without, solved)?
        };
        let cheapest = self.on_cheapest(problem, &bought, lacking, stop);
        let better = cheapest.filter(|cheapest| {
            let mut with_rest = |part: &Solution| self.with_rest((problem, part), &bought, lacking, stop);
            let (Some((left, cost)), Some((left_before, cost_before))) =
                (with_rest(cheapest), with_rest(&first))
            else {
                return false;
            };
            let leaves_no_more = left.iter().zip(&left_before).all(|(left, before)| left <= before);
            leaves_no_more && (left != left_before || cost < cost_before)
        });
        Some(OnDemandFirst { solution: better.unwrap_or(first), without_spot })
    }

    /// Returns a solution that passes the checker, for a comparison; `None` if there is none.
    fn tried(&self, problem: &Problem, stop: &mut dyn StopSignal) -> Option<Solution> {
        let solved = solve(problem, &self.inputs.options.solver, stop).ok()?;
        check(problem, &solved).is_ok().then_some(solved)
    }

    /// Returns a solution for the pods on the cheapest on-demand nodes that hold a waiting pod, as many as the pools lack. `None` if
    /// there are not so many, or if the time ends.
    fn on_cheapest(
        &self,
        problem: &Problem,
        bought: &Bought,
        lacking: &BTreeMap<usize, u64>,
        stop: &mut dyn StopSignal,
    ) -> Option<Solution> {
        if stop.should_stop() || lacking.values().any(|lacks| *lacks == u64::MAX) {
            return None;
        }
        let mut part = problem.clone();
        for candidate in &mut part.candidates {
            candidate.max_nodes = Some(0);
        }
        for class in &mut part.classes {
            class.existing.clear();
        }
        let homes: BTreeSet<u32> =
            problem.classes.iter().flat_map(|class| &class.candidates).copied().collect();
        let mut homes: Vec<u32> = homes.into_iter().collect();
        homes.sort_by_key(|at| (problem.candidates[*at as usize].price, *at));
        let mut still = lacking.clone();
        for at in homes {
            let Some((pool, false)) = bought[at as usize] else { continue };
            let Some(left) = still.get_mut(&pool) else { continue };
            let most = problem.candidates[at as usize].max_nodes.unwrap_or(u32::MAX);
            let nodes = u32::try_from(*left).unwrap_or(u32::MAX).min(most);
            part.candidates[at as usize].max_nodes = Some(nodes);
            *left -= u64::from(nodes);
        }
        let mut solution = self.tried(&part, stop)?;
        let is_enough =
            !solution.new_nodes.is_empty() && lacking_after(bought, lacking, &solution).is_empty();
        // The pods that it leaves out are those of the next round.
        solution.unplaced.clear();
        is_enough.then_some(solution)
    }

    /// Returns the pods that are left out, by class, and the cost, if the rest is solved after a part.
    fn with_rest(
        &self,
        (problem, part): (&Problem, &Solution),
        bought: &Bought,
        lacking: &BTreeMap<usize, u64>,
        stop: &mut dyn StopSignal,
    ) -> Option<(Vec<u32>, UsdPerHour)> {
        let mut rest = rest(problem, part);
        close_spot(&mut rest, bought, &lacking_after(bought, lacking, part));
        let solved = self.tried(&rest, stop)?;
        let mut left = vec![0; rest.classes.len()];
        for unplaced in &solved.unplaced {
            left[unplaced.class as usize] += unplaced.count;
        }
        Some((left, part.objective() + solved.objective()))
    }

    /// Returns a bound for all plans that keep the floor of the only pool in `lacking`, and its proof; `None` if it cannot be told.
    ///
    /// A plan without spot nodes of the pool costs at least the bound in `first`. Any other plan has the on-demand nodes that the pool
    /// lacks. If each on-demand node were cheaper by some amount, it would cost less by that amount for each of them, at least. So the
    /// bound for these lower prices, plus the amounts, holds for it.
    pub(crate) fn bound_with_floor(
        &self,
        candidates: &[NodeCandidate],
        columns: &Columns,
        problem: &Problem,
        (lacking, first): (&BTreeMap<usize, u64>, &OnDemandFirst),
        stop: &mut dyn StopSignal,
    ) -> Option<(UsdPerHour, Proof)> {
        let without_spot = first.without_spot?;
        let (&pool, &lacks) = lacking.iter().next().filter(|_| lacking.len() == 1)?;
        // No plan has so many nodes.
        if lacks == u64::MAX {
            return Some(without_spot);
        }
        // A commitment would pay less of a lower price.
        if !problem.commitments.is_empty() || stop.should_stop() {
            return None;
        }
        let of_pool = |column: &Column| self.bought(candidates, *column).filter(|(of, _)| *of == pool);
        let spot: Vec<Option<bool>> =
            columns.all.iter().map(|column| of_pool(column).map(|(_, id)| is_spot(id))).collect();
        let least = |wanted: bool| {
            let all = spot.iter().zip(&problem.candidates).filter(|(is_spot, _)| **is_spot == Some(wanted));
            all.map(|(_, candidate)| candidate.price).min()
        };
        // With this amount, the cheapest on-demand node costs as much as the cheapest spot node.
        let amount = least(false)?.saturating_sub(least(true)?);
        let mut cheaper = problem.clone();
        for (is_spot, candidate) in spot.iter().zip(&mut cheaper.candidates) {
            if *is_spot == Some(false) {
                candidate.price = candidate.price.saturating_sub(amount);
            }
        }
        let solved = self.tried(&cheaper, stop).filter(|solved| solved.unplaced.is_empty())?;
        let with_spot = solved.bound + amount.times(lacks);
        Some((with_spot.min(without_spot.0), solved.proof.max(without_spot.1)))
    }

    /// Adds the bound of a tier whose first solution was replaced. If its pods of the classes in `left` wait, the bound of that solution
    /// is for more pods than have a place. Then the bound is that for the placed pods without the floors.
    pub(crate) fn bound_floored(&mut self, left: &[usize], stop: &mut dyn StopSignal) {
        let Some(Floored { mut problem, classes, bound }) = self.floored.take() else { return };
        let (least, proof) = if left.is_empty() {
            bound
        } else {
            for (class, of) in classes.iter().zip(&mut problem.classes) {
                let waits = u32::try_from(self.queues[*class].len()).unwrap_or(u32::MAX);
                of.count = of.count.saturating_sub(waits);
            }
            let solved = self.tried(&problem, stop).filter(|solved| solved.unplaced.is_empty());
            solved.map_or((UsdPerHour::ZERO, Proof::Truncated), |solved| (solved.bound, solved.proof))
        };
        self.outcome.bound += least;
        self.outcome.proof = self.outcome.proof.max(Some(proof));
    }

    /// Notes the rule on spot nodes that leaves pods of `classes` out, if one does. `lacking` are the pools without further spot
    /// nodes.
    pub(crate) fn note_spot_rules(
        &mut self,
        (candidates, columns): (&[NodeCandidate], &Columns),
        classes: &[usize],
        (shares, lacking): (&SpotShares, &BTreeMap<usize, u64>),
        solution: &Solution,
    ) {
        for left in &solution.unplaced {
            let homes = &columns.homes[left.class as usize];
            let of_pool = |column: &u32| {
                let Source::New(at) = columns.all[*column as usize].source else { return None };
                Some((candidates[at].pool, &candidates[at]))
            };
            let closed = |column: &u32| {
                let (pool, id) = self.bought(candidates, columns.all[*column as usize])?;
                let floor = self.inputs.supply.pools[pool].pool.spot.on_demand_floor?;
                (is_spot(id) && lacking.contains_key(&pool)).then_some(SpotRule::OnDemandFloor(pool, floor))
            };
            let rule = match left.reason {
                UnplacedReason::ShareReached(share) => shares.rules.get(share as usize).copied(),
                UnplacedReason::LimitReached(_) => None,
                _ => homes.iter().find_map(closed),
            };
            // If an on-demand node fits, a limit keeps it away.
            let rule = rule.map(|rule| {
                let SpotRule::OnDemandFloor(pool, floor) = rule else { return rule };
                let mut on_demand = homes.iter().filter_map(of_pool).filter(|(of, one)| {
                    *of == pool && !is_spot(&self.inputs.supply.offering(pool, one.offer.offering).id)
                });
                let limit = on_demand.find_map(|(_, one)| self.limits.first_beyond(&one.uses));
                limit.map_or(rule, |limit| SpotRule::FloorBeyondLimit(pool, floor, limit))
            });
            self.outcome.spot_rule[classes[left.class as usize]] = rule;
        }
    }
}
