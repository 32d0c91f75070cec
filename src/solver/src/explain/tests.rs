use super::*;
use crate::problem::{Commitment, GpuMode, GpuRequest, Gpus, Limit, Spread, Topology};
use crate::solution::{NewNodes, ShadowPrices, Unplaced};
use crate::testing::{candidate, class, problem};

const fn usd(micros: u64) -> UsdPerHour {
    UsdPerHour::from_micros(micros)
}

/// Four trainers on two `large`, with a web pod on each; two trainers are left out.
fn case() -> (Problem, Solution) {
    let mut problem = problem(
        vec![
            class("train", [2000, 10, 1], 6, &[0, 1, 2, 3, 4]),
            class("web", [500, 10, 0], 2, &[0, 1, 2, 3, 4]),
        ],
        vec![
            candidate("large", 1_000_000, [5000, 100, 2]),
            candidate("huge", 2_500_000, [12000, 200, 4]),
            candidate("tiny", 100_000, [1000, 10, 0]),
            candidate("dear", 1_200_000, [5000, 100, 2]),
            candidate("small", 450_000, [2000, 50, 1]),
        ],
    );
    problem.limits = vec![Limit { name: "h100".into(), bound: 4 }];
    problem.candidates[0].limit_use = vec![(0, 2)];
    problem.candidates[3].limit_use = vec![(0, 2)];
    let solution = Solution {
        new_nodes: vec![NewNodes { candidate: 0, pods: vec![(0, 2), (1, 1)], count: 2, gpus: Vec::new() }],
        unplaced: vec![Unplaced { class: 0, count: 2, reason: UnplacedReason::LimitReached(0) }],
        cost: usd(2_000_000),
        prices: Some(ShadowPrices {
            classes: vec![440_000, 120_000],
            limits: vec![0],
            candidates: vec![0; 5],
        }),
        ..Solution::default()
    };
    (problem, solution)
}

fn more_of(explanation: &Explanation, name: &str) -> i64 {
    explanation.alternatives.iter().find(|other| other.name == name).expect("an alternative").more
}

fn why<'a>(explanation: &'a Explanation, name: &str) -> &'a Why {
    &explanation.excluded.iter().find(|other| other.name == name).expect("an excluded candidate").why
}

#[test]
fn it_says_where_the_pods_went_and_what_others_would_cost_more() {
    let (problem, mut solution) = case();
    solution.prices.as_mut().unwrap().limits = vec![3_100_000 * 1_000_000];
    let explanation = explain(&problem, &solution, 0).expect("the class exists");
    assert_eq!(
        explanation.to_string(),
        "\
class `train`: 6 pods, 4 placed, 2 left out
  4 pods on 2 new large at $1.00/h each
  2 pods left out: limit `h100` is used up
other nodes, filled as well as we can at the plan's prices for pods:
  small would cost $0.0100/h more
  huge would cost $0.5000/h more
at the plan's prices, one more of limit `h100` would save $3.10/h
not used:
  too little nvidia.com/gpu for a pod that takes 1, 0 at most: tiny
  limit `h100` has no room for one more: dear
"
    );
    // Four trainers and two web pods on a huge: 2.5 - 4 x 0.44 - 2 x 0.12.
    assert_eq!(more_of(&explanation, "huge"), 500_000);
    let text = serde_json::to_string(&explanation).expect("it serialises");
    assert_eq!(serde_json::from_str::<Explanation>(&text).expect("and back"), explanation);
}

#[test]
fn an_unknown_price_is_told_as_unknown() {
    let (problem, solution) = case();
    let mut explanation = explain(&problem, &solution, 0).unwrap();
    explanation.placed[0].price = None;
    assert!(explanation.to_string().contains("  4 pods on 2 new large at an unknown price each\n"));
}

#[test]
fn what_is_scarce_is_part_of_what_a_node_costs() {
    let (mut problem, mut solution) = case();
    problem.limits[0].bound = 9;
    problem.candidates[4].limit_use = vec![(0, 1)];
    problem.candidates[4].max_nodes = Some(7);
    let prices = solution.prices.as_mut().unwrap();
    prices.limits = vec![30_000 * 1_000_000];
    prices.candidates[4] = 5_000;
    let explanation = explain(&problem, &solution, 0).unwrap();
    assert_eq!(more_of(&explanation, "small"), 10_000 + 30_000 + 5_000);
    assert!(explanation.to_string().contains("one more small would save $0.0050/h\n"));
    prices_in_bytes(&problem, &mut solution);
}

fn prices_in_bytes(problem: &Problem, solution: &mut Solution) {
    solution.prices.as_mut().unwrap().limits = vec![7];
    let explanation = explain(problem, solution, 0).unwrap();
    assert!(explanation.to_string().contains("a million more of limit `h100` would save under $0.0001/h\n"));
}

#[test]
fn risk_preferences_and_commitments_change_what_an_alternative_costs() {
    let (mut problem, solution) = case();
    problem.classes[0].at_risk = 1_000_000;
    problem.candidates[4].interruptions = 20_000;
    problem.classes[0].preferences = vec![(4, usd(7_000))];
    let explanation = explain(&problem, &solution, 0).unwrap();
    assert_eq!(more_of(&explanation, "small"), 10_000 + 20_000 + 7_000);
    let (mut problem, mut solution) = case();
    let (left, rates) = (usd(90_000), vec![(4, usd(180_000))]);
    problem.commitments = vec![Commitment { name: "plan".into(), left, rates }];
    solution.commitment_use = vec![usd(0)];
    // The commitment covers half of the node.
    let explanation = explain(&problem, &solution, 0).unwrap();
    assert_eq!(more_of(&explanation, "small"), 225_000 - 440_000);
    assert!(explanation.to_string().contains("  small would cost $0.2150/h less\n"));
}

#[test]
fn without_shadow_prices_pods_alone_are_compared_and_it_says_so() {
    let (problem, mut solution) = case();
    solution.prices = None;
    let explanation = explain(&problem, &solution, 0).unwrap();
    assert_eq!(explanation.basis, Basis::Standalone);
    // 0.5 each on a large, 0.45 on a small, 0.625 on a huge.
    assert_eq!(more_of(&explanation, "small"), -50_000);
    assert_eq!(more_of(&explanation, "huge"), 125_000);
    assert!(explanation.to_string().contains("(the plan has no shadow prices)"));
}

#[test]
fn a_candidate_that_another_replaces_for_less_is_said_to_be_dominated() {
    let (mut problem, solution) = case();
    problem.limits[0].bound = 100;
    let explanation = explain(&problem, &solution, 0).unwrap();
    assert_eq!(*why(&explanation, "dear"), Why::DominatedBy("large".into()));
    assert!(
        explanation.to_string().contains("  never better than another for less or the same: dear by large\n")
    );
    problem.classes[1].candidates = vec![1, 2, 3, 4];
    let explanation = explain(&problem, &solution, 0);
    assert!(explanation.unwrap().alternatives.iter().any(|other| other.name == "dear"), "web pods need it");
    let (mut twins, solution) = case();
    twins.limits[0].bound = 100;
    twins.candidates[4] = twins.candidates[1].clone();
    let explanation = explain(&twins, &solution, 0).unwrap();
    assert_eq!(
        explanation.excluded.iter().filter(|out| out.name == "huge").count(),
        1,
        "one of two equal ones"
    );
}

#[test]
fn each_rule_that_excludes_is_named() {
    let excluded = |spoil: &dyn Fn(&mut Problem)| {
        let (mut problem, solution) = case();
        problem.topologies = vec![Topology { name: "zone".into(), values: vec!["x".into(), "y".into()] }];
        spoil(&mut problem);
        let explanation = explain(&problem, &solution, 0).expect("the class exists");
        why(&explanation, "huge").clone()
    };
    assert_eq!(excluded(&|problem| problem.classes[0].candidates = vec![0]), Why::NotAllowed);
    let resource = poolwright_catalog::ResourceName::new("nvidia.com/gpu");
    assert_eq!(
        excluded(&|problem| problem.candidates[1].capacity = vec![1000, 100, 0]),
        Why::DoesNotFit { resource, wants: 1, has: 0 }
    );
    assert_eq!(excluded(&|problem| problem.candidates[1].max_nodes = Some(0)), Why::NoStock);
    assert_eq!(
        excluded(&|problem| problem.candidates[1].limit_use = vec![(0, 5)]),
        Why::OverLimit("h100".into())
    );
    assert_eq!(
        excluded(&|problem| problem.candidates[1].limit_use = vec![(0, 1)]),
        Why::LimitReached("h100".into())
    );
    assert_eq!(excluded(&|problem| problem.classes[0].max_per_node = Some(0)), Why::Ceiling);
    assert_eq!(
        excluded(&|problem| problem.spreads = vec![Spread {
            name: "even".into(),
            classes: vec![0],
            topology: 0,
            max_skew: 1,
            min_domains: None,
            values: vec![0],
            running: vec![0],
        }]),
        Why::Domain("zone".into())
    );
    let whole = |problem: &mut Problem| problem.classes[0].gpu = Some(GpuRequest::Whole(3));
    assert_eq!(excluded(&whole), Why::Gpus(exclude::GpuWhy::None));
    assert_eq!(
        excluded(&|problem| {
            whole(problem);
            problem.candidates[1].gpus = Some(Gpus { count: 2, memory_mib: 1, mode: GpuMode::Shared });
        }),
        Why::Gpus(exclude::GpuWhy::TooFew)
    );
    assert_eq!(
        excluded(&|problem| problem.flexibility = vec![crate::problem::Flexibility {
            name: "two types".into(),
            candidates: vec![1],
            topology: 0,
            at_least: 2,
        }]),
        Why::Inflexible("two types".into())
    );
}

#[test]
fn a_thousand_candidates_make_a_short_text() {
    let (mut problem, solution) = case();
    for index in 0..1_000u64 {
        let mut more = candidate(&format!("type {index}"), 900_000 + index, [4000 + index, 100, 2]);
        more.max_nodes = Some(9);
        problem.candidates.push(more);
        if index % 3 > 0 {
            problem.classes[0].candidates.push(5 + index as u32);
        }
        if index % 3 == 2 {
            problem.candidates[5 + index as usize].capacity[0] = index;
        }
    }
    let mut prices = solution.clone();
    prices.prices.as_mut().unwrap().candidates = vec![0; problem.candidates.len()];
    let explanation = explain(&problem, &prices, 0).unwrap();
    let text = explanation.to_string();
    assert!(text.lines().count() < 25, "{text}");
    assert!(text.contains("  and 330 others, from "), "{text}");
    assert!(text.contains("  not allowed for these pods: type 0, type 3, type 6 and 331 more\n"), "{text}");
    assert!(
        text.contains("too little cpu for a pod that takes 2000m, 998m at most: type 2, type 5"),
        "{text}"
    );
}

#[test]
fn what_does_not_exist_is_not_explained() {
    let (problem, mut solution) = case();
    assert_eq!(explain(&problem, &solution, 9), None);
    solution.new_nodes[0].candidate = 99;
    assert_eq!(explain(&problem, &solution, 0), None);
}
