//! Checks whether the pods of one node fit the GPUs of another kind of node. Of the rules only flexibility needs this,
//! since a plan states its own layouts. The search tries the usual order first and gives up after a fixed number of
//! steps. The solver's search, which plans rely on, is then asked for a layout. It is only believed if it passes the rule for the
//! layouts of plans. No layout counts as no.

use poolwright_catalog::{MigGeometry, MigProfile};

use super::gpu;
use crate::gpu::{Room, layout};
use crate::problem::{GPU_UNITS, GpuMode, GpuRequest, Gpus, Problem};
use crate::solution::Placement;

/// The maximum number of steps of one search.
const STEPS: u32 = 20_000;

pub(crate) fn packs(problem: &Problem, pods: &[Placement], gpus: Option<&Gpus>) -> bool {
    let mut whole = 0u128;
    let mut shares: Vec<(u32, u64)> = Vec::new();
    let mut instances: Vec<MigProfile> = Vec::new();
    let mut any = false;
    // No node has more pieces: one unit each on 64 GPUs.
    let most = 64 * u64::from(GPU_UNITS);
    for (class, count) in pods {
        let Some(request) = problem.classes[*class as usize].gpu else { continue };
        any = true;
        let pieces = match request {
            GpuRequest::Whole(each) => {
                whole += u128::from(each) * u128::from(*count);
                continue;
            }
            GpuRequest::Share { .. } => u64::from(*count),
            GpuRequest::Mig { count: each, .. } => u64::from(*count) * u64::from(each),
        };
        if pieces > most {
            return false;
        }
        match request {
            GpuRequest::Share { units, memory_mib } => {
                shares.extend(std::iter::repeat_n((units, memory_mib), pieces as usize));
            }
            GpuRequest::Mig { profile, .. } => {
                instances.extend(std::iter::repeat_n(profile, pieces as usize));
            }
            GpuRequest::Whole(_) => {}
        }
    }
    let Some(gpus) = gpus else { return !any };
    if whole > u128::from(gpus.count) {
        return false;
    }
    let left = gpus.count as usize - whole as usize;
    match gpus.mode {
        GpuMode::Shared => {
            shares.sort_unstable_by(|a, b| b.cmp(a));
            let mut search =
                Shares { items: &shares, room: vec![(GPU_UNITS, gpus.memory_mib); left], steps: STEPS };
            instances.is_empty()
                && (search.place(0, 0) || (search.steps == 0 && can_be_laid_out(problem, pods, gpus)))
        }
        GpuMode::Mig { geometry, mixed } => {
            instances.sort_unstable_by(|a, b| b.cmp(a));
            let slices = |profile| geometry.placements(profile).map_or(u64::MAX, |of| u64::from(of.size));
            let total = instances.iter().fold(0u64, |sum, profile| sum.saturating_add(slices(*profile)));
            let mut search = Instances { items: &instances, geometry, taken: vec![0; left], steps: STEPS };
            shares.is_empty()
                && (mixed || whole == 0)
                && total <= u64::from(geometry.memory_slices()) * left as u64
                && (search.place(0, 0) || (search.steps == 0 && can_be_laid_out(problem, pods, gpus)))
        }
    }
}

/// Returns whether the solver's search finds a layout, and the layout is right.
fn can_be_laid_out(problem: &Problem, pods: &[Placement], gpus: &Gpus) -> bool {
    let asks = |(class, count): &Placement| Some((*class, problem.classes[*class as usize].gpu?, *count));
    let mut content: Vec<(u32, GpuRequest, u32)> = pods.iter().filter_map(asks).collect();
    content.sort_unstable();
    let found = layout(&Room::of_new(gpus), &content);
    found.is_some_and(|found| gpu::holds(problem, pods, gpus, &found))
}

/// A depth-first search for shares on GPUs. Equal items follow the order of the GPUs.
struct Shares<'a> {
    items: &'a [(u32, u64)],
    room: Vec<(u32, u64)>,
    steps: u32,
}

impl Shares<'_> {
    fn place(&mut self, at: usize, from: usize) -> bool {
        let Some(&(units, memory)) = self.items.get(at) else { return true };
        for gpu in from..self.room.len() {
            let room = self.room[gpu];
            let tried = gpu > from && self.room[from..gpu].contains(&room);
            if tried || room.0 < units || room.1 < memory {
                continue;
            }
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            self.room[gpu] = (room.0 - units, room.1 - memory);
            let from = if self.items.get(at + 1) == Some(&self.items[at]) { gpu } else { 0 };
            if self.place(at + 1, from) {
                return true;
            }
            self.room[gpu] = room;
        }
        false
    }
}

/// A depth-first search for instances on empty GPUs, large before small. Equal items follow the order of the GPUs. The
/// last possible start is tried first, which keeps the left half, with more possible starts, for others.
struct Instances<'a> {
    items: &'a [MigProfile],
    geometry: MigGeometry,
    taken: Vec<u32>,
    steps: u32,
}

impl Instances<'_> {
    fn place(&mut self, at: usize, from: usize) -> bool {
        let Some(&profile) = self.items.get(at) else { return true };
        let Some(placements) = self.geometry.placements(profile) else { return false };
        for gpu in from..self.taken.len() {
            let before = self.taken[gpu];
            if gpu > from && self.taken[from..gpu].contains(&before) {
                continue;
            }
            for start in placements.starts.iter().rev() {
                let slices = ((1u32 << placements.size) - 1) << *start;
                if before & slices != 0 {
                    continue;
                }
                if self.steps == 0 {
                    return false;
                }
                self.steps -= 1;
                self.taken[gpu] = before | slices;
                let from = if self.items.get(at + 1) == Some(&profile) { gpu } else { 0 };
                if self.place(at + 1, from) {
                    return true;
                }
                self.taken[gpu] = before;
            }
        }
        false
    }
}
