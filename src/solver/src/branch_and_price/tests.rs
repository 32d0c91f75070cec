use proptest::prelude::*;

use super::*;
use crate::NeverStop;
use crate::branch::{Branch, Ranges};
use crate::canonical::UNLIMITED;
use crate::problem::{
    Candidate, ExistingNode, Gang, GpuMode, GpuRequest, Gpus, Limit, PodClass, Spread, Topology,
};
use crate::testing::{candidate, class, problem};

fn problems() -> impl Strategy<Value = Problem> {
    let classes =
        proptest::collection::vec(([1..=6u64, 0..=6u64, 0..=2u64], 0..=3u32, 1..=7u32, 0..=1u32), 1..=4);
    let candidates =
        proptest::collection::vec((1..=40u64, [4..=12u64, 4..=12u64, 0..=4u64], 0..=4u32, 0..=2u64), 3);
    (classes, candidates, [1..=8u64, 1..=8u64, 0..=2u64], 2..=12u64).prop_map(
        |(classes, candidates, free, bound)| {
            let mut made = problem(
                classes
                    .into_iter()
                    .map(|(requests, count, admitted, existing)| {
                        let admitted: Vec<u32> = (0..3).filter(|bit| admitted >> bit & 1 == 1).collect();
                        let mut made = class("class", requests, count, &admitted);
                        made.existing = if existing == 1 { vec![0] } else { Vec::new() };
                        made
                    })
                    .collect(),
                candidates
                    .into_iter()
                    .map(|(price, capacity, nodes, used)| {
                        let mut made = candidate("node", price * 10_000, capacity);
                        made.max_nodes = (nodes > 0).then_some(nodes);
                        made.limit_use = if used > 0 { vec![(0, used)] } else { Vec::new() };
                        made
                    })
                    .collect(),
            );
            made.existing =
                vec![ExistingNode { name: "old".into(), free: free.to_vec(), ..ExistingNode::default() }];
            made.limits = vec![Limit { name: "limit".into(), bound }];
            made
        },
    )
}

/// Divides the pods of the first class, or of the first two, over zones.
fn divided(mut problem: Problem, kind: u8, running: u32) -> Problem {
    problem.topologies =
        vec![Topology { name: "zone".into(), values: vec!["a".into(), "b".into(), "c".into()] }];
    for (index, candidate) in problem.candidates.iter_mut().enumerate() {
        candidate.domains = vec![(0, index as u32)];
    }
    problem.existing[0].domains = vec![(0, 1)];
    let classes: Vec<u32> = (0..problem.classes.len().min(1 + usize::from(kind > 0)) as u32).collect();
    if kind == 2 {
        problem.gangs = vec![Gang { name: "gang".into(), classes, within: Some(0) }];
    } else {
        problem.spreads = vec![Spread {
            name: "spread".into(),
            classes,
            topology: 0,
            max_skew: 1,
            min_domains: None,
            values: vec![0, 1, 2],
            running: vec![0, running, 0],
        }];
    }
    problem
}

#[test]
fn a_branch_without_the_only_home_of_pods_that_are_left_out_is_possible() {
    let mut problem = problem(
        vec![
            class("left out", [1, 4, 0], 1, &[0]),
            class("b", [1, 0, 2], 3, &[1]),
            class("c", [1, 4, 1], 2, &[0, 1]),
        ],
        vec![candidate("small", 10_000, [4, 4, 1]), candidate("large", 40_000, [4, 4, 4])],
    );
    for candidate in &mut problem.candidates {
        candidate.limit_use = vec![(0, 2)];
    }
    problem.limits = vec![Limit { name: "limit".into(), bound: 5 }];
    let model = Model::new(&problem);
    let mut signal = NeverStop;
    let mut meter = Meter::new(&mut signal, 1_000_000);
    let best = admit::plan(&model);
    let options = Options { gap_target: 0.0, ..Options::default() };
    assert_eq!(best.placed(&model), [0, 3, 1]);
    let mut run = Run::new(&problem, &model, &options, best);
    run.small = false;
    run.search(&mut meter);
    assert_eq!(run.best.cost(&model), 80_000);
    assert!(run.bound <= 80_000, "bound {}", run.bound);
}

#[test]
fn a_plan_that_loses_a_pod_when_its_gpus_are_laid_out_is_not_proven() {
    let gpu = Some(GpuRequest::Share { units: 600, memory_mib: 0 });
    let gpus = Some(Gpus { count: 2, memory_mib: 0, mode: GpuMode::Shared });
    let problem = problem(
        vec![PodClass { gpu, ..class("pod", [1, 0, 0], 3, &[0]) }],
        vec![Candidate { gpus, ..candidate("node", 10_000, [9, 0, 0]) }],
    );
    let model = Model::new(&problem);
    let options = Options::default();
    // A layout may not be found for pods that fit. No layout holds these.
    let mut best = Plan::default();
    best.add(Pattern { bin: 0, pods: vec![(0, 3)] }, 1);
    let mut run = Run::new(&problem, &model, &options, best);
    run.raise(10_000, Proof::Complete);
    let mut signal = NeverStop;
    let solution = run.answer(&Meter::new(&mut signal, 1));
    assert_eq!((solution.unplaced_pods(), solution.bound.micros()), (1, 0));
    assert_eq!((solution.proof, solution.stopped), (Proof::Truncated, Stopped::Exhausted));
}

/// Removes ceilings, which the exact search ignores.
fn plentiful(mut problem: Problem) -> Problem {
    for candidate in &mut problem.candidates {
        candidate.max_nodes = None;
        candidate.limit_use = Vec::new();
    }
    problem
}

/// Runs the search to the end, however small the problem is.
fn searched<'a>(
    (problem, model): (&'a Problem, &'a Model),
    options: &'a Options,
    meter: &mut Meter<'_>,
) -> Run<'a> {
    let mut run = Run::new(problem, model, options, admit::plan(model));
    run.small = false;
    run.search(meter);
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_of_column_generation_is_never_above_the_optimum(problem in problems()) {
        let model = Model::new(&problem);
        let options = Options { gap_target: 0.0, ..Options::default() };
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, 1_000_000);
        let run = searched((&problem, &model), &options, &mut meter);
        let mut enough = Meter::new(&mut signal, u64::MAX);
        let (exact, least) = exact::solve(&model, &run.demand, &mut enough).expect("a small problem");
        let cost = run.best.cost(&model);
        prop_assert!(least <= cost, "found {cost}, which is less than the least {least}");
        // Where scarcity binds, `least` ignores it and is only a bound.
        if exact.cost(&model) == least {
            prop_assert!(run.bound <= least, "bound {} above the optimum {least}", run.bound);
        }
        prop_assert_eq!(crate::check(&problem, &run.best.solution(&problem, &model, run.bound, Stopped::WorkLimit)), Ok(()));
    }

    #[test]
    fn the_bound_holds_for_every_way_to_divide_pods(problem in problems(), kind in 0..3u8, running in 0..3u32) {
        let problem = divided(problem, kind, running);
        let model = Model::new(&problem);
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, 3_000_000);
        let options = Options { gap_target: 0.0, ..Options::default() };
        let mut run = Run::new(&problem, &model, &options, admit::plan(&model));
        let totals = run.totals.clone();
        run.small = false;
        run.search(&mut meter);
        prop_assert!(run.places(&run.best));
        let mut enough = Meter::new(&mut signal, u64::MAX);
        let Some(least) = small_exact::solve(&model, &totals, &mut enough) else { return Ok(()) };
        prop_assert_eq!(model.gathered(&least.placed(&model)), totals);
        let (least, cost) = (least.cost(&model), run.best.cost(&model));
        prop_assert!(run.bound <= least, "bound {} above the optimum {least}", run.bound);
        prop_assert!(least <= cost, "found {cost}, which is less than the least {least}");
    }

    #[test]
    fn admission_by_prices_is_never_better_than_all_there_is_and_never_worse_than_greedy(problem in problems(), kind in 0..4u8, values in proptest::collection::vec(0..4u64, 4)) {
        let mut problem = if kind < 3 { divided(problem, kind, 0) } else { problem };
        for (class, value) in problem.classes.iter_mut().zip(values) {
            class.value = value;
            class.priority = (value % 2) as i32;
        }
        let model = Model::new(&problem);
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        let first = admit::plan(&model);
        let Some(best) = small_exact::solve(&model, &model.totals(), &mut meter) else { return Ok(()) };
        prop_assert!(best.compare(&first, &model).is_le());
        if let Some(better) = admit::improve(&model, &first, Options::default().lp(), &mut meter) {
            prop_assert!(better.is_payable(&model));
            prop_assert!(better.compare(&first, &model).is_lt());
            prop_assert!(best.compare(&better, &model).is_le());
            let placed = better.placed(&model);
            prop_assert!(model.choices.iter().all(|choice| choice.allows(&model.totals(), &placed)));
        }
    }

    #[test]
    fn none_of_a_bin_or_at_least_one_of_it_are_all_plans(problem in problems().prop_map(plentiful), chosen in 0..4u32) {
        let model = Model::new(&problem);
        let demand = model.demand();
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, u64::MAX);
        let bin = chosen % model.bins.len().max(1) as u32;
        prop_assume!(model.bins.get(bin as usize).is_some_and(|bin| !bin.is_existing()));
        let Some((_, least)) = exact::solve(&model, &demand, &mut meter) else { return Ok(()) };
        let mut each = Vec::new();
        for range in [(0, 0), (1, UNLIMITED)] {
            if let Some(branch) = Branch::new(&model, &demand, &Ranges::from([(bin, range)]))
                && let Some((plan, cost)) = exact::solve(&branch.model, &demand, &mut meter)
            {
                let plan = branch.plan(&plan);
                prop_assert_eq!(plan.placed(&model), demand.clone());
                prop_assert!(plan.cost(&model) <= cost + branch.sunk);
                each.push(cost + branch.sunk);
            }
        }
        prop_assert_eq!(each.into_iter().min(), Some(least));
    }

    #[test]
    fn branching_without_a_gap_to_spare_ends_between_bound_and_cost(problem in problems().prop_map(plentiful)) {
        let model = Model::new(&problem);
        let options = Options { gap_target: 0.0, ..Options::default() };
        let mut signal = NeverStop;
        let mut meter = Meter::new(&mut signal, 1_000_000);
        let run = searched((&problem, &model), &options, &mut meter);
        let mut signal = NeverStop;
        let mut whole = Meter::new(&mut signal, u64::MAX);
        let (_, least) = exact::solve(&model, &run.demand, &mut whole).expect("a small problem");
        prop_assert!(run.bound <= least && least <= run.best.cost(&model));
    }
}
