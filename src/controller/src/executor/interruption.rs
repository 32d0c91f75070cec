//! Records the interruption of an instance in the status of its claim. After that, it survives a restart, and the notice can be
//! acknowledged.

use poolwright_core::lifecycle::interruption_conditions;
use poolwright_core::{Claim, Interruption};
use poolwright_intake::{api_interruption, merge_conditions};
use tracing::{info, warn};

use super::Executor;
use super::progress::Progress;
use super::status::Changed;

/// The result of recording an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordResult {
    /// It is recorded now.
    Recorded,
    /// It was recorded before.
    AlreadyRecorded,
    /// The claim is gone.
    ClaimGone,
    /// It is not recorded. Another attempt may succeed.
    NotRecorded,
    /// We do not lead.
    NotLeading,
}

impl Executor {
    /// Tries once to record an interruption of this claim's instance, merged with what is recorded.
    pub async fn record_interruption(&self, claim: &Claim, interruption: &Interruption) -> RecordResult {
        let now = self.context.clock.now();
        let changed = self.change_claim(&claim.name, Some(&claim.uid), |object| {
            let generation = object.metadata.generation;
            let status = object.status.get_or_insert_default();
            let before = status.clone();
            let known = status.interruption.as_ref().map(poolwright_intake::interruption);
            let merged = known.map_or_else(|| interruption.clone(), |known| known.merged(interruption));
            let updates = interruption_conditions(&merged, now);
            status.conditions = merge_conditions(&status.conditions, &updates, now, generation);
            status.interruption = Some(api_interruption(&merged));
            *status != before
        });
        match changed.await {
            Changed::Written(_) => {
                let deadline =
                    interruption.deadline.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
                info!(claim = %claim.name, kind = %interruption.kind, deadline, message = interruption.message, "interrupted");
                RecordResult::Recorded
            }
            Changed::Unchanged(_) => RecordResult::AlreadyRecorded,
            Changed::NotWritten(Progress::NothingToDo) => RecordResult::ClaimGone,
            Changed::NotWritten(Progress::NotLeading) => RecordResult::NotLeading,
            Changed::NotWritten(outcome) => {
                warn!(claim = %claim.name, ?outcome, "an interruption was not recorded");
                RecordResult::NotRecorded
            }
        }
    }
}
