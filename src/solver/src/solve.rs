//! The entry points. Problems with removable nodes go to [`moves`], all others straight to branch and price.

use crate::options::Options;
use crate::problem::{Problem, ProblemError};
use crate::solution::Solution;
use crate::stop::StopSignal;
use crate::warm::Warm;
use crate::{branch_and_price, moves, simpler};

/// Returns the plan of the greedy heuristic within milliseconds, without a bound.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn greedy(problem: &Problem) -> Result<Solution, ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return moves::greedy(problem);
    }
    Ok(branch_and_price::greedy(problem, &Options::default()))
}

/// Finds a cheap plan and a lower bound on its objective. Always returns a feasible plan, however early it stops.
///
/// The solution depends on `problem` and `options` only, unless `signal` asks to stop.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn solve(
    problem: &Problem,
    options: &Options,
    signal: &mut dyn StopSignal,
) -> Result<Solution, ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return Ok(moves::solve(problem, options, signal));
    }
    let solution = branch_and_price::solve(problem, options, signal);
    Ok(simpler::or_simpler(problem, solution, signal))
}

/// Like [`solve`], but starts from the memory of an earlier solve of a similar problem, and also returns the memory of
/// this one. `Warm::default()` is an empty memory.
///
/// The solution then depends on `warm` too. Problems with removable nodes neither use nor return a memory.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn solve_from(
    problem: &Problem,
    options: &Options,
    warm: &Warm,
    signal: &mut dyn StopSignal,
) -> Result<(Solution, Warm), ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return Ok((moves::solve(problem, options, signal), Warm::default()));
    }
    let (solution, warm) = branch_and_price::solve_from(problem, options, warm, signal);
    Ok((simpler::or_simpler(problem, solution, signal), warm))
}
