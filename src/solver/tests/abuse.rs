//! Extreme numbers: the solver returns a plan or a typed error, never panics, and stays within its work budget.

use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::problem::Removal;
use poolwright_solver::{
    Candidate, ExistingNode, Limit, NeverStop, Options, PodClass, Problem, ProblemError, Solution,
    StopSignal, check, solve,
};

fn resources() -> Vec<ResourceName> {
    [ResourceName::CPU, ResourceName::MEMORY].map(ResourceName::new).to_vec()
}

fn candidate(index: usize, micros: u64, capacity: [u64; 2]) -> Candidate {
    Candidate {
        name: format!("candidate {index}"),
        price: UsdPerHour::from_micros(micros),
        capacity: capacity.to_vec(),
        ..Candidate::default()
    }
}

fn class(index: usize, requests: [u64; 2], count: u32, candidates: u32) -> PodClass {
    PodClass {
        name: format!("class {index}"),
        requests: requests.to_vec(),
        count,
        candidates: (0..candidates).collect(),
        ..PodClass::default()
    }
}

fn answered(problem: &Problem, work: u64) -> Solution {
    let options = Options { work, ..Options::default() };
    let solution = solve(problem, &options, &mut NeverStop).expect("a well-formed problem");
    assert_eq!(check(problem, &solution), Ok(()));
    assert!(solution.bound <= solution.objective());
    solution
}

#[test]
fn an_empty_problem_has_an_empty_plan() {
    assert_eq!(answered(&Problem::default(), 1_000).objective(), UsdPerHour::ZERO);
    let mut problem = Problem { resources: resources(), ..Problem::default() };
    assert_eq!(answered(&problem, 1_000).nodes(), 0);
    problem.classes = vec![class(0, [1, 1], 3, 0)];
    assert_eq!(answered(&problem, 1_000).unplaced_pods(), 3);
    problem.classes = vec![class(0, [1, 1], 0, 1)];
    problem.candidates = vec![candidate(0, 5, [4, 4])];
    assert_eq!(answered(&problem, 1_000).cost, UsdPerHour::ZERO);
}

#[test]
fn prices_ten_orders_of_magnitude_apart_are_planned_to_the_micro_dollar() {
    let problem = Problem {
        resources: resources(),
        classes: vec![class(0, [2, 2], 7, 3), class(1, [3, 1], 5, 3), class(2, [90, 90], 2, 3)],
        candidates: vec![
            candidate(0, 1, [8, 8]),
            candidate(1, 10_000_000_000, [1_000, 1_000]),
            candidate(2, 333_333, [100, 100]),
        ],
        ..Problem::default()
    };
    let solution = answered(&problem, 5_000_000);
    // The small pods need 29 CPUs, which takes at most four nodes of eight; the nodes of the two large pods have room
    // left too.
    assert_eq!(solution.bound, solution.objective());
    assert!(solution.cost.micros() >= 666_666 && solution.cost.micros() <= 666_670, "{}", solution.cost);
}

#[test]
fn capacities_of_two_to_the_fiftieth_and_of_all_sixty_four_bits_are_capacities() {
    for (capacity, request, count) in [
        (1u64 << 50, 1u64 << 40, 5_000u32),
        (u64::MAX, u64::MAX, 3),
        (u64::MAX, 1 << 62, 9),
        (u64::MAX, 1, 100_000),
    ] {
        let problem = Problem {
            resources: resources(),
            classes: vec![class(0, [request, 0], count, 1)],
            candidates: vec![candidate(0, 1_000_000, [capacity, capacity])],
            ..Problem::default()
        };
        let solution = answered(&problem, 2_000_000);
        let each = capacity / request;
        assert_eq!(solution.nodes(), u64::from(count).div_ceil(each), "{capacity} {request} {count}");
        assert_eq!(solution.unplaced_pods(), 0);
    }
}

#[test]
fn pods_that_ask_for_nothing_go_on_one_node() {
    let mut problem = Problem {
        resources: resources(),
        classes: vec![class(0, [0, 0], 1_000_000, 2)],
        candidates: vec![candidate(0, 700, [1, 1]), candidate(1, 600, [0, 0])],
        ..Problem::default()
    };
    let solution = answered(&problem, 2_000_000);
    assert_eq!((solution.nodes(), solution.cost.micros()), (1, 600));
    problem.classes[0].max_per_node = Some(400_000);
    assert_eq!(answered(&problem, 2_000_000).nodes(), 3);
}

#[test]
fn five_thousand_identical_offerings_are_one() {
    let mut problem = Problem { resources: resources(), ..Problem::default() };
    problem.candidates = (0..5_000).map(|index| candidate(index, 10_000, [16, 16])).collect();
    problem.classes =
        vec![class(0, [3, 1], 40, 5_000), class(1, [1, 3], 40, 5_000), class(2, [7, 7], 5, 5_000)];
    let solution = answered(&problem, 3_000_000);
    problem.candidates.truncate(1);
    problem.classes.iter_mut().for_each(|class| class.candidates.truncate(1));
    assert_eq!(solution.cost, answered(&problem, 3_000_000).cost);
}

#[test]
fn two_thousand_classes_of_one_pod_each_are_planned_within_the_work_given() {
    let candidates: Vec<Candidate> = (0..30)
        .map(|index| {
            let size = 1 + index as u64 % 10;
            candidate(
                index,
                100_000 * size + index as u64 * 7,
                [8_000 * size, 16_000 * (1 + index as u64 % 7)],
            )
        })
        .collect();
    let classes = (0..2_000)
        .map(|index| class(index, [100 + index as u64 * 3, 50 + (index as u64 * 7919) % 15_000], 1, 30))
        .collect();
    let problem = Problem { resources: resources(), classes, candidates, ..Problem::default() };
    let mut signal = Spent::default();
    let work = 3_000_000;
    let solution =
        solve(&problem, &Options { work, ..Options::default() }, &mut signal).expect("well-formed");
    assert_eq!(check(&problem, &solution), Ok(()));
    assert_eq!(solution.unplaced_pods(), 0);
    assert!(signal.work <= work + work / 10, "{} spent of {work}", signal.work);
}

/// A signal that counts the work done and the polls.
#[derive(Default)]
struct Spent {
    work: u64,
    asked: u64,
    /// The number of polls after which it asks to stop.
    patience: Option<u64>,
    /// The number of plans reported after it asked to stop.
    after: u64,
}

impl StopSignal for Spent {
    fn should_stop(&mut self) -> bool {
        self.asked += 1;
        self.patience.is_some_and(|patience| self.asked > patience)
    }

    fn improved(&mut self, _plan: &Solution) {
        if self.patience.is_some_and(|patience| self.asked > patience) {
            self.after += 1;
        }
    }

    fn spent(&mut self, units: u64) {
        self.work += units;
    }
}

#[test]
fn a_solve_that_is_told_to_stop_is_not_asked_again_and_its_plan_is_whole() {
    let candidates: Vec<Candidate> = (0..20)
        .map(|index| candidate(index, 90_000 + 31_337 * index as u64, [4 + index as u64, 30 - index as u64]))
        .collect();
    let classes =
        (0..60).map(|index| class(index, [1 + index as u64 % 5, 1 + index as u64 % 7], 9, 20)).collect();
    let problem = Problem { resources: resources(), classes, candidates, ..Problem::default() };
    for patience in [0, 1, 3, 10, 50] {
        let mut signal = Spent { patience: Some(patience), ..Spent::default() };
        let solution = solve(&problem, &Options::default(), &mut signal).expect("well-formed");
        assert_eq!(check(&problem, &solution), Ok(()));
        // Each part of the work in progress may poll once more.
        assert!(signal.asked <= patience + 20, "asked {} times with patience for {patience}", signal.asked);
        assert!(signal.after <= 1, "{} plans after it was told to stop", signal.after);
    }
}

#[test]
fn counts_near_all_of_thirty_two_bits_are_planned_or_refused_by_name() {
    let mut problem = Problem {
        resources: resources(),
        classes: vec![class(0, [1, 0], u32::MAX, 1), class(1, [1, 1], u32::MAX - 1, 1)],
        candidates: vec![candidate(0, 1_000_000, [1_000, 1_000])],
        ..Problem::default()
    };
    let solution = answered(&problem, 2_000_000);
    assert_eq!(solution.nodes(), (2 * u64::from(u32::MAX) - 1).div_ceil(1_000));
    // With each pod on its own node, the cost would exceed the largest number.
    problem.candidates[0].price = UsdPerHour::from_micros(10_000_000_000);
    let refused = solve(&problem, &Options::default(), &mut NeverStop);
    assert!(
        matches!(&refused, Err(ProblemError::BadNumber { what, .. }) if what == "class 0"),
        "{refused:?}"
    );
    problem.candidates[0].price = UsdPerHour::from_micros(u64::MAX);
    let refused = solve(&problem, &Options::default(), &mut NeverStop);
    assert!(
        matches!(&refused, Err(ProblemError::BadNumber { what, .. }) if what == "candidate 0"),
        "{refused:?}"
    );
}

#[test]
fn more_pods_of_a_class_than_can_be_counted_are_refused_by_name() {
    let node = ExistingNode {
        name: "node".into(),
        free: vec![10, 10],
        removal: Some(Removal { price: UsdPerHour::ZERO, disruption: UsdPerHour::ZERO, pods: vec![(0, 1)] }),
        ..ExistingNode::default()
    };
    let problem = Problem {
        resources: resources(),
        classes: vec![class(0, [1, 0], u32::MAX, 1)],
        candidates: vec![candidate(0, 1_000, [1_000, 1_000])],
        existing: vec![node],
        ..Problem::default()
    };
    let refused = solve(&problem, &Options::default(), &mut NeverStop);
    assert!(
        matches!(&refused, Err(ProblemError::BadNumber { what, field: "count", value: 4_294_967_296, .. }) if what == "class 0"),
        "{refused:?}"
    );
}

#[test]
fn nodes_that_cost_nothing_are_used_and_the_bound_is_nothing() {
    let mut problem = Problem {
        resources: resources(),
        classes: vec![class(0, [2, 1], 11, 2), class(1, [1, 3], 6, 2)],
        candidates: vec![candidate(0, 0, [8, 8]), candidate(1, 50_000, [64, 64])],
        ..Problem::default()
    };
    let solution = answered(&problem, 2_000_000);
    assert_eq!((solution.objective(), solution.bound), (UsdPerHour::ZERO, UsdPerHour::ZERO));
    problem.candidates[0].max_nodes = Some(1);
    let solution = answered(&problem, 2_000_000);
    assert_eq!(solution.cost.micros(), 50_000);
}

#[test]
fn limits_of_nothing_and_of_all_sixty_four_bits_are_limits() {
    for (bound, amount, nodes) in
        [(0, 1, 0), (u64::MAX, u64::MAX, 1), (u64::MAX, 1 << 63, 1), (u64::MAX, 1, 5)]
    {
        let mut problem = Problem {
            resources: resources(),
            classes: vec![class(0, [4, 4], 5, 1)],
            candidates: vec![candidate(0, 1_000, [7, 7])],
            limits: vec![Limit { name: "units".into(), bound }],
            ..Problem::default()
        };
        problem.candidates[0].limit_use = vec![(0, amount)];
        assert_eq!(answered(&problem, 2_000_000).nodes(), nodes, "{bound} {amount}");
    }
}
