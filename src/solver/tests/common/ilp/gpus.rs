//! GPUs one by one: each is given whole, or shared by pods whose parts add up, or partitioned into instances at
//! placements of its table.

use std::collections::BTreeMap;

use good_lp::Expression;
use poolwright_catalog::{MigGeometry, MigProfile};
use poolwright_solver::Problem;
use poolwright_solver::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState};

use super::hosts::{Host, Hosts, Kind};
use super::program::Program;

/// Returns the GPUs of a new node of a candidate, all empty.
pub fn empty(problem: &Problem, candidate: usize) -> Vec<GpuState> {
    let Some(gpus) = &problem.candidates[candidate].gpus else { return Vec::new() };
    let memory_mib = gpus.memory_mib;
    let one = match gpus.mode {
        GpuMode::Shared => GpuState::Shared { units_used: 0, memory_used_mib: 0, memory_mib },
        GpuMode::Mig { geometry, mixed } => GpuState::Mig { geometry, mixed, in_use: Vec::new() },
    };
    vec![one; gpus.count as usize]
}

pub fn add(problem: &Problem, hosts: &Hosts, program: &mut Program) {
    for host in &hosts.all {
        match host.kind {
            Kind::New(candidate) => pack(problem, host, &empty(problem, candidate), host.on(), program),
            Kind::There(node) => pack(problem, host, &problem.existing[node].gpus, host.on(), program),
        }
    }
}

/// The GPU requests of pods, in pieces of one GPU each.
#[derive(Default)]
struct Wanted {
    /// Whole GPUs.
    whole: Expression,
    /// Instances of a profile.
    instances: BTreeMap<MigProfile, Expression>,
    /// Shares: units and memory of one, the number of pods, and its maximum.
    shares: Vec<(u32, u64, Expression, u64)>,
    /// An upper bound on the number of pieces of one kind.
    many: u64,
}

/// The pieces that the GPUs provide.
#[derive(Default)]
struct Given {
    whole: Expression,
    instances: BTreeMap<MigProfile, Expression>,
    /// By entry of [`Wanted::shares`].
    shares: Vec<Expression>,
}

/// Requires that all pods of the host have their GPU pieces on these GPUs, if `on` is one. If it is zero, nothing is
/// required.
pub fn pack(problem: &Problem, host: &Host, gpus: &[GpuState], on: Expression, program: &mut Program) {
    let mut wanted = Wanted::default();
    for (class, count) in host.counts() {
        match problem.classes[class].gpu {
            None => {}
            Some(GpuRequest::Whole(each)) => {
                wanted.whole.add_mul(f64::from(each), count.pods);
                wanted.many += count.most * u64::from(each);
            }
            Some(GpuRequest::Share { units, memory_mib }) => {
                wanted.shares.push((units, memory_mib, count.pods.into(), count.most));
                wanted.many += count.most;
            }
            Some(GpuRequest::Mig { profile, count: each }) => {
                wanted.instances.entry(profile).or_default().add_mul(f64::from(each), count.pods);
                wanted.many += count.most * u64::from(each);
            }
        }
    }
    if wanted.many == 0 {
        return;
    }
    let mut given = Given { shares: vec![Expression::default(); wanted.shares.len()], ..Given::default() };
    for gpu in gpus {
        one(gpu, &wanted, &mut given, &on, program);
    }
    let off = wanted.many as f64 * (1.0 - on);
    program.row((wanted.whole - given.whole - off.clone()).leq(0));
    for (profile, wanted) in wanted.instances {
        let given = given.instances.remove(&profile).unwrap_or_default();
        program.row((wanted - given - off.clone()).leq(0));
    }
    for ((_, _, wanted, _), given) in wanted.shares.into_iter().zip(given.shares) {
        program.row((wanted - given - off.clone()).leq(0));
    }
}

fn one(gpu: &GpuState, wanted: &Wanted, given: &mut Given, on: &Expression, program: &mut Program) {
    match gpu {
        GpuState::Busy => {}
        GpuState::Shared { units_used, memory_used_mib, memory_mib } => {
            let mut units = Expression::default();
            let mut memory = Expression::default();
            for ((each, mib, _, most), given) in wanted.shares.iter().zip(&mut given.shares) {
                let pods = program.integer(0, (*most).min(u64::from(GPU_UNITS / each)));
                units.add_mul(f64::from(*each), pods);
                memory.add_mul(*mib as f64, pods);
                *given += pods;
            }
            let mut left = on.clone();
            if *units_used == 0 && *memory_used_mib == 0 {
                let whole = program.binary();
                left -= whole;
                given.whole += whole;
            }
            program.row(left.clone().geq(0));
            program.row((units - f64::from(GPU_UNITS - units_used) * left.clone()).leq(0));
            program.row((memory - (memory_mib - memory_used_mib) as f64 * left).leq(0));
        }
        GpuState::Mig { geometry, mixed, in_use } => {
            let mut left = on.clone();
            if *mixed && in_use.is_empty() {
                let whole = program.binary();
                left -= whole;
                given.whole += whole;
            }
            program.row(left.clone().geq(0));
            cut(*geometry, in_use, wanted, given, &left, program);
        }
    }
}

/// Constrains the instances of one GPU beside those in use: no overlap, no more of a profile than the table has, and no
/// more compute slices than the GPU has.
fn cut(
    geometry: MigGeometry,
    in_use: &[(MigProfile, u8)],
    wanted: &Wanted,
    given: &mut Given,
    left: &Expression,
    program: &mut Program,
) {
    let slices = usize::from(geometry.memory_slices());
    let mut taken = vec![Expression::default(); slices];
    let mut compute = Expression::default();
    let mut free = vec![true; slices];
    let mut unused = f64::from(geometry.compute_slices());
    for (profile, start) in in_use {
        let placements = geometry.placements(*profile).expect("a problem is valid");
        free[usize::from(*start)..usize::from(start + placements.size)].fill(false);
        unused -= f64::from(placements.compute);
    }
    for profile in wanted.instances.keys() {
        let Some(placements) = geometry.placements(*profile) else { continue };
        let mut of_profile = Expression::default();
        for start in placements.starts {
            let span = usize::from(*start)..usize::from(start + placements.size);
            if free[span.clone()].contains(&false) {
                continue;
            }
            let instance = program.binary();
            taken[span].iter_mut().for_each(|slice| *slice += instance);
            compute.add_mul(f64::from(placements.compute), instance);
            of_profile += instance;
        }
        let there = in_use.iter().filter(|(of, _)| of == profile).count();
        let most = usize::from(placements.most).saturating_sub(there);
        program.row((of_profile.clone() - most as f64 * left.clone()).leq(0));
        *given.instances.entry(*profile).or_default() += of_profile;
    }
    for slice in taken {
        program.row((slice - left.clone()).leq(0));
    }
    program.row((compute - unused * left.clone()).leq(0));
}
