//! The rules of a pool on its spot nodes.

use serde::{Deserialize, Serialize};

use crate::model::budget::CountOrPercent;

/// Rules on how many nodes of a pool may be spot, and how they are divided over offerings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpotRules {
    /// The least number of its nodes, or the least percentage of them, that are on demand while any of them is spot. Reserved
    /// nodes count as on demand, because the cloud does not take them back. `None` for no floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_demand_floor: Option<CountOrPercent>,
    /// The largest percentage of its spot nodes that may be of one instance type in one zone. `None` for no ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_share: Option<u32>,
}

impl SpotRules {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the floor; zero is none.
    pub fn set_floor(&mut self, floor: CountOrPercent) {
        let is_zero = matches!(floor, CountOrPercent::Count(0) | CountOrPercent::Percent(0));
        self.on_demand_floor = (!is_zero).then_some(floor);
    }

    /// Sets the largest percentage of one offering; all spot nodes are no ceiling.
    pub fn set_max_share(&mut self, percent: u32) {
        self.max_share = (percent < 100).then_some(percent);
    }

    /// Returns the floor in words: `20 % of its nodes` or `3 nodes`.
    pub(crate) fn floor_in_words(floor: CountOrPercent) -> String {
        match floor {
            CountOrPercent::Count(1) => "1 node".to_owned(),
            CountOrPercent::Count(nodes) => format!("{nodes} nodes"),
            CountOrPercent::Percent(percent) => format!("{percent} % of its nodes"),
        }
    }
}
