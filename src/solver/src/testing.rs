//! Small problems for the unit tests of this crate.

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::problem::{Candidate, ExistingNode, GpuMode, GpuRequest, GpuState, Gpus, PodClass, Problem};

/// Creates a problem over CPU, memory and GPUs.
pub(crate) fn problem(classes: Vec<PodClass>, candidates: Vec<Candidate>) -> Problem {
    let resources =
        [ResourceName::CPU, ResourceName::MEMORY, ResourceName::NVIDIA_GPU].map(ResourceName::new).to_vec();
    Problem { resources, classes, candidates, ..Problem::default() }
}

/// Creates a class of `count` pods that may use `candidates`.
pub(crate) fn class(name: &str, requests: [u64; 3], count: u32, candidates: &[u32]) -> PodClass {
    PodClass {
        name: name.to_owned(),
        requests: requests.to_vec(),
        count,
        candidates: candidates.to_vec(),
        ..PodClass::default()
    }
}

/// Creates a candidate at `price` micro-dollars per hour.
pub(crate) fn candidate(name: &str, price: u64, capacity: [u64; 3]) -> Candidate {
    Candidate {
        name: name.to_owned(),
        price: UsdPerHour::from_micros(price),
        capacity: capacity.to_vec(),
        ..Candidate::default()
    }
}

/// Creates a problem whose pods all fit the shared GPUs of one node at 10,000 micro-dollars. While patterns are tried, the search
/// has too few steps to find this. On three GPUs of 40 MiB the pods take 13 + 9 + 9 + 9 MiB, on the other two 4 + 9 + 9 + 9 + 9.
pub(crate) fn undecided() -> Problem {
    let share = |memory_mib, count| PodClass {
        gpu: Some(GpuRequest::Share { units: 1, memory_mib }),
        ..class("class", [1, 1, 0], count, &[0])
    };
    let gpus = Some(Gpus { count: 5, memory_mib: 40, mode: GpuMode::Shared });
    let node = Candidate { gpus, ..candidate("node", 10_000, [100, 100, 0]) };
    problem(vec![share(4, 2), share(9, 17), share(13, 3)], vec![node])
}

/// Like [`undecided`], with these GPUs on an existing node, where one is in use. A new node has one GPU with room for all pods.
pub(crate) fn undecided_on_existing() -> Problem {
    let mut problem = undecided();
    let gpu = |units_used| GpuState::Shared { units_used, memory_used_mib: 0, memory_mib: 40 };
    let gpus = [1, 0, 0, 0, 0].map(gpu).to_vec();
    problem.existing = vec![ExistingNode {
        name: "old".to_owned(),
        free: vec![100, 100, 0],
        gpus,
        ..ExistingNode::default()
    }];
    problem.candidates[0].gpus = Some(Gpus { count: 1, memory_mib: 200, mode: GpuMode::Shared });
    for class in &mut problem.classes {
        class.existing = vec![0];
    }
    problem
}
