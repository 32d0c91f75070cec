//! The solves behind the bounds: a proven bound and a plan for each set of pods, in two passes.
//!
//! Sets that follow each other are similar, so rows of them share what is expensive. A solve with much work, for the most pods of
//! each class in the row, finds node contents and proves prices of pods. Each set of the row then gets little work and starts from
//! there, and most sets need no more than these prices. The second pass gives more work to those where the bound and the plan leave
//! most money between them.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use poolwright_solver::{NeverStop, Options, PodClass, Problem, Solution, Warm, solve_from};

use super::indispensable;

/// The work units of one solve in the second pass, or of a set's only one: about 10 ms of one core.
const WORK: u64 = 20_000;
/// Those of a solve in the first pass.
const FIRST: u64 = WORK / 8;
/// Those of each solve that the sets of a row share: the first, and another if some nodes are indispensable.
const SHARED: u64 = WORK * 4;
/// So many sets in a row share such a solve.
const IN_A_ROW: usize = 32;
/// So many rows are solved one after the other, each from the memory of the row before.
const ROWS_IN_A_CHAIN: usize = 8;
/// The most solves of the second pass: about ten seconds of one core.
const AGAIN: usize = 1_000;
/// A bound and a plan are close if one part in so many of the bound lies between them.
const CLOSE: u64 = 2_000;

/// The number of pods of each class.
pub(super) type Present = Vec<u32>;

/// The proven bound and the cost of the best known plan, in micro-dollars per hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Solved {
    pub bound: u64,
    /// `u64::MAX` if no plan is known.
    pub plan: u64,
}

impl Solved {
    /// Takes what is better in the other result for the same pods.
    fn take(&mut self, other: Self) {
        self.bound = self.bound.max(other.bound);
        self.plan = self.plan.min(other.plan);
    }

    fn is_close(self) -> bool {
        u128::from(self.plan.saturating_sub(self.bound)) * u128::from(CLOSE) <= u128::from(self.bound)
    }
}

/// What the sets of a row share.
#[derive(Default)]
struct Shared {
    memory: Warm,
    /// The proven price of a pod of each class in micro-dollars; empty if nothing is proven.
    prices: Vec<u64>,
}

impl Shared {
    /// Solves for the most pods of each class in the row, from the memory of the row before.
    ///
    /// The certified prices of this solve prove a bound for every set of the row. No node can hold pods of the solve that are worth
    /// more than the node costs. A set has no more pods of any class, so the same holds for the nodes of its plans. So its pods are
    /// worth no more than these nodes cost together.
    ///
    /// This needs a problem in which nothing but its price makes a node scarce, and in which no pod costs anything beside its node.
    fn of(problem: &Problem, frame: &Problem, row: &[Present], before: &Warm) -> Self {
        let mut most: Present = vec![0; problem.classes.len()];
        for present in row {
            for (most, count) in most.iter_mut().zip(present) {
                *most = (*most).max(*count);
            }
        }
        let mut asked = with_pods(problem, frame, &most);
        let Some((solution, memory)) = solve(&asked, SHARED, before) else {
            return Self::default();
        };
        let mut shared = Self { memory, prices: Vec::new() };
        if let Some(proven) = solution.prices.filter(|_| is_plain(&asked)) {
            shared.prices = vec![0; most.len()];
            let present = most.iter().zip(&mut shared.prices).filter(|(count, _)| **count > 0);
            for ((_, price), proven) in present.zip(proven.classes) {
                // The solver rounds prices to the nearest micro-dollar.
                *price = proven.saturating_sub(1);
            }
        }
        // The sets are solved with their indispensable nodes paid, so their memory is of such a solve.
        if indispensable::pay(&mut asked) > 0
            && let Some((_, memory)) = solve(&asked, SHARED, &shared.memory)
        {
            shared.memory = memory;
        }
        shared
    }

    /// Returns the bound that the prices prove for a set of the row.
    fn bound(&self, present: &Present) -> u64 {
        let worth =
            self.prices.iter().zip(present).map(|(price, count)| price.saturating_mul((*count).into()));
        worth.fold(0, u64::saturating_add)
    }
}

/// Returns whether nodes have no limits but their room, and pods cost nothing beside their nodes.
fn is_plain(problem: &Problem) -> bool {
    let is_plain_class = |class: &PodClass| {
        class.gpu.is_none()
            && class.at_risk == 0
            && class.at_risk_on.is_empty()
            && class.preferences.is_empty()
    };
    problem.existing.is_empty()
        && problem.commitments.is_empty()
        && problem.gangs.is_empty()
        && problem.spreads.is_empty()
        && problem.node_shares.is_empty()
        && problem.flexibility.is_empty()
        && problem.classes.iter().all(is_plain_class)
        && problem
            .candidates
            .iter()
            .all(|one| one.gpus.is_none() && one.max_nodes.is_none() && one.limit_use.is_empty())
}

/// Solves for each set of pods, on one thread per core. `lengths` says how long each set counts, and `alone` is what an own node of
/// a pod of each class costs. Work is counted, not timed, and no solve depends on the assignment to threads.
pub(super) fn solve_all(
    problem: &Problem,
    all: &[Present],
    lengths: &[Duration],
    alone: &[u64],
) -> Vec<Solved> {
    // All but the pods. Each solve has its own.
    let frame = Problem { classes: Vec::new(), ..problem.clone() };
    let rows: Vec<&[Present]> = all.chunks(IN_A_ROW).collect();
    let chains: Vec<&[&[Present]]> = rows.chunks(ROWS_IN_A_CHAIN).collect();
    let shared = in_parallel(chains.len(), |at| chain(problem, &frame, chains[at]));
    let shared: Vec<Shared> = shared.into_iter().flatten().collect();
    let mut results = in_parallel(all.len(), |at| {
        // Sets that count for no time get no second pass. They are small: most need little of this work.
        let work = if lengths[at].is_zero() { WORK } else { FIRST };
        solved(problem, &frame, &all[at], work, &shared[at / IN_A_ROW])
    });
    spread(all, alone, &mut results);
    let again = most_between(&results, lengths);
    let better = in_parallel(again.len(), |at| {
        let of = again[at];
        solved(problem, &frame, &all[of], WORK, &shared[of / IN_A_ROW])
    });
    for (at, better) in again.into_iter().zip(better) {
        results[at].take(better);
    }
    spread(all, alone, &mut results);
    results
}

/// Returns what the sets of each of these rows share.
fn chain(problem: &Problem, frame: &Problem, rows: &[&[Present]]) -> Vec<Shared> {
    let nothing = Warm::default();
    let mut chain: Vec<Shared> = Vec::new();
    for row in rows {
        let before = chain.last().map_or(&nothing, |shared| &shared.memory);
        let shared = Shared::of(problem, frame, row, before);
        chain.push(shared);
    }
    chain
}

/// Returns the sets that are solved again: those where most money lies between the bound and the plan, over their lengths.
fn most_between(results: &[Solved], lengths: &[Duration]) -> Vec<usize> {
    let money = |at: usize| {
        let between = results[at].plan.saturating_sub(results[at].bound);
        u128::from(between) * lengths[at].as_millis()
    };
    let mut again: Vec<usize> =
        (0..results.len()).filter(|at| !results[*at].is_close() && money(*at) > 0).collect();
    again.sort_by_key(|at| (Reverse(money(*at)), *at));
    again.truncate(AGAIN);
    again
}

/// Returns the results of `work` for each number below `count`.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(count));
    let run = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                return;
            }
            let result = work(at);
            found.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(run);
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

/// Returns the problem with these numbers of pods.
fn with_pods(problem: &Problem, frame: &Problem, present: &Present) -> Problem {
    let classes = problem.classes.iter().zip(present).filter(|(_, count)| **count > 0);
    let classes = classes.map(|(class, count)| PodClass { count: *count, ..class.clone() });
    Problem { classes: classes.collect(), ..frame.clone() }
}

/// Solves the problem with this much work, from an earlier memory. Returns `None` if the solution leaves pods out: the solver's
/// bound holds for plans that place as many pods, so no bound follows for all of them.
fn solve(asked: &Problem, work: u64, memory: &Warm) -> Option<(Solution, Warm)> {
    let options = Options { work, threads: 1, gap_target: 1.0 / CLOSE as f64, ..Options::default() };
    let solved = solve_from(asked, &options, memory, &mut NeverStop).ok();
    solved.filter(|(solution, _)| solution.unplaced.is_empty())
}

/// Proves a lower bound on the cost per hour of nodes that hold these numbers of pods, and finds a plan for them.
fn solved(problem: &Problem, frame: &Problem, present: &Present, work: u64, shared: &Shared) -> Solved {
    let mut asked = with_pods(problem, frame, present);
    let paid = indispensable::pay(&mut asked);
    let mut result = Solved { bound: shared.bound(present), plan: u64::MAX };
    if let Some((solution, _)) = solve(&asked, work, &shared.memory) {
        result.take(Solved { bound: paid + solution.bound.micros(), plan: paid + solution.cost.micros() });
    }
    result
}

/// Returns the price of the cheapest node for one pod of each class; `u64::MAX` if there is none.
pub(super) fn alone(problem: &Problem) -> Vec<u64> {
    let least = |class: &PodClass| {
        let candidates = class.candidates.iter().map(|at| &problem.candidates[*at as usize]);
        let fit = candidates
            .filter(|one| one.capacity.iter().zip(&class.requests).all(|(room, asked)| room >= asked));
        // A stock could run out.
        fit.filter(|one| one.max_nodes.is_none()).map(|one| one.price.micros()).min().unwrap_or(u64::MAX)
    };
    problem.classes.iter().map(least).collect()
}

/// Returns the price of an own node for every pod of `these` that is not among `others`.
pub(super) fn own_nodes(these: &Present, others: &Present, alone: &[u64]) -> u64 {
    let more = these.iter().zip(others).map(|(these, others)| u64::from(these.saturating_sub(*others)));
    more.zip(alone).fold(0, |sum, (count, price)| sum.saturating_add(count.saturating_mul(*price)))
}

/// Improves each result by the ones before and after it. Fewer pods never cost more, and pods on nodes of their own cost no less
/// than in the best plan. So two results differ by no more than such nodes for the pods that differ.
fn spread(asked: &[Present], alone: &[u64], solved: &mut [Solved]) {
    let pairs: Vec<(usize, usize)> = (1..asked.len()).map(|at| (at - 1, at)).collect();
    for (from, to) in pairs.iter().copied().chain(pairs.iter().rev().map(|(from, to)| (*to, *from))) {
        let (gone, new) =
            (own_nodes(&asked[from], &asked[to], alone), own_nodes(&asked[to], &asked[from], alone));
        let known = solved[from];
        solved[to].bound = solved[to].bound.max(known.bound.saturating_sub(gone));
        solved[to].plan = solved[to].plan.min(known.plan.saturating_add(new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_with_most_money_in_doubt_are_solved_again_first_and_close_ones_never() {
        let solved = |bound, plan| Solved { bound, plan };
        let results = [
            solved(100, 101),
            solved(100_000, 100_050),
            solved(100, 150),
            solved(0, 1_000),
            solved(0, u64::MAX),
        ];
        let seconds = [1_000, 1_000_000, 10, 0, 1].map(Duration::from_secs);
        assert_eq!(most_between(&results, &seconds), [4, 0, 2]);
        assert_eq!(most_between(&[results[0]; AGAIN + 1], &[seconds[0]; AGAIN + 1]).len(), AGAIN);
    }

    #[test]
    fn work_done_in_parallel_comes_back_in_order() {
        assert_eq!(in_parallel(100, |at| at * at), (0..100).map(|at| at * at).collect::<Vec<_>>());
        assert_eq!(in_parallel(0, |at| at), Vec::<usize>::new());
    }
}
