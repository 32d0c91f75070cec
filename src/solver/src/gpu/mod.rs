//! GPUs that are shared or cut: what fits a node's GPUs together, where it goes, and linear rows that every content
//! keeps.
//!
//! [`Room`] is exact, except that [`share`]'s search has a limit on its steps and counts an undecided content as not
//! fitting. [`dims`] gives the algorithms rows for pricing and bounds, so that they ask the room only where rows do
//! not decide.

pub(crate) mod dims;
mod layout;
mod mig;
mod share;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use poolwright_catalog::MigProfile;

pub(crate) use layout::layout;

use crate::problem::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus};

/// Steps of the exact search for who shares a GPU with whom when contents are tried.
const STEPS: u64 = 1_000;
/// The same where a plan is written down: it must find again what was found.
const STEPS_TO_WRITE: u64 = 1_000_000;

/// Pods' wishes and how many pods have each.
pub(crate) type Content = [(GpuRequest, u64)];

/// The GPUs of a node as they are before anything is placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Room {
    shared: Vec<share::Gpu>,
    mig: Vec<mig::Gpu>,
    /// The node's GPUs in order, as indices into the above.
    slots: Vec<Slot>,
    /// What was asked before.
    known: Memory,
}

/// Answers of [`Room::more`] by content and wish: a search asks the same again and again. No part of what a room is.
#[derive(Debug, Default)]
struct Memory(Mutex<BTreeMap<Vec<(GpuRequest, u64)>, Answers>>);

/// By wish, how many more.
type Answers = BTreeMap<GpuRequest, u64>;

/// Contents remembered at most; then all are forgotten, which must not take long either: nobody asks to stop meanwhile.
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

/// Where one GPU of the node is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Busy,
    Shared(usize),
    Mig(usize),
}

/// A content, taken apart.
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
    /// Of a node to buy.
    pub fn of_new(gpus: &Gpus) -> Self {
        let one = match gpus.mode {
            GpuMode::Shared => {
                GpuState::Shared { units_used: 0, memory_used_mib: 0, memory_mib: gpus.memory_mib }
            }
            GpuMode::Mig { geometry, mixed } => GpuState::Mig { geometry, mixed, in_use: Vec::new() },
        };
        Self::of_existing(&vec![one; gpus.count as usize])
    }

    /// Of a node that is there.
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

    /// Whether all of these pods fit together. Of what fits, a part fits too.
    pub fn holds(&self, content: &Content) -> bool {
        self.split(&Load::new(content.iter().copied()), STEPS).is_some()
    }

    /// How many more pods that want `request` fit beside `content`, which must fit; at most `ceiling`.
    pub fn more(&self, content: &Content, request: GpuRequest, ceiling: u64) -> u64 {
        if ceiling == 0 {
            return 0;
        }
        let mut known = self.known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(more) = known.get(content).and_then(|known| known.get(&request)) {
            return ceiling.min(*more);
        }
        let more = self.most(content, request);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.entry(content.to_vec()).or_default().insert(request, more);
        ceiling.min(more)
    }

    /// How many more pods that want `request` fit beside `content`.
    fn most(&self, content: &Content, request: GpuRequest) -> u64 {
        let mut with: Vec<(GpuRequest, u64)> = content.to_vec();
        with.push((request, 0));
        let last = with.len() - 1;
        let mut fits = |count: u64| {
            with[last].1 = count;
            self.holds(&with)
        };
        let ceiling = self.at_most(request);
        let (mut least, mut most) = (0, 1);
        // Mostly few fit.
        while most <= ceiling && fits(most) {
            (least, most) = (most, 2 * most);
        }
        most = most.min(ceiling + 1);
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            if fits(middle) { least = middle } else { most = middle }
        }
        least
    }

    /// A ceiling on how many pods with this wish any content has.
    fn at_most(&self, request: GpuRequest) -> u64 {
        let gpus = self.slots.len() as u64;
        match request {
            GpuRequest::Whole(count) => gpus / u64::from(count.max(1)),
            GpuRequest::Share { units, .. } => gpus * (u64::from(GPU_UNITS) / u64::from(units.max(1))),
            // No family has more memory slices.
            GpuRequest::Mig { count, .. } => gpus * 12 / u64::from(count.max(1)),
        }
    }

    /// Whether the rows of [`dims`] decide alone what fits: nothing has to be asked of the room.
    pub fn is_linear(&self) -> bool {
        match (self.shared.as_slice(), self.mig.as_slice()) {
            // Shares of one GPU are sums; whether it can be had whole is a matter of who is admitted.
            ([] | [_], []) => true,
            ([], [first, rest @ ..]) => first.is_empty() && rest.iter().all(|gpu| gpu == first),
            _ => false,
        }
    }

    /// How many GPUs it has, when all are shared and untouched.
    pub fn untouched(&self) -> Option<u64> {
        let all = self.shared.len() == self.slots.len() && self.shared.iter().all(|gpu| gpu.pristine);
        (all && !self.shared.is_empty()).then_some(self.shared.len() as u64)
    }

    /// The most memory that one of its shared GPUs has, in MiB.
    pub fn memory_of_one(&self) -> u64 {
        self.shared.iter().map(|gpu| gpu.memory).max().unwrap_or(0)
    }

    /// Whether its GPUs are of one kind, so that what was on one of them could be on any.
    pub fn is_uniform(&self) -> bool {
        let mut pristine = self.shared.iter().filter(|gpu| gpu.pristine).map(|gpu| gpu.memory);
        let first = pristine.next();
        (self.shared.is_empty() || self.mig.is_empty())
            && pristine.all(|memory| Some(memory) == first)
            && self.mig.windows(2).all(|pair| pair[0].geometry == pair[1].geometry)
    }

    /// How many whole GPUs come from the shared ones, when the rest comes from those that are cut; `None` when the load
    /// does not fit.
    fn split(&self, load: &Load, steps: u64) -> Option<u64> {
        let least = load.whole.saturating_sub(self.mig.iter().filter(|gpu| gpu.whole).count() as u64);
        let most = load.whole.min(self.shared.iter().filter(|gpu| gpu.pristine).count() as u64);
        (least..=most).find(|whole| {
            mig::holds(&self.mig, &load.mig, load.whole - whole)
                && share::pack(&self.shared, &load.kinds, *whole, steps).is_some()
        })
    }

    /// Whether a node with these GPUs holds whatever one with the `other`s holds, both being new.
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

/// Whether a pod with the first wish can take the place of one with the second, on any node that admits both. `uniform`
/// when every room in question [`Room::is_uniform`].
pub(crate) fn replaces(mine: Option<GpuRequest>, other: Option<GpuRequest>, uniform: bool) -> bool {
    if !uniform && mine.is_some() {
        return mine == other;
    }
    match (mine, other) {
        // An empty GPU holds every share and, where it can be cut, every instance that is admitted there at all.
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

/// Whether an instance of the first profile can be wherever one of the second is, in every family that has both.
fn inside(profile: MigProfile, other: MigProfile) -> bool {
    use MigProfile::{G1, G1Double, G2, G3, G4, G7};
    match other {
        G1 => profile == G1,
        // The last two slices hold a double, and no 2g.
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
                let more = room.more(&content, request, ceiling);
                prop_assert!(more <= ceiling);
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
