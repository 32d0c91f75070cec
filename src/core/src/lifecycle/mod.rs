//! The life of claims: launch, register, reserve or nominate, open, give back. One stage, one file.

pub(crate) mod advertised;
pub(crate) mod allowance;
pub(crate) mod buffer;
pub(crate) mod context;
pub(crate) mod detach;
pub(crate) mod drain;
pub(crate) mod empty;
pub(crate) mod end;
pub(crate) mod gang;
pub(crate) mod interruption;
pub(crate) mod nominate;
pub(crate) mod opening;
pub(crate) mod protection;
pub(crate) mod reaper;
pub(crate) mod repair;
pub(crate) mod replicas;
pub(crate) mod reserve;
pub(crate) mod start;
pub(crate) mod waiting;

pub use crate::lifecycle::context::{Decision, Placement};
pub use crate::lifecycle::drain::is_waited_for;
pub use crate::lifecycle::interruption::interruption_conditions;
pub use crate::lifecycle::reserve::reservation;

use std::sync::Arc;

use jiff::Timestamp;

use crate::lifecycle::context::LifecycleContext;
use crate::model::Snapshot;

/// Decides about every claim, node and instance of the snapshot.
///
/// Everything is decided anew from what is recorded: an action is repeated until its outcome shows in the snapshot, and
/// whoever carries actions out leaves out what is still under way. `Launch` and `Terminate` wake again after 5 s.
pub fn decide(snapshot: &Snapshot, now: Timestamp, placement: Placement) -> Decision {
    let mut context = LifecycleContext::new(snapshot, now, placement);
    let opening = opening::choose(&mut context);
    context.buffered = buffer::kept(&mut context);
    for claim in snapshot.claims.values().map(Arc::as_ref) {
        if claim.deleting_since.is_some() {
            end::decide(&mut context, claim);
        } else {
            start::decide(&mut context, claim, &opening);
        }
    }
    replicas::decide(&mut context);
    reaper::decide(&mut context);
    context.decision
}
