//! Recent reclaims of instances by the cloud.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Recent reclaims of instances of one offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reclaims {
    /// The time at which they stop counting.
    pub until: Timestamp,
    /// The number of consecutive reclaims, at least one. Reclaims at about the same time count once.
    pub consecutive: u32,
}
