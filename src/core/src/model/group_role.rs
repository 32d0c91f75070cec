//! The roles of gangs.

use serde::{Deserialize, Serialize};

/// A role in a gang: pods that the others need, such as the master of a training job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupRole {
    /// Its name in messages: `master`.
    pub name: String,
    /// The label of its pods, with its value.
    pub label: (String, String),
    /// The number of its pods that must fit at the same time before any pod of the gang is placed.
    pub least: u32,
}

impl GroupRole {
    /// Returns what the gang needs of it, in words: `its master`.
    pub fn needed(&self) -> String {
        match self.least {
            1 => format!("its {}", self.name),
            least => format!("{least} pods of its role `{}`", self.name),
        }
    }
}
