//! Checks for every plan whose lowest objective is known.

use poolwright_solver::{Backend, NeverStop, Options, Problem, Proof, Solution, Stopped, check, solve};

/// The LP backends that the solver is built with.
pub const BACKENDS: &[Backend] = &[
    #[cfg(feature = "highs")]
    Backend::Highs,
    #[cfg(feature = "microlp")]
    Backend::Microlp,
];

/// Serialises a problem for `poolwright debug solve FILE`.
pub fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("a problem serialises")
}

/// Returns the problems of the file that `REPLAY` names, one per line.
pub fn replayed() -> Vec<Problem> {
    let text = std::fs::read_to_string(std::env::var("REPLAY").expect("a file")).expect("a file");
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("a problem")).collect()
}

/// Returns a number from the environment, such as the number of cases.
pub fn number(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// Solves a small problem with a sufficient budget.
pub fn solved(problem: &Problem, backend: Backend) -> Solution {
    let options = Options { gap_target: 0.0, work: 2_000_000, backend, ..Options::default() };
    solve(problem, &options, &mut NeverStop).expect("a well-formed problem")
}

/// The result of a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    /// Whether the plan is optimal for the pods that it places.
    pub optimal: bool,
    /// Whether the solver has proven that.
    pub proven: bool,
}

/// Checks a plan. `optimum` is the lowest objective of a plan that places the same pods; `None` when no such plan is
/// possible.
pub fn judge(problem: &Problem, solution: &Solution, optimum: Option<u64>) -> Result<Verdict, String> {
    if let Err(violations) = check(problem, solution) {
        return Err(format!("{violations:?}\n{solution:?}"));
    }
    let Some(optimum) = optimum else {
        return Err(format!("nothing like the plan is possible\n{solution:?}"));
    };
    let (objective, bound) = (solution.objective().micros(), solution.bound.micros());
    if objective < optimum {
        return Err(format!("the plan costs {objective}, least is {optimum}\n{solution:?}"));
    }
    if bound > optimum {
        return Err(format!("the bound is {bound}, least is {optimum}\n{solution:?}"));
    }
    if solution.stopped == Stopped::GapReached && objective != optimum {
        return Err(format!(
            "the plan is said to be the best at {objective}, least is {optimum}\n{solution:?}"
        ));
    }
    if (solution.proof == Proof::Exact) != (objective == bound) {
        return Err(format!("{objective} with the bound {bound} is not what the proof says\n{solution:?}"));
    }
    Ok(Verdict { optimal: objective == optimum, proven: solution.proof == Proof::Exact })
}
