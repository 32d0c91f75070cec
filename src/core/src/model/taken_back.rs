//! Offerings whose instances the cloud reclaimed.

use jiff::Timestamp;

/// Recent reclaims of instances of one offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// When they stop counting.
    pub until: Timestamp,
    /// Reclaims in a row, at least one. Reclaims at about the same time count once.
    pub row: u32,
}
