//! Packing of pods on shared GPUs: units and memory, each pod on one GPU.
//!
//! Best fit in descending size comes first, then an exact search with a step limit.

use super::fit::Misfit;
use crate::problem::GPU_UNITS;

/// One GPU before anything is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gpu {
    /// The free units.
    pub units: u32,
    /// The free memory, in MiB.
    pub memory: u64,
    /// Whether nothing is on it, so that one pod may have it whole.
    pub pristine: bool,
}

/// Equal pods: units and memory of one, and their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub units: u32,
    pub memory: u64,
    pub count: u64,
}

/// An assignment of pods to GPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packing {
    /// The GPUs given whole, ascending.
    pub whole: Vec<usize>,
    /// By GPU: the given kinds, with their number of pods.
    pub pods: Vec<Vec<(usize, u64)>>,
}

/// The number of pods above which the exact search is not tried.
const MOST_PODS: u64 = 2048;

/// The number of dual feasible functions that are tried before a search.
pub(crate) const MOST_ROWS: u64 = 10;

/// Returns the dual feasible function number `k` of Fekete and Schepers for `units`, times 1000 k. The values of pods
/// that fit one GPU together sum to at most the value of its free units (it is superadditive).
pub(crate) fn large(k: u64, units: u64) -> u64 {
    let whole = u64::from(GPU_UNITS);
    if ((k + 1) * units).is_multiple_of(whole) { units * k } else { (k + 1) * units / whole * whole }
}

/// Returns whether function number `k` proves that the pods do not fit.
fn overfull(room: &[Gpu], kinds: &[Kind], k: u64) -> bool {
    let wanted = kinds.iter().map(|kind| large(k, kind.units.into()).saturating_mul(kind.count));
    let free: u64 = room.iter().map(|gpu| large(k, gpu.units.into())).sum();
    wanted.fold(0, u64::saturating_add) > free
}

/// Returns how often a pod fits.
fn times(gpu: Gpu, kind: Kind) -> u64 {
    let units = u64::from(gpu.units).checked_div(kind.units.into()).unwrap_or(u64::MAX);
    units.min(gpu.memory.checked_div(kind.memory).unwrap_or(u64::MAX))
}

fn take(gpu: &mut Gpu, kind: Kind, count: u64) {
    gpu.units -= kind.units * count as u32;
    gpu.memory -= kind.memory * count;
}

/// Packs `kinds`, and `whole` GPUs besides, into `gpus`, in up to `steps` steps.
pub(crate) fn pack(gpus: &[Gpu], kinds: &[Kind], whole: u64, steps: u64) -> Result<Packing, Misfit> {
    let mut packing = Packing { whole: Vec::new(), pods: vec![Vec::new(); gpus.len()] };
    let mut room = gpus.to_vec();
    if whole > 0 {
        // Unused GPUs differ in memory only, so the smallest are given whole.
        let mut pristine: Vec<usize> = (0..gpus.len()).filter(|at| gpus[*at].pristine).collect();
        pristine.sort_by_key(|at| (gpus[*at].memory, *at));
        pristine.truncate(usize::try_from(whole).unwrap_or(usize::MAX));
        if (pristine.len() as u64) < whole {
            return Err(Misfit::Impossible);
        }
        for at in &pristine {
            room[*at] = Gpu { units: 0, memory: 0, pristine: false };
        }
        pristine.sort_unstable();
        packing.whole = pristine;
    }
    let units: u128 = kinds.iter().map(|kind| u128::from(kind.units) * u128::from(kind.count)).sum();
    let memory: u128 = kinds.iter().map(|kind| u128::from(kind.memory) * u128::from(kind.count)).sum();
    if units > room.iter().map(|gpu| u128::from(gpu.units)).sum()
        || memory > room.iter().map(|gpu| u128::from(gpu.memory)).sum()
    {
        return Err(Misfit::Impossible);
    }
    let several = room.iter().filter(|gpu| gpu.units > 0).count() > 1;
    if several && (1..=MOST_ROWS).any(|k| overfull(&room, kinds, k)) {
        return Err(Misfit::Impossible);
    }
    let most = |of: fn(&Gpu) -> u64| room.iter().map(of).max().unwrap_or(0).max(1);
    let (most_units, most_memory) = (most(|gpu| gpu.units.into()), most(|gpu| gpu.memory));
    let mut order: Vec<usize> = (0..kinds.len()).filter(|at| kinds[*at].count > 0).collect();
    order.sort_by_key(|at| {
        let kind = &kinds[*at];
        let shares = [
            u128::from(kind.units) * u128::from(most_memory),
            u128::from(kind.memory) * u128::from(most_units),
        ];
        (std::cmp::Reverse(shares.into_iter().max()), std::cmp::Reverse(shares[0]), *at)
    });
    let taken = match best_fit(&room, kinds, &order) {
        Some(taken) => taken,
        // With a single GPU or a single kind, best fit is exact.
        None if !several || order.len() < 2 => return Err(Misfit::Impossible),
        None => searched(&room, kinds, &order, steps)?,
    };
    let mut by_gpu: Vec<Vec<u64>> = vec![vec![0; kinds.len()]; gpus.len()];
    for (gpu, kind, count) in taken {
        by_gpu[gpu][kind] += count;
    }
    for (pods, counts) in packing.pods.iter_mut().zip(by_gpu) {
        pods.extend(counts.into_iter().enumerate().filter(|(_, count)| *count > 0));
    }
    Ok(packing)
}

/// (GPU, kind, number of pods).
type Taken = Vec<(usize, usize, u64)>;

/// Places each kind in turn on the fullest GPUs that hold it.
fn best_fit(room: &[Gpu], kinds: &[Kind], order: &[usize]) -> Option<Taken> {
    let mut room = room.to_vec();
    let mut taken = Vec::new();
    for &kind in order {
        let mut left = kinds[kind].count;
        while left > 0 {
            let fullest = (0..room.len())
                .filter(|at| times(room[*at], kinds[kind]) > 0)
                .min_by_key(|at| (room[*at].units, room[*at].memory, *at))?;
            let count = times(room[fullest], kinds[kind]).min(left);
            take(&mut room[fullest], kinds[kind], count);
            taken.push((fullest, kind, count));
            left -= count;
        }
    }
    Some(taken)
}

/// Searches the places of all pods.
fn searched(room: &[Gpu], kinds: &[Kind], order: &[usize], steps: u64) -> Result<Taken, Misfit> {
    if kinds.iter().map(|kind| kind.count).fold(0, u64::saturating_add) > MOST_PODS {
        return Err(Misfit::Undecided);
    }
    let mut search = Search {
        kinds,
        order,
        left: order.iter().map(|at| kinds[*at].count).collect(),
        units: kinds.iter().map(|kind| u64::from(kind.units) * kind.count).sum(),
        room: room.to_vec(),
        taken: Vec::new(),
        steps,
    };
    if search.run(0, 0) {
        Ok(search.taken)
    } else if search.steps == 0 {
        Err(Misfit::Undecided)
    } else {
        Err(Misfit::Impossible)
    }
}

/// A search pod by pod, largest first, over the GPUs that differ.
struct Search<'a> {
    kinds: &'a [Kind],
    order: &'a [usize],
    /// By position in `order`.
    left: Vec<u64>,
    /// The units of all remaining pods.
    units: u64,
    room: Vec<Gpu>,
    taken: Taken,
    steps: u64,
}

impl Search<'_> {
    /// Places all pods from `position` in the order on. The next pod goes to no GPU before `first`, where the last pod of
    /// its kind went.
    fn run(&mut self, mut position: usize, mut first: usize) -> bool {
        while position < self.order.len() && self.left[position] == 0 {
            position += 1;
            first = 0;
        }
        let Some(&at) = self.order.get(position) else { return true };
        let kind = self.kinds[at];
        if position + 1 == self.order.len() {
            return self.last(at, self.left[position], first);
        }
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        // Room too small for the smallest remaining pod is lost.
        let smallest = self.order[position..].iter().map(|at| self.kinds[*at].units).min().unwrap_or(0);
        let usable: u64 =
            self.room.iter().filter(|gpu| gpu.units >= smallest).map(|gpu| u64::from(gpu.units)).sum();
        if self.units > usable {
            return false;
        }
        for gpu in first..self.room.len() {
            let before = self.room[gpu];
            let seen = self.room[first..gpu]
                .iter()
                .any(|other| (other.units, other.memory) == (before.units, before.memory));
            if seen || times(before, kind) == 0 {
                continue;
            }
            take(&mut self.room[gpu], kind, 1);
            self.left[position] -= 1;
            self.units -= u64::from(kind.units);
            self.taken.push((gpu, at, 1));
            if self.run(position, gpu) {
                return true;
            }
            self.taken.pop();
            self.units += u64::from(kind.units);
            self.left[position] += 1;
            self.room[gpu] = before;
            if self.steps == 0 {
                return false;
            }
        }
        false
    }

    /// Places the last kind wherever it fits.
    fn last(&mut self, at: usize, mut left: u64, first: usize) -> bool {
        let kind = self.kinds[at];
        let room: u64 = self.room[first..].iter().map(|gpu| times(*gpu, kind)).fold(0, u64::saturating_add);
        if room < left {
            return false;
        }
        for gpu in first..self.room.len() {
            let count = times(self.room[gpu], kind).min(left);
            if count > 0 {
                self.taken.push((gpu, at, count));
                left -= count;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn brute(room: &mut Vec<Gpu>, pods: &[(u32, u64)], whole: u64) -> bool {
        if whole > 0 {
            return (0..room.len()).any(|at| {
                let gpu = room[at];
                if !gpu.pristine {
                    return false;
                }
                room[at] = Gpu { units: 0, memory: 0, pristine: false };
                let good = brute(room, pods, whole - 1);
                room[at] = gpu;
                good
            });
        }
        let [(units, memory), rest @ ..] = pods else { return true };
        (0..room.len()).any(|at| {
            let gpu = room[at];
            if gpu.units < *units || gpu.memory < *memory {
                return false;
            }
            room[at].units -= units;
            room[at].memory -= memory;
            let good = brute(room, rest, 0);
            room[at] = gpu;
            good
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pods_fit_exactly_when_some_way_to_divide_them_fits(
            gpus in proptest::collection::vec((prop_oneof![2 => Just(0u32), 1 => 0..900u32], 8..14u64), 1..4),
            kinds in proptest::collection::vec((1..10u32, 0..8u64, 0..4u64), 0..4),
            whole in 0..2u64,
        ) {
            let gpus: Vec<Gpu> = gpus
                .iter()
                .map(|(used, memory)| Gpu { units: 1000 - used, memory: *memory, pristine: *used == 0 })
                .collect();
            let kinds: Vec<Kind> = kinds
                .iter()
                .map(|(units, memory, count)| Kind { units: units * 100, memory: *memory, count: *count })
                .collect();
            let pods: Vec<(u32, u64)> = kinds
                .iter()
                .flat_map(|kind| std::iter::repeat_n((kind.units, kind.memory), kind.count as usize))
                .collect();
            let packing = pack(&gpus, &kinds, whole, 1_000_000);
            prop_assert_eq!(packing.is_ok(), brute(&mut gpus.clone(), &pods, whole));
            if let Ok(packing) = packing {
                prop_assert_eq!(packing.whole.len() as u64, whole);
                prop_assert!(packing.whole.iter().all(|at| gpus[*at].pristine && packing.pods[*at].is_empty()));
                let mut placed = vec![0; kinds.len()];
                for (gpu, pods) in gpus.iter().zip(&packing.pods) {
                    let (mut units, mut memory) = (0, 0);
                    for (kind, count) in pods {
                        placed[*kind] += count;
                        units += u64::from(kinds[*kind].units) * count;
                        memory += kinds[*kind].memory * count;
                    }
                    prop_assert!(units <= u64::from(gpu.units) && memory <= gpu.memory);
                }
                prop_assert_eq!(placed, kinds.iter().map(|kind| kind.count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_division_that_best_fit_misses_is_found() {
        let gpus = [Gpu { units: 1000, memory: 0, pristine: true }; 2];
        let kind = |units, count| Kind { units, memory: 0, count };
        // In descending size a 350 joins the 400, and one of the 300 is left over; 400 + 300 + 300 and 350 + 350 + 300
        // fit.
        let kinds = [kind(400, 1), kind(350, 2), kind(300, 3)];
        assert!(best_fit(&gpus, &kinds, &[0, 1, 2]).is_none());
        assert!(pack(&gpus, &kinds, 0, 1000).is_ok());
    }

    #[test]
    fn pods_that_the_search_cannot_place_in_its_steps_are_not_said_to_be_impossible() {
        let gpus = [Gpu { units: 1000, memory: 0, pristine: true }; 2];
        let kind = |units, count| Kind { units, memory: 0, count };
        let kinds = [kind(400, 1), kind(350, 2), kind(300, 3)];
        assert_eq!(pack(&gpus, &kinds, 0, 1), Err(Misfit::Undecided));
        // Any three of these are too large for one GPU, so five of them are for two.
        let kinds = [kind(400, 3), kind(350, 1), kind(300, 1)];
        assert_eq!(pack(&gpus, &kinds, 0, 1000), Err(Misfit::Impossible));
    }

    #[test]
    fn too_many_pods_to_search_are_not_said_to_be_impossible() {
        let gpu = |units, memory| Gpu { units, memory, pristine: false };
        let gpus = [gpu(900, 4000), gpu(1000, 10), gpu(1000, 4000), gpu(1000, 4000)];
        let kind = |units, memory, count| Kind { units, memory, count };
        // Best fit places the large pod on the first GPU. It must go where there is no memory for others.
        assert_eq!(pack(&gpus, &[kind(400, 10, 1), kind(1, 1, 2900)], 0, 1000), Err(Misfit::Undecided));
    }
}
