//! All rules mixed, in problems so small that every assignment of pods to nodes can be tried.

use poolwright_solver::{Backend, Problem};
use proptest::prelude::*;

#[path = "common/generate.rs"]
mod generate;
#[path = "common/reference.rs"]
mod reference;
#[path = "common/verdict.rs"]
mod verdict;

use generate::{Bytes, Mix};
use verdict::{BACKENDS, Verdict, json, number, replayed, solved};

fn problems(mix: Mix) -> impl Strategy<Value = Problem> {
    proptest::collection::vec(any::<u8>(), 0..220)
        .prop_map(move |bytes| generate::problem(&mut Bytes::new(&bytes), &mix))
}

/// Returns the rules to mix; `MIX=gangs,gpus` selects these rules alone.
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

/// Returns a verdict, and whether the plan places as many pods as possible.
fn judge(problem: &Problem, backend: Backend) -> Result<(Verdict, bool), String> {
    let solution = solved(problem, backend);
    let placed = reference::placed(problem, &solution);
    let verdict = verdict::judge(problem, &solution, reference::least(problem, &placed))?;
    Ok((verdict, reference::worth(problem, &placed) == reference::optimum(problem).0))
}

/// Checks a problem that the solver once solved incorrectly.
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
    for problem in replayed() {
        for backend in BACKENDS {
            println!("{:?}", solved(&problem, *backend));
            match judge(&problem, *backend) {
                Ok(verdict) => println!("{verdict:?}, the best is {:?}", reference::optimum(&problem)),
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
    let all = number("PROPTEST_CASES", 2_000);
    for _ in 0..all {
        let bytes: Vec<u8> = (0..220)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        let problem = generate::problem(&mut Bytes::new(&bytes), &mix());
        match judge(&problem, Backend::default()) {
            Ok((verdict, places_most)) => {
                optimal += u32::from(verdict.optimal);
                proven += u32::from(verdict.proven);
                most += u32::from(places_most);
                if std::env::var("SHOW")
                    .is_ok_and(|show| show == "most" && !places_most || show == "optimal" && !verdict.optimal)
                {
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
    #![proptest_config(ProptestConfig { cases: number("PROPTEST_CASES", 300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_least_cost_lies_between_bound_and_cost_whatever_rules_are_mixed(problem in problems(mix())) {
        for backend in BACKENDS {
            if let Err(error) = judge(&problem, *backend) {
                prop_assert!(false, "{backend:?}: {error}\n{}", json(&problem));
            }
        }
    }
}
