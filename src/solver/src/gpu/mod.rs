//! Shared and partitioned GPUs: which pods fit a node's GPUs together, their layout, and linear rows that every fitting
//! set of pods satisfies.
//!
//! [`Room`] is exact, except that the searches of [`share`] and [`mig`] have limits. [`Fit`] says what they leave undecided.
//! [`dims`] gives the algorithms rows for pricing and bounds, so that they ask the room only where the rows do not
//! decide.

pub(crate) mod dims;
mod fit;
mod layout;
mod mig;
mod share;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use poolwright_catalog::MigProfile;

pub(crate) use fit::{Fit, Misfit};
pub(crate) use layout::layout;

use crate::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus};

/// The step limit of the exact packing search while patterns are tried.
const STEPS: u64 = 1_000;
/// The same for the final plan, where the search must succeed again.
const STEPS_TO_WRITE: u64 = 1_000_000;

/// GPU requests, with the number of pods that have each.
pub(crate) type Content = [(GpuRequest, u64)];

/// The GPUs of a node before anything is placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Room {
    shared: Vec<share::Gpu>,
    mig: Vec<mig::Gpu>,
    /// The node's GPUs in order, as indices into the fields above.
    slots: Vec<Slot>,
    /// The cache of earlier answers.
    known: Memory,
}

/// A cache of the answers of [`Room::more`], by pods and request, because searches repeat the same question. Comparisons
/// of rooms ignore it.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<Vec<(GpuRequest, u64)>, Answers>>);

/// What is known about the number of additional pods, by request.
type Answers = BTreeMap<GpuRequest, Fit>;

/// The maximum number of cached entries. When it is reached the cache is cleared, which must be quick since no stop check
/// runs meanwhile.
const MOST_KNOWN: usize = 20_000;

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Memory {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Memory {}

impl PartialOrd for Memory {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Memory {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// The location of one GPU of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Busy,
    Shared(usize),
    Mig(usize),
}

/// The requests by kind.
#[derive(Clone, Debug, Default)]
struct Load {
    whole: u64,
    kinds: Vec<share::Kind>,
    mig: mig::Counts,
}

impl Load {
    fn new(content: impl IntoIterator<Item = (GpuRequest, u64)>) -> Self {
        let mut load = Self::default();
        for (request, pods) in content {
            match request {
                GpuRequest::Whole(count) => {
                    load.whole = load.whole.saturating_add(u64::from(count).saturating_mul(pods));
                }
                GpuRequest::Share { units, memory_mib } => {
                    let known =
                        load.kinds.iter_mut().find(|kind| kind.units == units && kind.memory == memory_mib);
                    match known {
                        Some(kind) => kind.count = kind.count.saturating_add(pods),
                        None => load.kinds.push(share::Kind { units, memory: memory_mib, count: pods }),
                    }
                }
                GpuRequest::Mig { profile, count } => {
                    let slot = &mut load.mig[mig::index(profile)];
                    *slot = slot.saturating_add(u64::from(count).saturating_mul(pods));
                }
            }
        }
        load.kinds.retain(|kind| kind.count > 0);
        load
    }
}

impl Room {
    /// Returns the GPUs of a new node.
    pub fn of_new(gpus: &Gpus) -> Self {
        let one = match gpus.mode {
            GpuMode::Shared => {
                GpuState::Shared { units_used: 0, memory_used_mib: 0, memory_mib: gpus.memory_mib }
            }
            GpuMode::Mig { geometry, mixed } => GpuState::Mig { geometry, mixed, in_use: Vec::new() },
        };
        Self::of_existing(&vec![one; gpus.count as usize])
    }

    /// Returns the GPUs of an existing node.
    pub fn of_existing(states: &[GpuState]) -> Self {
        let mut room = Self::default();
        let mut known: Vec<(&GpuState, mig::Gpu)> = Vec::new();
        for state in states {
            let slot = match state {
                GpuState::Busy => Slot::Busy,
                GpuState::Shared { units_used, memory_used_mib, memory_mib } => {
                    room.shared.push(share::Gpu {
                        units: GPU_UNITS.saturating_sub(*units_used),
                        memory: memory_mib.saturating_sub(*memory_used_mib),
                        pristine: *units_used == 0 && *memory_used_mib == 0,
                    });
                    Slot::Shared(room.shared.len() - 1)
                }
                GpuState::Mig { geometry, mixed, in_use } => {
                    let gpu = known.iter().find(|(other, _)| *other == state).map(|(_, gpu)| gpu.clone());
                    let gpu = gpu.unwrap_or_else(|| {
                        let gpu = mig::Gpu::new(*geometry, *mixed, in_use);
                        known.push((state, gpu.clone()));
                        gpu
                    });
                    room.mig.push(gpu);
                    Slot::Mig(room.mig.len() - 1)
                }
            };
            room.slots.push(slot);
        }
        room
    }

    /// Checks whether all of these pods fit together. Every subset of pods that fit also fits.
    pub fn check(&self, content: &Content) -> Result<(), Misfit> {
        self.split(&Load::new(content.iter().copied()), STEPS).map(|_| ())
    }

    /// Returns whether all of these pods are known to fit together.
    pub fn holds(&self, content: &Content) -> bool {
        self.check(content).is_ok()
    }

    /// Returns how many more pods with `request` fit beside `content`; at most `ceiling`.
    pub fn more(&self, content: &Content, request: GpuRequest, ceiling: u64) -> Fit {
        if ceiling == 0 {
            return Fit::exact(0);
        }
        let ceiling = Fit::exact(ceiling);
        let mut known = self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(more) = known.get(content).and_then(|known| known.get(&request)) {
            return more.min(ceiling);
        }
        let more = self.most(content, request);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.entry(content.to_vec()).or_default().insert(request, more);
        more.min(ceiling)
    }

    /// Returns how many more pods with `request` fit beside `content`.
    fn most(&self, content: &Content, request: GpuRequest) -> Fit {
        let mut with: Vec<(GpuRequest, u64)> = content.to_vec();
        with.push((request, 0));
        let last = with.len() - 1;
        let ceiling = self.at_most(request);
        let mut proven = ceiling;
        let mut fits = |count: u64| {
            with[last].1 = count;
            let answer = self.check(&with);
            if answer == Err(Misfit::Impossible) {
                proven = proven.min(count - 1);
            }
            answer.is_ok()
        };
        let (mut least, mut most) = (0, 1);
        // The answer is usually small.
        while most <= ceiling && fits(most) {
            (least, most) = (most, 2 * most);
        }
        most = most.min(ceiling + 1);
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            if fits(middle) { least = middle } else { most = middle }
        }
        Fit { least, most: proven }
    }

    /// Returns an upper bound on the number of pods with this request.
    fn at_most(&self, request: GpuRequest) -> u64 {
        let gpus = self.slots.len() as u64;
        match request {
            GpuRequest::Whole(count) => gpus / u64::from(count.max(1)),
            GpuRequest::Share { units, .. } => gpus * (u64::from(GPU_UNITS) / u64::from(units.max(1))),
            // No family has more than 12 memory slices.
            GpuRequest::Mig { count, .. } => gpus * 12 / u64::from(count.max(1)),
        }
    }

    /// Returns whether the rows of [`dims`] alone decide what fits, so that the room need not be asked.
    pub fn is_linear(&self) -> bool {
        match (self.shared.as_slice(), self.mig.as_slice()) {
            // On one shared GPU the sums decide. Admission decides whether a pod can have it whole.
            ([] | [_], []) => true,
            ([], [first, rest @ ..]) => first.is_empty() && rest.iter().all(|gpu| gpu == first),
            _ => false,
        }
    }

    /// Returns the number of GPUs, when all are shared and unused.
    pub fn untouched(&self) -> Option<u64> {
        let all = self.shared.len() == self.slots.len() && self.shared.iter().all(|gpu| gpu.pristine);
        (all && !self.shared.is_empty()).then_some(self.shared.len() as u64)
    }

    /// Returns the largest memory of one of its shared GPUs, in MiB.
    pub fn memory_of_one(&self) -> u64 {
        self.shared.iter().map(|gpu| gpu.memory).max().unwrap_or(0)
    }

    /// Returns whether its GPUs are of one kind, so that the pods of one of them could be on any.
    pub fn is_uniform(&self) -> bool {
        let mut pristine = self.shared.iter().filter(|gpu| gpu.pristine).map(|gpu| gpu.memory);
        let first = pristine.next();
        (self.shared.is_empty() || self.mig.is_empty())
            && pristine.all(|memory| Some(memory) == first)
            && self.mig.windows(2).all(|pair| pair[0].geometry == pair[1].geometry)
    }

    /// Returns how many whole GPUs come from the shared ones, with the rest from the partitioned ones.
    fn split(&self, load: &Load, steps: u64) -> Result<u64, Misfit> {
        let least = load.whole.saturating_sub(self.mig.iter().filter(|gpu| gpu.whole).count() as u64);
        let most = load.whole.min(self.shared.iter().filter(|gpu| gpu.pristine).count() as u64);
        let mut why = Misfit::Impossible;
        for whole in least..=most {
            let fits = mig::check(&self.mig, &load.mig, load.whole - whole)
                .and_then(|()| share::pack(&self.shared, &load.kinds, whole, steps));
            match fits {
                Ok(_) => return Ok(whole),
                Err(Misfit::Undecided) => why = Misfit::Undecided,
                Err(Misfit::Impossible) => {}
            }
        }
        Err(why)
    }

    /// Returns whether a new node with GPUs `mine` holds all that one with `other` holds.
    pub fn covers_new(mine: Option<&Gpus>, other: Option<&Gpus>) -> bool {
        match (mine, other) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(mine), Some(other)) => {
                mine.mode == other.mode && mine.count >= other.count && mine.memory_mib >= other.memory_mib
            }
        }
    }
}

/// Returns whether a pod with request `mine` can replace one with `other` on any node that admits both. `uniform` states
/// that every room involved [`Room::is_uniform`].
pub(crate) fn replaces(mine: Option<GpuRequest>, other: Option<GpuRequest>, uniform: bool) -> bool {
    if !uniform && mine.is_some() {
        return mine == other;
    }
    match (mine, other) {
        // An empty GPU holds every share and, if it can be partitioned, every admitted instance.
        (
            Some(GpuRequest::Whole(mine) | GpuRequest::Mig { count: mine, .. }),
            Some(GpuRequest::Whole(other)),
        ) => mine <= other,
        (None, _) | (Some(GpuRequest::Share { .. }), Some(GpuRequest::Whole(_))) => true,
        (
            Some(GpuRequest::Share { units, memory_mib }),
            Some(GpuRequest::Share { units: other, memory_mib: memory }),
        ) => units <= other && memory_mib <= memory,
        (
            Some(GpuRequest::Mig { profile, count }),
            Some(GpuRequest::Mig { profile: larger, count: places }),
        ) => count <= places && inside(profile, larger),
        _ => false,
    }
}

/// Returns whether an instance of the first profile fits wherever one of the second does, in every family that has both.
fn inside(profile: MigProfile, other: MigProfile) -> bool {
    use MigProfile::{G1, G1Double, G2, G3, G4, G7};
    match other {
        G1 => profile == G1,
        // The last two slices hold a double, but no 2g.
        G1Double => matches!(profile, G1 | G1Double),
        G2 => matches!(profile, G1 | G1Double | G2),
        G3 => matches!(profile, G1 | G1Double | G2 | G3),
        G4 => matches!(profile, G1 | G1Double | G2 | G3 | G4),
        G7 => true,
    }
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::MigGeometry;
    use proptest::prelude::*;

    use super::*;

    pub(super) fn any_state() -> impl Strategy<Value = GpuState> {
        let shared = (prop_oneof![Just(0u32), 0..=1000u32], prop_oneof![Just(0u64), 0..=16u64]).prop_map(
            |(units_used, memory_used_mib)| GpuState::Shared { units_used, memory_used_mib, memory_mib: 16 },
        );
        let seven = (any::<bool>(), 0..6usize).prop_map(|(mixed, layout)| GpuState::Mig {
            geometry: MigGeometry::Seven,
            mixed,
            in_use: [
                vec![],
                vec![(MigProfile::G1, 2)],
                vec![(MigProfile::G3, 0)],
                vec![(MigProfile::G2, 4), (MigProfile::G1, 0)],
                vec![(MigProfile::G1Double, 6)],
                vec![(MigProfile::G4, 0), (MigProfile::G1, 6)],
            ][layout]
                .clone(),
        });
        let four = any::<bool>().prop_map(|mixed| GpuState::Mig {
            geometry: MigGeometry::Four,
            mixed,
            in_use: vec![(MigProfile::G1, 1)],
        });
        prop_oneof![4 => shared, 4 => seven, 1 => four, 1 => Just(GpuState::Busy)]
    }

    pub(super) fn any_request() -> impl Strategy<Value = GpuRequest> {
        let profiles = proptest::sample::select(MigProfile::ALL.to_vec());
        prop_oneof![
            (1..3u32).prop_map(GpuRequest::Whole),
            (1..=20u32, 0..=8u64)
                .prop_map(|(units, memory_mib)| GpuRequest::Share { units: units * 50, memory_mib }),
            (profiles, 1..3u32).prop_map(|(profile, count)| GpuRequest::Mig { profile, count }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 500, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn as_many_more_pods_fit_as_can_be_added_one_by_one(
            states in proptest::collection::vec(any_state(), 1..4),
            wishes in proptest::collection::vec(any_request(), 1..5),
            ceiling in 0..20u64,
        ) {
            let room = Room::of_existing(&states);
            let mut content: Vec<(GpuRequest, u64)> = Vec::new();
            for request in wishes {
                let Fit { least: more, most } = room.more(&content, request, ceiling);
                prop_assert!(more <= most && most <= ceiling);
                content.push((request, more));
                prop_assert!(room.holds(&content));
                let last = content.len() - 1;
                content[last].1 += 1;
                prop_assert!(more == ceiling || !room.holds(&content));
                content[last].1 = more;
            }
        }

        #[test]
        fn a_pod_that_replaces_another_fits_in_its_place(
            states in proptest::collection::vec(any_state(), 1..4),
            wishes in proptest::collection::vec(any_request(), 1..4),
            (one, other) in (any_request(), any_request()),
        ) {
            let room = Room::of_existing(&states);
            prop_assume!(replaces(Some(one), Some(other), room.is_uniform()));
            // Both are admitted where each fits alone.
            prop_assume!(room.holds(&[(one, 1)]) && room.holds(&[(other, 1)]));
            let with = |request| wishes.iter().map(|wish| (*wish, 1)).chain([(request, 1)]).collect::<Vec<_>>();
            for wish in 0..wishes.len() {
                if !room.holds(&with(other)[wish..]) { continue }
                prop_assert!(room.holds(&with(one)[wish..]), "{:?} {:?} {:?}", &with(one)[wish..], other, states);
            }
        }
    }
}
