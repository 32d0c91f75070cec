//! All rules mixed, in problems so small that every assignment of pods to nodes can be tried.

use poolwright_solver::{Backend, NeverStop, Options, Problem, Proof, Solution, check, solve};
use proptest::prelude::*;

#[path = "common/generate.rs"]
mod generate;
#[path = "common/reference.rs"]
mod reference;

use generate::{Bytes, Mix};

fn problems(mix: Mix) -> impl Strategy<Value = Problem> {
    proptest::collection::vec(any::<u8>(), 0..220)
        .prop_map(move |bytes| generate::problem(&mut Bytes::new(&bytes), &mix))
}

/// For `poolwright solve FILE`.
fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("a problem serialises")
}

/// `PROPTEST_CASES` for more.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// `MIX=gangs,gpus` for these rules alone.
fn mix() -> Mix {
    let Ok(rules) = std::env::var("MIX") else { return Mix::LANDED };
    let on = |rule: &str| rules.split(',').any(|named| named == rule || named == "all");
    Mix {
        scarce: on("scarce"),
        shares: on("shares"),
        meetings: on("meetings"),
        gpus: on("gpus"),
        commitments: on("commitments"),
        charges: on("charges"),
        flexibility: on("flexibility"),
        gangs: on("gangs"),
        spreads: on("spreads"),
        priorities: on("priorities"),
        values: on("values"),
        removal: on("removal"),
        joined: on("joined"),
        ..Mix::ALL
    }
}

const BACKENDS: &[Backend] = &[
    #[cfg(feature = "highs")]
    Backend::Highs,
    #[cfg(feature = "microlp")]
    Backend::Microlp,
];

fn solved(problem: &Problem, backend: Backend) -> Solution {
    let options = Options { gap_target: 0.0, work: 2_000_000, backend, ..Options::default() };
    solve(problem, &options, &mut NeverStop).expect("a well-formed problem")
}

/// What came of a problem.
#[derive(Clone, Copy, Debug, Default)]
struct Verdict {
    /// The plan is optimal for what it places.
    optimal: bool,
    /// The solver has proven that.
    proven: bool,
    /// The plan places as much as can be placed.
    most: bool,
}

fn judge(problem: &Problem, backend: Backend) -> Result<Verdict, String> {
    let solution = solved(problem, backend);
    if let Err(violations) = check(problem, &solution) {
        return Err(format!("{violations:?}\n{solution:?}"));
    }
    let placed = reference::placed(problem, &solution);
    let Some(optimum) = reference::least(problem, &placed) else {
        return Err(format!("nothing like the plan is possible\n{solution:?}"));
    };
    let (objective, bound) = (solution.objective().micros(), solution.bound.micros());
    if objective < optimum {
        return Err(format!("the plan costs {objective}, least is {optimum}\n{solution:?}"));
    }
    if bound > optimum {
        return Err(format!("the bound is {bound}, least is {optimum}\n{solution:?}"));
    }
    if (solution.proof == Proof::Exact) != (objective == bound) {
        return Err(format!("{objective} with the bound {bound} is not what the proof says\n{solution:?}"));
    }
    Ok(Verdict {
        optimal: objective == optimum,
        proven: solution.proof == Proof::Exact,
        most: reference::worth(problem, &placed) == reference::most(problem),
    })
}

/// A problem that was once answered wrongly.
fn once_wrong(text: &str) {
    let problem: Problem = serde_json::from_str(text).expect("a problem");
    for backend in BACKENDS {
        assert_eq!(judge(&problem, *backend).err(), None, "{backend:?}");
    }
}

#[test]
fn a_pod_that_is_left_out_makes_no_branch_impossible() {
    once_wrong(include_str!("problems/left-out-in-branches.json"));
    once_wrong(include_str!("problems/left-out-in-branches-with-commitments.json"));
}

#[test]
fn pods_that_may_be_spread_in_several_ways_are_not_all_demanded_at_once() {
    once_wrong(include_str!("problems/spread-with-commitments.json"));
    once_wrong(include_str!("problems/spread-with-commitments-and-gpus.json"));
}

#[test]
#[ignore = "for saved problems, one per line: REPLAY=file"]
fn replay() {
    let text = std::fs::read_to_string(std::env::var("REPLAY").expect("a file")).expect("a file");
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let problem: Problem = serde_json::from_str(line).expect("a problem");
        for backend in BACKENDS {
            println!("{:?}", solved(&problem, *backend));
            match judge(&problem, *backend) {
                Ok(verdict) => println!("{verdict:?}, most {:?}", reference::most(&problem)),
                Err(error) => println!("{error}"),
            }
        }
    }
}

#[test]
#[ignore = "a count, for people: PROPTEST_CASES problems"]
fn how_often_small_plans_are_optimal_and_proven() {
    let mut state = 1u64;
    let (mut optimal, mut proven, mut most, mut wrong) = (0, 0, 0, 0);
    let all = cases(2_000);
    for _ in 0..all {
        let bytes: Vec<u8> = (0..220)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        let problem = generate::problem(&mut Bytes::new(&bytes), &mix());
        match judge(&problem, Backend::default()) {
            Ok(verdict) => {
                optimal += u32::from(verdict.optimal);
                proven += u32::from(verdict.proven);
                most += u32::from(verdict.most);
                if std::env::var("SHOW").is_ok_and(|show| {
                    show == "most" && !verdict.most || show == "optimal" && !verdict.optimal
                }) {
                    println!("{}", json(&problem));
                }
            }
            Err(error) => {
                wrong += 1;
                if wrong <= 5 {
                    println!("WRONG {error}\n{}", json(&problem));
                }
            }
        }
    }
    println!("of {all}: {optimal} optimal, {proven} proven, {most} place the most, {wrong} wrong");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_least_cost_lies_between_bound_and_cost_whatever_rules_are_mixed(problem in problems(mix())) {
        for backend in BACKENDS {
            if let Err(error) = judge(&problem, *backend) {
                prop_assert!(false, "{backend:?}: {error}\n{}", json(&problem));
            }
        }
    }
}
