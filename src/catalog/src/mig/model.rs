//! The names and the memory of GPU instances, by GPU model.
//!
//! NVIDIA's tools compute the gigabytes in a name from the memory of the board. So a few names vary with board
//! and driver (`3g.39gb` for `3g.40gb`). Plan by [`MigProfile`], show the name, and match a running node by its
//! profiles.

use super::{MigGeometry, MigProfile};
use crate::instance::Gpu;
use crate::resources::ResourceName;

/// A profile of a GPU model, with its name and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigInstanceKind {
    /// The profile.
    pub profile: MigProfile,
    /// Its full name: `1g.10gb`.
    pub name: &'static str,
    /// The memory for a pod in one instance, in MiB. NVIDIA publishes it for A100, H100, H200, A30 and RTX PRO 6000. For
    /// others it is nine tenths of the memory slices, which is less than any measured value.
    pub memory_mib: u64,
}

/// A GPU model that can be partitioned into instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigModel {
    /// Its possible partitions.
    pub geometry: MigGeometry,
    /// Its instances, the smallest first.
    pub kinds: &'static [MigInstanceKind],
}

/// One board: the model's names in catalogues, the minimum memory of its GPUs in MiB, and its instances.
struct Board {
    models: &'static [&'static str],
    memory_mib: u64,
    model: MigModel,
}

const fn kind(profile: MigProfile, (name, memory_mib): (&'static str, u64)) -> MigInstanceKind {
    MigInstanceKind { profile, name, memory_mib }
}

macro_rules! seven {
    ($models:expr, $memory:expr, $g1:expr, $double:expr, $g2:expr, $g3:expr, $g4:expr, $g7:expr) => {
        Board {
            models: &$models,
            memory_mib: $memory,
            model: MigModel {
                geometry: MigGeometry::Seven,
                kinds: &[
                    kind(MigProfile::G1, $g1),
                    kind(MigProfile::G1Double, $double),
                    kind(MigProfile::G2, $g2),
                    kind(MigProfile::G3, $g3),
                    kind(MigProfile::G4, $g4),
                    kind(MigProfile::G7, $g7),
                ],
            },
        }
    };
}

macro_rules! four {
    ($models:expr, $memory:expr, $geometry:expr, $g1:expr, $g2:expr, $g4:expr) => {
        Board {
            models: &$models,
            memory_mib: $memory,
            model: MigModel {
                geometry: $geometry,
                kinds: &[kind(MigProfile::G1, $g1), kind(MigProfile::G2, $g2), kind(MigProfile::G4, $g4)],
            },
        }
    };
}

/// Boards of one model are neighbours, the largest first. The board of a GPU is the first one that needs no more memory
/// than the GPU has.
const BOARDS: [Board; 13] = [
    seven!(
        ["a100", "a100-80gb"],
        61440,
        ("1g.10gb", 9856),
        ("1g.20gb", 19968),
        ("2g.20gb", 19968),
        ("3g.40gb", 40192),
        ("4g.40gb", 40192),
        ("7g.80gb", 80384)
    ),
    seven!(
        ["a100", "a100-40gb"],
        0,
        ("1g.5gb", 4864),
        ("1g.10gb", 9856),
        ("2g.10gb", 9856),
        ("3g.20gb", 19968),
        ("4g.20gb", 19968),
        ("7g.40gb", 40192)
    ),
    seven!(
        ["gh200", "gh200-144gb"],
        131072,
        ("1g.18gb", 16384),
        ("1g.36gb", 33024),
        ("2g.36gb", 33024),
        ("3g.72gb", 66355),
        ("4g.72gb", 66355),
        ("7g.144gb", 132710)
    ),
    seven!(
        ["h100", "gh200", "h20"],
        96256,
        ("1g.12gb", 11059),
        ("1g.24gb", 22118),
        ("2g.24gb", 22118),
        ("3g.48gb", 44236),
        ("4g.48gb", 44236),
        ("7g.96gb", 88473)
    ),
    seven!(
        ["h100", "h100-nvl"],
        90112,
        ("1g.12gb", 10781),
        ("1g.24gb", 21563),
        ("2g.24gb", 21563),
        ("3g.47gb", 43126),
        ("4g.47gb", 43126),
        ("7g.94gb", 86252)
    ),
    seven!(
        ["h100", "h100-80gb", "h100-mega"],
        0,
        ("1g.10gb", 9856),
        ("1g.20gb", 19968),
        ("2g.20gb", 19968),
        ("3g.40gb", 40192),
        ("4g.40gb", 40192),
        ("7g.80gb", 80384)
    ),
    seven!(
        ["h200", "h200-141gb"],
        0,
        ("1g.18gb", 16384),
        ("1g.35gb", 33024),
        ("2g.35gb", 33024),
        ("3g.71gb", 71168),
        ("4g.71gb", 71168),
        ("7g.141gb", 142336)
    ),
    seven!(
        ["gb200"],
        0,
        ("1g.23gb", 21196),
        ("1g.47gb", 42393),
        ("2g.47gb", 42393),
        ("3g.93gb", 84787),
        ("4g.93gb", 84787),
        ("7g.186gb", 169574)
    ),
    seven!(
        ["b200"],
        0,
        ("1g.23gb", 20627),
        ("1g.45gb", 41255),
        ("2g.45gb", 41255),
        ("3g.90gb", 82511),
        ("4g.90gb", 82511),
        ("7g.180gb", 165023)
    ),
    seven!(
        ["b300"],
        0,
        ("1g.34gb", 30942),
        ("1g.67gb", 61884),
        ("2g.67gb", 61884),
        ("3g.135gb", 123768),
        ("4g.135gb", 123768),
        ("7g.269gb", 247536)
    ),
    seven!(
        ["gb300"],
        0,
        ("1g.35gb", 30942),
        ("1g.70gb", 61884),
        ("2g.70gb", 61884),
        ("3g.139gb", 123768),
        ("4g.139gb", 123768),
        ("7g.278gb", 247536)
    ),
    four!(["a30"], 0, MigGeometry::Four, ("1g.6gb", 5836), ("2g.12gb", 11672), ("4g.24gb", 23344)),
    four!(
        ["rtx-pro-server-6000", "rtx-pro-6000"],
        0,
        MigGeometry::FourOfTwelve,
        ("1g.24gb", 24166),
        ("2g.48gb", 48537),
        ("4g.96gb", 97382)
    ),
];

impl MigModel {
    /// Finds the model by its name in a catalogue (lower case with dashes) and the memory of one GPU in MiB. Returns
    /// `None` if the GPU cannot be partitioned, or NVIDIA published no placements for it. If the memory is unknown, this
    /// returns the smallest board of the name, so that no pod is promised memory that does not exist.
    pub fn named(model: &str, memory_mib: Option<u64>) -> Option<&'static Self> {
        BOARDS
            .iter()
            .find(|board| board.models.contains(&model) && memory_mib.unwrap_or(0) >= board.memory_mib)
            .or_else(|| BOARDS.iter().rfind(|board| board.models.contains(&model)))
            .map(|board| &board.model)
    }

    /// Returns the model of an instance type's GPUs.
    pub fn of(gpu: &Gpu) -> Option<&'static Self> {
        Self::named(gpu.model.as_str(), gpu.memory_mib)
    }

    /// Returns the instance kind of a profile.
    pub fn kind(&self, profile: MigProfile) -> Option<&'static MigInstanceKind> {
        self.kinds.iter().find(|kind| kind.profile == profile)
    }

    /// Returns the profile of an instance by its full name: `1g.10gb`.
    pub fn profile(&self, name: &str) -> Option<MigProfile> {
        self.kinds.iter().find(|kind| kind.name == name).map(|kind| kind.profile)
    }

    /// Returns whether another board has the name of this one's double for its smallest instance: `1g.10gb` is the double of an A100
    /// with 40 GB, and the smallest instance of one with 80 GB. A pod that requests the name may run on both.
    pub fn is_double_named_as_a_smallest(&self) -> bool {
        let smallest = |board: &Board| board.model.kind(MigProfile::G1).map(|kind| kind.name);
        self.kind(MigProfile::G1Double)
            .is_some_and(|double| BOARDS.iter().any(|board| smallest(board) == Some(double.name)))
    }

    /// Returns the resource that a pod requests to get one: `nvidia.com/mig-1g.10gb` (strategy `mixed` of the device
    /// plugin).
    pub fn resource(&self, profile: MigProfile) -> Option<String> {
        self.kind(profile).map(|kind| format!("{}{}", ResourceName::MIG_PREFIX, kind.name))
    }

    /// Returns the profile of the smallest instance with at least this share (thousandths) of the compute slices and this
    /// much memory; `None` if even the whole GPU has less.
    pub fn smallest(&self, milli: u32, memory_mib: u64) -> Option<MigProfile> {
        self.kinds
            .iter()
            .find(|kind| self.geometry.computes(kind.profile, milli) && kind.memory_mib >= memory_mib)
            .map(|kind| kind.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_a100_is_told_from_its_larger_sister_by_memory() {
        let name = |memory| {
            MigModel::named("a100", memory).and_then(|model| model.kind(MigProfile::G1)).map(|k| k.name)
        };
        assert_eq!(name(Some(40960)), Some("1g.5gb"));
        assert_eq!(name(Some(81920)), Some("1g.10gb"));
        assert_eq!(name(None), Some("1g.5gb"));
        assert_eq!(
            MigModel::named("h100", Some(81920)).and_then(|m| m.resource(MigProfile::G3)).as_deref(),
            Some("nvidia.com/mig-3g.40gb")
        );
    }

    #[test]
    fn the_double_of_a_board_may_have_the_name_of_the_smallest_instance_of_another() {
        let boards = BOARDS.iter().filter(|board| board.model.is_double_named_as_a_smallest());
        let doubles: Vec<&str> =
            boards.filter_map(|board| Some(board.model.kind(MigProfile::G1Double)?.name)).collect();
        assert_eq!(doubles, ["1g.10gb", "1g.24gb", "1g.24gb", "1g.35gb"]);
    }

    #[test]
    fn gpus_that_cannot_be_cut_have_no_model() {
        for model in ["t4", "a10g", "l4", "l40s", "v100", "rtx-pro-4500"] {
            assert_eq!(MigModel::named(model, Some(24576)), None, "{model}");
        }
    }

    #[test]
    fn every_model_has_the_profiles_of_its_family_with_rising_memory() {
        for board in &BOARDS {
            let mine: Vec<MigProfile> = board.model.kinds.iter().map(|kind| kind.profile).collect();
            assert_eq!(mine, board.model.geometry.profiles().collect::<Vec<_>>(), "{:?}", board.models);
            assert!(board.model.kinds.windows(2).all(|pair| pair[0].memory_mib <= pair[1].memory_mib));
            for kind in board.model.kinds {
                assert_eq!(board.model.profile(kind.name), Some(kind.profile));
            }
        }
    }

    #[test]
    fn a_share_gets_the_smallest_instance_with_as_much_compute_and_memory() {
        let a100 = MigModel::named("a100", Some(40960)).expect("it can be cut");
        let smallest = |milli, memory| a100.smallest(milli, memory);
        assert_eq!(smallest(140, 0), Some(MigProfile::G1));
        assert_eq!(smallest(143, 0), Some(MigProfile::G2));
        assert_eq!(smallest(100, 6000), Some(MigProfile::G1Double));
        assert_eq!(smallest(400, 0), Some(MigProfile::G3));
        assert_eq!(smallest(440, 0), Some(MigProfile::G4));
        assert_eq!(smallest(600, 0), Some(MigProfile::G7));
        assert_eq!(smallest(1000, 50000), None);
        assert_eq!(MigGeometry::Four.smallest(300), Some(MigProfile::G2));
        assert_eq!(MigGeometry::Seven.smallest(1001), None);
    }

    #[test]
    fn every_gpu_of_the_builtin_catalogue_that_can_be_cut_is_known() {
        let catalogue = crate::builtin();
        let mut cut: Vec<&str> = catalogue
            .types()
            .values()
            .filter_map(|kind| kind.gpu.as_ref())
            .filter(|gpu| MigModel::of(gpu).is_some())
            .map(|gpu| gpu.model.as_str())
            .collect();
        cut.sort_unstable();
        cut.dedup();
        assert_eq!(cut, ["a100", "b200", "b300", "h100", "h200", "rtx-pro-server-6000"]);
    }
}
