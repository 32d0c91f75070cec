//! The rules of pools on spot nodes ([`SpotRules`](crate::model::SpotRules)), in the solver's form.
//!
//! The solver keeps the shares, running nodes included. It does not know that spot nodes may have to wait: for a number of on-demand
//! nodes, or because too few of the running nodes are on demand. So a solution that has spot nodes too early is not carried out, but the
//! cheapest of these plans: one without these spot nodes; one whose first on-demand nodes come first, with the rest solved after them;
//! one in which the cheapest on-demand nodes come first; and those for choices of the pods on the first on-demand nodes
//! ([`floor`](super::floor)). The bound follows from two cases: a plan has no spot node, or it has at least the on-demand nodes that the
//! pool lacks. If pods are left out, the bound is that of a problem without these floors, for the pods that have a place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use poolwright_catalog::{OfferingId, UsdPerHour};
use poolwright_solver::problem::NodeShare;
use poolwright_solver::solution::NewNodes;
use poolwright_solver::{Options, Problem, Proof, Solution, StopSignal, UnplacedReason, check, solve};

use crate::model::{CountOrPercent, MinValuesPolicy};
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Column, Columns, Source};
use crate::plan::pack::solves::floor::{Bought, Choices, MOST_CHOICES, TooEarly};
use crate::plan::pack::solves::pass::{Floored, Run};
use crate::plan::spot_rule::SpotRule;
use crate::supply::flexibility;
use crate::supply::spot_mix::{SpotMix, is_spot};

/// The shares of nodes in a solver call, and the rule behind each.
#[derive(Debug, Default)]
pub(crate) struct SpotShares {
    pub shares: Vec<NodeShare>,
    pub rules: Vec<SpotRule>,
}

/// What is carried out instead of a solution that has spot nodes too early.
pub(crate) struct OnDemandFirst {
    /// The solution for all pods, or for those on the nodes that come first.
    pub solution: Solution,
    /// The pools that get no spot node in the solution, with the on-demand nodes that each lacks.
    pub closed: BTreeMap<usize, u64>,
    /// The objective of the whole plan.
    cost: UsdPerHour,
    /// A bound for all plans without spot nodes of these pools, and its proof, if such a plan places all pods.
    without_spot: Option<(UsdPerHour, Proof)>,
    /// A bound for all plans with spot nodes of the only pool that lacks on-demand nodes, and its proof, if all choices were solved.
    with_spot: Option<(UsdPerHour, Proof)>,
}

/// A plan that has no spot node too early.
struct Tried {
    /// The whole plan, or the part of it that comes first.
    solution: Solution,
    /// The pools that get no spot node in the solution, with the on-demand nodes that each lacks.
    closed: BTreeMap<usize, u64>,
    /// The pods that the whole plan leaves out, by class.
    left: Vec<u32>,
    /// The objective of the whole plan.
    cost: UsdPerHour,
}

impl Tried {
    /// Takes a whole plan.
    fn whole(problem: &Problem, solution: Solution, closed: &BTreeMap<usize, u64>) -> Self {
        let (left, cost) = (left_by_class(problem, &solution), solution.objective());
        Self { solution, closed: closed.clone(), left, cost }
    }

    /// Becomes the other plan if that leaves out no more pods of any class, and fewer or at a lower cost. Returns whether it does.
    fn improve(&mut self, other: Self) -> bool {
        let leaves_no_more = other.left.iter().zip(&self.left).all(|(left, before)| left <= before);
        let is_better = leaves_no_more && (other.left != self.left || other.cost < self.cost);
        if is_better {
            *self = other;
        }
        is_better
    }
}

/// Returns the number of pods that a solution leaves out, by class.
fn left_by_class(problem: &Problem, solution: &Solution) -> Vec<u32> {
    let mut left = vec![0; problem.classes.len()];
    for unplaced in &solution.unplaced {
        left[unplaced.class as usize] += unplaced.count;
    }
    left
}

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

    /// Returns whether nodes of pools with rules on spot nodes break these rules. `after` has those that stay and those to buy.
    pub(crate) fn break_spot_rules(&self, after: &BTreeMap<usize, SpotMix>) -> bool {
        after.iter().any(|(pool, after)| {
            let before = &self.inputs.spot_mixes[pool];
            let rules = &self.inputs.supply.pools[*pool].pool.spot;
            let all = after.all_spot();
            let is_below = rules
                .on_demand_floor
                .is_some_and(|floor| all > before.all_spot() && after.shortfall(floor) > 0);
            let is_over = rules.max_share.is_some_and(|most| {
                let had = |offering: &OfferingId| before.spot.get(offering).copied().unwrap_or(0);
                let most = (u64::from(most) * all).div_ceil(100);
                after.spot.iter().any(|(offering, nodes)| *nodes > had(offering) && *nodes > most)
            });
            is_below || is_over
        })
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

    /// Returns the pools that may have no further spot node before they get on-demand nodes, with the number that each lacks now.
    pub(crate) fn waiting_for_on_demand(
        &self,
        candidates: &[NodeCandidate],
        columns: &Columns,
    ) -> BTreeMap<usize, u64> {
        let sold = columns.all.iter().filter_map(|column| self.bought(candidates, *column));
        let on_spot: BTreeSet<usize> = sold.filter(|(_, id)| is_spot(id)).map(|(pool, _)| pool).collect();
        let waiting = |(&pool, staying): (&usize, &SpotMix)| {
            let floor = self.inputs.supply.pools[pool].pool.spot.on_demand_floor?;
            let now = self.with_bought(pool, staying);
            let lacks = now.lacks(floor);
            let waits = match floor {
                CountOrPercent::Count(_) => lacks > 0,
                // A share in the solver's problem keeps a floor that is kept now.
                CountOrPercent::Percent(_) => now.shortfall(floor) > 0,
            };
            (waits && on_spot.contains(&pool)).then_some((pool, lacks))
        };
        self.inputs.spot_mixes.iter().filter_map(waiting).collect()
    }

    /// Returns the cheapest plan found that has no spot node too early: the whole plan, or the part of it that comes first. `None` if a
    /// solution failed verification.
    pub(crate) fn on_demand_first(
        &mut self,
        call: TooEarly<'_>,
        stop: &mut dyn StopSignal,
    ) -> Option<OnDemandFirst> {
        let TooEarly { candidates, columns, problem, lacking, .. } = call;
        let work = self.inputs.options.solver.work;
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
        let mut best = Tried::whole(problem, whole, lacking);
        if pods.iter().any(|count| *count > 0) {
            for (class, count) in without.classes.iter_mut().zip(pods) {
                class.count = count;
                // In the plan, other pods may be in that room.
                class.existing.clear();
            }
            let solved = solve(&without, &self.inputs.options.solver, stop);
            let first = self.checked(&without, solved)?;
            if let Some(first) = self.part(call, first, &bought, work, stop) {
                best.improve(first);
            }
        }
        let mut sets: Vec<BTreeMap<usize, u64>> =
            lacking.iter().map(|(pool, lacks)| BTreeMap::from([(*pool, *lacks)])).collect();
        if lacking.len() > 1 {
            sets.push(lacking.clone());
        }
        let mut with_spot = None;
        for set in &sets {
            let cheapest = self.on_cheapest(problem, &bought, set, stop);
            if let Some(part) = cheapest.and_then(|part| self.part(call, part, &bought, work, stop)) {
                best.improve(part);
            }
            with_spot = self.on_marked(call, &bought, set, &mut best, stop);
        }
        let with_spot = with_spot.filter(|_| sets.len() == 1);
        let Tried { solution, closed, cost, .. } = best;
        Some(OnDemandFirst { solution, closed, cost, without_spot, with_spot })
    }

    /// Returns the plan whose first part is a solution; `None` if there is none. The search for the rest may take this much work.
    fn part(
        &self,
        call: TooEarly<'_>,
        solution: Solution,
        bought: &Bought,
        work: u64,
        stop: &mut dyn StopSignal,
    ) -> Option<Tried> {
        let mut rest = rest(call.problem, &solution);
        close_spot(&mut rest, bought, &lacking_after(bought, call.lacking, &solution));
        let solved = self.tried(&rest, work, stop)?;
        let (left, cost) = (left_by_class(&rest, &solved), solution.objective() + solved.objective());
        Some(Tried { solution, closed: call.lacking.clone(), left, cost })
    }

    /// Improves a plan by choices of the pods that get the on-demand nodes of the pools in `set`. The other pools that lack such nodes
    /// get no spot node. Returns a bound for all plans with spot nodes of the pools, and its proof, if all choices were solved.
    fn on_marked(
        &self,
        call: TooEarly<'_>,
        bought: &Bought,
        set: &BTreeMap<usize, u64>,
        best: &mut Tried,
        stop: &mut dyn StopSignal,
    ) -> Option<(UsdPerHour, Proof)> {
        let mut others = call.lacking.clone();
        others.retain(|pool, _| !set.contains_key(pool));
        let mut problem = call.problem.clone();
        close_spot(&mut problem, bought, &others);
        let choices = Choices::new(&problem, bought, set, call.solution.prices.as_ref())?;
        let all = choices.all();
        let is_all = all.is_some();
        let mut open = VecDeque::from(all.unwrap_or_else(|| vec![choices.cheapest()]));
        // A choice takes up to three searches: for all pods, for those that come first, and for the rest. So all choices together may
        // take as much work as three searches.
        let tries = if is_all { open.len() } else { MOST_CHOICES };
        let work = self.inputs.options.solver.work / (tries as u64).max(1);
        let (mut seen, mut bounds) = (BTreeSet::new(), Vec::new());
        while let Some(choice) = open.pop_front() {
            if seen.len() == MOST_CHOICES || stop.should_stop() {
                return None;
            }
            if !seen.insert(choice.clone()) {
                continue;
            }
            let Some(marked) = choices.marked(&choice) else { continue };
            let Some(solved) = self.tried(&marked, work, stop) else { continue };
            if solved.unplaced.is_empty() {
                bounds.push((solved.bound, solved.proof));
            }
            let other = choices.unmarked(&choice, &solved).and_then(|whole| {
                let is_early = !self.lacking_on_demand(call.candidates, call.columns, &whole).is_empty();
                if !is_early && check(call.problem, &whole).is_ok() {
                    return Some(Tried::whole(call.problem, whole, &others));
                }
                // More spot nodes may need more on-demand nodes, so only those with marked pods come first.
                let first = self.tried(&choices.first(&marked, &solved), work, stop)?;
                let mut first = choices.unmarked(&choice, &first)?;
                // The pods that it leaves out are those of the next round.
                first.unplaced.clear();
                self.part(call, first, bought, work, stop)
            });
            let is_better = other.is_some_and(|other| best.improve(other));
            if !is_all && (is_better || seen.len() == 1) {
                open = choices.neighbours(&choice).into();
            }
        }
        // A marked pod fits no spot type, which `minValues` would count, so then the problems say nothing about all plans.
        let is_proven = is_all && bounds.len() == seen.len() && problem.flexibility.is_empty();
        let least = bounds.iter().map(|(bound, _)| *bound).min().filter(|_| is_proven)?;
        Some((least, bounds.iter().map(|(_, proof)| *proof).max()?))
    }

    /// Returns a solution that passes the checker, for a comparison; `None` if there is none.
    fn tried(&self, problem: &Problem, work: u64, stop: &mut dyn StopSignal) -> Option<Solution> {
        let solved = solve(problem, &Options { work, ..self.inputs.options.solver }, stop).ok()?;
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
        let mut solution = self.tried(&part, self.inputs.options.solver.work, stop)?;
        let is_enough =
            !solution.new_nodes.is_empty() && lacking_after(bought, lacking, &solution).is_empty();
        // The pods that it leaves out are those of the next round.
        solution.unplaced.clear();
        is_enough.then_some(solution)
    }

    /// Returns a bound for all plans that keep the floor of the only pool in `lacking`, and its proof; `None` if it cannot be told.
    ///
    /// A plan without spot nodes of the pool costs at least the bound in `first`. Any other plan has the on-demand nodes that the pool
    /// lacks. If all choices of the pods on them were solved, the least of their bounds holds for it. Else: if each on-demand node were
    /// cheaper by some amount, it would cost less by that amount for each of them, at least. So the bound for these lower prices, plus
    /// the amounts, holds for it.
    pub(crate) fn bound_with_floor(
        &self,
        TooEarly { candidates, columns, problem, lacking, .. }: TooEarly<'_>,
        first: &OnDemandFirst,
        stop: &mut dyn StopSignal,
    ) -> Option<(UsdPerHour, Proof)> {
        let without_spot = first.without_spot?;
        let (&pool, &lacks) = lacking.iter().next().filter(|_| lacking.len() == 1)?;
        // No plan has so many nodes.
        if lacks == u64::MAX {
            return Some(without_spot);
        }
        if let Some(with_spot) = first.with_spot {
            let least = with_spot.0.min(without_spot.0);
            let is_reached = least >= first.cost;
            return Some((least, if is_reached { Proof::Exact } else { with_spot.1.max(without_spot.1) }));
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
        let solved = self
            .tried(&cheaper, self.inputs.options.solver.work, stop)
            .filter(|solved| solved.unplaced.is_empty())?;
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
            let solved = self
                .tried(&problem, self.inputs.options.solver.work, stop)
                .filter(|solved| solved.unplaced.is_empty());
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
            // If an on-demand node fits, `minValues` or a limit keeps it away.
            let rule = rule.map(|rule| {
                let SpotRule::OnDemandFloor(pool, floor) = rule else { return rule };
                let mut on_demand = homes.iter().filter_map(of_pool).filter(|(of, one)| {
                    *of == pool && !is_spot(&self.inputs.supply.offering(pool, one.offer.offering).id)
                });
                let barred = flexibility::bars_on_demand(self.inputs.supply.pools[pool].pool)
                    .filter(|_| self.inputs.options.min_values == MinValuesPolicy::Strict);
                if let (Some(asked), Some(_)) = (barred, on_demand.clone().next()) {
                    return SpotRule::FloorAgainstChoice(pool, floor, asked);
                }
                let limit = on_demand.find_map(|(_, one)| self.limits.first_beyond(&one.uses));
                limit.map_or(rule, |limit| SpotRule::FloorBeyondLimit(pool, floor, limit))
            });
            self.outcome.spot_rule[classes[left.class as usize]] = rule;
        }
    }
}
