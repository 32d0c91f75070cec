//! Linear rows that every set of pods on a node's GPUs satisfies, as dimensions beside the problem's resources.
//!
//! For empty partitioned GPUs, the rows alone decide: they are the closed form of [`super::mig`] for the seven-slice
//! family with the placement of the 3g projected out. For shared GPUs the rows state that sums of units and memory fit
//! and, by dual feasible functions, that large pods do not share a GPU.

use poolwright_catalog::{MigGeometry, MigProfile};

use super::share::{MOST_ROWS, large};
use super::{Room, mig, share};
use crate::problem::{GPU_UNITS, GpuRequest};

/// A row, with its weight for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// Units of shared GPUs.
    Units,
    /// The memory of shared GPUs. A whole GPU weighs the least memory of any shared GPU.
    Memory(u64),
    /// The dual feasible function number k of Fekete and Schepers, applied to units. It is superadditive, so it also
    /// applies to the free units of a GPU in use.
    Large(u64),
    /// A weight by profile, and the weight of a whole GPU.
    Slices(mig::Counts, u64),
}

/// The seven-slice family: compute slices, memory slices, 2g beside halves, instances that need the left half.
const SEVEN: [Row; 4] = [
    Row::Slices([1, 1, 2, 3, 4, 7], 7),
    Row::Slices([1, 2, 2, 4, 4, 8], 8),
    Row::Slices([0, 0, 1, 1, 2, 3], 3),
    Row::Slices([0, 0, 0, 0, 1, 1], 1),
];
/// The memory slices of the seven-slice family whose 1g have two.
const IN_PAIRS: Row = Row::Slices([2, 2, 2, 4, 4, 8], 8);
/// The four-slice families.
const FOUR: Row = Row::Slices([1, 0, 2, 0, 4, 0], 4);

impl Row {
    fn weight(self, request: GpuRequest) -> u64 {
        match (self, request) {
            (Self::Units, GpuRequest::Share { units, .. }) => units.into(),
            (Self::Units, GpuRequest::Whole(count)) => u64::from(count) * u64::from(GPU_UNITS),
            (Self::Memory(_), GpuRequest::Share { memory_mib, .. }) => memory_mib,
            (Self::Memory(least), GpuRequest::Whole(count)) => u64::from(count).saturating_mul(least),
            (Self::Large(k), GpuRequest::Share { units, .. }) => large(k, units.into()),
            (Self::Large(k), GpuRequest::Whole(count)) => u64::from(count) * large(k, GPU_UNITS.into()),
            (Self::Slices(weights, _), GpuRequest::Mig { profile, count }) => {
                u64::from(count) * weights[mig::index(profile)]
            }
            (Self::Slices(_, whole), GpuRequest::Whole(count)) => u64::from(count) * whole,
            (Self::Slices(..), GpuRequest::Share { .. }) | (_, GpuRequest::Mig { .. }) => 0,
        }
    }

    /// Returns the highest weight of pods on one shared GPU.
    fn of_shared(self, gpu: &share::Gpu) -> u64 {
        match self {
            Self::Units => gpu.units.into(),
            Self::Memory(_) => gpu.memory,
            Self::Large(k) => large(k, gpu.units.into()),
            Self::Slices(_, whole) => {
                if gpu.pristine {
                    whole
                } else {
                    0
                }
            }
        }
    }

    /// Returns the highest weight of instances on one MIG GPU.
    fn of_mig(self, gpu: &mig::Gpu) -> u64 {
        let whole = if gpu.whole { self.weight(GpuRequest::Whole(1)) } else { 0 };
        match self {
            Self::Slices(weights, _) => gpu
                .options()
                .iter()
                .map(|counts| counts.iter().zip(&weights).map(|(count, weight)| count * weight).sum())
                .fold(whole, u64::max),
            _ => whole,
        }
    }
}

/// The rows that can bind in a problem.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(Vec<Row>);

impl Rows {
    /// Chooses the rows for these pods by request, on nodes with these GPUs.
    pub fn new(requests: &[(GpuRequest, u64)], rooms: &[&Room]) -> Self {
        let mut rows = Vec::new();
        let wants = |wanted: MigProfile| {
            requests
                .iter()
                .any(|(request, _)| matches!(request, GpuRequest::Mig { profile, .. } if *profile == wanted))
        };
        let whole = requests.iter().any(|(request, _)| matches!(request, GpuRequest::Whole(_)));
        let mut shares = requests.iter().filter_map(|(request, _)| match request {
            GpuRequest::Share { memory_mib, .. } => Some(*memory_mib),
            _ => None,
        });
        let mut shared = rooms.iter().flat_map(|room| &room.shared).peekable();
        if shared.peek().is_some() && (whole || shares.clone().next().is_some()) {
            rows.push(Row::Units);
            if shares.any(|memory| memory > 0) {
                rows.push(Row::Memory(shared.map(|gpu| gpu.memory).min().unwrap_or(0)));
            }
            rows.extend(large_rows(requests));
        }
        let cut: Vec<&mig::Gpu> = rooms.iter().flat_map(|room| &room.mig).collect();
        let any_mig = MigProfile::ALL.into_iter().any(wants);
        let is_one = |family: MigGeometry| cut.iter().any(|gpu| gpu.geometry == family);
        let in_pairs = is_one(MigGeometry::SevenInPairs);
        if (is_one(MigGeometry::Seven) || in_pairs) && (whole || any_mig) {
            let [compute, memory, pairs, left] = SEVEN;
            rows.push(compute);
            if wants(MigProfile::G3) || wants(MigProfile::G1Double) {
                rows.push(memory);
            }
            if in_pairs && (wants(MigProfile::G3) || wants(MigProfile::G1)) {
                rows.push(IN_PAIRS);
            }
            if wants(MigProfile::G2) {
                rows.push(pairs);
            }
            if wants(MigProfile::G4) {
                rows.push(left);
            }
        }
        if (is_one(MigGeometry::Four) || is_one(MigGeometry::FourOfTwelve)) && (whole || any_mig) {
            rows.push(FOUR);
        }
        Self(rows)
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns which rows are sums over a node, where [`crate::pricing`] knows what fits one GPU.
    pub fn packed(&self) -> impl Iterator<Item = bool> {
        self.0.iter().map(|row| !matches!(row, Row::Memory(_)))
    }

    /// Returns the weights of one pod.
    pub fn request(&self, request: Option<GpuRequest>) -> Vec<u64> {
        self.0.iter().map(|row| request.map_or(0, |request| row.weight(request))).collect()
    }

    /// Returns the capacities of a node.
    pub fn capacity(&self, room: Option<&Room>) -> Vec<u64> {
        self.0
            .iter()
            .map(|row| {
                let Some(room) = room else { return 0 };
                let shared = room.shared.iter().map(|gpu| row.of_shared(gpu));
                let cut = room.mig.iter().map(|gpu| row.of_mig(gpu));
                shared.chain(cut).fold(0, u64::saturating_add)
            })
            .collect()
    }
}

/// Returns the two functions by which the pods fill most GPUs, and the one for pods above half a GPU, as far as they are
/// stronger than the sum of units.
fn large_rows(requests: &[(GpuRequest, u64)]) -> Vec<Row> {
    let shares = |k: u64| -> Vec<(u64, u64, u64)> {
        let of = |(request, count): &(GpuRequest, u64)| match request {
            GpuRequest::Share { units, .. } => {
                Some((large(k, u64::from(*units)), u64::from(*units) * k, *count))
            }
            _ => None,
        };
        requests.iter().filter_map(of).collect()
    };
    let mut ranked: Vec<(u128, u64)> = (1..=MOST_ROWS)
        .filter(|k| shares(*k).iter().any(|(large, units, _)| large > units))
        .map(|k| {
            let sum: u128 =
                shares(k).iter().map(|(large, _, count)| u128::from(*large) * u128::from(*count)).sum();
            // In thousandths of the GPUs that they fill. All sums use the same counts, so rounding does not matter.
            (sum / u128::from(k), k)
        })
        .collect();
    ranked.sort_by_key(|(sum, k)| (std::cmp::Reverse(*sum), *k));
    let mut chosen: Vec<u64> = ranked.iter().take(2).map(|(_, k)| *k).collect();
    if ranked.iter().any(|(_, k)| *k == 1) && !chosen.contains(&1) {
        chosen.push(1);
    }
    chosen.sort_unstable();
    chosen.into_iter().map(Row::Large).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{any_request, any_state};
    use super::*;
    use crate::problem::{GpuMode, Gpus};

    fn keeps(rows: &Rows, room: &Room, content: &[(GpuRequest, u64)]) -> bool {
        let capacity = rows.capacity(Some(room));
        (0..rows.len()).all(|row| {
            let used: u64 =
                content.iter().map(|(request, pods)| rows.request(Some(*request))[row] * pods).sum();
            used <= capacity[row]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_content_that_fits_keeps_every_row(
            states in proptest::collection::vec(any_state(), 1..4),
            content in proptest::collection::vec((any_request(), 1..4u64), 1..5),
        ) {
            let room = Room::of_existing(&states);
            let rows = Rows::new(&content, &[&room]);
            let mut content = content;
            // Reduces the pods to those that fit.
            for at in 0..content.len() {
                let (request, pods) = content[at];
                content[at].1 = room.more(&content[..at], request, pods).least;
            }
            prop_assert!(keeps(&rows, &room, &content), "{:?}", content);
        }

        #[test]
        fn on_equal_empty_gpus_that_are_cut_whatever_keeps_every_row_fits(
            family in 0..4usize,
            count in 1..9u32,
            wishes in proptest::collection::vec((any_request(), 1..12u64), 1..6),
        ) {
            let geometry = [
                MigGeometry::Seven,
                MigGeometry::Four,
                MigGeometry::FourOfTwelve,
                MigGeometry::SevenInPairs,
            ][family];
            let room = Room::of_new(&Gpus { count, memory_mib: 0, mode: GpuMode::Mig { geometry, mixed: true } });
            prop_assert!(room.is_linear());
            let content: Vec<(GpuRequest, u64)> =
                wishes.into_iter().filter(|(request, _)| room.holds(&[(*request, 1)])).collect();
            let rows = Rows::new(&content, &[&room]);
            prop_assert_eq!(keeps(&rows, &room, &content), room.holds(&content), "{:?}", content);
        }

        #[test]
        fn on_one_shared_gpu_whatever_keeps_every_row_fits(
            content in proptest::collection::vec((any_request(), 1..4u64), 1..6),
            units_used in prop_oneof![Just(0u32), 0..1000u32],
            memory_used_mib in 0..16u64,
        ) {
            let state = crate::problem::GpuState::Shared { units_used, memory_used_mib, memory_mib: 16 };
            let room = Room::of_existing(&[state]);
            let content: Vec<(GpuRequest, u64)> =
                content.into_iter().filter(|(request, _)| room.holds(&[(*request, 1)])).collect();
            let rows = Rows::new(&content, &[&room]);
            prop_assert_eq!(keeps(&rows, &room, &content), room.holds(&content), "{:?}", content);
        }
    }

    #[test]
    fn pods_above_half_a_gpu_do_not_share_one_in_the_rows() {
        let share = |units| GpuRequest::Share { units, memory_mib: 0 };
        let room = Room::of_new(&Gpus { count: 2, memory_mib: 0, mode: GpuMode::Shared });
        let rows = Rows::new(&[(share(510), 3), (share(100), 1)], &[&room]);
        assert!(keeps(&rows, &room, &[(share(510), 2)]));
        assert!(!keeps(&rows, &room, &[(share(510), 3)]));
    }
}
