//! Buffers: capacity that a pool keeps free for future pods.

use jiff::Timestamp;
use poolwright_catalog::{ResourceList, ResourceName};
use serde::{Deserialize, Serialize};

use crate::model::arrivals::Arrivals;
use crate::model::disruption::Window;
use crate::model::duration::SEPARATOR;
use crate::model::names::PoolName;

/// A number of spare units of one size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The number of units.
    pub units: Units,
    /// The requests of one unit, including one of `pods`.
    pub requests: ResourceList,
    /// The schedule on which the buffer applies; `None` for always.
    pub window: Option<Window>,
}

/// The number of units of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Units {
    /// This number.
    Fixed(u32),
    /// As many as pay, by the pods that came.
    Auto {
        /// The most units.
        at_most: u32,
    },
}

impl Buffer {
    /// Returns the number of units wanted in a pool at `now`. Returns zero if the schedule is invalid, which the pool's condition
    /// reports.
    pub fn wanted(&self, pool: &PoolName, arrivals: &Arrivals, now: Timestamp) -> u64 {
        if !self.is_open(now) {
            return 0;
        }
        match self.units {
            Units::Fixed(units) => units.into(),
            Units::Auto { at_most } => arrivals.choose(&self.size(pool), at_most, now).units.into(),
        }
    }

    /// Says how many units Poolwright chooses for a pool at `now`, and why; `None` if the user wrote the number.
    pub fn chosen(&self, pool: &PoolName, arrivals: &Arrivals, now: Timestamp) -> Option<String> {
        match self.units {
            Units::Fixed(_) => None,
            Units::Auto { .. } if !self.is_open(now) => {
                Some("auto keeps 0 units now, because its schedule keeps none".to_owned())
            }
            Units::Auto { at_most } => Some(arrivals.choose(&self.size(pool), at_most, now).to_string()),
        }
    }

    /// Returns whether the number of units changes with time.
    pub(crate) fn varies(&self) -> bool {
        self.window.is_some() || self.is_auto()
    }

    /// Returns whether Poolwright chooses the number of units.
    pub(crate) fn is_auto(&self) -> bool {
        matches!(self.units, Units::Auto { .. })
    }

    /// Returns the name of the size of its units in a pool, for [`Arrivals`].
    pub fn size(&self, pool: &PoolName) -> String {
        let amounts = self.requests.iter().filter(|(name, _)| name.as_str() != ResourceName::PODS);
        let amounts: Vec<String> =
            amounts.map(|(name, amount)| format!("{} {name}", name.quantity(amount))).collect();
        format!("{}{SEPARATOR}{pool}", amounts.join(", "))
    }

    fn is_open(&self, now: Timestamp) -> bool {
        match &self.window {
            Some(Window::Unreadable(_)) => false,
            Some(window) => window.is_open(now),
            None => true,
        }
    }
}
