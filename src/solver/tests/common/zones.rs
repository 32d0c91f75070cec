//! The wide case of the measurements: many instance types, three zones, spot and on-demand, pods with constraints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use poolwright_catalog::UsdPerHour;
use poolwright_solver::{Candidate, PodClass, Problem};

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): the same numbers everywhere.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// Zones of the wide case.
const ZONES: usize = 3;

/// `pods` pods like those of the list over all types of the catalogues, each in three zones, on demand and as spot at 0.3
/// to 0.75 of the price. Of all offerings 15 % are missing; 30 % of the pods are on-demand only, 20 % bound to a zone.
pub fn wide(list: &Path, catalogues: &[&Path], pods: u32, seed: u64) -> Problem {
    let mut random = Random(seed);
    let mut types: Vec<BTreeMap<String, String>> = Vec::new();
    let mut known = BTreeSet::new();
    for catalogue in catalogues {
        types.extend(
            super::types(catalogue).into_iter().filter(|row| known.insert(row["instance_type"].clone())),
        );
    }
    let plain = super::problem_of(list, &types, usize::MAX);
    // (type, zone, spot), in this order.
    let mut offered: Vec<(usize, usize, bool)> = Vec::new();
    let mut candidates = Vec::new();
    for (index, kind) in plain.candidates.iter().enumerate() {
        for zone in 0..ZONES {
            for spot in [false, true] {
                let share = if spot { 300 + random.below(451) } else { 1000 };
                if random.percent(15) {
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
        let class = if pod < all.len() { all[pod] } else { all[random.below(all.len() as u64) as usize] };
        let on_demand = random.percent(30);
        let zone = random.percent(20).then(|| random.below(ZONES as u64) as usize);
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

/// The same pods, `times` as many of each.
pub fn times(mut problem: Problem, times: u32) -> Problem {
    for class in &mut problem.classes {
        class.count *= times;
    }
    problem
}

/// One pod in `of` goes, and another of a random class comes.
pub fn churned(mut problem: Problem, of: u32, seed: u64) -> Problem {
    let mut random = Random(seed);
    let pods: u32 = problem.classes.iter().map(|class| class.count).sum();
    let classes = problem.classes.len() as u64;
    let mut moved = 0;
    while moved < pods / of {
        let (from, to) = (random.below(classes) as usize, random.below(classes) as usize);
        if problem.classes[from].count > 0 {
            problem.classes[from].count -= 1;
            problem.classes[to].count += 1;
            moved += 1;
        }
    }
    problem
}
