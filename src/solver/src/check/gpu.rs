//! Rule: every pod that requests shared or partitioned GPUs has its place on single GPUs. Shares add up within one GPU.
//! MIG instances start where the table allows it and overlap neither each other nor those in use. A GPU that is given
//! whole has nothing else on it.

use std::collections::BTreeMap;

use poolwright_catalog::{MigGeometry, MigProfile};

use super::gpu_fault::GpuFault;
use super::view::nodes;
use super::violation::Violation;
use crate::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus, Problem};
use crate::solution::{GpuLayout, MigInstance, Placement, Solution};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        let bought;
        let (states, there): (&[GpuState], usize) = if node.existing {
            let gpus = &problem.existing[node.index as usize].gpus;
            (gpus, gpus.len())
        } else if let Some(gpus) = &problem.candidates[node.index as usize].gpus {
            bought = [new_gpu(gpus)];
            (&bought, gpus.count as usize)
        } else {
            (&[], 0)
        };
        let faults = faults(problem, (states, there), node.pods, node.layout);
        violations
            .extend(faults.into_iter().map(|fault| Violation::Gpu { node: node.reference.clone(), fault }));
    }
}

/// Returns whether a layout holds exactly these pods on the GPUs of a new node.
pub(super) fn holds(problem: &Problem, pods: &[Placement], gpus: &Gpus, layout: &[GpuLayout]) -> bool {
    faults(problem, (&[new_gpu(gpus)], gpus.count as usize), pods, layout).is_empty()
}

/// Returns the state of each GPU of a new node.
fn new_gpu(gpus: &Gpus) -> GpuState {
    match gpus.mode {
        GpuMode::Shared => {
            GpuState::Shared { units_used: 0, memory_used_mib: 0, memory_mib: gpus.memory_mib }
        }
        GpuMode::Mig { geometry, mixed } => GpuState::Mig { geometry, mixed, in_use: Vec::new() },
    }
}

/// Returns what is wrong with the layout of the pods of one node. `states` are those of its `there` GPUs, or the one that all of them
/// have.
fn faults(
    problem: &Problem,
    (states, there): (&[GpuState], usize),
    pods: &[Placement],
    layout: &[GpuLayout],
) -> Vec<GpuFault> {
    let mut faults = Vec::new();
    if layout.len() == there {
        for (gpu, layout) in layout.iter().enumerate() {
            // All GPUs of a new node are in one state.
            one(problem, gpu, &states[gpu.min(states.len() - 1)], layout, &mut faults);
        }
        if there > 0 {
            equal(problem, pods, layout, &mut faults);
        }
    } else {
        faults.push(GpuFault::WrongNumber { laid: layout.len(), there });
    }
    if there == 0 {
        let classes = pods.iter().map(|(class, _)| &problem.classes[*class as usize]);
        faults.extend(
            classes
                .filter(|class| class.gpu.is_some())
                .map(|class| GpuFault::NoGpus { class: class.name.clone() }),
        );
    }
    faults
}

/// Checks that the layout of one GPU is possible there.
fn one(problem: &Problem, gpu: usize, state: &GpuState, layout: &GpuLayout, faults: &mut Vec<GpuFault>) {
    match (layout, state) {
        (GpuLayout::Idle, _) => {}
        (GpuLayout::Whole(class), state) => {
            let why = match state {
                GpuState::Busy => Some("it is in use as a whole"),
                GpuState::Shared { units_used: 0, memory_used_mib: 0, .. } => None,
                GpuState::Shared { .. } => Some("a part of it is in use"),
                GpuState::Mig { mixed: false, .. } => Some("it is cut, and may not be given whole"),
                GpuState::Mig { in_use, .. } => (!in_use.is_empty()).then_some("instances on it are in use"),
            };
            let kind = matches!(problem.classes[*class as usize].gpu, Some(GpuRequest::Whole(_)));
            let why = why.or((!kind).then_some("they do not want whole GPUs"));
            faults.extend(why.map(|why| wrong_use(problem, gpu, *class, why)));
        }
        (GpuLayout::Shared(pods), GpuState::Shared { units_used, memory_used_mib, memory_mib }) => {
            let units = GPU_UNITS.saturating_sub(*units_used);
            shared(problem, gpu, pods, units, memory_mib.saturating_sub(*memory_used_mib), faults);
        }
        (GpuLayout::Shared(pods), _) => {
            faults.extend(pods.iter().map(|(class, _)| wrong_use(problem, gpu, *class, "it is not shared")));
        }
        (GpuLayout::Mig(instances), GpuState::Mig { geometry, in_use, .. }) => {
            cut(problem, gpu, *geometry, in_use, instances, faults);
        }
        (GpuLayout::Mig(instances), _) => {
            let classes = instances.iter().map(|instance| instance.class);
            faults.extend(classes.map(|class| wrong_use(problem, gpu, class, "it is not cut")));
        }
    }
}

fn wrong_use(problem: &Problem, gpu: usize, class: u32, why: &'static str) -> GpuFault {
    GpuFault::WrongUse { gpu, class: problem.classes[class as usize].name.clone(), why }
}

fn shared(
    problem: &Problem,
    gpu: usize,
    pods: &[Placement],
    units_free: u32,
    memory_free: u64,
    faults: &mut Vec<GpuFault>,
) {
    let (mut units_used, mut memory_used) = (0u128, 0u128);
    for (class, count) in pods {
        if let Some(GpuRequest::Share { units, memory_mib }) = problem.classes[*class as usize].gpu {
            units_used += u128::from(units) * u128::from(*count);
            memory_used += u128::from(memory_mib) * u128::from(*count);
        } else {
            faults.push(wrong_use(problem, gpu, *class, "they do not want a share"));
        }
    }
    if units_used > u128::from(units_free) {
        faults.push(GpuFault::TooMuch {
            gpu,
            what: "thousandths",
            used: units_used,
            free: units_free.into(),
        });
    }
    if memory_used > u128::from(memory_free) {
        faults.push(GpuFault::TooMuch { gpu, what: "MiB", used: memory_used, free: memory_free });
    }
}

fn cut(
    problem: &Problem,
    gpu: usize,
    geometry: MigGeometry,
    in_use: &[(MigProfile, u8)],
    instances: &[MigInstance],
    faults: &mut Vec<GpuFault>,
) {
    let mut taken = 0u32;
    let mut compute = 0u32;
    let mut of_profile: BTreeMap<MigProfile, u32> = BTreeMap::new();
    let new = instances.iter().map(|instance| (instance.profile, instance.start));
    for (position, (profile, start)) in in_use.iter().copied().chain(new).enumerate() {
        let placements = geometry.placements(profile).filter(|placements| placements.starts.contains(&start));
        let Some(placements) = placements else {
            faults.push(GpuFault::NoPlace { gpu, profile, start });
            continue;
        };
        let slices = ((1u32 << placements.size) - 1) << start;
        if taken & slices != 0 && position >= in_use.len() {
            faults.push(GpuFault::Overlap { gpu, start });
        }
        taken |= slices;
        compute += u32::from(placements.compute);
        let count = of_profile.entry(profile).or_default();
        *count += 1;
        if *count == u32::from(placements.most) + 1 {
            faults.push(GpuFault::TooManyInstances { gpu });
        }
    }
    if compute > u32::from(geometry.compute_slices()) {
        faults.push(GpuFault::TooManyInstances { gpu });
    }
    for instance in instances {
        match problem.classes[instance.class as usize].gpu {
            Some(GpuRequest::Mig { profile, .. }) if profile == instance.profile => {}
            _ => {
                faults.push(wrong_use(problem, gpu, instance.class, "they want no instance of that profile"));
            }
        }
    }
}

/// Checks that the layouts hold exactly the requests of the node's pods.
fn equal(problem: &Problem, pods: &[Placement], layouts: &[GpuLayout], faults: &mut Vec<GpuFault>) {
    let mut laid: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for (class, count) in pods {
        let each = match problem.classes[*class as usize].gpu {
            None => continue,
            Some(GpuRequest::Whole(gpus)) => gpus,
            Some(GpuRequest::Share { .. }) => 1,
            Some(GpuRequest::Mig { count, .. }) => count,
        };
        laid.entry(*class).or_default().1 = u64::from(each) * u64::from(*count);
    }
    for layout in layouts {
        match layout {
            GpuLayout::Idle => {}
            GpuLayout::Whole(class) => {
                laid.entry(*class).or_default().0 += 1;
            }
            GpuLayout::Shared(pods) => {
                for (class, count) in pods {
                    laid.entry(*class).or_default().0 += u64::from(*count);
                }
            }
            GpuLayout::Mig(instances) => {
                for instance in instances {
                    laid.entry(instance.class).or_default().0 += 1;
                }
            }
        }
    }
    for (class, (laid, wanted)) in laid {
        if laid != wanted {
            let class = problem.classes[class as usize].name.clone();
            faults.push(GpuFault::Unequal { class, laid, wanted });
        }
    }
}
