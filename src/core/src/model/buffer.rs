//! Room that a pool keeps free for work that may come.

use jiff::Timestamp;
use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use crate::model::disruption::Window;

/// So many spare units of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// How many.
    pub units: u64,
    /// What one takes of a node, one of `pods` included.
    pub requests: ResourceList,
    /// When it is wanted; `None` for always.
    pub window: Option<Window>,
}

impl Buffer {
    /// How many units are wanted at a time. What cannot be read wants none: its pool says so.
    pub fn wanted(&self, now: Timestamp) -> u64 {
        match &self.window {
            Some(Window::Unreadable(_)) => 0,
            Some(window) if !window.is_open(now) => 0,
            _ => self.units,
        }
    }
}
