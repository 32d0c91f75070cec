//! The lifecycle of claims: launch, register, reserve or nominate, open, drain, terminate. Each step has its own file.
//! `model/stage.rs` derives the stage (state) of a claim from its conditions.

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
pub(crate) mod retire;
pub(crate) mod start;
pub(crate) mod unlisted;
pub(crate) mod waiting;

pub use crate::lifecycle::advertised::lacks;
pub use crate::lifecycle::context::{Decision, PlacementMode};
pub use crate::lifecycle::drain::is_waited_for;
pub use crate::lifecycle::interruption::interruption_conditions;
pub use crate::lifecycle::reserve::reservation;
pub use crate::lifecycle::retire::open_all;

use std::sync::Arc;

use jiff::Timestamp;

use crate::lifecycle::context::LifecycleContext;
use crate::model::Snapshot;

/// Decides on the actions for every claim, node and instance of the snapshot.
///
/// Every call decides from the recorded state alone. So it repeats an action until the effect shows in the snapshot, and the
/// executor skips actions that are still in progress. After `Launch` and `Terminate`, `wake_at` is at most 5 s later.
pub fn decide(snapshot: &Snapshot, now: Timestamp, placement: PlacementMode) -> Decision {
    let mut context = LifecycleContext::new(snapshot, now, placement);
    let opening = opening::choose(&mut context);
    context.buffered = buffer::kept(&mut context);
    context.unproven = unlisted::kinds_without_proof(&context);
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
