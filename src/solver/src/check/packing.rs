//! Checks whether the pods of one node fit the GPUs of another kind of node. Of the rules only flexibility needs this, since a plan
//! states its own layouts. The layout that the plan states for the node is tried first. If that does not fit, an exact search fills GPU
//! after GPU, and gives up after a fixed number of steps. The solver's search, which plans rely on, is then asked for a layout. A layout
//! is only believed if it passes the rule for the layouts of plans.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{MigGeometry, MigProfile};

use super::gpu;
use crate::gpu::{Room, layout};
use crate::problem::{GPU_UNITS, GpuMode, GpuRequest, Gpus, Problem};
use crate::solution::{GpuLayout, Placement};

/// The maximum number of fillings of a GPU that one search looks at.
const STEPS: u32 = 20_000;

/// Whether pods fit GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// They do.
    Fits,
    /// They do not.
    Exceeds,
    /// The searches gave up.
    Undecided,
}

/// Returns whether pods are known to fit the GPUs of a new node.
pub(crate) fn packs(problem: &Problem, pods: &[Placement], gpus: Option<&Gpus>) -> bool {
    packing(problem, pods, gpus, &[]) == Packing::Fits
}

/// Returns whether pods fit the GPUs of a new node. `stated` is their layout on a node of another kind; empty if there is none.
pub(super) fn packing(
    problem: &Problem,
    pods: &[Placement],
    gpus: Option<&Gpus>,
    stated: &[GpuLayout],
) -> Packing {
    let asks = |(class, count): &Placement| Some((*class, problem.classes[*class as usize].gpu?, *count));
    let mut content: Vec<(u32, GpuRequest, u32)> =
        pods.iter().filter(|(_, count)| *count > 0).filter_map(asks).collect();
    content.sort_unstable();
    let Some(gpus) = gpus else {
        return if content.is_empty() { Packing::Fits } else { Packing::Exceeds };
    };
    if stays(problem, pods, gpus, stated) {
        return Packing::Fits;
    }
    let mut whole = 0u64;
    let mut shares: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let mut instances: BTreeMap<MigProfile, u64> = BTreeMap::new();
    for (_, request, count) in &content {
        let (sum, each) = match request {
            GpuRequest::Whole(each) => (&mut whole, *each),
            GpuRequest::Share { units, memory_mib } => (shares.entry((*units, *memory_mib)).or_default(), 1),
            GpuRequest::Mig { profile, count } => (instances.entry(*profile).or_default(), *count),
        };
        *sum = sum.saturating_add(u64::from(each) * u64::from(*count));
    }
    let Some(left) = u64::from(gpus.count).checked_sub(whole) else { return Packing::Exceeds };
    let found = match gpus.mode {
        GpuMode::Shared if instances.is_empty() => packs_shares(&shares, gpus.memory_mib, left),
        GpuMode::Mig { geometry, mixed } if shares.is_empty() && (mixed || whole == 0) => {
            packs_instances(&instances, geometry, left)
        }
        _ => Packing::Exceeds,
    };
    let is_laid_out = || {
        let found = layout(&Room::of_new(gpus), &content);
        found.is_some_and(|found| gpu::holds(problem, pods, gpus, &found))
    };
    if found == Packing::Undecided && is_laid_out() { Packing::Fits } else { found }
}

/// Returns whether a layout that is stated for another kind of node is right on these GPUs too.
fn stays(problem: &Problem, pods: &[Placement], gpus: &Gpus, stated: &[GpuLayout]) -> bool {
    let count = gpus.count as usize;
    let mut used: Vec<GpuLayout> = stated.iter().filter(|gpu| **gpu != GpuLayout::Idle).cloned().collect();
    if used.is_empty() || used.len() > count {
        return false;
    }
    used.resize(count, GpuLayout::Idle);
    gpu::holds(problem, pods, gpus, &used)
}

/// Returns whether shares fit GPUs with this memory.
fn packs_shares(shares: &BTreeMap<(u32, u64), u64>, memory_mib: u64, gpus: u64) -> Packing {
    let shares = shares.iter().rev().map(|((units, memory), count)| ((u64::from(*units), *memory), *count));
    let (sizes, wanted): (Vec<(u64, u64)>, Vec<u64>) = shares.unzip();
    let take = |room: &(u64, u64), kind: usize| {
        let (units, memory) = sizes[kind];
        Some((room.0.checked_sub(units)?, room.1.checked_sub(memory)?))
    };
    let empty = (GPU_UNITS.into(), memory_mib);
    Search { sizes: &sizes, most: empty, empty, take, failed: BTreeSet::new(), steps: STEPS }
        .run(gpus, &wanted)
}

/// Returns whether instances fit GPUs of this family. What is left of a GPU are the sets of memory slices that may be taken.
fn packs_instances(instances: &BTreeMap<MigProfile, u64>, geometry: MigGeometry, gpus: u64) -> Packing {
    let wanted: Vec<u64> = instances.values().rev().copied().collect();
    let placed: Option<Vec<_>> =
        instances.keys().rev().map(|profile| geometry.placements(*profile)).collect();
    let Some(placements) = placed else { return Packing::Exceeds };
    let sizes: Vec<(u64, u64)> =
        placements.iter().map(|one| (u64::from(one.size), u64::from(one.compute))).collect();
    let take = |room: &BTreeSet<u32>, kind: usize| {
        let mut less = BTreeSet::new();
        for taken in room {
            let slices = placements[kind].starts.iter().map(|start| {
                let first = (1u32 << placements[kind].size) - 1;
                first << *start
            });
            less.extend(slices.filter(|slices| taken & slices == 0).map(|slices| taken | slices));
        }
        (!less.is_empty()).then_some(less)
    };
    let most = (geometry.memory_slices().into(), geometry.compute_slices().into());
    let empty = BTreeSet::from([0u32]);
    Search { sizes: &sizes, most, empty, take, failed: BTreeSet::new(), steps: STEPS }.run(gpus, &wanted)
}

/// What one GPU takes: kinds of pieces, with their number.
type Filling = Vec<(usize, u64)>;

/// A search for places of pieces on GPUs that are alike. `R` is what is left of one.
struct Search<'a, R, T> {
    /// The size of a piece of each kind, in two measures. The largest kind comes first.
    sizes: &'a [(u64, u64)],
    /// What one GPU has of both.
    most: (u64, u64),
    /// An empty GPU.
    empty: R,
    /// Returns what one more piece of a kind leaves of a GPU; `None` if it does not fit.
    take: T,
    /// What is known not to fit: a number of GPUs, and one of pieces of each kind.
    failed: BTreeSet<(u64, Vec<u64>)>,
    steps: u32,
}

impl<R: Clone, T: Fn(&R, usize) -> Option<R>> Search<'_, R, T> {
    /// Returns whether so many pieces of each kind fit the GPUs.
    fn run(mut self, gpus: u64, wanted: &[u64]) -> Packing {
        if self.fits_in_turn(gpus, wanted) { Packing::Fits } else { self.search(gpus, wanted) }
    }

    /// Returns whether they fit if each GPU in turn takes what it can, the largest first.
    fn fits_in_turn(&self, gpus: u64, wanted: &[u64]) -> bool {
        let mut wanted = wanted.to_vec();
        for _ in 0..gpus {
            let mut room = self.empty.clone();
            for (kind, left) in wanted.iter_mut().enumerate() {
                while *left > 0
                    && let Some(less) = (self.take)(&room, kind)
                {
                    room = less;
                    *left -= 1;
                }
            }
        }
        wanted.iter().all(|left| *left == 0)
    }

    /// Tries the fillings of one GPU, the fullest first, and searches the others. The largest piece that is left is on it, since all GPUs
    /// are alike.
    fn search(&mut self, gpus: u64, wanted: &[u64]) -> Packing {
        let Some(first) = wanted.iter().position(|count| *count > 0) else { return Packing::Fits };
        let empty = self.empty.clone();
        if gpus == 0 || self.exceeds(gpus, wanted) || (self.take)(&empty, first).is_none() {
            return Packing::Exceeds;
        }
        let state = (gpus, wanted.to_vec());
        if self.failed.contains(&state) {
            return Packing::Exceeds;
        }
        let mut fillings = Vec::new();
        if !self.fill(&mut wanted.to_vec(), &empty, first, &mut Vec::new(), &mut fillings) {
            return Packing::Undecided;
        }
        fillings.sort_by_key(|filling| Reverse(self.size(filling)));
        for filling in fillings {
            let mut rest = wanted.to_vec();
            for (kind, count) in filling {
                rest[kind] -= count;
            }
            let answer = self.search(gpus - 1, &rest);
            if answer != Packing::Exceeds {
                return answer;
            }
        }
        self.failed.insert(state);
        Packing::Exceeds
    }

    /// Returns whether the GPUs are too few by the sum of the sizes alone.
    fn exceeds(&self, gpus: u64, wanted: &[u64]) -> bool {
        let sum = |part: fn(&(u64, u64)) -> u64| -> u128 {
            let each = self.sizes.iter().map(|size| u128::from(part(size)));
            each.zip(wanted).map(|(each, count)| each.saturating_mul(u128::from(*count))).sum()
        };
        let most = |part: u64| u128::from(part) * u128::from(gpus);
        sum(|size| size.0) > most(self.most.0) || sum(|size| size.1) > most(self.most.1)
    }

    /// Returns the size of a filling, with both measures as parts of a GPU.
    fn size(&self, filling: &[(usize, u64)]) -> u128 {
        let (first, second) = (u128::from(self.most.0.max(1)), u128::from(self.most.1.max(1)));
        let each = |kind: usize| {
            let (one, other) = self.sizes[kind];
            u128::from(one) * second + u128::from(other) * first
        };
        filling.iter().map(|(kind, count)| each(*kind) * u128::from(*count)).sum()
    }

    /// Adds the fillings of one GPU that no piece left fits beside. A filling with room for one is no better. `filling` is on the GPU
    /// already, which leaves `room` of it, and kinds before `at` are decided. Returns whether the steps suffice.
    fn fill(
        &mut self,
        wanted: &mut [u64],
        room: &R,
        at: usize,
        filling: &mut Filling,
        fillings: &mut Vec<Filling>,
    ) -> bool {
        let fits = |kind: usize| wanted[kind] > 0 && (self.take)(room, kind).is_some();
        let Some(kind) = (at..wanted.len()).find(|kind| fits(*kind)) else {
            let is_full = !(0..at).any(fits);
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            if is_full {
                fillings.push(filling.clone());
            }
            return true;
        };
        let all = wanted[kind];
        let mut rooms = vec![room.clone()];
        while (rooms.len() as u64) <= all
            && let Some(less) = (self.take)(&rooms[rooms.len() - 1], kind)
        {
            rooms.push(less);
        }
        let is_last = wanted[kind + 1..].iter().all(|count| *count == 0);
        let least = if is_last { rooms.len() - 1 } else { usize::from(filling.is_empty()) };
        for (count, room) in rooms.iter().enumerate().skip(least).rev() {
            let count = count as u64;
            wanted[kind] = all - count;
            filling.push((kind, count));
            if !self.fill(wanted, room, kind + 1, filling, fillings) {
                return false;
            }
            filling.pop();
        }
        wanted[kind] = all;
        true
    }
}
