//! What must hold of any bytes: they are a problem that is refused with a typed error, or one whose plan the checker
//! passes and whose bound is not above its cost. Never a panic.

use poolwright_solver::{NeverStop, Options, Problem, Solution, check, greedy, solve};

use super::extreme::Edits;
use super::generate::{Bytes, Mix, problem};

/// The problem that bytes stand for; not all are well-formed.
pub fn decoded(data: &[u8], mix: &Mix) -> Problem {
    let Some((kind, rest)) = data.split_first() else { return Problem::default() };
    // Few bytes decide the numbers nobody means, so that they stay where they are while the problem is mutated.
    let (edits, rest) = rest.split_at(rest.len().min(if kind % 4 == 3 { 24 } else { 0 }));
    let mut made = problem(&mut Bytes::new(rest), &Mix { pods: 4 + u32::from(kind / 4) % 12, ..*mix });
    if !edits.is_empty() {
        Edits(edits.iter()).apply(&mut made);
    }
    made
}

fn judge(problem: &Problem, solution: &Solution) {
    if let Err(violations) = check(problem, solution) {
        panic!("{violations:?}\n{}\n{}", json(problem), json(solution));
    }
    assert!(solution.bound <= solution.objective(), "{}\n{}", json(problem), json(solution));
}

/// As it is saved and read.
pub fn json(of: &impl serde::Serialize) -> String {
    serde_json::to_string(of).expect("it serialises")
}

/// Panics when something that must hold does not.
pub fn exercise(data: &[u8], mix: &Mix, work: u64) {
    let problem = decoded(data, mix);
    let text = json(&problem);
    let read: Problem = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(read, problem);
    let first = greedy(&problem);
    let options = Options { work, gap_target: 0.0, seed: 0, ..Options::default() };
    match solve(&problem, &options, &mut NeverStop) {
        Ok(solution) => judge(&problem, &solution),
        Err(error) => assert_eq!(first, Err(error.clone()), "{error}"),
    }
    if let Ok(first) = first {
        judge(&problem, &first);
    }
}
