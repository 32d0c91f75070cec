//! Small problems for the unit tests of this crate.

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::problem::{Candidate, PodClass, Problem};

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
