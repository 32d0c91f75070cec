//! Decodes any bytes to a small problem: for random tests, which shrink the bytes, and for the fuzz target, which mutates
//! them. Zeroes choose the simplest option, and missing bytes are zeroes.

use poolwright_catalog::{MigGeometry, MigProfile, ResourceName, UsdPerHour};
use poolwright_solver::problem::{
    Commitment, DisruptionBudget, Flexibility, GpuMode, GpuRequest, GpuState, Gpus, NodeShare, Removal,
    Spread, Topology,
};
use poolwright_solver::{Candidate, ExistingNode, Limit, PodClass, Problem, problem::Gang};

/// The rules that a problem may have, and its maximum size.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// The maximum number of pods.
    pub pods: u32,
    /// The maximum numbers of classes, candidates and existing nodes.
    pub sizes: (u32, u32, u32),
    /// Stock and limits.
    pub scarce: bool,
    /// Node shares.
    pub shares: bool,
    /// Conflicts and host ports.
    pub meetings: bool,
    /// Shared and partitioned GPUs.
    pub gpus: bool,
    /// Commitments.
    pub commitments: bool,
    /// Interruptions and preferences.
    pub charges: bool,
    /// Flexibility rules.
    pub flexibility: bool,
    /// Gangs.
    pub gangs: bool,
    /// Spreads over zones.
    pub spreads: bool,
    /// Priorities.
    pub priorities: bool,
    /// The values of pods.
    pub values: bool,
    /// Removable existing nodes.
    pub removal: bool,
    /// Pods on removable nodes that belong to a gang or a spread.
    pub joined: bool,
}

impl Mix {
    /// Every rule.
    pub const ALL: Self = Self {
        pods: 8,
        sizes: (4, 4, 2),
        scarce: true,
        shares: true,
        meetings: true,
        gpus: true,
        commitments: true,
        charges: true,
        flexibility: true,
        gangs: true,
        spreads: true,
        priorities: true,
        values: true,
        removal: true,
        joined: true,
    };

    /// The rules that the solver implements.
    pub const LANDED: Self = Self::ALL;
}

/// A source of single bytes.
pub struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> Bytes<'a> {
    /// Creates a source of all of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    fn byte(&mut self) -> u32 {
        self.0.next().copied().unwrap_or(0).into()
    }

    /// Returns a number from `least` to `most`.
    fn from(&mut self, least: u32, most: u32) -> u32 {
        least + self.byte() % (most - least + 1)
    }

    /// Returns true in `percent` of the cases.
    fn often(&mut self, percent: u32) -> bool {
        self.byte() * 100 / 256 >= 100 - percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.byte() as usize % of.len()]
    }

    /// Returns some indices below `size`; all for zero bytes.
    fn subset(&mut self, size: usize) -> Vec<u32> {
        let holes = self.byte() & self.byte();
        (0..size as u32).filter(|index| holes >> (index % 8) & 1 == 0).collect()
    }

    /// Returns a price that is a round number, or just above one.
    fn price(&mut self) -> u64 {
        let cents = u64::from(self.from(1, 60)) * 10_000;
        if self.often(15) { cents + u64::from(self.from(1, 3)) } else { cents }
    }
}

const PROFILES: [MigProfile; 6] = MigProfile::ALL;
const GEOMETRIES: [MigGeometry; 3] = [MigGeometry::Seven, MigGeometry::Four, MigGeometry::FourOfTwelve];

fn gpu_mode(bytes: &mut Bytes<'_>) -> GpuMode {
    if bytes.often(50) {
        GpuMode::Mig { geometry: bytes.pick(&GEOMETRIES), mixed: bytes.often(50) }
    } else {
        GpuMode::Shared
    }
}

fn gpu_request(bytes: &mut Bytes<'_>) -> GpuRequest {
    match bytes.from(0, 3) {
        0 => GpuRequest::Share {
            units: bytes.pick(&[500, 250, 400, 334, 600, 1000, 1]),
            memory_mib: bytes.pick(&[0, 10, 30, 60, 100]),
        },
        1 => GpuRequest::Whole(bytes.from(1, 2)),
        _ => GpuRequest::Mig { profile: bytes.pick(&PROFILES), count: bytes.from(1, 2) },
    }
}

/// Returns a possible state of a GPU of an existing node.
fn gpu_state(bytes: &mut Bytes<'_>) -> GpuState {
    match bytes.from(0, 4) {
        0 | 1 => {
            let mut in_use = Vec::new();
            let geometry = bytes.pick(&GEOMETRIES);
            let mut taken = 0u32;
            for _ in 0..bytes.from(0, 2) {
                let profile = bytes.pick(&PROFILES);
                let Some(placements) = geometry.placements(profile) else { continue };
                let start = bytes.pick(placements.starts);
                let mask = ((1 << placements.size) - 1) << start;
                let same = in_use.iter().filter(|(other, _)| *other == profile).count();
                if taken & mask == 0 && same < placements.most.into() {
                    taken |= mask;
                    in_use.push((profile, start));
                }
            }
            GpuState::Mig { geometry, mixed: bytes.often(50), in_use }
        }
        2 | 3 => GpuState::Shared {
            units_used: bytes.pick(&[0, 250, 500, 600]),
            memory_used_mib: bytes.pick(&[0, 10, 50]),
            memory_mib: bytes.pick(&[100, 60]),
        },
        _ => GpuState::Busy,
    }
}

/// Returns a zone or none, and the value of its own kind.
fn domains(bytes: &mut Bytes<'_>, kind: usize) -> Vec<(u32, u32)> {
    let zone = bytes.from(0, 7);
    let mut domains = if zone == 7 { Vec::new() } else { vec![(0, zone % 3)] };
    domains.push((1, kind as u32 % 4));
    domains
}

/// Decodes bytes to a well-formed problem.
pub fn problem(bytes: &mut Bytes<'_>, mix: &Mix) -> Problem {
    let candidates = bytes.from(1, mix.sizes.1) as usize;
    let existing = bytes.from(0, mix.sizes.2) as usize;
    let mut made = Problem {
        resources: [ResourceName::CPU, ResourceName::MEMORY].map(ResourceName::new).to_vec(),
        ..Problem::default()
    };
    made.topologies = vec![
        Topology { name: "zone".into(), values: ["a", "b", "c"].map(String::from).to_vec() },
        Topology { name: "type".into(), values: ["k", "l", "m", "n"].map(String::from).to_vec() },
    ];
    if mix.scarce && bytes.often(40) {
        made.limits = vec![Limit { name: "units".into(), bound: bytes.from(0, 12).into() }];
        if bytes.often(30) {
            made.limits.push(Limit { name: "money".into(), bound: u64::from(bytes.from(10, 200)) * 10_000 });
        }
    }
    for index in 0..candidates {
        let price = if bytes.often(6) { 0 } else { bytes.price() };
        let mut limit_use = Vec::new();
        if !made.limits.is_empty() && bytes.often(80) {
            limit_use.push((0, bytes.from(1, 3).into()));
        }
        if made.limits.len() > 1 {
            limit_use.push((1, price));
        }
        made.candidates.push(Candidate {
            name: format!("candidate {index}"),
            price: UsdPerHour::from_micros(price),
            capacity: vec![bytes.from(3, 14).into(), bytes.from(2, 20).into()],
            max_nodes: (mix.scarce && bytes.often(30)).then(|| bytes.from(0, 3)),
            limit_use,
            gpus: (mix.gpus && bytes.often(60)).then(|| Gpus {
                count: bytes.from(1, 3),
                memory_mib: bytes.pick(&[100, 60]),
                mode: gpu_mode(bytes),
            }),
            domains: domains(bytes, index),
            interruptions: if mix.charges { bytes.pick(&[0, 0, 100_000, 50_000]) } else { 0 },
        });
    }
    classes(bytes, mix, existing, &mut made);
    for index in 0..existing {
        made.existing.push(ExistingNode {
            name: format!("node {index}"),
            free: vec![bytes.from(1, 8).into(), bytes.from(1, 10).into()],
            gpus: if mix.gpus {
                (0..bytes.from(0, 2)).map(|_| gpu_state(bytes)).collect()
            } else {
                Vec::new()
            },
            domains: domains(bytes, index + 2),
            removal: (mix.removal && bytes.often(50)).then(|| removal(bytes, &mut made.classes, mix)),
        });
    }
    if mix.removal {
        made.disruption = DisruptionBudget {
            evictions: bytes.often(30).then(|| bytes.from(0, 4)),
            nodes: bytes.often(30).then(|| bytes.from(0, 1)),
        };
    }
    groups(bytes, mix, &mut made);
    if !mix.joined {
        let runs = |class: &u32| {
            let removals = made.existing.iter().filter_map(|node| node.removal.as_ref());
            removals.flat_map(|removal| &removal.pods).any(|(running, _)| running == class)
        };
        made.gangs.retain(|gang| !gang.classes.iter().any(runs));
        made.spreads.retain(|spread| !spread.classes.iter().any(runs));
    }
    rules(bytes, mix, &mut made);
    made
}

fn classes(bytes: &mut Bytes<'_>, mix: &Mix, existing: usize, made: &mut Problem) {
    let mut left = mix.pods;
    for index in 0..bytes.from(1, mix.sizes.0) as usize {
        let count = bytes.from(1, 4).min(left);
        left -= count;
        let candidates = bytes.subset(made.candidates.len());
        let mut preferences = Vec::new();
        if mix.charges && bytes.often(25) {
            for candidate in bytes.subset(made.candidates.len()) {
                preferences.push((candidate, UsdPerHour::from_micros(u64::from(bytes.from(1, 20)) * 5_000)));
            }
        }
        made.classes.push(PodClass {
            name: format!("class {index}"),
            requests: vec![bytes.from(1, 6).into(), bytes.from(0, 8).into()],
            count,
            priority: if mix.priorities { bytes.pick(&[0, 0, 1, -1]) } else { 0 },
            max_per_node: bytes.often(15).then(|| bytes.from(1, 2)),
            candidates,
            existing: bytes.subset(existing),
            gpu: (mix.gpus && bytes.often(60)).then(|| gpu_request(bytes)),
            ports: if mix.meetings && bytes.often(15) {
                bytes.pick::<&[u32]>(&[&[80], &[80, 443], &[443]]).to_vec()
            } else {
                Vec::new()
            },
            value: if mix.values { bytes.pick(&[0, 0, 3, 10]) } else { 0 },
            preferences,
            at_risk: if mix.charges { bytes.pick(&[0, 0, 200_000, 1_000_000]) } else { 0 },
            at_risk_on: Vec::new(),
            disruption: UsdPerHour::from_micros(if mix.removal {
                bytes.pick(&[0, 10_000, 50_000])
            } else {
                0
            }),
        });
    }
}

fn removal(bytes: &mut Bytes<'_>, classes: &mut [PodClass], mix: &Mix) -> Removal {
    let mut pods = Vec::new();
    let mut left = mix.pods.saturating_sub(classes.iter().map(|class| class.count).sum());
    for class in 0..classes.len() as u32 {
        let count = bytes.from(0, 2).min(left);
        left -= count;
        if count > 0 {
            pods.push((class, count));
        }
    }
    let price = UsdPerHour::from_micros(bytes.price());
    Removal { price, disruption: UsdPerHour::from_micros(bytes.pick(&[0, 10_000])), pods }
}

fn groups(bytes: &mut Bytes<'_>, mix: &Mix, made: &mut Problem) {
    let classes = made.classes.len() as u32;
    let mut free: Vec<u32> = (0..classes).collect();
    if mix.meetings && bytes.often(30) {
        for i in 0..classes {
            for j in i + 1..classes {
                if bytes.often(30) {
                    made.conflicts.push((i, j));
                }
            }
        }
    }
    if mix.gangs && bytes.often(35) {
        let together = bytes.subset(free.len());
        let members: Vec<u32> = together.iter().map(|at| free[*at as usize]).take(2).collect();
        free.retain(|class| !members.contains(class));
        if !members.is_empty() {
            let within = bytes.often(50).then(|| bytes.pick(&[0, 1]));
            made.gangs.push(Gang { name: "gang".into(), classes: members, within });
        }
    }
    if mix.spreads && bytes.often(35) && !free.is_empty() {
        let members: Vec<u32> = free.iter().copied().take(bytes.from(1, 2) as usize).collect();
        let values = bytes.subset(3);
        made.spreads.push(Spread {
            name: "spread".into(),
            classes: members,
            topology: 0,
            max_skew: bytes.from(1, 2),
            min_domains: bytes.often(25).then(|| bytes.from(1, 4)),
            running: values.iter().map(|_| bytes.pick(&[0, 0, 1, 2])).collect(),
            values,
        });
    }
}

fn rules(bytes: &mut Bytes<'_>, mix: &Mix, made: &mut Problem) {
    let candidates = made.candidates.len();
    let mut uncovered: Vec<u32> = (0..candidates as u32).collect();
    if mix.commitments {
        for index in 0..bytes.pick(&[0, 0, 1, 2]) {
            let covered: Vec<u32> =
                bytes.subset(candidates).into_iter().filter(|at| uncovered.contains(at)).collect();
            uncovered.retain(|at| !covered.contains(at));
            let mut rates = Vec::new();
            for candidate in covered {
                let price = made.candidates[candidate as usize].price.micros();
                let part = bytes.pick(&[100, 70, 60, 33, 120]);
                rates.push((candidate, UsdPerHour::from_micros((price * part / 100).max(1))));
            }
            let left = UsdPerHour::from_micros(u64::from(bytes.from(0, 120)) * 10_000);
            made.commitments.push(Commitment { name: format!("plan {index}"), left, rates });
        }
    }
    if mix.shares && bytes.often(20) {
        let of = bytes.subset(candidates);
        let part: Vec<u32> = of.iter().copied().filter(|_| bytes.often(50)).collect();
        let at_most_permille = bytes.pick(&[500, 700, 300, 0, 999]);
        let round_up = bytes.often(50);
        let running_of = bytes.pick(&[0, 0, 1, 3]);
        let running_part = if running_of > 0 { bytes.from(0, running_of) } else { 0 };
        made.node_shares.push(NodeShare {
            name: "share".into(),
            part,
            of,
            at_most_permille,
            round_up,
            running_part,
            running_of,
        });
    }
    if mix.flexibility && bytes.often(25) {
        made.flexibility.push(Flexibility {
            name: "flexible".into(),
            candidates: bytes.subset(candidates),
            topology: bytes.pick(&[1, 0]),
            at_least: bytes.from(1, 3),
        });
    }
}
