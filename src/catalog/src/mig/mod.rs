//! Multi-instance GPUs: the possible partitions of a GPU, with the names of the MIG user guide
//! (docs.nvidia.com/datacenter/tesla/mig-user-guide, supported MIG profiles).

mod model;

pub use model::{MigInstanceKind, MigModel};

use serde::{Deserialize, Serialize};

/// The possible partitions of a GPU family. Placements are in memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MigGeometry {
    /// Seven compute slices over eight memory slices: A100, H100, H200, B200 and similar GPUs.
    Seven,
    /// Four compute slices over four memory slices: A30.
    Four,
    /// Four compute slices over twelve memory slices: RTX PRO 6000 Blackwell.
    FourOfTwelve,
    /// [`Self::Seven`] without its smallest instance: here [`MigProfile::G1`] has the memory of two slices. No board is of this
    /// family. It lets GPUs of a board serve pods that name its double as other boards name their smallest instance.
    SevenInPairs,
}

/// A profile of GPU instances, by its compute slices. The number of gigabytes in its full name depends on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MigProfile {
    /// One compute slice.
    #[serde(rename = "1g")]
    G1,
    /// One compute slice with the memory of two.
    #[serde(rename = "1g.double")]
    G1Double,
    /// Two compute slices.
    #[serde(rename = "2g")]
    G2,
    /// Three compute slices with half of the memory.
    #[serde(rename = "3g")]
    G3,
    /// Four compute slices, with half of the memory of a GPU with seven, or all of a GPU with four.
    #[serde(rename = "4g")]
    G4,
    /// All of a GPU with seven compute slices.
    #[serde(rename = "7g")]
    G7,
}

/// The possible placements of a profile's instances on a GPU, in memory slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placements {
    /// The compute slices of one instance.
    pub compute: u8,
    /// The memory slices of one instance.
    pub size: u8,
    /// The memory slices at which an instance may start.
    pub starts: &'static [u8],
    /// The largest number of instances on one GPU.
    pub most: u8,
}

impl MigProfile {
    /// All profiles, in the order of memory slices, then of compute slices.
    pub const ALL: [Self; 6] = [Self::G1, Self::G1Double, Self::G2, Self::G3, Self::G4, Self::G7];
}

impl MigGeometry {
    /// Returns the profiles of the family, the smallest first.
    pub fn profiles(self) -> impl Iterator<Item = MigProfile> {
        MigProfile::ALL.into_iter().filter(move |profile| self.placements(*profile).is_some())
    }

    /// Returns the smallest profile with at least this share (thousandths) of the GPU's compute slices; `None` above a
    /// whole GPU.
    pub fn smallest(self, milli: u32) -> Option<MigProfile> {
        self.profiles().find(|profile| self.computes(*profile, milli))
    }

    /// Returns whether an instance of the profile has at least this share (thousandths) of the GPU's compute slices.
    pub fn computes(self, profile: MigProfile, milli: u32) -> bool {
        self.placements(profile).is_some_and(|placements| {
            u64::from(milli) * u64::from(self.compute_slices()) <= u64::from(placements.compute) * 1000
        })
    }

    /// Returns the memory slices of the whole GPU: the axis of the placements.
    pub fn memory_slices(self) -> u8 {
        match self {
            Self::Seven | Self::SevenInPairs => 8,
            Self::Four => 4,
            Self::FourOfTwelve => 12,
        }
    }

    /// Returns the compute slices of the whole GPU.
    pub fn compute_slices(self) -> u8 {
        match self {
            Self::Seven | Self::SevenInPairs => 7,
            Self::Four | Self::FourOfTwelve => 4,
        }
    }

    /// Returns the placements by the table of the MIG user guide; `None` for a profile that is not in the family.
    pub fn placements(self, profile: MigProfile) -> Option<Placements> {
        let of = |compute, size, starts, most| Some(Placements { compute, size, starts, most });
        match (self, profile) {
            (Self::Seven, MigProfile::G1) => of(1, 1, &[0, 1, 2, 3, 4, 5, 6], 7),
            (Self::Seven, MigProfile::G1Double) | (Self::SevenInPairs, MigProfile::G1) => {
                of(1, 2, &[0, 2, 4, 6], 4)
            }
            (Self::Seven | Self::SevenInPairs, MigProfile::G2) => of(2, 2, &[0, 2, 4], 3),
            (Self::Seven | Self::SevenInPairs, MigProfile::G3) => of(3, 4, &[0, 4], 2),
            (Self::Seven | Self::SevenInPairs | Self::Four, MigProfile::G4) => of(4, 4, &[0], 1),
            (Self::Seven | Self::SevenInPairs, MigProfile::G7) => of(7, 8, &[0], 1),
            (Self::Four, MigProfile::G1) => of(1, 1, &[0, 1, 2, 3], 4),
            (Self::Four, MigProfile::G2) => of(2, 2, &[0, 2], 2),
            (Self::FourOfTwelve, MigProfile::G1) => of(1, 3, &[0, 3, 6, 9], 4),
            (Self::FourOfTwelve, MigProfile::G2) => of(2, 6, &[0, 6], 2),
            (Self::FourOfTwelve, MigProfile::G4) => of(4, 12, &[0], 1),
            _ => None,
        }
    }
}
