//! Buffers: capacity that a pool keeps free for future pods.

use jiff::Timestamp;
use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use crate::model::disruption::Window;

/// A number of spare units of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The number of units.
    pub units: u64,
    /// The requests of one unit, including one of `pods`.
    pub requests: ResourceList,
    /// The schedule on which the buffer applies; `None` for always.
    pub window: Option<Window>,
}

impl Buffer {
    /// Returns the number of units wanted at `now`. Returns zero if the schedule is invalid, which the pool's condition reports.
    pub fn wanted(&self, now: Timestamp) -> u64 {
        match &self.window {
            Some(Window::Unreadable(_)) => 0,
            Some(window) if !window.is_open(now) => 0,
            _ => self.units,
        }
    }
}
