//! Calls that take effect and get no response.

use std::collections::BTreeMap;

use super::Front;

/// The number of responses still to withhold, by action.
pub(super) type Silent = BTreeMap<String, usize>;

impl Front {
    /// Makes the next calls of this action (`ec2:CreateFleet`) take effect and get no response, however long the client waits.
    pub fn keep_silent(&self, action: &str, calls: usize) {
        self.inner().silent.insert(action.to_owned(), calls);
    }
}

/// Checks whether this call gets no response, and counts it.
pub(super) fn takes(silent: &mut Silent, action: &str) -> bool {
    match silent.get_mut(action) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}
