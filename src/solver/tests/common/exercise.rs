//! The invariants for any bytes: they decode to a problem that is rejected with a typed error, or to one whose plan
//! passes the checker and whose bound is not above its cost. Nothing panics.

use poolwright_solver::{NeverStop, Options, Problem, Solution, check, greedy, solve};

use super::extreme::Edits;
use super::generate::{Bytes, Mix, problem};

/// Decodes bytes to a problem, which may be malformed.
pub fn decoded(data: &[u8], mix: &Mix) -> Problem {
    let Some((kind, rest)) = data.split_first() else { return Problem::default() };
    // A fixed number of bytes decides the extreme numbers, so that these stay in place while the problem is mutated.
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

/// Serialises as for saving.
pub fn json(of: &impl serde::Serialize) -> String {
    serde_json::to_string(of).expect("it serialises")
}

/// Panics when an invariant does not hold.
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
