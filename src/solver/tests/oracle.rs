//! Small problems against an assignment model: every pod gets a slot of a node, stated as one integer program. Hopeless
//! as a planner beyond a few dozen pods, and for that size an oracle that shares nothing with column generation.

use good_lp::{Expression, ProblemVariables, Solution as _, SolverModel, Variable, highs, variable};
use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_solver::{Candidate, NeverStop, Options, PodClass, Problem, check, solve};
use proptest::prelude::*;

/// Pods of each class, requests, and which candidates they may use; prices and capacities of those.
fn problems() -> impl Strategy<Value = Problem> {
    let class = (1..=4u32, 1..=6u64, 1..=12u64, 0..=2u64, proptest::collection::vec(any::<bool>(), 3));
    let candidate = (1..=60u64, 6..=16u64, 12..=40u64, 0..=4u64);
    (proptest::collection::vec(class, 1..=4), proptest::collection::vec(candidate, 3)).prop_map(
        |(classes, candidates)| Problem {
            resources: [ResourceName::CPU, ResourceName::MEMORY, ResourceName::NVIDIA_GPU]
                .map(ResourceName::new)
                .to_vec(),
            classes: classes
                .iter()
                .enumerate()
                .map(|(index, (count, cpu, memory, gpus, allowed))| {
                    let holds = |at: &usize| {
                        let (_, c, m, g) = candidates[*at];
                        allowed[*at] && *cpu <= c && *memory <= m && *gpus <= g
                    };
                    PodClass {
                        name: format!("class {index}"),
                        requests: vec![*cpu, *memory, *gpus],
                        count: *count,
                        priority: 0,
                        max_per_node: None,
                        candidates: (0..3usize).filter(holds).map(|at| at as u32).collect(),
                        ..PodClass::default()
                    }
                })
                .filter(|class| !class.candidates.is_empty())
                .collect(),
            candidates: candidates
                .iter()
                .enumerate()
                .map(|(index, (price, cpu, memory, gpus))| Candidate {
                    name: format!("candidate {index}"),
                    price: UsdPerHour::from_micros(price * 10_000),
                    capacity: vec![*cpu, *memory, *gpus],
                    max_nodes: None,
                    ..Candidate::default()
                })
                .collect(),
            ..Problem::default()
        },
    )
}

/// A node that may be bought.
struct Slot {
    candidate: usize,
    bought: Variable,
    /// How many pods of each class it holds.
    held: Vec<(usize, Variable)>,
}

/// The least cost, in units of 10,000 micro-dollars.
fn assignment_optimum(problem: &Problem) -> u64 {
    let mut variables = ProblemVariables::new();
    let mut cost = Expression::default();
    let mut placed: Vec<Expression> = vec![Expression::default(); problem.classes.len()];
    let mut slots: Vec<Slot> = Vec::new();
    for (at, offered) in problem.candidates.iter().enumerate() {
        let users: Vec<usize> = (0..problem.classes.len())
            .filter(|class| problem.classes[*class].candidates.contains(&(at as u32)))
            .collect();
        let most: u32 = users.iter().map(|class| problem.classes[*class].count).sum();
        for _ in 0..most {
            let bought = variables.add(variable().binary());
            cost.add_mul((offered.price.micros() / 10_000) as f64, bought);
            let held = users
                .iter()
                .map(|class| {
                    let count = variables.add(variable().integer().min(0).max(problem.classes[*class].count));
                    placed[*class].add_mul(1, count);
                    (*class, count)
                })
                .collect();
            slots.push(Slot { candidate: at, bought, held });
        }
    }
    let mut model = variables.minimise(cost).using(highs).set_threads(1);
    for (class, placed) in problem.classes.iter().zip(placed) {
        model.add_constraint(placed.eq(class.count));
    }
    for Slot { candidate, bought, held } in &slots {
        for (resource, capacity) in problem.candidates[*candidate].capacity.iter().enumerate() {
            let mut used = Expression::default();
            for (class, count) in held {
                used.add_mul(problem.classes[*class].requests[resource] as f64, *count);
            }
            used.add_mul(-(*capacity as f64), *bought);
            model.add_constraint(used.leq(0));
        }
    }
    for pair in slots.windows(2).filter(|pair| pair[0].candidate == pair[1].candidate) {
        // Equal slots are used in order; else there are factorially many ways to say one thing.
        model.add_constraint((Expression::from(pair[0].bought) - pair[1].bought).geq(0));
    }
    let solution = model.solve().expect("every class has a candidate that holds it");
    slots
        .iter()
        .filter(|slot| solution.value(slot.bought) > 0.5)
        .map(|slot| problem.candidates[slot.candidate].price.micros() / 10_000)
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_for_a_dozen_pods_costs_what_the_assignment_model_proves(problem in problems()) {
        prop_assume!(!problem.classes.is_empty());
        let solution = solve(&problem, &Options { gap_target: 0.0, ..Options::default() }, &mut NeverStop).unwrap();
        prop_assert_eq!(check(&problem, &solution), Ok(()));
        let optimum = UsdPerHour::from_micros(assignment_optimum(&problem) * 10_000);
        prop_assert_eq!(solution.unplaced_pods(), 0);
        prop_assert!(solution.bound <= optimum, "bound {} over the optimum {}", solution.bound, optimum);
        prop_assert_eq!(solution.cost, optimum);
    }
}
