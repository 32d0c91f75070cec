//! Relations between the plans for two problems that differ in one respect.

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{NeverStop, Options, Problem, Solution, check, solve};
use proptest::prelude::*;

#[path = "common/generate.rs"]
mod generate;

use generate::{Bytes, Mix};

fn problems(mix: Mix) -> impl Strategy<Value = Problem> {
    proptest::collection::vec(any::<u8>(), 0..220)
        .prop_map(move |bytes| generate::problem(&mut Bytes::new(&bytes), &mix))
}

fn json(problem: &Problem) -> String {
    serde_json::to_string(problem).expect("a problem serialises")
}

fn solved(problem: &Problem) -> Solution {
    let options = Options { gap_target: 0.0, work: 2_000_000, ..Options::default() };
    let solution = solve(problem, &options, &mut NeverStop).expect("a well-formed problem");
    assert_eq!(check(problem, &solution), Ok(()), "{}", json(problem));
    solution
}

fn proven(solution: &Solution) -> bool {
    solution.objective() == solution.bound
}

/// Returns the pods left out of each class. Plans are compared only if both leave out the same pods.
fn left(solution: &Solution, classes: usize) -> Vec<u64> {
    let mut left = vec![0; classes];
    for entry in &solution.unplaced {
        left[entry.class as usize] += u64::from(entry.count);
    }
    left
}

/// Returns the rules under which another candidate never raises the optimum: all but stock, limits and node shares.
/// Flexibility (minValues) stays, since another candidate can only help there.
fn plentiful() -> Mix {
    Mix { scarce: false, shares: false, ..Mix::LANDED }
}

/// Rotates a list by one, and returns a map from old to new indices.
fn rotated<T>(list: &mut [T]) -> impl Fn(u32) -> u32 + use<T> {
    let size = list.len() as u32;
    if size > 0 {
        list.rotate_right(1);
    }
    move |index| (index + 1) % size.max(1)
}

fn mapped(indices: &mut [u32], map: impl Fn(u32) -> u32) {
    for index in indices.iter_mut() {
        *index = map(*index);
    }
    indices.sort_unstable();
}

/// Returns the same problem with its classes and its candidates in another order.
fn permuted(problem: &Problem) -> Problem {
    let mut other = problem.clone();
    let class = rotated(&mut other.classes);
    let candidate = rotated(&mut other.candidates);
    for pods in &mut other.classes {
        mapped(&mut pods.candidates, &candidate);
        pods.preferences.iter_mut().for_each(|(index, _)| *index = candidate(*index));
        pods.preferences.sort_unstable();
        pods.at_risk_on.iter_mut().for_each(|(index, _)| *index = candidate(*index));
        pods.at_risk_on.sort_unstable();
    }
    for (i, j) in &mut other.conflicts {
        (*i, *j) = (class(*i).min(class(*j)), class(*i).max(class(*j)));
    }
    other.conflicts.sort_unstable();
    other.gangs.iter_mut().for_each(|gang| mapped(&mut gang.classes, &class));
    other.spreads.iter_mut().for_each(|spread| mapped(&mut spread.classes, &class));
    for plan in &mut other.commitments {
        plan.rates.iter_mut().for_each(|(index, _)| *index = candidate(*index));
        plan.rates.sort_unstable();
    }
    for share in &mut other.node_shares {
        mapped(&mut share.part, &candidate);
        mapped(&mut share.of, &candidate);
    }
    other.flexibility.iter_mut().for_each(|rule| mapped(&mut rule.candidates, &candidate));
    for removal in other.existing.iter_mut().filter_map(|node| node.removal.as_mut()) {
        removal.pods.iter_mut().for_each(|(index, _)| *index = class(*index));
        removal.pods.sort_unstable();
    }
    other
}

/// Returns the same problem with a class of several pods in two entries.
fn split(problem: &Problem) -> Option<Problem> {
    let grouped = |class: u32| {
        let gangs = problem.gangs.iter().flat_map(|gang| &gang.classes);
        let spreads = problem.spreads.iter().flat_map(|spread| &spread.classes);
        let conflicts = problem.conflicts.iter().flat_map(|(i, j)| [i, j]);
        let running = problem.existing.iter().filter_map(|node| node.removal.as_ref());
        let running = running.flat_map(|removal| removal.pods.iter().map(|(class, _)| class));
        gangs.chain(spreads).chain(conflicts).chain(running).any(|member| *member == class)
    };
    // A class with rules over its own pods on a node is not equal to two such classes.
    let at = problem.classes.iter().enumerate().position(|(index, class)| {
        class.count > 1 && class.max_per_node.is_none() && class.ports.is_empty() && !grouped(index as u32)
    })?;
    let mut other = problem.clone();
    let mut part = other.classes[at].clone();
    part.count -= 1;
    other.classes[at].count = 1;
    other.classes.push(part);
    Some(other)
}

/// Returns the same problem with all money times `factor`.
fn dearer(problem: &Problem, factor: u64) -> Problem {
    let times = |money: &mut UsdPerHour| *money = UsdPerHour::from_micros(money.micros() * factor);
    let mut other = problem.clone();
    other.candidates.iter_mut().for_each(|candidate| times(&mut candidate.price));
    for class in &mut other.classes {
        class.at_risk *= factor;
        class.at_risk_on.iter_mut().for_each(|(_, lost)| *lost *= factor);
        class.preferences.iter_mut().for_each(|(_, cost)| times(cost));
        times(&mut class.disruption);
    }
    for plan in &mut other.commitments {
        times(&mut plan.left);
        plan.rates.iter_mut().for_each(|(_, rate)| times(rate));
    }
    for removal in other.existing.iter_mut().filter_map(|node| node.removal.as_mut()) {
        times(&mut removal.price);
        times(&mut removal.disruption);
    }
    other
}

/// Returns the number of cases; `PROPTEST_CASES` sets it.
fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_more_offering_never_raises_the_proven_optimum(problem in problems(plentiful()), bytes in any::<[u8; 4]>()) {
        let before = solved(&problem);
        let mut more = problem.clone();
        let mut added = more.candidates[usize::from(bytes[0]) % more.candidates.len()].clone();
        added.price = UsdPerHour::from_micros(u64::from(bytes[1] % 60) * 10_000);
        added.capacity = vec![u64::from(bytes[2] % 14) + 1, u64::from(bytes[3] % 20) + 1];
        more.candidates.push(added);
        let index = problem.candidates.len() as u32;
        more.classes.iter_mut().for_each(|class| class.candidates.push(index));
        let after = solved(&more);
        if left(&before, problem.classes.len()) == left(&after, problem.classes.len()) {
            prop_assert!(after.bound <= before.objective(), "{} {}\n{}", after.bound, before.objective(), json(&more));
            if proven(&after) {
                prop_assert!(after.objective() <= before.objective(), "{}", json(&more));
            }
        }
    }

    #[test]
    fn one_more_pod_never_lowers_the_proven_optimum(problem in problems(Mix { spreads: false, shares: false, ..Mix::LANDED }), at in any::<usize>()) {
        let before = solved(&problem);
        let mut more = problem.clone();
        let at = at % more.classes.len();
        more.classes[at].count += 1;
        let after = solved(&more);
        let classes = problem.classes.len();
        let placed_more = left(&before, classes) == left(&after, classes);
        if placed_more {
            prop_assert!(before.bound <= after.objective(), "{} {}\n{}", before.bound, after.objective(), json(&more));
            if proven(&before) {
                prop_assert!(before.objective() <= after.objective(), "{}", json(&more));
            }
        }
    }

    #[test]
    fn the_order_of_classes_and_candidates_changes_no_proven_cost(problem in problems(Mix::LANDED)) {
        let other = permuted(&problem);
        let (one, two) = (solved(&problem), solved(&other));
        let classes = problem.classes.len();
        let mut moved = left(&two, classes);
        moved.rotate_left(1.min(classes));
        if left(&one, classes) == moved {
            prop_assert!(one.bound <= two.objective() && two.bound <= one.objective(), "{}", json(&problem));
            if proven(&one) && proven(&two) {
                prop_assert_eq!(one.objective(), two.objective(), "{}", json(&problem));
            }
        }
    }

    #[test]
    fn a_class_in_two_entries_changes_no_proven_cost(problem in problems(Mix::LANDED)) {
        let Some(other) = split(&problem) else { return Ok(()) };
        let (one, two) = (solved(&problem), solved(&other));
        if one.unplaced.is_empty() && two.unplaced.is_empty() {
            prop_assert!(one.bound <= two.objective() && two.bound <= one.objective(), "{}", json(&problem));
            if proven(&one) && proven(&two) {
                prop_assert_eq!(one.objective(), two.objective(), "{}", json(&problem));
            }
        }
    }

    #[test]
    fn all_money_times_seven_is_all_costs_times_seven(problem in problems(Mix { commitments: false, ..Mix::LANDED })) {
        // One limit is in money and would have to scale too.
        prop_assume!(problem.limits.len() < 2);
        // Risks are rounded to the micro-dollar; the risks in these problems are whole.
        let other = dearer(&problem, 7);
        let (one, two) = (solved(&problem), solved(&other));
        let classes = problem.classes.len();
        if left(&one, classes) == left(&two, classes) {
            prop_assert!(one.bound.micros() * 7 <= two.objective().micros(), "{}", json(&problem));
            prop_assert!(two.bound.micros() <= one.objective().micros() * 7, "{}", json(&problem));
            if proven(&one) && proven(&two) {
                prop_assert_eq!(one.objective().micros() * 7, two.objective().micros(), "{}", json(&problem));
            }
        }
    }
}
