//! How long each stage of a claim may take.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How long each stage of a claim may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadlines {
    /// From creation to a launched instance.
    pub launch: SignedDuration,
    /// From launch to a registered node.
    pub registration: SignedDuration,
    /// From registration to a node that is ready and advertises all it promised.
    pub initialization: SignedDuration,
    /// From the deletion of the claim to the end of its instance, whoever is still on it; `None` to wait for as long as a budget
    /// or a protected pod holds it up.
    pub termination: Option<SignedDuration>,
}

impl Default for Deadlines {
    /// 5, 15 and 15 minutes; no end to waiting for pods.
    fn default() -> Self {
        Self {
            launch: SignedDuration::from_mins(5),
            registration: SignedDuration::from_mins(15),
            initialization: SignedDuration::from_mins(15),
            termination: None,
        }
    }
}
