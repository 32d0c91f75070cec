//! Answers that never come.

use std::collections::BTreeMap;

use super::Front;

/// How many answers of each action are still to be kept back.
pub(super) type Silent = BTreeMap<String, usize>;

impl Front {
    /// The next so many calls of this action, `ec2:CreateFleet`, have their effect and are not answered, for as long as anybody waits.
    pub fn keep_silent(&self, action: &str, calls: usize) {
        self.inner().silent.insert(action.to_owned(), calls);
    }
}

/// Whether this call is one that is not answered.
pub(super) fn takes(silent: &mut Silent, action: &str) -> bool {
    match silent.get_mut(action) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}
