//! Offerings whose instances the cloud took back.

use jiff::Timestamp;

/// Of an offering, what its cloud took back lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenBack {
    /// Until when that counts.
    pub until: Timestamp,
    /// How often in a row, at least once: instances that go together count once.
    pub row: u32,
}
