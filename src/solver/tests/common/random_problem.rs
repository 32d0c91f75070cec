//! Random well-formed problems with any mixture of the model's rules, determined by the seed.

#![allow(dead_code, reason = "each test uses a part of it")]

use poolwright_catalog::{MigGeometry, MigProfile, ResourceName, UsdPerHour};
use poolwright_solver::problem::{
    Commitment, DisruptionBudget, Flexibility, GPU_UNITS, Gang, GpuMode, GpuRequest, GpuState, Gpus,
    NodeShare, Removal, Spread, Topology,
};
use poolwright_solver::{Candidate, ExistingNode, Limit, PodClass, Problem};

/// The rules that a problem may have; each allowed rule appears in some problems only.
pub mod rule {
    pub const STOCK: u32 = 1;
    pub const LIMITS: u32 = 1 << 1;
    pub const CEILINGS: u32 = 1 << 2;
    pub const CONFLICTS: u32 = 1 << 3;
    pub const PORTS: u32 = 1 << 4;
    pub const SHARING: u32 = 1 << 5;
    pub const MIG: u32 = 1 << 6;
    pub const GANGS: u32 = 1 << 7;
    pub const SPREADS: u32 = 1 << 8;
    pub const COMMITMENTS: u32 = 1 << 9;
    pub const NODE_SHARES: u32 = 1 << 10;
    pub const FLEXIBILITY: u32 = 1 << 11;
    pub const RISK: u32 = 1 << 12;
    pub const PREFERENCES: u32 = 1 << 13;
    pub const PRIORITIES: u32 = 1 << 14;
    pub const VALUES: u32 = 1 << 15;
    pub const EXISTING: u32 = 1 << 16;
    pub const REMOVAL: u32 = 1 << 17;
    pub const ALL: u32 = (1 << 18) - 1;
}

/// The size and the rules of a problem.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The maximum number of pods, including those on removable nodes.
    pub pods: u32,
    pub classes: u64,
    pub candidates: u64,
    pub existing: u64,
    /// The allowed rules, from [`rule`].
    pub rules: u32,
}

impl Shape {
    /// Small enough for an exhaustive search.
    pub const SMALL: Self = Self { pods: 8, classes: 4, candidates: 4, existing: 2, rules: rule::ALL };
    /// Too large for an exhaustive search.
    pub const MEDIUM: Self = Self { pods: 200, classes: 25, candidates: 20, existing: 10, rules: rule::ALL };
}

/// A small random number generator (SplitMix64), so that a seed always gives the same problem.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `least` to `most`, both included.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Returns true in `percent` of the cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.within(0, of.len() as u64 - 1) as usize]
    }

    /// Returns some of the indices below `size`, ascending.
    fn some(&mut self, size: usize, percent: u64) -> Vec<u32> {
        (0..size as u32).filter(|_| self.chance(percent)).collect()
    }
}

const ZONES: usize = 3;
const TYPES: usize = 3;
const GEOMETRIES: [MigGeometry; 3] = [MigGeometry::Seven, MigGeometry::Four, MigGeometry::FourOfTwelve];
const PROFILES: [MigProfile; 6] =
    [MigProfile::G1, MigProfile::G1Double, MigProfile::G2, MigProfile::G3, MigProfile::G4, MigProfile::G7];

/// Returns the problem of a seed.
pub fn problem(seed: u64, shape: &Shape) -> Problem {
    let mut random = Random::new(seed);
    let random = &mut random;
    // Keeps half of the allowed rules: most problems with all at once can place nothing.
    let kept = random.next() as u32;
    let rules = shape.rules & if random.chance(20) { u32::MAX } else { kept };
    let has = |rule: u32| rules & rule != 0;
    let mut problem = Problem {
        resources: [ResourceName::CPU, ResourceName::MEMORY].map(ResourceName::new).to_vec(),
        topologies: vec![
            Topology { name: "zone".into(), values: ["a", "b", "c"].map(String::from).to_vec() },
            Topology { name: "type".into(), values: ["x", "y", "z"].map(String::from).to_vec() },
        ],
        ..Problem::default()
    };
    for index in 0..random.within(1, shape.candidates) {
        let candidate = candidate(random, index, has(rule::STOCK), rules);
        problem.candidates.push(candidate);
    }
    if has(rule::EXISTING) {
        for index in 0..random.within(0, shape.existing) {
            let node = existing(random, index, rules);
            problem.existing.push(node);
        }
    }
    let mut left = shape.pods;
    for index in 0..random.within(1, shape.classes) {
        let class = class(random, index, &problem, rules, &mut left);
        problem.classes.push(class);
    }
    if has(rule::REMOVAL) {
        removable(random, &mut problem, &mut left);
    }
    if has(rule::LIMITS) {
        limits(random, &mut problem, shape);
    }
    if has(rule::CONFLICTS) {
        let classes = problem.classes.len() as u32;
        let pairs = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
        problem.conflicts = pairs.filter(|_| random.chance(15)).collect();
    }
    groups(random, &mut problem, rules);
    money(random, &mut problem, rules);
    problem
}

fn domains(random: &mut Random) -> Vec<(u32, u32)> {
    let mut domains = Vec::new();
    if random.chance(90) {
        domains.push((0, random.within(0, ZONES as u64 - 1) as u32));
    }
    if random.chance(90) {
        domains.push((1, random.within(0, TYPES as u64 - 1) as u32));
    }
    domains
}

fn candidate(random: &mut Random, index: u64, stock: bool, rules: u32) -> Candidate {
    let shared = rules & rule::SHARING != 0;
    let mig = rules & rule::MIG != 0;
    let mode = match (shared, mig) {
        (true, true) if random.chance(50) => Some(GpuMode::Shared),
        (true, false) => Some(GpuMode::Shared),
        (_, true) => Some(GpuMode::Mig { geometry: random.pick(&GEOMETRIES), mixed: random.chance(60) }),
        (false, false) => None,
    };
    let gpus = mode.filter(|_| random.chance(70)).map(|mode| Gpus {
        count: random.within(1, 3) as u32,
        memory_mib: random.within(1, 4) * 8_000,
        mode,
    });
    Candidate {
        name: format!("candidate {index}"),
        price: UsdPerHour::from_micros(random.within(1, 60) * 10_000),
        capacity: vec![random.within(2, 16), random.within(2, 16)],
        max_nodes: (stock && random.chance(50)).then(|| random.within(0, 3) as u32),
        gpus,
        domains: domains(random),
        interruptions: if rules & rule::RISK != 0 && random.chance(50) {
            random.within(1, 100_000) as u32
        } else {
            0
        },
        ..Candidate::default()
    }
}

fn existing(random: &mut Random, index: u64, rules: u32) -> ExistingNode {
    let mut node = ExistingNode {
        name: format!("node {index}"),
        free: vec![random.within(0, 8), random.within(0, 8)],
        domains: domains(random),
        ..ExistingNode::default()
    };
    if rules & (rule::SHARING | rule::MIG) != 0 && random.chance(60) {
        for _ in 0..random.within(1, 2) {
            let state = gpu(random, rules);
            node.gpus.push(state);
        }
    }
    node
}

fn gpu(random: &mut Random, rules: u32) -> GpuState {
    if random.chance(20) {
        return GpuState::Busy;
    }
    if rules & rule::MIG == 0 || (rules & rule::SHARING != 0 && random.chance(50)) {
        let memory_mib = random.within(1, 4) * 8_000;
        let idle = random.chance(40);
        return GpuState::Shared {
            units_used: if idle { 0 } else { random.within(0, 10) as u32 * 100 },
            memory_used_mib: if idle { 0 } else { random.within(0, memory_mib / 1000) * 1000 },
            memory_mib,
        };
    }
    let geometry = random.pick(&GEOMETRIES);
    let mut taken = 0u32;
    let mut in_use = Vec::new();
    for _ in 0..random.within(0, 3) {
        let profile = random.pick(&PROFILES);
        let Some(placements) = geometry.placements(profile) else { continue };
        let start = random.pick(placements.starts);
        let slices = ((1u32 << placements.size) - 1) << start;
        if taken & slices == 0 {
            taken |= slices;
            in_use.push((profile, start));
        }
    }
    GpuState::Mig { geometry, mixed: random.chance(60), in_use }
}

fn class(random: &mut Random, index: u64, problem: &Problem, rules: u32, left: &mut u32) -> PodClass {
    let has = |rule: u32| rules & rule != 0;
    let count =
        (random.within(0, 4) as u32).max(random.within(0, 12) as u32 * u32::from(*left > 20)).min(*left);
    *left -= count;
    let mut requests = vec![random.within(0, 6), random.within(0, 6)];
    if requests == [0, 0] && random.chance(90) {
        requests[0] = 1;
    }
    let share = |random: &mut Random| GpuRequest::Share {
        units: (random.within(1, 20) as u32 * 50).min(GPU_UNITS),
        memory_mib: if random.chance(30) { 0 } else { random.within(1, 16) * 1000 },
    };
    let mig = |random: &mut Random| GpuRequest::Mig {
        profile: random.pick(&PROFILES),
        count: if random.chance(80) { 1 } else { 2 },
    };
    let gpu = match (has(rule::SHARING), has(rule::MIG)) {
        (false, false) => None,
        _ if random.chance(45) => None,
        _ if random.chance(20) => Some(GpuRequest::Whole(random.within(1, 2) as u32)),
        (true, true) if random.chance(50) => Some(share(random)),
        (true, false) => Some(share(random)),
        (_, true) => Some(mig(random)),
    };
    let candidates = random.some(problem.candidates.len(), 75);
    let preferences = if has(rule::PREFERENCES) && random.chance(40) {
        let disliked = random.some(problem.candidates.len(), 40);
        disliked.iter().map(|at| (*at, UsdPerHour::from_micros(random.within(1, 90_000)))).collect()
    } else {
        Vec::new()
    };
    let at_risk = if has(rule::RISK) && random.chance(60) { random.within(1, 2_000_000) } else { 0 };
    let at_risk_on = if has(rule::RISK) && random.chance(30) {
        let some = random.some(problem.candidates.len(), 50);
        some.iter().map(|at| (*at, at_risk * random.within(1, 4) + 1)).collect()
    } else {
        Vec::new()
    };
    PodClass {
        name: format!("class {index}"),
        requests,
        count,
        priority: if has(rule::PRIORITIES) { random.within(0, 2) as i32 - 1 } else { 0 },
        max_per_node: (has(rule::CEILINGS) && random.chance(30)).then(|| random.within(1, 2) as u32),
        candidates,
        existing: random.some(problem.existing.len(), 75),
        gpu,
        ports: if has(rule::PORTS) && random.chance(25) { random.some(3, 40) } else { Vec::new() },
        value: if has(rule::VALUES) { random.within(0, 5) } else { 0 },
        preferences,
        at_risk,
        at_risk_on,
        disruption: UsdPerHour::from_micros(if random.chance(50) { random.within(1, 5_000) } else { 0 }),
    }
}

/// Makes some existing nodes removable, with pods on them that may use other nodes.
fn removable(random: &mut Random, problem: &mut Problem, left: &mut u32) {
    let classes = problem.classes.len();
    for node in &mut problem.existing {
        if !random.chance(70) {
            continue;
        }
        let mut pods = Vec::new();
        for class in random.some(classes, 30) {
            let count = (random.within(1, 2) as u32).min(*left);
            if count > 0 {
                *left -= count;
                pods.push((class, count));
            }
        }
        node.removal = Some(Removal {
            price: UsdPerHour::from_micros(random.within(0, 60) * 10_000),
            disruption: UsdPerHour::from_micros(random.within(0, 20_000)),
            pods,
        });
    }
    problem.disruption = DisruptionBudget {
        evictions: random.chance(40).then(|| random.within(0, 4) as u32),
        nodes: random.chance(40).then(|| random.within(0, 3) as u32),
    };
}

fn limits(random: &mut Random, problem: &mut Problem, shape: &Shape) {
    let scale = u64::from(shape.pods / 8).max(1);
    for index in 0..random.within(1, 2) {
        let bound = random.within(0, 10 * scale);
        problem.limits.push(Limit { name: format!("limit {index}"), bound });
        for candidate in &mut problem.candidates {
            if random.chance(70) {
                candidate.limit_use.push((index as u32, random.within(0, 3)));
            }
        }
    }
}

/// Adds gangs and spreads over classes that are in none yet.
fn groups(random: &mut Random, problem: &mut Problem, rules: u32) {
    let mut free: Vec<u32> = (0..problem.classes.len() as u32).collect();
    let take = |random: &mut Random, free: &mut Vec<u32>| -> Vec<u32> {
        let wanted = random.within(1, 2) as usize;
        let mut taken: Vec<u32> = Vec::new();
        while taken.len() < wanted && !free.is_empty() {
            let at = random.within(0, free.len() as u64 - 1) as usize;
            taken.push(free.remove(at));
        }
        taken.sort_unstable();
        taken
    };
    if rules & rule::GANGS != 0 {
        for index in 0..random.within(1, 2) {
            let classes = take(random, &mut free);
            let within = random.chance(60).then(|| random.within(0, 1) as u32);
            problem.gangs.push(Gang { name: format!("gang {index}"), classes, within });
        }
    }
    if rules & rule::SPREADS != 0 {
        for index in 0..random.within(1, 2) {
            let classes = take(random, &mut free);
            let mut values = random.some(ZONES, 80);
            if values.is_empty() {
                values.push(0);
            }
            problem.spreads.push(Spread {
                name: format!("spread {index}"),
                classes,
                topology: 0,
                max_skew: random.within(1, 2) as u32,
                min_domains: random.chance(25).then(|| random.within(1, 3) as u32),
                running: values
                    .iter()
                    .map(|_| if random.chance(70) { 0 } else { random.within(1, 3) as u32 })
                    .collect(),
                values,
            });
        }
    }
}

fn money(random: &mut Random, problem: &mut Problem, rules: u32) {
    let size = problem.candidates.len();
    if rules & rule::COMMITMENTS != 0 {
        let mut free: Vec<u32> = (0..size as u32).collect();
        for index in 0..random.within(1, 2) {
            let (covered, rest): (Vec<u32>, Vec<u32>) = free.iter().partition(|_| random.chance(50));
            free = rest;
            let rates = covered
                .iter()
                .map(|at| {
                    let price = problem.candidates[*at as usize].price.micros();
                    (*at, UsdPerHour::from_micros((price * random.within(30, 110) / 100).max(1)))
                })
                .collect();
            let left = UsdPerHour::from_micros(random.within(0, 1_500_000));
            problem.commitments.push(Commitment { name: format!("commitment {index}"), left, rates });
        }
    }
    if rules & rule::NODE_SHARES != 0 {
        let of = if random.chance(50) { (0..size as u32).collect() } else { random.some(size, 70) };
        let part = of.iter().copied().filter(|_| random.chance(50)).collect();
        problem.node_shares.push(NodeShare {
            name: "share".into(),
            part,
            of,
            at_most_permille: random.pick(&[0, 250, 333, 500, 900, 999]),
            round_up: random.chance(50),
            running_part: 0,
            running_of: 0,
        });
        if random.chance(50) {
            let running_of = random.within(1, 4) as u32;
            for share in &mut problem.node_shares {
                (share.running_part, share.running_of) =
                    (random.within(0, running_of.into()) as u32, running_of);
            }
        }
    }
    if rules & rule::FLEXIBILITY != 0 {
        problem.flexibility.push(Flexibility {
            name: "flexibility".into(),
            candidates: random.some(size, 70),
            topology: 1,
            at_least: random.within(1, 2) as u32,
        });
    }
}
