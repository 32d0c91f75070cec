//! The wide case of the measurements: many instance types, three zones, spot and on-demand, pods with constraints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Candidate, PodClass, Problem};

use super::random_problem::Random;

/// The number of zones of the wide case.
const ZONES: usize = 3;

/// Creates a problem with `pods` pods like those of the list, over all types of the catalogues, each in three zones, on
/// demand and as spot at 0.3 to 0.75 of the price. Of all offerings 15 % are missing; 30 % of the pods are on-demand
/// only, and 20 % are bound to a zone.
pub fn wide(list: &Path, catalogues: &[&Path], pods: u32, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let mut types: Vec<BTreeMap<String, String>> = Vec::new();
    let mut known = BTreeSet::new();
    for catalogue in catalogues {
        types.extend(
            super::types_of(catalogue).into_iter().filter(|row| known.insert(row["instance_type"].clone())),
        );
    }
    let plain = super::problem_of(list, &types, usize::MAX);
    // (type, zone, spot), in this order.
    let mut offered: Vec<(usize, usize, bool)> = Vec::new();
    let mut candidates = Vec::new();
    for (index, kind) in plain.candidates.iter().enumerate() {
        for zone in 0..ZONES {
            for spot in [false, true] {
                let share = if spot { random.within(300, 750) } else { 1000 };
                if random.chance(15) {
                    continue;
                }
                offered.push((index, zone, spot));
                candidates.push(Candidate {
                    name: format!(
                        "{}/{}/{}",
                        kind.name,
                        ["a", "b", "c"][zone],
                        if spot { "spot" } else { "on-demand" }
                    ),
                    price: UsdPerHour::from_micros(kind.price.micros() * share / 1000),
                    ..kind.clone()
                });
            }
        }
    }
    let all: Vec<usize> =
        plain.classes.iter().enumerate().flat_map(|(at, class)| vec![at; class.count as usize]).collect();
    let mut counts: BTreeMap<(usize, bool, Option<usize>), u32> = BTreeMap::new();
    for pod in 0..pods as usize {
        let class =
            if pod < all.len() { all[pod] } else { all[random.within(0, all.len() as u64 - 1) as usize] };
        let on_demand = random.chance(30);
        let zone = random.chance(20).then(|| random.within(0, ZONES as u64 - 1) as usize);
        *counts.entry((class, on_demand, zone)).or_default() += 1;
    }
    let classes = counts
        .into_iter()
        .map(|((class, on_demand, wanted), count)| {
            let of = &plain.classes[class];
            PodClass {
                name: format!("{}/{on_demand}/{wanted:?}", of.name),
                count,
                candidates: (0..offered.len() as u32)
                    .filter(|at| {
                        let (kind, zone, spot) = offered[*at as usize];
                        of.candidates.binary_search(&(kind as u32)).is_ok()
                            && !(on_demand && spot)
                            && wanted.is_none_or(|wanted| wanted == zone)
                    })
                    .collect(),
                ..of.clone()
            }
        })
        .collect();
    Problem { classes, candidates, ..plain }
}

/// Returns the problem with `times` as many pods of each class.
pub fn times(mut problem: Problem, times: u32) -> Problem {
    for class in &mut problem.classes {
        class.count *= times;
    }
    problem
}

/// Removes one pod in `of`, and adds another of a random class for each.
pub fn churned(mut problem: Problem, of: u32, seed: u64) -> Problem {
    let mut random = Random::new(seed);
    let pods: u32 = problem.classes.iter().map(|class| class.count).sum();
    let classes = problem.classes.len() as u64;
    let mut moved = 0;
    while moved < pods / of {
        let (from, to) = (random.within(0, classes - 1) as usize, random.within(0, classes - 1) as usize);
        if problem.classes[from].count > 0 {
            problem.classes[from].count -= 1;
            problem.classes[to].count += 1;
            moved += 1;
        }
    }
    problem
}
