//! Problems from the same files with partitioned or shared GPUs, where [`super::problem`] rounds every fraction up to a
//! whole GPU.

use std::path::Path;

use poolwright_catalog::{MigModel, ResourceName};
use poolwright_solver::problem::{GPU_UNITS, GpuMode, GpuRequest, Gpus};
use poolwright_solver::{PodClass, Problem};

use super::{number, problem, rows};

/// Returns two problems with the same pods, where only GPUs of the seven-slice family and nodes without GPUs are for
/// sale: one with fractions on the smallest instance with as much compute, and one with whole GPUs only.
pub fn mig(pods: &Path, catalogue: &Path) -> (Problem, Problem) {
    let cut = |model: &str| ["a100", "h100", "h200", "b200"].contains(&model);
    let mut whole = with_gpus(pods, catalogue, &|_, _| None);
    let mut mig = with_gpus(pods, catalogue, &|units, gpus| {
        Some(if gpus == 1 && units < GPU_UNITS {
            let profile =
                poolwright_catalog::MigGeometry::Seven.smallest(units).expect("it is a part of a GPU");
            GpuRequest::Mig { profile, count: 1 }
        } else {
            GpuRequest::Whole(gpus)
        })
    });
    let types = rows(catalogue);
    for problem in [&mut whole, &mut mig] {
        only(problem, &|name| {
            let row = types.iter().find(|row| row["instance_type"] == name).expect("its row");
            row["gpu_model"].is_empty() || cut(&row["gpu_model"])
        });
    }
    for candidate in &mut mig.candidates {
        let row = types.iter().find(|row| row["instance_type"] == candidate.name).expect("its row");
        let memory = number(row, "gpu_memory_mib_each");
        candidate.gpus = MigModel::named(&row["gpu_model"], Some(memory)).map(|model| Gpus {
            count: number(row, "gpu_count") as u32,
            memory_mib: memory,
            mode: GpuMode::Mig { geometry: model.geometry, mixed: true },
        });
    }
    (mig, whole)
}

/// Returns the problem with the same pods where every GPU may be shared. Fractions take their share of one GPU, and state
/// no memory.
pub fn shared(pods: &Path, catalogue: &Path) -> Problem {
    let mut problem = with_gpus(pods, catalogue, &|units, gpus| {
        Some(if gpus == 1 && units < GPU_UNITS {
            GpuRequest::Share { units, memory_mib: 0 }
        } else {
            GpuRequest::Whole(gpus)
        })
    });
    let types = rows(catalogue);
    for candidate in &mut problem.candidates {
        let row = types.iter().find(|row| row["instance_type"] == candidate.name).expect("its row");
        let count = number(row, "gpu_count") as u32;
        let gpus = Gpus { count, memory_mib: number(row, "gpu_memory_mib_each"), mode: GpuMode::Shared };
        candidate.gpus = (count > 0).then_some(gpus);
    }
    problem
}

/// Drops all candidates that `keep` rejects.
fn only(problem: &mut Problem, keep: &dyn Fn(&str) -> bool) {
    let mut left = 0;
    let place: Vec<Option<u32>> = problem
        .candidates
        .iter()
        .map(|candidate| {
            left += u32::from(keep(&candidate.name));
            keep(&candidate.name).then(|| left - 1)
        })
        .collect();
    problem.candidates.retain(|candidate| keep(&candidate.name));
    for class in &mut problem.classes {
        class.candidates =
            class.candidates.iter().filter_map(|candidate| place[*candidate as usize]).collect();
    }
}

/// The GPU request of a pod, from the units of one GPU and the number of GPUs; `None` to request whole GPUs as a
/// resource.
type Wish<'a> = &'a dyn Fn(u32, u32) -> Option<GpuRequest>;

/// Returns [`super::problem`] with separate classes for each fraction of a GPU.
fn with_gpus(pods: &Path, catalogue: &Path, wish: Wish<'_>) -> Problem {
    let mut base = problem(pods, catalogue, usize::MAX);
    let whole = std::mem::take(&mut base.classes);
    let mut counts: std::collections::BTreeMap<(usize, Option<GpuRequest>), u32> =
        std::collections::BTreeMap::new();
    for row in &rows(pods) {
        let (units, gpus) = (number(row, "gpu_milli") as u32, number(row, "num_gpu") as u32);
        let requests = [number(row, "cpu_milli"), number(row, "memory_mib") * super::MIB, 1, u64::from(gpus)];
        let spec = row.get("gpu_spec").map_or("", String::as_str);
        let of = whole
            .iter()
            .position(|class| class.requests == requests && class.name.ends_with(&format!("gpu/{spec}")))
            .expect("its class");
        let wanted = if gpus == 0 { None } else { wish(units, gpus) };
        *counts.entry((of, wanted)).or_default() += 1;
    }
    let gpu = base.resources.iter().position(|name| name.as_str() == ResourceName::NVIDIA_GPU);
    base.classes = counts
        .into_iter()
        .map(|((of, wanted), count)| {
            let mut class = PodClass { count, gpu: wanted, ..whole[of].clone() };
            if let (Some(wanted), Some(gpu)) = (wanted, gpu) {
                class.requests[gpu] = 0;
                class.name = format!("{} {wanted:?}", class.name);
            }
            class
        })
        .collect();
    base
}
