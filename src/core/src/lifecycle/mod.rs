//! The life of claims: launch, register, nominate, open, give back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::model::Snapshot;

/// What to do now, and when to look again although nothing changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What to do, in this order.
    pub actions: Vec<Action>,
    /// When a deadline or a timer ends; `None` when there is none.
    pub wake_at: Option<Timestamp>,
}

/// Decides about every claim, node and instance of the snapshot.
pub fn decide(snapshot: &Snapshot, now: Timestamp) -> Decision {
    let _ = (snapshot, now);
    Decision::default()
}
