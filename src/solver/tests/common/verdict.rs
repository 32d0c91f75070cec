//! What is asked of every plan whose least objective is known.

use poolwright_solver::{Backend, NeverStop, Options, Problem, Proof, Solution, Stopped, check, solve};

/// Those the solver is built with.
pub const BACKENDS: &[Backend] = &[
    #[cfg(feature = "highs")]
    Backend::Highs,
    #[cfg(feature = "microlp")]
    Backend::Microlp,
];

/// For `poolwright solve FILE`.
pub fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("a problem serialises")
}

/// The problems of the file that `REPLAY` names, one per line.
pub fn replayed() -> Vec<Problem> {
    let text = std::fs::read_to_string(std::env::var("REPLAY").expect("a file")).expect("a file");
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect("a problem")).collect()
}

/// A number from the environment, such as how many cases.
pub fn number(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// As far as a small problem needs.
pub fn solved(problem: &Problem, backend: Backend) -> Solution {
    let options = Options { gap_target: 0.0, work: 2_000_000, backend, ..Options::default() };
    solve(problem, &options, &mut NeverStop).expect("a well-formed problem")
}

/// What came of a problem.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verdict {
    /// The plan is optimal for what it places.
    pub optimal: bool,
    /// The solver has proven that.
    pub proven: bool,
}

/// `optimum` is the least objective of a plan that places what this one places; `None` when nothing like it is possible.
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
