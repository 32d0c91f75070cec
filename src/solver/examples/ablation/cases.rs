//! Problems on which a stage can show its effect: the bench's lists, and sets of random problems for stages that only
//! matter for small, scarce, divided or removable nodes and pods.

use std::path::{Path, PathBuf};

use poolwright_solver::Problem;

use crate::common::random_problem::{self, Random, Shape, rule};
use crate::common::{self, fixture, openb, trace, types};

/// Problems that are measured together.
pub struct Case {
    /// Its id.
    pub name: &'static str,
    /// The description.
    pub what: &'static str,
    /// The work units for each problem.
    pub work: u64,
    /// Whether the solve starts from the memory of a solve of a slightly different problem.
    pub warm: bool,
    /// Returns the problems of a seed. A list is the same for every seed.
    pub problems: fn(u64) -> Vec<Problem>,
}

/// Returns all cases, in the order they run.
pub fn all() -> Vec<Case> {
    let case = |name, what, work, problems| Case { name, what, work, warm: false, problems };
    vec![
        case("P1", "openb gpuspec33, 8,152 pods", 2_000_000, |_| vec![openb("gpuspec33", usize::MAX)]),
        case("P3", "10,000 pods, types x 3 zones x spot", 4_000_000, |_| vec![wide()]),
        Case { warm: true, ..case("P3-warm", "the same after 1 % changed", 2_000_000, |_| vec![wide()]) },
        Case {
            warm: true,
            ..case("P1-warm", "P1 after 1 % changed", 2_000_000, |_| vec![openb("gpuspec33", usize::MAX)])
        },
        case("P8", "first-fit cluster, 976 evictions", 2_000_000, |_| {
            vec![common::first_fit_cluster(&openb("gpuspec33", usize::MAX), Some(976))]
        }),
        case("P8-free", "the same cluster, any number of evictions", 2_000_000, |_| {
            vec![common::first_fit_cluster(&openb("gpuspec33", usize::MAX), None)]
        }),
        case("P9", "openb default, MIG instances", 3_000_000, |_| {
            vec![common::gpus::mig(&trace("default"), &types()).0]
        }),
        case("P13", "openb gpushare100, shared GPUs", 3_000_000, |_| {
            vec![common::gpus::shared(&trace("gpushare100"), &types())]
        }),
        case("long", "P1, P9 and P13 with ten seconds of work each", 20_000_000, |_| {
            vec![
                openb("gpuspec33", usize::MAX),
                common::gpus::mig(&trace("default"), &types()).0,
                common::gpus::shared(&trace("gpushare100"), &types()),
            ]
        }),
        case("first", "the plan before any search: P1, P3, P9, P13 and 12 random", 1, |seed| {
            let mut all = vec![
                openb("gpuspec33", usize::MAX),
                wide(),
                common::gpus::mig(&trace("default"), &types()).0,
                common::gpus::shared(&trace("gpushare100"), &types()),
            ];
            all.extend(random(seed, 12, &MANY));
            all
        }),
        case("sample", "60, 200 and 1,000 pods of each openb list", 1_000_000, |_| {
            let list = |name| [60, 200, 1_000].map(|most| openb(name, most));
            ["gpuspec33", "default", "multigpu50"].map(list).concat()
        }),
        case("few", "one to three classes of an openb list, all pods of them", 1_000_000, |_| {
            let few = |name| [1, 2, 3].map(|most| most_frequent(openb(name, usize::MAX), most));
            ["gpuspec33", "default", "multigpu50"].map(few).concat()
        }),
        case("replicas", "30 times three classes of an openb list, 14 to 24 pods each", 200_000, |seed| {
            replicas(seed, 30)
        }),
        case("small", "60 random problems of 8 pods, every rule", 200_000, |seed| {
            random(seed, 60, &without_removal(Shape::SMALL))
        }),
        case("medium", "40 random problems of 200 pods, every rule", 300_000, |seed| {
            random(seed, 40, &without_removal(Shape::MEDIUM))
        }),
        case("scarce", "30 random problems: limits, stock, priorities, gangs", 300_000, |seed| {
            let rules =
                rule::STOCK | rule::LIMITS | rule::PRIORITIES | rule::VALUES | rule::GANGS | rule::SPREADS;
            random(seed, 30, &Shape { rules, ..Shape::MEDIUM })
        }),
        case("many", "12 random problems of up to 150 classes that keep apart", 500_000, |seed| {
            random(seed, 12, &MANY)
        }),
        case("moves", "40 random clusters of 8 pods with removable nodes", 200_000, |seed| {
            random(seed, 40, &removal(Shape::SMALL))
        }),
        case("moves-medium", "30 random clusters of 200 pods with removable nodes", 300_000, |seed| {
            random(seed, 30, &removal(Shape { existing: 30, ..Shape::MEDIUM }))
        }),
        case("moves-budget", "first-fit clusters of 300 pods, 40 evictions", 500_000, |_| {
            ["gpuspec33", "default", "multigpu50"]
                .map(|name| common::first_fit_cluster(&openb(name, 300), Some(40)))
                .to_vec()
        }),
    ]
}

/// Many classes of few pods.
const MANY: Shape = Shape {
    pods: 1_500,
    classes: 150,
    candidates: 60,
    existing: 0,
    rules: rule::CEILINGS | rule::CONFLICTS | rule::PORTS,
};

fn without_removal(shape: Shape) -> Shape {
    Shape { rules: shape.rules & !rule::REMOVAL, ..shape }
}

fn removal(shape: Shape) -> Shape {
    Shape { rules: rule::REMOVAL | rule::EXISTING | rule::STOCK | rule::CONFLICTS | rule::CEILINGS, ..shape }
}

/// Returns `count` problems of this shape that have pods, from a seed on.
fn random(seed: u64, count: usize, shape: &Shape) -> Vec<Problem> {
    let wanted = |problem: &Problem| {
        let removable = problem.existing.iter().any(|node| node.removal.is_some());
        let pods: u64 = problem.classes.iter().map(|class| u64::from(class.count)).sum();
        if shape.rules & rule::REMOVAL == 0 { pods > 0 } else { removable }
    };
    let seeds = seed * 1_000_000..(seed + 1) * 1_000_000;
    seeds.map(|seed| random_problem::problem(seed, shape)).filter(wanted).take(count).collect()
}

/// Returns the problem with only the pods of the `most` largest classes.
fn most_frequent(mut problem: Problem, most: usize) -> Problem {
    let mut classes = std::mem::take(&mut problem.classes);
    classes.sort_by_key(|class| std::cmp::Reverse(class.count));
    classes.truncate(most);
    problem.classes = classes;
    problem
}

/// Creates problems with three random classes of an openb list with a few pods each, like a few deployments at once.
fn replicas(seed: u64, count: u64) -> Vec<Problem> {
    let lists = ["gpuspec33", "default", "multigpu50"].map(|name| openb(name, usize::MAX));
    let problem = |number: u64| {
        let random = &mut Random::new(seed * 1_000_000 + number);
        let mut problem = lists[number as usize % lists.len()].clone();
        let mut classes = std::mem::take(&mut problem.classes);
        for _ in 0..3 {
            let mut class = classes.swap_remove(random.within(0, classes.len() as u64 - 1) as usize);
            class.count = random.within(14, 24) as u32;
            problem.classes.push(class);
        }
        problem
    };
    (0..count).map(problem).collect()
}

fn wide() -> Problem {
    let catalogues = [types(), fixture("catalogue/aws-us-east-1.csv")];
    let catalogues: Vec<&Path> = catalogues.iter().map(PathBuf::as_path).collect();
    common::zones::wide(&trace("gpuspec33"), &catalogues, 10_000, 1)
}
