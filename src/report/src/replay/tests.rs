//! The limit against exact optima of small random cases, and the split of the gap in worlds made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{OfferingId, ResourceName, UsdPerHour};
use poolwright_core::{Pod as Model, PodKey, PodSpec};
use poolwright_solver::{Candidate, ExistingNode, PodClass, Problem};
use poolwright_terms::CapacityType;
use proptest::prelude::*;

use super::bound::{Bounds, of};
use super::solves::{Present, Solved, alone, solve_all};
use super::{Cause, End, History, Idle, Machine, Pod, Report, Told};
use crate::money::Usd;

/// One dollar in micro-dollars.
const USD: u64 = 1_000_000;
/// The candidates of a class that may use two.
const BOTH: &[u32] = &[0, 1];

/// Builds a problem of some resources from (price, room) of candidates, and (request, candidates) of classes.
fn problem<const RESOURCES: usize>(
    candidates: &[(u64, [u64; RESOURCES])],
    classes: &[([u64; RESOURCES], &[u32])],
) -> Problem {
    let candidate = |(price, room): &(u64, [u64; RESOURCES])| Candidate {
        price: UsdPerHour::from_micros(*price),
        capacity: room.to_vec(),
        ..Candidate::default()
    };
    let class = |(requests, candidates): &([u64; RESOURCES], &[u32])| PodClass {
        requests: requests.to_vec(),
        count: 1,
        candidates: candidates.to_vec(),
        ..PodClass::default()
    };
    let resources = [ResourceName::CPU, ResourceName::MEMORY].into_iter().take(RESOURCES);
    Problem {
        resources: resources.map(ResourceName::from).collect(),
        candidates: candidates.iter().map(candidate).collect(),
        classes: classes.iter().map(class).collect(),
        ..Problem::default()
    }
}

/// Solves for sets of pods of which each counts for an hour.
fn solved(problem: &Problem, all: &[Present]) -> Vec<Solved> {
    solve_all(problem, all, &vec![Duration::from_hours(1); all.len()], &alone(problem))
}

/// Returns the least cost of nodes for these pods by trying all partitions; `None` if some pod fits nowhere.
fn optimum(problem: &Problem, present: &[u32]) -> Option<u64> {
    let counts = present.iter().enumerate();
    let pods: Vec<usize> = counts.flat_map(|(class, count)| (0..*count).map(move |_| class)).collect();
    let node = |set: usize| {
        let held =
            || (0..pods.len()).filter(move |at| set >> at & 1 == 1).map(|at| &problem.classes[pods[at]]);
        let holds = |at: &u32| {
            let mut room = problem.candidates[*at as usize].capacity.iter().enumerate();
            held().all(|class| class.candidates.contains(at))
                && room.all(|(of, room)| held().map(|class| class.requests[of]).sum::<u64>() <= *room)
        };
        let fit = (0..problem.candidates.len() as u32).filter(holds);
        fit.map(|at| problem.candidates[at as usize].price.micros()).min()
    };
    let mut least: Vec<Option<u64>> = vec![Some(0)];
    for set in 1..1usize << pods.len() {
        let first = set & set.wrapping_neg();
        let parts = (1..=set).filter(|part| part & set == *part && part & first != 0);
        least.push(parts.filter_map(|part| Some(node(part)? + least[set - part]?)).min());
    }
    least[(1 << pods.len()) - 1]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_limit_is_never_above_the_optimum_nor_the_plan_below_it(
        other in 41..44u64,
        candidates in proptest::collection::vec((1..50u64, [1..10u64, 1..10u64]), 1..5),
        classes in proptest::collection::vec(([1..9u64, 1..9u64], 1..16u32), 3),
        presents in proptest::collection::vec(proptest::collection::vec(0..3u32, 3), 1..5),
    ) {
        // The first candidate holds every pod, so that all can be placed. The second is like it and costs no less, such as another
        // zone. Others may hold as much, for more or less.
        let candidates: Vec<(u64, [u64; 2])> = [(41 * USD, [9, 9]), (other * USD, [9, 9])]
            .into_iter()
            .chain(candidates.into_iter().map(|(price, room)| (price * USD, room)))
            .collect();
        let allowed: Vec<Vec<u32>> = classes
            .iter()
            .map(|(_, bits)| (0..candidates.len() as u32).filter(|at| *at < 2 || bits >> (at - 2) & 1 == 1).collect())
            .collect();
        let classes: Vec<([u64; 2], &[u32])> =
            classes.iter().zip(&allowed).map(|((requests, _), allowed)| (*requests, allowed.as_slice())).collect();
        let problem = problem(&candidates, &classes);
        let presents: Vec<Present> = presents.into_iter().filter(|present| present.iter().sum::<u32>() > 0).collect();
        for (present, solved) in presents.iter().zip(solved(&problem, &presents)) {
            let least = optimum(&problem, present).expect("the first candidate holds every pod");
            prop_assert!(solved.bound <= least, "{present:?}: bound {} above the optimum {least}", solved.bound);
            prop_assert!(solved.plan >= least, "{present:?}: plan {} below the optimum {least}", solved.plan);
        }
    }

    #[test]
    fn the_paid_nodes_are_never_dearer_than_the_optimum(
        prices in [20..40u64, 20..40u64],
        rooms in [[6..10u64, 6..10u64], [6..10u64, 6..10u64]],
        classes in proptest::collection::vec(([1..7u64, 1..7u64], 1..4u32), 1..4),
    ) {
        // All pods fit both candidates alone, so that nodes are paid if one of the candidates stands for both.
        let candidates = [(prices[0] * USD, rooms[0]), (prices[1] * USD, rooms[1])];
        let requests: Vec<([u64; 2], &[u32])> =
            classes.iter().map(|(requests, _)| (*requests, BOTH)).collect();
        let mut problem = problem(&candidates, &requests);
        let present: Present = classes.iter().map(|(_, count)| (*count).min(2)).collect();
        let least = optimum(&problem, &present).expect("each pod fits a node of its own");
        for (class, count) in problem.classes.iter_mut().zip(&present) {
            class.count = *count;
        }
        let paid = super::indispensable::pay(&mut problem);
        prop_assert!(paid <= least, "{present:?}: paid {paid} above the optimum {least}");
    }
}

#[test]
fn a_node_that_a_pod_cannot_do_without_counts_whole() {
    // The first pod needs a quarter of the only node that it may use. The others need more than the rest of that node.
    let problem = problem(&[(31 * USD, [8]), (USD, [1])], &[([2], &[0]), ([1], &[0, 1])]);
    let mut asked = problem.clone();
    assert_eq!(super::indispensable::pay(&mut asked), 31 * USD);
    assert_eq!(solved(&problem, &[vec![1, 10]])[0].bound, 35 * USD);
}

#[test]
fn nodes_are_indispensable_if_pods_fit_no_others_and_not_together() {
    // The price of the nodes that pods with these requests need, if all may use one type. It is also sold at a higher price.
    let paid = |requests: &[[u64; 2]]| {
        let classes: Vec<([u64; 2], &[u32])> = requests.iter().map(|request| (*request, BOTH)).collect();
        super::indispensable::pay(&mut problem(&[(USD, [8, 8]), (2 * USD, [8, 8])], &classes)) / USD
    };
    assert_eq!(paid(&[[1, 1]]), 1, "the dearer price changes nothing");
    assert_eq!(paid(&[[3, 1]; 5]), 3, "a node has two of them, though their sum fits two nodes");
    assert_eq!(paid(&[[5, 1], [4, 5], [4, 4]]), 3, "no two fit together, each pair for its own resource");
    assert_eq!(paid(&[[4, 4], [4, 4]]), 1, "both fit one node");
}

#[test]
fn no_node_is_indispensable_for_pods_that_may_use_nodes_which_are_there() {
    let mut asked = problem(&[(USD, [8])], &[([5], &[0])]);
    asked.existing.push(ExistingNode { free: vec![8], ..ExistingNode::default() });
    asked.classes[0].existing = vec![0];
    assert_eq!(super::indispensable::pay(&mut asked), 0);
}

const SMALL: u64 = USD;
const LARGE: u64 = 3 * USD;

fn minutes(minutes: u64) -> Duration {
    Duration::from_mins(minutes)
}

/// A machine of a world made by hand: its price, the minutes of launch, opening and end, and the pods it was bought for.
fn machine(price: u64, [launched, opened, gone]: [u64; 3], bought_for: &[usize]) -> Machine {
    Machine {
        id: String::new(),
        claim: String::new(),
        pool: "gpu".to_owned(),
        offering: OfferingId {
            instance_type: "any".into(),
            zone: "any".into(),
            capacity_type: CapacityType::OnDemand,
        },
        price: Some(UsdPerHour::from_micros(price)),
        gpus: 0,
        interrupted: false,
        launched: minutes(launched),
        opened: Some(minutes(opened)),
        bought_for: bought_for.to_vec(),
        gone: Some(minutes(gone)),
    }
}

/// A pod on the first machine between two minutes.
fn pod(from: u64, until: u64) -> Pod {
    Pod {
        model: Arc::new(Model::waiting(PodKey::new("default", "pod"), PodSpec::default())),
        made: minutes(from),
        bound: Some((minutes(from), 0)),
        started: Some(minutes(from)),
        ended: Some((minutes(until), End::Finished)),
    }
}

/// Returns the parts of the gap of a world of `hours`, in micro-dollars, after a check that they add up to the gap.
fn parts(machines: Vec<Machine>, pods: Vec<Pod>, hours: u64) -> [u128; 6] {
    let history = History { played: Duration::from_hours(hours), machines, pods, ..History::default() };
    let problem = problem(&[(SMALL, [1]), (LARGE, [4])], &[([1], &[0, 1])]);
    let classes: BTreeMap<usize, usize> = (0..history.pods.len()).map(|at| (at, 0)).collect();
    let report = Report::new(&history, of(&history, &problem, &classes), history.played, Vec::new());
    let parts = Cause::ALL.map(|cause| report.gap.amount(cause).0);
    assert_eq!(report.bound.0 + parts.iter().sum::<u128>(), report.cost().0);
    parts
}

#[test]
fn a_node_that_runs_one_pod_all_its_life_leaves_no_gap() {
    assert_eq!(parts(vec![machine(SMALL, [0, 0, 60], &[0])], vec![pod(0, 60)], 1), [0; 6]);
}

#[test]
fn the_time_until_a_node_can_run_pods_is_its_start() {
    let parts = parts(vec![machine(SMALL, [0, 6, 60], &[0])], vec![pod(6, 60)], 1);
    assert_eq!(parts, [u128::from(SMALL / 10), 0, 0, 0, 0, 0]);
}

#[test]
fn an_open_node_without_pods_is_idle_before_between_and_after_them() {
    let pods = vec![pod(6, 24), pod(30, 54)];
    assert_eq!(
        parts(vec![machine(SMALL, [0, 0, 60], &[0])], pods, 1),
        [0, u128::from(SMALL * 3 / 10), 0, 0, 0, 0]
    );
}

#[test]
fn a_node_that_was_right_for_the_pods_that_left_is_stranded() {
    // Four pods are worth the large node, and one is not.
    let pods = vec![pod(0, 60), pod(0, 30), pod(0, 30), pod(0, 30)];
    let parts = parts(vec![machine(LARGE, [0, 0, 60], &[0, 1, 2, 3])], pods, 1);
    assert_eq!(parts, [0, 0, 0, u128::from((LARGE - SMALL) / 2), 0, 0]);
}

#[test]
fn a_node_bought_for_fewer_pods_than_it_is_worth_is_of_the_wrong_type() {
    let parts = parts(vec![machine(LARGE, [0, 0, 60], &[0])], vec![pod(0, 60)], 1);
    assert_eq!(parts, [0, 0, 0, 0, u128::from(LARGE - SMALL), 0]);
}

#[test]
fn a_wrong_type_costs_nothing_while_later_pods_fill_it() {
    let pods = vec![pod(0, 60), pod(30, 60), pod(30, 60), pod(30, 60)];
    let parts = parts(vec![machine(LARGE, [0, 0, 60], &[0])], pods, 1);
    assert_eq!(parts, [0, 0, 0, 0, u128::from((LARGE - SMALL) / 2), 0]);
}

#[test]
fn a_pod_counts_in_the_limit_for_the_time_that_it_runs_however_short() {
    let parts = parts(vec![machine(SMALL, [0, 0, 30], &[0])], vec![pod(0, 30)], 1_000_000);
    assert_eq!(parts, [0; 6]);
}

#[test]
fn the_distance_between_the_limit_and_the_best_known_plan_is_the_limits_own() {
    let history = History {
        played: Duration::from_hours(1),
        machines: vec![machine(LARGE, [0, 0, 60], &[])],
        pods: vec![pod(0, 60)],
        ..History::default()
    };
    let all = |level| super::Steps::of_levels([(Duration::ZERO, level)]);
    let bounds = Bounds { limit: all(USD), best_known: all(2 * USD), excess: vec![0], kept: vec![] };
    let report = Report::new(&history, bounds, history.played, Vec::new());
    assert_eq!(
        Cause::ALL.map(|cause| report.gap.amount(cause)),
        [0, 0, 0, USD, 0, USD].map(|part| Usd(part.into()))
    );
}

#[test]
fn a_node_that_a_static_pool_keeps_is_neither_idle_nor_stranded() {
    // It starts for six minutes, has a pod for half an hour, and none for the rest. The limit needs no other node.
    let history = History {
        played: Duration::from_hours(1),
        machines: vec![machine(LARGE, [0, 6, 60], &[])],
        pods: vec![pod(6, 36)],
        ..History::default()
    };
    let nothing = || super::Steps::of_levels([(Duration::ZERO, 0)]);
    let bounds = Bounds { limit: nothing(), best_known: nothing(), excess: vec![0], kept: vec![true] };
    let report = Report::new(&history, bounds, history.played, Vec::new());
    assert_eq!(
        Cause::ALL.map(|cause| report.gap.amount(cause)),
        [LARGE / 10, 0, LARGE * 9 / 10, 0, 0, 0].map(|part| Usd(part.into()))
    );
    assert_eq!(report.gap.amount(Cause::StaticPools), Usd(u128::from(LARGE * 9 / 10)));
}

#[test]
fn the_limit_is_exceeded_by_the_cost_of_nodes_that_no_static_pool_keeps() {
    let history = History {
        played: Duration::from_hours(1),
        machines: vec![machine(LARGE, [0, 0, 60], &[]), machine(LARGE, [0, 0, 60], &[])],
        pods: vec![pod(0, 60)],
        ..History::default()
    };
    let all = |level| super::Steps::of_levels([(Duration::ZERO, level)]);
    let above = |kept| {
        let bounds = Bounds { limit: all(USD), best_known: all(USD), excess: vec![0, 0], kept };
        let above = Report::new(&history, bounds, history.played, Vec::new()).above_bound();
        above.map(|above| above.part)
    };
    assert_eq!(above(vec![false, false]), Some(u128::from(2 * LARGE - USD)));
    assert_eq!(above(vec![false, true]), Some(u128::from(LARGE - USD)));
}

/// A world of ten hours in which pods leave the first machine, and others are bought at these minutes.
fn idle(gone: u64, pods: Vec<Pod>, bought: &[u64]) -> Idle {
    let mut machines = vec![machine(3600 * USD, [0, 0, gone], &[0])];
    machines.extend(bought.iter().map(|at| machine(3600 * USD, [*at, at + 2, 600], &[])));
    Idle::new(&History { played: Duration::from_hours(10), machines, pods, ..History::default() })
}

/// The price of the machine for some seconds: one dollar each.
fn dollars(seconds: u64) -> Usd {
    Usd(u128::from(seconds * USD))
}

#[test]
fn a_node_kept_until_the_next_pod_comes_soon_has_no_regret_and_a_long_wait_has() {
    let soon = idle(600, vec![pod(0, 60), pod(62, 600)], &[]);
    assert_eq!((soon.cost, soon.best, soon.regret()), (dollars(120), dollars(120), Usd(0)));
    let late = idle(600, vec![pod(0, 60), pod(70, 600)], &[]);
    assert_eq!((late.cost, late.best, late.regret()), (dollars(600), dollars(230), dollars(370)));
}

#[test]
fn a_node_given_up_for_good_should_have_gone_at_once() {
    let gone = idle(65, vec![pod(0, 60)], &[100]);
    assert_eq!((gone.cost, gone.starts, gone.best, gone.regret()), (dollars(300), 0, Usd(0), dollars(300)));
}

#[test]
fn a_start_soon_after_such_a_node_was_given_up_was_avoidable() {
    let again = idle(62, vec![pod(0, 60)], &[63, 63]);
    assert_eq!((again.cost, again.starts, again.start_cost), (dollars(120), 1, dollars(230)));
    assert_eq!((again.best, again.regret()), (dollars(180), dollars(170)));
}

#[test]
fn the_parts_add_up_even_where_the_cost_is_rounded_up() {
    let mut odd = machine(1_000_003, [0, 7, 59], &[]);
    odd.launched = Duration::from_millis(1);
    let parts = parts(vec![odd, machine(LARGE, [1, 2, 50], &[])], vec![pod(11, 37)], 1);
    assert!(parts[0] > 0 && parts[1] > 0);
}

#[test]
fn what_was_told_is_grouped_by_reason_and_the_most_frequent_comes_first() {
    let told = |reason: &str, message: &str| (reason.to_owned(), message.to_owned());
    let (limit, full, large) =
        (told("LimitReached", "a"), told("NoOfferingFits", "b"), told("NoOfferingFits", "c"));
    let groups = Told::group([Some(&limit), None, Some(&full), Some(&large)]);
    let seen: Vec<(Option<&str>, u64, &str)> =
        groups.iter().map(|one| (one.reason.as_deref(), one.count, one.example.as_str())).collect();
    assert_eq!(seen, [(Some("NoOfferingFits"), 2, "b"), (Some("LimitReached"), 1, "a"), (None, 1, "")]);
}

#[test]
fn the_costs_of_the_pools_add_up_and_gpus_count_from_the_launch_and_from_the_binding() {
    let mut other = machine(LARGE, [30, 35, 90], &[]);
    (other.pool, other.gpus) = ("other".to_owned(), 8);
    let mut asking = pod(40, 60);
    let mut spec = PodSpec::default();
    spec.requests.set(ResourceName::NVIDIA_GPU, 4);
    asking.model = Arc::new(Model::waiting(PodKey::new("default", "pod"), spec));
    asking.made = minutes(10);
    let history = History {
        played: minutes(60),
        machines: vec![machine(SMALL, [0, 0, 60], &[]), other],
        pods: vec![asking],
        ..History::default()
    };
    let none = || super::Steps::of_levels([(Duration::ZERO, 0)]);
    let bounds = Bounds { limit: none(), best_known: none(), excess: vec![0, 0], kept: vec![] };
    let report = Report::new(&history, bounds, history.played, Vec::new());
    for minute in 0..60 {
        let paid: u64 = report.pool_steps.values().map(|steps| steps.at(minutes(minute))).sum();
        assert_eq!(paid, report.cost_steps.at(minutes(minute)), "minute {minute}");
    }
    assert_eq!(report.pool_steps.keys().collect::<Vec<_>>(), ["gpu", "other"]);
    let gpus = report.gpu_steps.each(|steps| [5, 20, 35, 50].map(|minute| steps.at(minutes(minute))));
    assert_eq!((gpus.asked, gpus.bought, gpus.used), ([0, 4, 4, 4], [0, 0, 8, 8], [0, 0, 0, 4]));
    let halves = report.averages(&report.gpu_steps.used, 2, 1000);
    assert_eq!(halves, [(Duration::ZERO, 0), (minutes(30), 2666)]);
}
